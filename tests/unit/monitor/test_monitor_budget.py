"""How many more starts a failure may cause: the host counts on the ends that it has, and explain tells as many."""

from __future__ import annotations

import random
from dataclasses import replace
from pathlib import Path

from monitor_stage import a_plan

from comborun.attempt import End
from comborun.bundle import policy
from comborun.host.attempts import RunDirectory
from comborun.judging import DEFAULT_RETRY
from comborun.monitor.snapshot import Attempt
from comborun.monitor.waiting import budget
from comborun.plan import Plan
from comborun.rules.words import Cause, Failure, Outcome

KINDS = ("gpu_memory", "killed", "preempted", "stopped", "lost")


def end(kind: str) -> str:
    """The text of an end record."""
    failure = "" if kind == "stopped" else kind
    cause = "signal\nsignal=9" if kind == "killed" else kind
    return f'{{"cause": "{cause}", "class": "{failure}", "completeness": "none", "ended": "5"}}\n'


def a_history(chance: random.Random) -> list[str]:
    """Kinds of ends, oldest first; now and then so many of one kind that a bound is reached."""
    if chance.random() < 0.3:
        return [*chance.choices(KINDS, k=2), *["preempted"] * chance.randint(8, 12)]
    return chance.choices(KINDS, k=chance.randint(1, 6))


def put(run: Path, plan: Plan, history: list[str]) -> None:
    (run / "dispatch").mkdir(parents=True)
    (run / "id").write_text("env-20260101T000000Z-abcd\n")
    (run / "dispatch/policy.tsv").write_text(policy(plan))
    for number, kind in enumerate(history, 1):
        at = run / f"sessions/env_one/attempt-{number}"
        at.mkdir(parents=True)
        (at / "end").write_text(end(kind))


def test_the_budget_that_is_told_is_the_one_that_the_host_goes_by(tmp_path: Path) -> None:
    chance = random.Random(11)
    told: list[tuple[list[str], bool]] = []
    host: list[tuple[list[str], bool]] = []
    for number in range(200):
        history = a_history(chance)
        bare = a_plan(())
        plan = replace(bare, limits=replace(bare.limits, attempts=chance.randint(1, 6)), retry=DEFAULT_RETRY)
        put(tmp_path / f"{number:03}", plan, history)
        attempts = [Attempt("env_one", n, end=End.parse(end(kind))) for n, kind in enumerate(history, 1)]
        last = attempts[-1].end
        assert last
        spent = budget(plan, attempts, last.failure or Failure.ERROR)
        told.append((history, spent.left > 0 and last.outcome is not Outcome.CANCELLED))
        due = RunDirectory(str(tmp_path / f"{number:03}")).due("env_one", len(history))
        host.append((history, due is not None))
    assert [(*one, f"the host: {other[1]}") for one, other in zip(told, host, strict=True) if one != other] == []
    assert {more for _, more in told} == {False, True}
    assert Cause.PREEMPTED in {kind for history, _ in told for kind in history}
