"""When it will be over."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import accumulate

import pytest
from hypothesis import given
from hypothesis import strategies as st
from monitor_stage import NOW, Seen, a_plan, a_session, a_view, an_answer

from comborun.monitor.answer.holds import Waiting
from comborun.monitor.answer.snapshot import Mark, parse_snapshot
from comborun.monitor.classify import classify
from comborun.monitor.estimate import Forecast, Progress, forecast
from comborun.monitor.history import History, fold
from comborun.monitor.status import SessionStatus
from comborun.rules.words import Life, Outcome


def likeliest(told: Forecast) -> dict[str, float]:
    return {name: end.likeliest for name, end in told.ends.items()}


def progress(name: str, life: Life, done: int = 0, seconds: float = 0.0, planned: int = 100) -> Progress:
    outcome = Outcome.SUCCEEDED if life is Life.ENDED else None
    status = SessionStatus(name, "p", "e", "episode", planned, done=done, successes=0, life=life, outcome=outcome)
    return Progress(status, done, seconds)


def test_a_session_goes_on_at_its_own_rate() -> None:
    told = forecast([progress("a", Life.RUNNING, 25, 50.0)], 1, NOW)
    assert likeliest(told) == {"a": NOW + 150}
    assert told.run is not None
    assert told.run.likeliest == NOW + 150


def test_one_without_data_goes_at_the_mean_rate_of_its_run_less_what_it_has_run() -> None:
    sessions = [
        progress("a", Life.ENDED, 100, 100.0),
        progress("b", Life.RUNNING, 100, 300.0),
        progress("c", Life.RUNNING, 0, 50.0),
    ]
    assert likeliest(forecast(sessions, 3, NOW)) == {"b": NOW, "c": NOW + 150}


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
    assert likeliest(told) == {"a": NOW + 50, "b": NOW + 10, "c": NOW + 110, "d": NOW + 150}
    assert told.run is not None
    assert told.run.likeliest == NOW + 150


def test_a_free_slot_is_taken_now() -> None:
    told = forecast([progress("a", Life.RUNNING, 50, 50.0), progress("b", Life.QUEUED)], 4, NOW)
    assert likeliest(told)["b"] == NOW + 100


def test_fewer_slots_than_running_sessions_start_nothing_until_enough_have_ended() -> None:
    running = [progress(name, Life.RUNNING, 50, 50.0 + 10 * index) for index, name in enumerate("abc")]
    told = forecast([*running, progress("d", Life.QUEUED, planned=0)], 1, NOW)
    assert likeliest(told)["d"] == NOW + 70


def test_what_is_only_the_least_that_was_done_tells_no_end_and_no_pace_for_others() -> None:
    least = replace(progress("a", Life.RUNNING, 25, 50.0), whole=False)
    known = progress("b", Life.RUNNING, 50, 50.0)
    assert likeliest(forecast([least, known], 2, NOW)) == {"b": NOW + 50}
    assert likeliest(forecast([least, progress("c", Life.RUNNING, 0, 10.0)], 2, NOW)) == {}


@pytest.mark.parametrize("slots", [None, 0])
def test_a_queue_that_nobody_starts_has_no_end(slots: int | None) -> None:
    told = forecast([progress("a", Life.RUNNING, 50, 50.0), progress("b", Life.QUEUED)], slots, NOW)
    assert likeliest(told) == {"a": NOW + 50}
    assert told.run is None


def test_a_program_without_records_cannot_be_estimated() -> None:
    plan = a_plan([a_session("act", "grass", files=()), a_session("act", "stairs")])
    answer = an_answer(Seen("grass_act"), Seen("stairs_act", counts=(50, 1)))
    status = classify(a_view(plan), fold(History(), parse_snapshot(answer)))
    assert [one.expected and one.expected.likeliest for one in status.sessions] == [None, NOW + 100]
    assert status.expected is None


def test_a_lost_session_tells_no_rate_for_nobody_knows_how_long_it_ran() -> None:
    lost = progress("a", Life.ENDED, 10, 5000.0)
    lost = replace(lost, status=replace(lost.status, outcome=Outcome.LOST))
    told = forecast([lost, progress("b", Life.RUNNING, 50, 50.0), progress("c", Life.QUEUED)], 1, NOW)
    assert likeliest(told) == {"b": NOW + 50, "c": NOW + 150}


@pytest.mark.parametrize(("dispatcher", "stopped"), [(None, False), (4242, True), (4242, False)])
def test_the_queue_waits_for_a_dispatcher_that_starts_sessions(dispatcher: int | None, stopped: bool) -> None:
    plan = a_plan([a_session("act", "grass"), a_session("act", "stairs")], parallel=1)
    answer = an_answer(Seen("grass_act", counts=(50, 1)), dispatcher=dispatcher, stopped=stopped, slots=1)
    status = classify(a_view(plan), fold(History(), parse_snapshot(answer)))
    assert status.sessions[0].expected
    assert status.sessions[0].expected.likeliest == NOW + 100
    assert (status.expected and status.expected.likeliest) == (NOW + 300 if dispatcher and not stopped else None)


def test_estimates_are_points_in_time_that_do_not_drift_between_two_looks() -> None:
    plan = a_plan([a_session("act", "grass")])
    history = fold(History(), parse_snapshot(an_answer(Seen("grass_act", counts=(50, 1)))))
    ends = {classify(a_view(plan), history, NOW + passed).expected for passed in (0, 7, 59)}
    assert len(ends) == 1
    assert {end.likeliest for end in ends if end} == {NOW + 100}


LIVES = st.sampled_from([Life.QUEUED, Life.RUNNING, Life.STARTING, Life.ENDED])


@given(
    st.lists(st.tuples(LIVES, st.integers(0, 150), st.floats(0, 1e6), st.integers(0, 100))),
    st.one_of(st.none(), st.integers(0, 9)),
)
def test_no_estimate_lies_in_the_past_and_the_run_ends_last(
    rows: list[tuple[Life, int, float, int]], slots: int | None
) -> None:
    told = forecast([progress(str(index), *row) for index, row in enumerate(rows)], slots, NOW)
    assert all(NOW <= end.earliest <= end.likeliest <= end.latest for end in told.ends.values())
    assert told.run is None or told.run == tuple(max(level) for level in zip(*told.ends.values(), strict=True))


def test_before_three_episodes_are_done_there_is_no_estimate() -> None:
    two, three = ([progress("a", Life.RUNNING, done, 30.0), progress("b", Life.QUEUED)] for done in (2, 3))
    assert forecast(two, 1, NOW).ends == {}
    assert likeliest(forecast(three, 1, NOW)) == {"a": NOW + 970, "b": NOW + 1970}


def test_a_session_that_has_shown_little_goes_at_the_pace_of_its_run() -> None:
    sessions = [progress("a", Life.ENDED, 98, 995.0), progress("b", Life.RUNNING, 2, 5.0)]
    assert likeliest(forecast(sessions, 2, NOW)) == {"b": NOW + 980}


def width(*sessions: Progress) -> float:
    end = forecast(sessions, 4, NOW).ends["a"]
    return end.latest - end.earliest


def test_the_range_is_what_its_formula_says() -> None:
    spread = 2.0 * (75 + 75**2 / 25 + (0.05 * 75) ** 2) ** 0.5
    assert width(progress("a", Life.RUNNING, 25, 50.0)) == pytest.approx(2 * 1.2816 * spread)


def test_the_range_narrows_as_more_is_done_and_never_to_nothing() -> None:
    widths = [width(progress("a", Life.RUNNING, done, 2.0 * done)) for done in (3, 10, 50, 90, 99)]
    assert widths == sorted(widths, reverse=True)
    assert widths[-1] > 0


def regular(seconds: Iterator[float]) -> tuple[Mark, ...]:
    return tuple(Mark(NOW + moment, done) for done, moment in enumerate(accumulate(seconds), 1))


def test_durations_that_were_seen_to_be_alike_make_a_narrow_range_and_wild_ones_a_wide_one() -> None:
    base = progress("a", Life.RUNNING, 20, 200.0)
    alike, wild = ([10.0] * 20, [2.0, 2.0, 2.0, 34.0] * 5)
    narrow, wide = (width(replace(base, marks=regular(iter(seconds)))) for seconds in (alike, wild))
    assert narrow < width(base) < wide
    assert narrow == pytest.approx(2 * 1.2816 * 10 * 0.05 * 80)  # nothing but the drift is left


def test_a_few_looks_are_not_enough_to_measure_by() -> None:
    base = progress("a", Life.RUNNING, 20, 200.0)
    assert width(replace(base, marks=regular(iter([10.0] * 6)))) == width(base)
    other = replace(progress("b", Life.RUNNING, 20, 200.0), marks=regular(iter([10.0] * 6)))
    assert width(replace(base, marks=regular(iter([10.0] * 6))), other) < width(base)  # together they are


def test_many_episodes_between_two_looks_are_weighed_as_many() -> None:
    marks = tuple(Mark(NOW + 1000 * look, 1000 * look) for look in range(8))
    base = progress("a", Life.RUNNING, 7000, 7000.0, planned=10_000)
    assert width(replace(base, marks=marks)) == pytest.approx(2 * 1.2816 * 0.05 * 3000)


def test_a_pace_that_drifts_between_two_looks_widens_the_range_of_many_small_steps() -> None:
    paces = (1.0, 1.2, 0.8, 1.0, 1.1, 0.9, 1.2, 0.8)
    marks = regular_looks([1000] * len(paces), [1000 * pace for pace in paces])
    base = progress("a", Life.RUNNING, 8000, 8000.0, planned=10_000)
    variation = (sum((1000 * pace - 1000) ** 2 for pace in paces) / 1000 / (len(paces) - 1)) ** 0.5
    spread = (variation**2 * (2000 + 2000**2 / 8000) + (0.05 * 2000) ** 2) ** 0.5
    assert width(replace(base, marks=marks)) == pytest.approx(2 * 1.2816 * spread)


def regular_looks(counts: list[int], seconds: list[float]) -> tuple[Mark, ...]:
    done, moments = accumulate(counts, initial=1), accumulate(seconds, initial=NOW)
    return tuple(Mark(moment, count) for moment, count in zip(moments, done, strict=True))


def test_a_queued_session_is_less_certain_the_more_the_paces_of_the_others_differ() -> None:
    def queued(*paces: float) -> float:
        seen = [progress(str(pace), Life.ENDED, 100, 100 * pace) for pace in paces]
        return width(*seen, progress("a", Life.QUEUED))

    assert queued(10.0, 10.1, 9.9) < queued(10.0) < queued(1.0, 10.0, 19.0)


def test_all_lengths_together_are_short_or_long_along_the_queue() -> None:
    told = forecast([progress("a", Life.RUNNING, 50, 50.0), *(progress(n, Life.QUEUED) for n in "bc")], 1, NOW)
    widths = [told.ends[name].latest - told.ends[name].earliest for name in "abc"]
    assert widths == sorted(widths)
    assert told.run == told.ends["c"]


def test_a_retry_that_waits_ends_no_sooner_than_it_begins_and_lets_others_go_first() -> None:
    done = progress("a", Life.ENDED, 100, 100.0)
    late = progress("b", Life.QUEUED, planned=2)
    late = replace(late, status=replace(late.status, waiting=Waiting("b", "retry", NOW + 48)))
    assert likeliest(forecast([done, late], 1, NOW)) == {"b": NOW + 50}
    told = forecast([done, late, progress("c", Life.QUEUED, planned=10)], 1, NOW)
    assert likeliest(told) == {"b": NOW + 50, "c": NOW + 10}
    assert told.run is not None
    assert told.run.earliest >= NOW + 48
    busy = progress("d", Life.RUNNING, 50, 50.0)
    assert likeliest(forecast([busy, late], 1, NOW))["b"] == NOW + 52, "its wait is over when the slot is free"


@pytest.mark.parametrize("life", [Life.STALLED, Life.RUNNING])
def test_one_that_hangs_has_no_estimate_and_neither_has_its_run(life: Life) -> None:
    others = progress("a", Life.ENDED, 100, 100.0)
    told = forecast([others, progress("b", life, 0, 900.0, planned=4), progress("c", Life.QUEUED)], 2, NOW)
    assert (told.ends, told.run) == ({}, None)


def test_a_stall_halfway_has_no_estimate_either() -> None:
    assert forecast([progress("a", Life.STALLED, 50, 50.0)], 1, NOW).ends == {}
