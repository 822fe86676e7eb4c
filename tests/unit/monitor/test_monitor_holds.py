"""What keeps sessions from starting: holds, quarantine, waits, stalls, and what to do about them."""

from __future__ import annotations

from dataclasses import replace

import pytest
from monitor_stage import NOW, Seen, a_plan, a_session, a_view, an_answer

from comborun.judging import RetryRule
from comborun.monitor.answer import parse_snapshot
from comborun.monitor.classify import classify
from comborun.monitor.document import document
from comborun.monitor.observe import History, fold
from comborun.monitor.snapshot import Hold, Quarantine, Waiting
from comborun.monitor.status import RunStatus
from comborun.plan import Plan
from comborun.rules.words import Failure, Life, Outcome

RETRY = (RetryRule(Failure.GPU_MEMORY, 2, 60.0), RetryRule(Failure.STALLED, 1, 10.0))
PLAN = replace(
    a_plan([a_session("act", "grass"), a_session("act", "stairs")]),
    limits=replace(a_plan([]).limits, attempts=3),
    retry=RETRY,
)
FAILED = Seen("grass_act").ended("gpu_memory", "partial", code=1, records=3, successes=1)
PAUSED = "hold kind=paused at=1785320000.5 why=the training job needs the GPU until 11:00"


def look(*seen: Seen, plan: Plan = PLAN, header: tuple[str, ...] = (), **fields: object) -> RunStatus:
    answer = an_answer(*seen, host=("load=1 cpus=2", *header), **fields)  # type: ignore[arg-type]
    return classify(a_view(plan), fold(History(), parse_snapshot(answer)))


def test_the_probe_tells_of_a_hold_of_quarantine_and_of_waits() -> None:
    header = (
        "plan=3",
        PAUSED,
        "quarantine gpu=1 class=gpu_fault at=1785320001",
        "quarantine gpu= class=gpu_fault at=1785320001",
        "waiting session=grass_act for=retry until=1785321040 detail=class=gpu_memory in 40 s",
        "waiting session=stairs_act for=gpu until= detail=",
    )
    snapshot = parse_snapshot(an_answer(FAILED, host=header))
    assert snapshot.plan == 3
    assert snapshot.hold == Hold("paused", 1785320000.5, "the training job needs the GPU until 11:00")
    assert snapshot.quarantine == (Quarantine(1, "gpu_fault", 1785320001.0),)
    assert snapshot.waiting == (
        Waiting("grass_act", "retry", 1785321040.0, "class=gpu_memory in 40 s"),
        Waiting("stairs_act", "gpu"),
    )
    assert [one.session for one in snapshot.attempts] == ["grass_act"]


def test_older_probes_tell_of_none_of_it() -> None:
    snapshot = parse_snapshot(an_answer())
    assert (snapshot.plan, snapshot.hold, snapshot.quarantine, snapshot.waiting) == (None, None, (), ())


def test_a_session_that_will_be_started_again_is_queued_and_says_when_and_why() -> None:
    wait = f"waiting session=grass_act for=retry until={NOW + 40} detail="
    grass, _ = look(FAILED, header=(wait,)).sessions
    assert (grass.life, grass.outcome, grass.failure) == (Life.QUEUED, None, Failure.GPU_MEMORY)
    assert grass.note == "again in 40 s: out of GPU memory, attempt 2 of 3"
    assert (grass.done, grass.successes) == (3, 1)


@pytest.mark.parametrize(
    ("reason", "words"),
    [
        ("memory", "again as soon as more memory is free than when it failed"),
        ("alone", "again as soon as nothing else of the run is running"),
        ("retry", "again as soon as a slot is free"),
    ],
)
def test_a_retry_without_a_time_says_what_it_waits_for(reason: str, words: str) -> None:
    grass, _ = look(FAILED, header=(f"waiting session=grass_act for={reason} until= detail=",)).sessions
    assert grass.note == f"{words}: out of GPU memory, attempt 2 of 3"


def test_the_budget_is_that_of_the_failures_class() -> None:
    stalled = Seen("grass_act", 2).ended("stalled", "none", code="")
    wait = f"waiting session=grass_act for=retry until={NOW + 9} detail="
    grass, _ = look(FAILED, stalled, header=(wait,)).sessions
    assert grass.note == "again in 9 s: stalled, attempt 3 of 3"
    third = Seen("grass_act", 3).ended("stalled", "none", code="")
    grass, _ = look(FAILED, stalled, third, header=(wait,)).sessions
    assert grass.note == "again in 9 s: stalled, attempt 4", "a person asked for it: nobody knows of how many"


def test_no_class_has_more_retries_than_there_are_attempts() -> None:
    plan = replace(PLAN, limits=replace(PLAN.limits, attempts=2))
    wait = f"waiting session=grass_act for=retry until={NOW + 9} detail="
    grass, _ = look(FAILED, plan=plan, header=(wait,)).sessions
    assert grass.note == "again in 9 s: out of GPU memory, attempt 2 of 2"


def test_a_session_that_was_quick_does_not_wait_for_what_it_waited_for_before() -> None:
    """The dispatcher says what is waited for less often than sessions start and end."""
    wait = "waiting session=grass_act for=unknown until= detail=GPU 0 is measured again"
    grass, _ = look(Seen("grass_act").ended(records=100, successes=40), header=(wait,)).sessions
    assert (grass.life, grass.outcome, grass.note) == (Life.ENDED, Outcome.SUCCEEDED, "")
    grass, _ = look(FAILED, header=(wait,)).sessions
    assert (grass.life, grass.outcome) == (Life.ENDED, Outcome.PARTIAL)
    retry = "waiting session=grass_act for=retry until= detail=gpu_memory, after attempt 1"
    grass, _ = look(FAILED, header=(retry, wait)).sessions
    assert grass.life is Life.QUEUED
    assert grass.waiting
    assert grass.waiting.detail == "GPU 0 is measured again"


def test_a_stop_renews_the_budget() -> None:
    stopped = Seen("grass_act", 2).ended("stopped", "none", code="")
    third = Seen("grass_act", 3).ended("gpu_memory", "none", code=1)
    wait = f"waiting session=grass_act for=retry until={NOW + 9} detail="
    grass, _ = look(FAILED, stopped, third, header=(wait,)).sessions
    assert grass.note == "again in 9 s: out of GPU memory, attempt 4 of 5"


def test_a_wait_of_a_dispatcher_that_is_gone_says_nothing() -> None:
    grass, _ = look(FAILED, header=("waiting session=grass_act for=retry until= detail=",), dispatcher=None).sessions
    assert (grass.life, grass.outcome, grass.waiting) == (Life.ENDED, Outcome.PARTIAL, None)


def test_a_stall_is_a_state_of_what_runs() -> None:
    grass, _ = look(Seen("grass_act", stalled=NOW - 1500)).sessions
    assert (grass.life, grass.stalled, grass.note) == (Life.STALLED, NOW - 1500, "no progress for 25 min")
    grass, _ = look(Seen("grass_act")).sessions
    assert (grass.life, grass.note) == (Life.RUNNING, "")


@pytest.mark.parametrize(
    ("header", "hint"),
    [
        (PAUSED, "paused: `RESUME` goes on; nothing new starts: the training job needs the GPU until 11:00"),
        (
            "hold kind=draining at=1 why=",
            "draining: `RESUME` goes on; what runs goes on to its end; nothing new starts",
        ),
        (
            "quarantine gpu=1 class=gpu_fault at=1",
            "GPU 1 gets no more sessions (GPU fault again and again): `RESUME` goes on",
        ),
    ],
)
def test_a_hold_says_why_and_how_to_go_on(header: str, hint: str) -> None:
    status = look(Seen("grass_act"), header=(header,))
    assert status.hint == hint.replace("RESUME", f"combo resume {status.run}")
    assert not status.finished


@pytest.mark.parametrize(("code", "how"), [(127, "ended with code 127 2 min ago"), (124, "took too long 2 min ago")])
def test_a_notice_that_the_users_command_did_not_take_is_told_with_the_way_to_try_it(code: int, how: str) -> None:
    status = look(Seen("grass_act"), header=(f"notice_code={code} notice_at={NOW - 120}",))
    said = f"the notify command {how}, so who waits for a notice has none: `combo notify {status.run}` tries it"
    assert (status.unheard, look(Seen("grass_act")).unheard) == (said, "")


def test_what_is_stopped_and_drained_goes_on_by_a_resume_since_a_start_would_respect_the_drain() -> None:
    status = look(FAILED, header=("hold kind=draining at=1 why=",), dispatcher=None, stopped=True)
    assert status.hint == f"stopped with 1 of 2 sessions left: `combo resume {status.run}` goes on"


def test_a_halt_of_many_smoke_tests_keeps_its_command_within_eighty_columns() -> None:
    names = ", ".join(f"grass_policy_{number}_smoke" for number in range(9))
    hold = f"hold kind=halted at=1 why=the smoke test left no record: {names}"
    assert f"`combo resume {PLAN.grid}" in look(FAILED, header=(hold,), dispatcher=None).hint[:40]


@pytest.mark.parametrize(("kind", "over"), [("halted", True), ("draining", True), ("paused", False)])
def test_a_halted_run_is_over_when_its_dispatcher_has_left(kind: str, over: bool) -> None:
    status = look(FAILED, header=(f"hold kind={kind} at=1 why=three in a row",), dispatcher=None)
    assert status.finished is over
    if over:
        assert "three in a row" in status.hint
        assert "1 of 2 sessions without success, 1 never started: three in a row" in status.hint
        assert "what runs goes on" not in status.hint


def test_sessions_of_a_halted_run_that_never_ran_are_not_told_as_failures() -> None:
    status = look(header=("hold kind=halted at=1 why=the smoke test failed",), dispatcher=None)
    assert status.finished
    assert "nothing new starts, 2 of 2 sessions never started" in status.hint


def test_a_halted_run_is_not_over_while_anything_runs() -> None:
    header = ("hold kind=halted at=1 why=three in a row",)
    assert not look(Seen("grass_act"), header=header, dispatcher=None).finished
    assert not look(FAILED, header=header).finished


def test_nothing_queued_is_expected_while_a_run_is_held() -> None:
    running = Seen("grass_act", counts=(50, 50))
    assert look(running).sessions[1].expected
    assert look(running, header=(PAUSED,)).sessions[1].expected is None


def test_a_smoke_test_and_what_was_amended_away_are_not_among_the_planned() -> None:
    smoke = replace(a_session("act", "grass", 2), name="grass_act_smoke", flag="smoke")
    gone = replace(a_session("act", "lawn"), flag="dropped")
    plan = replace(PLAN, sessions=(smoke, *PLAN.sessions, gone))
    status = look(Seen("grass_act_smoke").ended(records=2, successes=2), plan=plan)
    assert [one.name for one in status.sessions] == ["grass_act_smoke", "grass_act", "stairs_act"]
    assert (status.done, status.planned) == (0, 200)
    assert (status.counts(), status.smoke()) == ({"queued": 2}, {"succeeded": 1})
    alive = look(Seen("lawn_act"), plan=plan).sessions[-1]
    assert (alive.combo, alive.extra) == ("lawn (superseded)", True)


def test_sessions_of_one_combo_are_told_apart_by_their_ranges() -> None:
    more = replace(a_session("act", "grass"), name="grass_act_e100-149", first=100, count=50)
    status = look(plan=replace(PLAN, sessions=(*PLAN.sessions, more)))
    assert [one.combo for one in status.sessions] == ["grass (0–99)", "stairs", "grass (100–149)"]


def test_programs_get_all_of_it() -> None:
    wait = f"waiting session=grass_act for=retry until={NOW + 40} detail=so it is"
    failed = Seen("grass_act").ended("gpu_memory", "none", code=1, peak_memory_kib=2048)
    data = document(look(failed, header=(wait, PAUSED, "quarantine gpu=0 class=killed at=5")))
    assert data["hold"]["kind"] == "paused"
    assert data["quarantine"] == [{"gpu": 0, "failure": "killed", "since": 5.0}]
    grass = data["sessions"][0]
    assert grass["waiting"] == {"for": "retry", "until": NOW + 40, "detail": "so it is"}
    assert (grass["failure"], grass["peak_memory"], grass["state"]) == ("gpu_memory", 2048 * 1024, "queued")
