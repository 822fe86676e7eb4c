"""When it will be over."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from monitor_stage import NOW, Seen, a_plan, a_session, a_view, an_answer

from comborun.state import Life, Outcome
from monitor.classify import classify
from monitor.estimate import Progress, forecast
from monitor.history import History, fold
from monitor.snapshot import parse_snapshot
from monitor.status import SessionStatus


def progress(name: str, life: Life, done: int = 0, seconds: float = 0.0, planned: int = 100) -> Progress:
    outcome = Outcome.SUCCEEDED if life is Life.ENDED else None
    status = SessionStatus(name, "p", "e", "episode", planned, done=done, successes=0, life=life, outcome=outcome)
    return Progress(status, done, seconds)


def test_a_session_goes_on_at_its_own_rate() -> None:
    told = forecast([progress("a", Life.RUNNING, 25, 50.0)], 1, NOW)
    assert told.ends == {"a": NOW + 150}
    assert told.run == NOW + 150


def test_one_without_data_goes_at_the_mean_rate_of_its_run_less_what_it_has_run() -> None:
    sessions = [
        progress("a", Life.ENDED, 100, 100.0),
        progress("b", Life.RUNNING, 100, 300.0),
        progress("c", Life.RUNNING, 0, 50.0),
    ]
    assert forecast(sessions, 3, NOW).ends == {"b": NOW, "c": NOW + 150}


def test_before_any_data_there_is_no_estimate() -> None:
    told = forecast([progress("a", Life.RUNNING, 0, 50.0), progress("b", Life.QUEUED)], 2, NOW)
    assert (told.ends, told.run) == ({}, None)


def test_the_queue_takes_slots_as_they_become_free_in_its_order() -> None:
    sessions = [
        progress("a", Life.RUNNING, 50, 50.0),
        progress("b", Life.RUNNING, 90, 90.0),
        progress("c", Life.QUEUED),
        progress("d", Life.QUEUED),
    ]
    told = forecast(sessions, 2, NOW)
    assert told.ends == {"a": NOW + 50, "b": NOW + 10, "c": NOW + 110, "d": NOW + 150}
    assert told.run == NOW + 150


def test_a_free_slot_is_taken_now() -> None:
    told = forecast([progress("a", Life.RUNNING, 50, 50.0), progress("b", Life.QUEUED)], 4, NOW)
    assert told.ends["b"] == NOW + 100


def test_fewer_slots_than_running_sessions_start_nothing_until_enough_have_ended() -> None:
    running = [progress(name, Life.RUNNING, 50, 50.0 + 10 * index) for index, name in enumerate("abc")]
    told = forecast([*running, progress("d", Life.QUEUED, planned=0)], 1, NOW)
    assert told.ends["d"] == NOW + 70


@pytest.mark.parametrize("slots", [None, 0])
def test_a_queue_that_nobody_starts_has_no_end(slots: int | None) -> None:
    told = forecast([progress("a", Life.RUNNING, 50, 50.0), progress("b", Life.QUEUED)], slots, NOW)
    assert told.ends == {"a": NOW + 50}
    assert told.run is None


def test_a_program_without_records_cannot_be_estimated() -> None:
    plan = a_plan([a_session("act", "grass", files=()), a_session("act", "stairs")])
    answer = an_answer(Seen("grass_act"), Seen("stairs_act", counts=(50, 1)))
    status = classify(a_view(plan), fold(History(), parse_snapshot(answer, 400)))
    assert [session.estimated_end for session in status.sessions] == [None, NOW + 100]
    assert status.estimated_end is None


def test_a_lost_session_tells_no_rate_for_nobody_knows_how_long_it_ran() -> None:
    lost = progress("a", Life.ENDED, 10, 5000.0)
    lost = replace(lost, status=replace(lost.status, outcome=Outcome.LOST))
    told = forecast([lost, progress("b", Life.RUNNING, 50, 50.0), progress("c", Life.QUEUED)], 1, NOW)
    assert told.ends == {"b": NOW + 50, "c": NOW + 150}


@pytest.mark.parametrize(("dispatcher", "stopped"), [("", 0), (4242, 1), (4242, 0)])
def test_the_queue_waits_for_a_dispatcher_that_starts_sessions(dispatcher: int | str, stopped: int) -> None:
    plan = a_plan([a_session("act", "grass"), a_session("act", "stairs")], parallel=1)
    answer = an_answer(Seen("grass_act", counts=(50, 1)), dispatcher=dispatcher, stopped=stopped, slots=1)
    status = classify(a_view(plan), fold(History(), parse_snapshot(answer, 400)))
    assert status.sessions[0].estimated_end == NOW + 100
    assert status.estimated_end == (NOW + 300 if dispatcher and not stopped else None)


def test_estimates_are_points_in_time_that_do_not_drift_between_two_looks() -> None:
    plan = a_plan([a_session("act", "grass")])
    history = fold(History(), parse_snapshot(an_answer(Seen("grass_act", counts=(50, 1))), 400))
    ends = {classify(a_view(plan), history, NOW + passed).estimated_end for passed in (0, 7, 59)}
    assert ends == {NOW + 100}


LIVES = st.sampled_from([Life.QUEUED, Life.RUNNING, Life.STARTING, Life.ENDED])


@given(
    st.lists(st.tuples(LIVES, st.integers(0, 150), st.floats(0, 1e6), st.integers(0, 100))),
    st.one_of(st.none(), st.integers(0, 9)),
)
def test_no_estimate_lies_in_the_past_and_the_run_ends_last(
    rows: list[tuple[Life, int, float, int]], slots: int | None
) -> None:
    told = forecast([progress(str(index), *row) for index, row in enumerate(rows)], slots, NOW)
    assert all(end >= NOW for end in told.ends.values())
    assert told.run is None or told.run == max(told.ends.values())
