"""What keeps sessions from starting: holds, quarantine, waits, a dispatcher that is gone; and what to do about them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from monitor_stage import (
    HOST,
    NO_DISK,
    NOW,
    Seen,
    a_hold,
    a_plan,
    a_quarantine,
    a_session,
    a_view,
    a_wait,
    an_answer,
    status_of,
)

from comborun.answers import data_of
from comborun.errors import HostError
from comborun.model.judging import RetryRule
from comborun.model.plan import Plan
from comborun.monitor.document import answer
from comborun.monitor.status import RunStatus
from comborun.monitor.trial_setup import Progress, TrialSetup, _Trial
from comborun.rules.endings.failures import Failure
from comborun.rules.facts import Fact
from comborun.rules.holds import HoldReason
from comborun.rules.room.waits import Wait, WaitFor
from comborun.rules.vocabulary import Life, Outcome
from comborun.words import say

RETRY = (RetryRule(Failure.GPU_MEMORY, 2, 60.0), RetryRule(Failure.STALLED, 1, 10.0))
PLAN = replace(
    a_plan([a_session("act", "grass"), a_session("act", "stairs")]),
    limits=replace(a_plan([]).limits, attempts=3),
    retry=RETRY,
)
RUNNING = Seen("grass_act")
FAILED = RUNNING.ended("gpu_memory", "partial", code=1, records=3, successes=1)
LUNCH = Fact(HoldReason.BY_PERSON, words="the training job needs the GPU until 11:00")
PAUSED, HALTED, DRAINING = a_hold("paused", LUNCH.text("words")), a_hold("halted", "3 failed"), a_hold("draining", "")
Header = tuple[dict[str, Any], ...]


def look(*seen: Seen, plan: Plan = PLAN, header: Header = (), **fields: object) -> RunStatus:
    answer = an_answer(*seen, host=(*HOST, *header), **fields)  # type: ignore[arg-type]
    return status_of(a_view(plan), answer)


RETRY_1 = Fact(Wait.RETRY_AFTER, failure="gpu_memory", attempt=1)


def test_while_nothing_new_starts_no_time_of_another_start_is_told() -> None:
    wait = a_wait("grass_act", RETRY_1, NOW + 40)
    grass, _ = look(FAILED, header=(HALTED, wait)).sessions
    assert grass.life == Life.QUEUED
    (start,) = grass.facts
    assert start.fields.get("held")
    assert "in_s" not in start.fields


def test_a_session_that_will_be_started_again_is_queued_and_says_when_and_why() -> None:
    grass, _ = look(FAILED, header=(a_wait("grass_act", RETRY_1, NOW + 40),)).sessions
    assert (grass.life, grass.outcome, grass.failure) == (Life.QUEUED, None, Failure.GPU_MEMORY)
    again = {"waits_for": "retry", "in_s": 40, "failure": "gpu_memory", "attempt": 2, "of": 3}
    assert grass.facts == (Fact("starts_again", **again),)
    assert grass.note == "again in 40 s: out of GPU memory, attempt 2 of 3"
    assert (grass.done, grass.successes) == (3, 1)


@pytest.mark.parametrize(
    ("asked", "stopped", "life"), [(1, False, Life.QUEUED), (0, False, Life.ENDED), (1, True, Life.ENDED)]
)
def test_an_attempt_that_was_asked_for_queues_its_session_also_in_a_halted_run(
    asked: int, stopped: bool, life: Life
) -> None:
    header = (HALTED, {"again": [["grass_act", asked]]})
    grass, _ = look(FAILED, header=header, dispatcher=None, stopped=stopped).sessions
    assert grass.life is life


def test_a_session_that_was_quick_does_not_wait_for_what_it_waited_for_before() -> None:
    """The dispatcher says what is waited for less often than sessions start and end."""
    before = a_wait("grass_act", Fact(Wait.GPU_MEASURED_AGAIN, gpu=0))
    grass, _ = look(RUNNING.ended(records=100, successes=40), header=(before,)).sessions
    assert (grass.life, grass.outcome, grass.facts) == (Life.ENDED, Outcome.SUCCEEDED, ())
    grass, _ = look(FAILED, header=(before,)).sessions
    assert (grass.life, grass.outcome) == (Life.ENDED, Outcome.PARTIAL)
    grass, _ = look(FAILED, header=(a_wait("grass_act", RETRY_1), before)).sessions
    assert (grass.life, grass.waiting and grass.waiting.waits_for) == (Life.QUEUED, WaitFor.UNKNOWN)
    token = a_wait("grass_act", Fact(Wait.TOKEN_TAKEN, token="ray", session="stairs_act"))
    grass, _ = look(FAILED, header=(a_wait("grass_act", RETRY_1), token)).sessions
    assert [(one.code, one.text("waits_for")) for one in grass.facts] == [("starts_again", "token")]


def test_words_of_the_former_version_are_shown_as_they_are() -> None:
    waits = {"session": "grass_act", "reason": "gpu_memory", "until": None, "detail": "needs 4000 MiB"}
    header = ({"waiting": [waits], "hold": {"kind": "paused", "since": 5, "why": "by hand"}},)
    status = look(header=header)
    data = data_of(answer(status))
    assert data["hold"] == {"kind": "paused", "since": 5, "why": "by hand", "fact": None}
    assert data["sessions"][0]["waiting"] == {
        "for": "gpu_memory", "until": None, "detail": "needs 4000 MiB", "fact": None
    }  # fmt: skip
    assert status.advice
    assert say(status.advice).endswith("nothing new starts: by hand")


STOPPED = RUNNING.ended("stopped", "partial")
GONE = {"dispatcher": None}
LACK = {"lack": 2, "never": 1, "sessions": 2}


@pytest.mark.parametrize(
    ("seen", "header", "fields", "code", "told"),
    [
        (None, (), {}, "", {}),
        (RUNNING.ended(records=100), (), {"done": {}, **GONE}, "", {}),
        (RUNNING, (), GONE, "dispatcher_gone", {}),
        (STOPPED, (), {"stopped": True, **GONE}, "run_was_stopped", LACK),
        # a start would respect the drain: so by a resume
        (FAILED, (DRAINING,), {"stopped": True, **GONE}, "run_was_stopped", LACK),
        (RUNNING, (PAUSED,), {}, "run_held", {"hold": "paused", "reason": LUNCH.as_data(), "sessions_continue": False}),
        (RUNNING, (DRAINING,), {}, "run_held", {"hold": "draining", "sessions_continue": True}),
        (RUNNING, (a_quarantine(1, "gpu_fault"),), {}, "quarantine_advice", {}),
        (FAILED, (HALTED,), GONE, "run_held", {"hold": "halted", **LACK}),
        (RUNNING, (NO_DISK,), {}, "run_disk_full", {}),
        (RUNNING, (NO_DISK,), GONE, "dispatcher_gone", {}),
    ],
)
def test_a_run_in_which_nothing_starts_says_why_and_how_to_go_on(
    seen: Seen | None, header: Header, fields: dict[str, object], code: str, told: dict[str, object]
) -> None:
    status = look(*([seen] if seen else []), header=header, **fields)
    assert (status.advice.code if status.advice else "") == code
    assert status.advice is None or {"run": status.run, **told}.items() <= status.advice.fields.items()


CLOSING = replace(RUNNING, closing=True)
ALONE = a_plan([a_session("act", "grass")])


def trial_shows(*seen: Seen, **fields: object) -> None:
    """A look of `combo try` at its only session."""
    setup = TrialSetup(*([None] * 6), Progress(lambda _: None), ".try")  # type: ignore[arg-type]
    trial = _Trial(setup, None, lambda _: None)  # type: ignore[arg-type]
    trial.show(look(*seen, plan=ALONE, **fields))


@pytest.mark.parametrize("seen", [RUNNING, CLOSING, replace(RUNNING, life="orphaned")])
def test_a_trial_waits_for_the_end_of_what_lives_though_its_dispatcher_is_gone(seen: Seen) -> None:
    trial_shows(seen, **GONE)
    trial_shows(RUNNING.ended(), done={}, **GONE)


NOT_BEGUN = replace(RUNNING, started=None, life="queued")


@pytest.mark.parametrize("seen", [RUNNING.ended(), replace(RUNNING, life="lost"), NOT_BEGUN])
def test_a_trial_waits_for_nobody_who_is_gone(seen: Seen) -> None:
    with pytest.raises(HostError, match="is gone"):
        trial_shows(seen, **GONE)


@pytest.mark.parametrize(("code", "timed_out"), [(127, False), (124, True)])
def test_a_notice_that_the_users_command_did_not_take_is_told(code: int, timed_out: bool) -> None:
    status = look(RUNNING, header=({"notice_failed": [code, NOW - 120]},))
    fact = Fact("notices_fail", run=status.run, exit_code=code, timed_out=timed_out, ago_s=120)
    assert (status.notify_problem, look(RUNNING).notify_problem) == (fact, None)


def test_programs_get_all_of_it() -> None:
    failed = RUNNING.ended("gpu_memory", "none", code=1, peak_memory_kib=2048)
    header = (a_wait("grass_act", RETRY_1, NOW + 40), PAUSED, a_quarantine(0, "killed"))
    data = data_of(answer(look(failed, header=header)))
    assert (data["hold"]["kind"], data["hold"]["fact"]) == ("paused", LUNCH.as_data())
    assert data["hold"]["why"] == LUNCH.text("words")
    assert data["quarantine"] == [{"gpu": 0, "failure": "killed", "since": 5.0}]
    assert [one["code"] for one in data["facts"]] == ["run_held"]
    grass = data["sessions"][0]
    waiting = {"for": "retry", "until": NOW + 40, "fact": RETRY_1.as_data()}
    assert waiting.items() <= grass["waiting"].items()
    assert [one["code"] for one in grass["facts"]] == ["starts_again"]
    assert (grass["failure"], grass["peak_memory"], grass["state"]) == ("gpu_memory", 2048 * 1024, "queued")
