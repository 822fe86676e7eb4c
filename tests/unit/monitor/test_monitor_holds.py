"""What keeps sessions from starting: holds, quarantine, waits, a dispatcher that is gone; and what to do about them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from monitor_stage import NOW, Seen, a_plan, a_session, a_view, an_answer, status_of

from comborun.model.judging import RetryRule
from comborun.model.plan import Plan
from comborun.monitor.status import RunStatus, document
from comborun.rules.endings.failures import Failure
from comborun.rules.vocabulary import Life, Outcome

RETRY = (RetryRule(Failure.GPU_MEMORY, 2, 60.0), RetryRule(Failure.STALLED, 1, 10.0))
PLAN = replace(
    a_plan([a_session("act", "grass"), a_session("act", "stairs")]),
    limits=replace(a_plan([]).limits, attempts=3),
    retry=RETRY,
)
RUNNING = Seen("grass_act")
FAILED = RUNNING.ended("gpu_memory", "partial", code=1, records=3, successes=1)
PAUSED = "hold kind=paused since=1785320000.5 why=the training job needs the GPU until 11:00"
HALTED = "hold kind=halted since=1 why=3 failed"


def look(*seen: Seen, plan: Plan = PLAN, header: tuple[str, ...] = (), **fields: object) -> RunStatus:
    answer = an_answer(*seen, host=("load=1 cpus=2", *header), **fields)  # type: ignore[arg-type]
    return status_of(a_view(plan), answer)


def wait(reason: str = "retry", until: float | str = "", detail: str = "") -> str:
    return f"waiting session=grass_act reason={reason} until={until} detail={detail}"


def test_a_session_that_will_be_started_again_is_queued_and_says_when_and_why() -> None:
    grass, _ = look(FAILED, header=(wait(until=NOW + 40),)).sessions
    assert (grass.life, grass.outcome, grass.failure) == (Life.QUEUED, None, Failure.GPU_MEMORY)
    assert grass.note == "again in 40 s: out of GPU memory, attempt 2 of 3"
    assert (grass.done, grass.successes) == (3, 1)


@pytest.mark.parametrize(
    ("asked", "stopped", "life"), [(1, False, Life.QUEUED), (0, False, Life.ENDED), (1, True, Life.ENDED)]
)
def test_an_attempt_that_was_asked_for_queues_its_session_also_in_a_halted_run(
    asked: int, stopped: bool, life: Life
) -> None:
    header = (HALTED, f"again grass_act={asked}")
    grass, _ = look(FAILED, header=header, dispatcher=None, stopped=stopped).sessions
    assert grass.life is life


def test_a_session_that_was_quick_does_not_wait_for_what_it_waited_for_before() -> None:
    """The dispatcher says what is waited for less often than sessions start and end."""
    before = wait("unknown", detail="GPU 0 is measured again")
    grass, _ = look(RUNNING.ended(records=100, successes=40), header=(before,)).sessions
    assert (grass.life, grass.outcome, grass.note) == (Life.ENDED, Outcome.SUCCEEDED, "")
    grass, _ = look(FAILED, header=(before,)).sessions
    assert (grass.life, grass.outcome) == (Life.ENDED, Outcome.PARTIAL)
    grass, _ = look(FAILED, header=(wait(detail="gpu_memory, after attempt 1"), before)).sessions
    assert grass.life is Life.QUEUED
    assert grass.waiting.detail == "GPU 0 is measured again"
    token = wait("token", detail="only one on the host may have ray")
    grass, _ = look(FAILED, header=(wait(detail="gpu_memory, after attempt 1"), token)).sessions
    assert grass.note == "again as soon as there is an exclusive token: out of GPU memory, attempt 2 of 3"


STOPPED = RUNNING.ended("stopped", "partial")
DRAINING = "hold kind=draining since=1 why="
GONE = {"dispatcher": None}
TWO_LACK = "1 of 2 sessions without success, 1 never started"


@pytest.mark.parametrize(
    ("seen", "header", "fields", "hint"),
    [
        (None, (), {}, ""),
        (RUNNING.ended(records=100), (), {"done": {}, **GONE}, ""),
        (RUNNING, (), GONE, "the dispatcher is gone, nothing new starts: run `RESUME` to continue"),
        (STOPPED, (), {"stopped": True, **GONE}, f"stopped, {TWO_LACK}: run `RESUME` to continue"),
        # a start would respect the drain: so by a resume
        (FAILED, (DRAINING,), {"stopped": True, **GONE}, f"stopped, {TWO_LACK}: run `RESUME` to continue"),
        (
            RUNNING,
            (PAUSED,),
            {},
            "paused: run `RESUME` to continue; nothing new starts: the training job needs the GPU until 11:00",
        ),
        (
            RUNNING,
            ("quarantine gpu=1 failure=gpu_fault since=1",),
            {},
            "GPU 1 gets no more sessions (GPU fault again and again): run `RESUME` to continue",
        ),
        (
            FAILED,
            (HALTED,),
            GONE,
            (
                "halted: run `RESUME` to continue; nothing new starts,"
                " 1 of 2 sessions without success, 1 never started: 3 failed"
            ),
        ),
        (
            RUNNING,
            ("disk_kib=1000 disk_available_kib=0",),
            {},
            "the disk of the run is full: free some space, and the run continues by itself",
        ),
        (
            RUNNING,
            ("disk_kib=1000 disk_available_kib=0",),
            GONE,
            "the dispatcher is gone, nothing new starts: run `RESUME` to continue",
        ),
    ],
)
def test_a_run_in_which_nothing_starts_says_why_and_how_to_go_on(
    seen: Seen | None, header: tuple[str, ...], fields: dict[str, object], hint: str
) -> None:
    status = look(*([seen] if seen else []), header=header, **fields)
    assert status.hint == hint.replace("RESUME", "combo resume RUN").replace("RUN", status.run)


@pytest.mark.parametrize(("code", "how"), [(127, "ended with code 127 2 min ago"), (124, "took too long 2 min ago")])
def test_a_notice_that_the_users_command_did_not_take_is_told_with_the_way_to_try_it(code: int, how: str) -> None:
    status = look(RUNNING, header=(f"notice_code={code} notice_at={NOW - 120}",))
    said = f"the notify command {how}: notices are not delivered; `combo notify {status.run}` tests it"
    assert (status.notify_problem, look(RUNNING).notify_problem) == (said, "")


def test_programs_get_all_of_it() -> None:
    failed = RUNNING.ended("gpu_memory", "none", code=1, peak_memory_kib=2048)
    header = (wait(until=NOW + 40, detail="so it is"), PAUSED, "quarantine gpu=0 failure=killed since=5")
    data = document(look(failed, header=header))
    assert data["hold"]["kind"] == "paused"
    assert data["quarantine"] == [{"gpu": 0, "failure": "killed", "since": 5.0}]
    grass = data["sessions"][0]
    assert grass["waiting"] == {"for": "retry", "until": NOW + 40, "detail": "so it is"}
    assert (grass["failure"], grass["peak_memory"], grass["state"]) == ("gpu_memory", 2048 * 1024, "queued")
