"""How many more starts a failure may cause: the host counts on the ends that it has, and explain tells as many."""

from __future__ import annotations

import random
import subprocess
from dataclasses import replace
from pathlib import Path

from monitor_stage import a_plan

from comborun.attempt import End
from comborun.bundle import policy
from comborun.library import scripts_directory
from comborun.plan import Plan
from comborun.state import Cause, Failure, Outcome
from comborun.survival import DEFAULT_RETRY
from monitor.answer.snapshot import Attempt
from monitor.reasons.waits import budget

LOOK = """
for part in base/record base/clock base/policy attempt/attempt attempt/retry; do source "$1/lib/$part.sh"; done
for run in "$2"/*; do
  policy::read "$run/policy.tsv"
  ends=("$run"/sessions/env_one/*/end)
  retry::history env_one "${#ends[@]}"
  used=$made
  if retry::due env_one "${#ends[@]}"; then more=1; else more=0; fi
  printf '%s %s\\n' "$used" "$more"
done
"""
KINDS = ("gpu_memory", "killed", "preempted", "stopped", "lost", "gave_way")


def end(kind: str) -> str:
    """The text of an end record."""
    if kind == "gave_way":
        return "cause=gpu_memory\ncode=1\nclass=gpu_memory\ncompleteness=none\nended=5\ngave_way=1\n"
    failure = "" if kind == "stopped" else kind
    cause = "signal\nsignal=9" if kind == "killed" else kind
    return f"cause={cause}\nclass={failure}\ncompleteness=none\nended=5\n"


def a_history(chance: random.Random) -> list[str]:
    """Kinds of ends, oldest first; now and then so many of one kind that a bound is reached."""
    if chance.random() < 0.3:
        return [*chance.choices(KINDS, k=2), *[chance.choice(("preempted", "gave_way"))] * chance.randint(8, 12)]
    return chance.choices(KINDS, k=chance.randint(1, 6))


def put(run: Path, plan: Plan, history: list[str]) -> None:
    run.mkdir()
    (run / "policy.tsv").write_text(policy(plan))
    for number, kind in enumerate(history, 1):
        at = run / f"sessions/env_one/attempt-{number}"
        at.mkdir(parents=True)
        (at / "end").write_text(end(kind))
        if kind == "gave_way":
            (at / "give_way").touch()


def test_the_budget_that_is_told_is_the_one_that_the_host_goes_by(tmp_path: Path) -> None:
    chance = random.Random(11)
    told: list[tuple[list[str], int, bool]] = []
    for number in range(200):
        history = a_history(chance)
        bare = a_plan(())
        plan = replace(bare, limits=replace(bare.limits, attempts=chance.randint(1, 6)), retry=DEFAULT_RETRY)
        put(tmp_path / f"{number:03}", plan, history)
        attempts = [Attempt("env_one", n, end=End.parse(end(kind))) for n, kind in enumerate(history, 1)]
        last = attempts[-1].end
        assert last
        spent = budget(plan, attempts, last.failure or Failure.ERROR)
        told.append((history, spent.used, spent.left > 0 and last.outcome is not Outcome.CANCELLED))
    command = ["bash", "-c", LOOK, "look", str(scripts_directory()), str(tmp_path)]
    counted = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    host = [
        (history, int(line.split()[0]), line.endswith(" 1")) for (history, *_), line in zip(told, counted, strict=True)
    ]
    assert [(*one, f"the host: {other[1:]}") for one, other in zip(told, host, strict=True) if one != other] == []
    assert {more for *_, more in told} == {False, True}
    assert Cause.PREEMPTED in {kind for history, *_ in told for kind in history}
