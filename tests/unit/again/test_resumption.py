"""What is left to do of a run, from how its sessions ended and which episodes have no record."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st
from test_amend import plan, session

from comborun.amendment.resumption import AnotherAttempt, Futile, Rejected, Resumption, resumption
from comborun.model.work import Combo, Spans, episodes_of, minus, spans
from comborun.planner.ranges import range_session
from comborun.rules.vocabulary import Outcome

COMBO: Combo = ("p", "e")
ALL = (range(10),)


def left(outcome: Outcome | None, missing: Spans | None, ranged: bool = True) -> Resumption:
    """Of a run with one session of ten episodes."""
    one = session(count=10, ranged=ranged)
    return resumption(plan(one), {one.name: outcome} if outcome else {}, {} if missing is None else {COMBO: missing})


def test_it_is_told_how_many_recorded_episodes_run_again_with_what_is_missing() -> None:
    assert left(Outcome.LOST, spans([8, 9])).again[0].repeated == 0, "another attempt does the end alone"
    assert left(Outcome.LOST, spans([2, 9])).again[0].repeated == 8, "a gap in between: all of it again"
    assert left(Outcome.LOST, spans([8, 9]), ranged=False).again[0].repeated == 8, "the command takes no range"


def test_where_records_can_not_tell_the_outcome_does() -> None:
    assert left(Outcome.FAILED, None).again == (AnotherAttempt("e_p"),)
    assert left(Outcome.SUCCEEDED, None).nothing


def test_episodes_that_a_success_lacks_are_filled_where_the_program_takes_a_range() -> None:
    what = left(Outcome.SUCCEEDED, spans([2, 8, 9]))
    assert (what.again, [(one.first, one.count) for one in what.added]) == ((), [(2, 1), (8, 2)])
    assert left(Outcome.SUCCEEDED, spans([2]), ranged=False).nothing


def test_what_is_stopped_or_lost_is_started_again_and_what_goes_on_is_left_alone() -> None:
    for outcome in (Outcome.LOST, Outcome.CANCELLED):
        assert [one.name for one in left(outcome, spans([2])).again] == ["e_p"]
    assert left(None, ALL).nothing


def test_a_gap_that_a_later_session_is_for_is_not_asked_for_twice() -> None:
    one = session(count=10)
    gap = range_session(one, 2, 1)
    outcomes = {one.name: Outcome.PARTIAL, gap.name: Outcome.FAILED}
    missing = {COMBO: spans([2, 5])}
    what = resumption(plan(one, gap), outcomes, missing)
    assert what.again == (AnotherAttempt(gap.name, (range(2, 3),)),)
    assert [added.first for added in what.added] == [5]
    del outcomes[gap.name]
    assert resumption(plan(one, gap), outcomes, missing).again == (), "it is queued, and does it"


@given(st.sets(st.integers(0, 29)), st.lists(st.sampled_from([*Outcome, None]), min_size=3, max_size=3))
def test_exactly_what_is_missing_and_not_under_way_is_asked_for_or_said_to_be_futile(
    missing: set[int], ended: list[Outcome | None]
) -> None:
    sessions = [session(first=10 * n, count=10, name=f"s{n}") for n in range(3)]
    outcomes = {one.name: outcome for one, outcome in zip(sessions, ended, strict=True) if outcome}
    what = resumption(plan(*sessions), outcomes, {COMBO: spans(missing)})
    asked = [span for one in what.again for span in one.lacking]
    asked += [range(one.first, one.first + one.count) for one in what.added]
    asked += [span for one in what.futile for span in one.lacking]
    failed = [one for one in sessions if outcomes.get(one.name) not in (None, Outcome.NOT_NEEDED)]
    want = spans(missing)
    assert spans(index for span in asked for index in span) == minus(want, minus(want, episodes_of(failed)))
    assert sum(map(len, asked)) == len({index for span in asked for index in span}), "none twice"


FOREIGN = Rejected(4, 4, "of another environment: 'ice', where 'e' ran", "sessions/e_p/attempt-1/out/a.jsonl:1")


def test_what_was_written_and_rejected_is_not_run_again_however_it_ended() -> None:
    one = session(count=4)
    missing = {COMBO: (range(4),)}
    for outcome in (Outcome.SUCCEEDED, Outcome.PARTIAL, Outcome.FAILED):
        what = resumption(plan(one), {one.name: outcome}, missing, {one.name: FOREIGN})
        assert what == Resumption(futile=(Futile(one.name, (range(4),), FOREIGN),))
        assert what.nothing


def test_a_line_that_is_no_record_keeps_nobody_from_what_a_failure_left_undone() -> None:
    one = session(count=4)
    noise = Rejected(5, 0, "not JSON", "a.jsonl:1")
    missing = {COMBO: (range(3, 4),)}
    assert resumption(plan(one), {one.name: Outcome.PARTIAL}, missing, {one.name: noise}).again
    assert resumption(plan(one), {one.name: Outcome.SUCCEEDED}, missing, {one.name: noise}).added
    whole = replace(one, ranged=False)
    assert resumption(plan(whole), {one.name: Outcome.SUCCEEDED}, missing, {one.name: noise}).futile
    fewer = replace(FOREIGN, count=1, foreign=1)
    assert resumption(plan(one), {one.name: Outcome.PARTIAL}, {COMBO: ALL[:1]}, {one.name: fewer}).again


def test_a_success_that_left_no_record_at_all_is_not_run_again_so_gaps_of_gaps_have_an_end() -> None:
    one = session(count=10)
    gap = range_session(one, 2, 2)
    outcomes = dict.fromkeys((one.name, gap.name), Outcome.SUCCEEDED)
    what = resumption(plan(one, gap), outcomes, {COMBO: (range(2, 4),)})
    assert what == Resumption(futile=(Futile(gap.name, (range(2, 4),)),))


def test_smoke_tests_are_tried_again_only_without_a_record_and_dropped_ones_never() -> None:
    smoke = replace(session(), name="e_p_smoke", count=1, flag="smoke")
    gone = replace(session("q"), flag="dropped")
    outcomes = {smoke.name: Outcome.FAILED, gone.name: Outcome.FAILED}
    assert resumption(plan(smoke, gone), outcomes, {}).again == (AnotherAttempt("e_p_smoke"),)
    assert resumption(plan(smoke, gone), {smoke.name: Outcome.PARTIAL}, {}).nothing
