"""When it will be over."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from monitor_stage import NOW, Seen, a_plan, a_session, a_view, an_answer, look_at

from comborun.model.judging import WatchRules
from comborun.model.plan import RetryRule
from comborun.monitor.classify import classify
from comborun.monitor.estimate import Forecast, forecast
from comborun.monitor.progress import LogProgress
from comborun.monitor.snapshot import Attempt, Waiting
from comborun.monitor.status import SessionStatus
from comborun.rules.endings.failures import Failure
from comborun.rules.vocabulary import Life, Outcome


def likeliest(told: Forecast) -> dict[str, float]:
    return {name: end.likeliest for name, end in told.ends.items()}


def one(name: str, life: Life, done: int = 0, seconds: float = 0.0, planned: int = 100) -> SessionStatus:
    """One that has done so much in so many seconds."""
    outcome = Outcome.SUCCEEDED if life is Life.ENDED else None
    status = SessionStatus(name, "p", "e", "episode", planned, done=done, successes=0, life=life, outcome=outcome)
    latest = Attempt(name, 1, counter=LogProgress(done))
    return status._replace(latest=latest, started=NOW - seconds, seconds=seconds)


def ended(name: str, done: int = 100, seconds: float = 100.0) -> SessionStatus:
    return one(name, Life.ENDED, done, seconds)


def running(name: str, done: int, seconds: float, planned: int = 100) -> SessionStatus:
    return one(name, Life.RUNNING, done, seconds, planned)


def queued(name: str, planned: int = 100) -> SessionStatus:
    return one(name, Life.QUEUED, planned=planned)


LOST = ended("a", 10, 5000.0)._replace(outcome=Outcome.LOST)
LEAST = running("a", 25, 50.0)._replace(latest=Attempt("a", 1, counter=LogProgress(25, missed=True)))
LATE = queued("b", 2)._replace(waiting=Waiting("b", NOW + 48))


@pytest.mark.parametrize(
    ("sessions", "slots", "ends"),
    [
        ([running("a", 25, 50)], 1, {"a": 150}),
        ([ended("a"), running("b", 100, 300), running("c", 0, 50)], 3, {"b": 0, "c": 150}),
        ([running("a", 0, 50), queued("b")], 2, {}),
        (
            [running("a", 50, 50), running("b", 90, 90), queued("c"), queued("d")],
            2,
            {"a": 50, "b": 10, "c": 110, "d": 150},
        ),
        ([running("a", 50, 50), queued("b")], 4, {"a": 50, "b": 100}),
        ([*(running(name, 50, 50 + 10 * i) for i, name in enumerate("abc")), queued("d", 0)], 1, {"d": 70}),
        ([LEAST, running("b", 50, 50)], 2, {"b": 50}),
        ([LEAST, running("c", 0, 10)], 2, {}),
        ([running("a", 50, 50), queued("b")], None, {"a": 50}),
        ([running("a", 50, 50), queued("b")], 0, {"a": 50}),
        ([LOST, running("b", 50, 50), queued("c")], 1, {"b": 50, "c": 150}),
        ([running("a", 2, 30), queued("b")], 1, {}),
        ([running("a", 3, 30), queued("b")], 1, {"a": 970, "b": 1970}),
        ([ended("a", 98, 995), running("b", 2, 5)], 2, {"b": 980}),
        ([ended("a"), LATE], 1, {"b": 50}),
        ([ended("a"), LATE, queued("c", 10)], 1, {"b": 50, "c": 10}),
        ([running("d", 50, 50), LATE], 1, {"b": 52}),
        ([ended("a"), one("b", Life.STALLED, 0, 900, 4), queued("c")], 2, {}),
        ([ended("a"), running("b", 0, 900, 4), queued("c")], 2, {}),
        ([one("a", Life.STALLED, 50, 50)], 1, {}),
    ],
    ids=[
        "its own rate",
        "no data: the rate of its run less what it has run",
        "before any data",
        "the queue in its order",
        "a free slot is taken now",
        "fewer slots than sessions run",
        "what is only the least has no end, and tells no pace for others",
        "nor for itself",
        "nobody starts the queue",
        "no slots",
        "a lost one tells no rate",
        "fewer than three episodes are not enough",
        "three are",
        "one that has shown little goes at the pace of its run",
        "a retry ends no sooner than it begins",
        "and lets others go first",
        "and its wait is over when the slot is free",
        "a stall",
        "one that hangs",
        "a stall halfway",
    ],
)
def test_sessions_end_when_their_pace_and_the_slots_say(
    sessions: list[SessionStatus], slots: int | None, ends: dict[str, float]
) -> None:
    told = forecast(sessions, slots, NOW)
    assert {name: end - NOW for name, end in likeliest(told).items()}.items() >= ends.items()
    coming = [session.name for session in sessions if session.life is not Life.ENDED]
    assert (told.run is None) == (set(told.ends) != set(coming))
    assert told.run is None or told.run.likeliest == max(likeliest(told).values())
    assert ends or not told.ends


@pytest.mark.parametrize(("dispatcher", "stopped"), [(None, False), (4242, True), (4242, False)])
def test_the_queue_waits_for_a_dispatcher_that_starts_sessions(dispatcher: int | None, stopped: bool) -> None:
    plan = a_plan([a_session("act", "grass"), a_session("act", "stairs")], parallel=1)
    answer = an_answer(Seen("grass_act", counts=(50, 1)), dispatcher=dispatcher, stopped=stopped, slots=1)
    status = classify(a_view(plan), look_at(answer))
    assert status.sessions[0].expected
    assert status.sessions[0].expected.likeliest == NOW + 100
    assert (status.expected and status.expected.likeliest) == (NOW + 300 if dispatcher and not stopped else None)


LIVES = st.sampled_from([Life.QUEUED, Life.RUNNING, Life.STARTING, Life.ENDED])


@given(
    st.lists(st.tuples(LIVES, st.integers(0, 150), st.floats(0, 1e6), st.integers(0, 100))),
    st.one_of(st.none(), st.integers(0, 9)),
)
def test_no_estimate_lies_in_the_past_and_the_run_ends_last(
    rows: list[tuple[Life, int, float, int]], slots: int | None
) -> None:
    told = forecast([one(str(index), *row) for index, row in enumerate(rows)], slots, NOW)
    assert all(NOW <= end.earliest <= end.likeliest <= end.latest for end in told.ends.values())
    if told.run:
        earliest, *last = (max(level) for level in zip(*told.ends.values(), strict=True))
        assert [told.run.likeliest, told.run.latest] == last
        assert earliest <= told.run.earliest <= told.run.likeliest


def test_the_range_narrows_as_more_is_done_and_never_to_nothing() -> None:
    ends = [forecast([running("a", done, 2.0 * done)], 4, NOW).ends["a"] for done in (3, 10, 50, 90, 99)]
    widths = [end.latest - end.earliest for end in ends]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] > 0


def test_one_slow_session_of_500_does_not_widen_the_range_of_the_others() -> None:
    past = [ended(f"p{at}", 4, 40.0 + at % 5) for at in range(492)]
    coming = [running(f"c{at}", 0, 1.0, 4) for at in range(7)]
    usual, told = (
        forecast(sessions, 60, NOW).run for sessions in ([*past, *coming], [*past, ended("slow", 4, 4000.0), *coming])
    )
    assert usual
    assert told
    assert told.latest - told.earliest < 2 * (usual.latest - usual.earliest)


def test_a_run_ends_no_sooner_than_its_slots_can_do_what_is_left() -> None:
    """Sessions of very different paces: not all that come are quick ones."""
    past = [ended(f"p{at}", 10, 100.0 if at % 2 else 1000.0) for at in range(20)]
    told = forecast([*past, *(queued(f"q{at}", 10) for at in range(40))], 2, NOW).run
    assert told
    assert told.earliest - NOW > 0.8 * 40 * 550 / 2


@pytest.mark.parametrize(
    ("quiet", "stall_s", "attempts", "left"),
    [(100, 300, 1, 200), (100, 300, 2, 200 + 9 * 10), (20, 300, 1, 9 * 11), (100, 0, 1, 9 * 19), (301, 300, 1, 9 * 39)],
    ids=[
        "its limit ends it", "and it starts again", "a silence that is usual", "no limit", "CPU time was progress, too",
    ],
)  # fmt: skip
def test_a_silent_session_ends_by_its_limit_for_a_stall(quiet: int, stall_s: int, attempts: int, left: int) -> None:
    watch = WatchRules(stall_s=stall_s)
    sessions = [replace(a_session("act", "grass", 19), watch=watch), a_session("act", "stairs", 10)]
    plan = a_plan(sessions)
    retry = (RetryRule(Failure.STALLED, 1, 0.0),)
    plan = replace(plan, limits=replace(plan.limits, attempts=attempts), retry=retry)
    silent = Seen("grass_act", counts=(10, 1), started=NOW - 90 - quiet, changed=NOW - quiet, written=NOW - quiet)
    other = Seen("stairs_act", counts=(5, 1), started=NOW - 50)
    status = classify(a_view(plan), look_at(an_answer(silent, other)))
    assert status.sessions[0].expected
    assert status.sessions[0].expected.likeliest == pytest.approx(NOW + left, abs=12)
