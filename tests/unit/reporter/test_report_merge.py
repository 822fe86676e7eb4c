"""At most one record per episode, chosen without a look at how it went."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from comborun.model.attempt import EpisodeRecord, Verdict, packed
from comborun.model.work import Spans, describe, gaps, size, spans, union, within
from comborun.reporter.merge import MergedCombo, merge

COMBO = ("flat", "stairs")
PLANNED: Spans = (range(10),)


def record(episode: int, verdict: str = "success", attempt: int = 1, source: str = "f:1") -> EpisodeRecord:
    return EpisodeRecord(*COMBO, episode, Verdict(verdict), attempt=attempt, path=source)


def merged(*records: EpisodeRecord, planned: Spans | None = PLANNED) -> MergedCombo:
    (combo,) = merge(records, {COMBO: planned})
    return combo


def test_the_lowest_attempt_with_a_verdict_counts_whatever_the_verdict() -> None:
    combo = merged(record(0, "success", 2), record(0, "failure", 1), record(1, "success", 1), record(1, "failure", 2))
    assert [(entry.episode, entry.verdict, entry.attempt) for entry in combo.accepted] == [
        (0, Verdict.FAILURE, 1),
        (1, Verdict.SUCCESS, 1),
    ]
    assert (combo.replays, combo.differing) == ((range(2),), (range(2),))
    assert combo.retried == 0


def test_an_errored_record_gives_way_to_a_verdict_of_a_later_attempt() -> None:
    combo = merged(record(0, "errored", 1), record(0, "failure", 2), record(1, "errored", 1), record(1, "errored", 2))
    assert [(entry.verdict, entry.attempt) for entry in combo.accepted] == [
        (Verdict.FAILURE, 2),
        (Verdict.ERRORED, 1),
    ]
    assert combo.retried == 1
    assert (combo.replays, combo.differing) == ((), ())


def test_records_that_differ_in_anything_are_a_conflict() -> None:
    first = replace(record(0), **packed(metrics={"x": 1.0}))
    assert merged(first, replace(first, path="f:9")).conflicts == ()
    assert merged(first, replace(first, **packed(metrics={"x": 2.0}))).conflicts == (range(1),)
    assert merged(first, replace(first, **packed(extra={"end": "fall"}))).conflicts == (range(1),)
    assert merged(first, replace(first, seed=4)).conflicts == (range(1),)


def test_policies_that_take_turns_number_their_trials_together() -> None:
    """Nothing tells that trial 4, which nobody has, was of the one or of the other; and who shares an index with
    another numbers its own."""
    turns = {"a": (0, 2, 6), "b": (1, 3, 5, 7), "own": (1, 6, 8)}
    records = [replace(record(at), policy=policy) for policy, some in turns.items() for at in some]
    lacking = {one.policy: describe(one.missing) for one in merge(records, {})}
    assert lacking == {"a": "4", "b": "4", "own": "2-5, 7"}


def test_sessions_count_their_attempts_each_for_itself() -> None:
    """A session that fills a gap begins with attempt 1 again: what both did is done twice and not recorded twice."""
    whole = [replace(record(0, "failure", 2, "s:1"), session="s"), replace(record(1, "success", 2), session="s")]
    gap = [replace(record(0, "success", 2, "g:1"), session="s_e0-0"), replace(record(1, "success", 2), session="g")]
    combo = merged(*whole, *gap)
    assert (combo.replays, combo.differing) == ((range(2),), (range(1),))
    assert (combo.duplicates, combo.conflicts) == ((), ())
    between = merged(whole[0], gap[0], replace(whole[0], path="s:2"))
    assert between.duplicates == (range(1),), "in the same session, whatever stands between"


def test_what_is_missing_and_what_was_never_planned_are_named() -> None:
    combo = merged(*(record(index) for index in (0, 1, 2, 8, 9, 10, 14)))
    assert describe(combo.missing) == "3-7"
    assert [entry.episode for entry in combo.outside] == [10, 14]
    assert [entry.episode for entry in combo.accepted] == [0, 1, 2, 8, 9]


def test_without_a_plan_gaps_between_the_records_are_named() -> None:
    combo = merged(record(4), record(7), record(10**30), planned=None)
    assert describe(combo.missing) == f"5-6, 8-{10**30 - 1}"
    assert combo.outside == ()


def test_a_combo_without_records_misses_all_of_them() -> None:
    combo = merged()
    assert combo.accepted == ()
    assert combo.missing == PLANNED
    assert merged(planned=None).missing == ()


def test_combos_come_in_the_order_of_the_plan_and_then_by_name() -> None:
    other = replace(record(0), policy="b", environment="a")
    names = [(combo.policy, combo.environment) for combo in merge([other, record(0)], {COMBO: None})]
    assert names == [COMBO, ("b", "a")]


RECORDS = st.lists(
    st.builds(
        record,
        st.integers(0, 12),
        st.sampled_from(["success", "failure", "errored"]),
        st.integers(1, 3),
    ),
    max_size=30,
)


@given(RECORDS)
def test_an_episode_counts_at_most_once_and_the_sum_is_right(records: list[EpisodeRecord]) -> None:
    combo = merged(*records)
    episodes = [entry.episode for entry in combo.accepted]
    assert episodes == sorted(set(episodes))
    assert len(episodes) + size(combo.missing) == 10
    assert all(entry in records for entry in combo.accepted)


@given(RECORDS)
def test_the_choice_does_not_look_at_the_outcome(records: list[EpisodeRecord]) -> None:
    """With successes and failures swapped, the same lines count."""
    swap = {Verdict.SUCCESS: Verdict.FAILURE, Verdict.FAILURE: Verdict.SUCCESS, Verdict.ERRORED: Verdict.ERRORED}
    numbered = [replace(entry, path=str(line)) for line, entry in enumerate(records)]
    swapped = [replace(entry, verdict=swap[entry.verdict]) for entry in numbered]
    assert [entry.source for entry in merged(*numbered).accepted] == [
        entry.source for entry in merged(*swapped).accepted
    ]


INDICES = st.lists(st.integers(-5, 40), max_size=25)


@given(INDICES)
def test_spans_hold_exactly_the_indices(indices: list[int]) -> None:
    found = spans(indices)
    assert [index for span in found for index in span] == sorted(set(indices))
    assert size(found) == len(set(indices))
    assert all(within(found, index) == (index in indices) for index in range(-7, 43))


@given(INDICES, INDICES)
def test_gaps_are_what_is_planned_and_not_seen(planned: list[int], seen: list[int]) -> None:
    found = gaps(spans(planned), sorted(set(seen)))
    assert [index for span in found for index in span] == sorted(set(planned) - set(seen))


@given(st.lists(st.tuples(st.integers(0, 30), st.integers(0, 6)), max_size=8))
def test_a_union_of_ranges_is_disjoint_and_complete(pairs: list[tuple[int, int]]) -> None:
    ranges = [range(start, start + length) for start, length in pairs]
    assert union(ranges) == spans(index for span in ranges for index in span)


def test_ranges_are_named_shortly() -> None:
    assert describe(spans([3, 4, 5, 6, 7, 12])) == "3-7, 12"
    assert describe(()) == ""
    assert describe(spans(range(0, 40, 2)), limit=3) == "0, 2, 4 and 17 more ranges"
