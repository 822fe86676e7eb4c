"""Counts of attempts and of sessions, and the sentence that says why rows don't count."""

from __future__ import annotations

import json
import random

import pytest

from comborun.rules import records
from comborun.rules.facts import Fact
from comborun.rules.results import counts as counting
from comborun.rules.results import tally
from comborun.rules.results.counts import Counts
from comborun.rules.results.fields import FORMAT, Identity, RefusedError
from comborun.rules.results.formats import reader
from comborun.rules.results.tally import Files, Rows
from comborun.rules.vocabulary import Completeness
from comborun.words.rows import why_not_counted

MASON = Identity("mason", "stairs")
TEN = (0, 10)


def files(*rows: object, kind: str = "jsonl-rows", path: str = "r.jsonl") -> Files:
    read = Rows(reader(kind, MASON))
    read.feed("".join(json.dumps(row) + "\n" for row in rows).encode())
    told = Files()
    told.rows.append((path, read.last()))
    return told


def counted(*rows: object) -> Counts:
    return tally.tally(files(*rows), MASON, TEN)


def row(index: int, **fields: object) -> dict[str, object]:
    return dict({"episode": index, "success": index % 2 == 0}, **fields)


def test_rows_of_another_policy_do_not_count_and_the_sentence_names_both() -> None:
    counts = counted(*(row(at, policy="rough") for at in range(10)))
    assert (counts.records, counts.refused) == (0, {"policy": 10})
    assert why_not_counted(counts.facts).startswith("all 10 rows say policy 'rough', this session is 'mason'")
    assert "`results: {policy: ignore}`" in why_not_counted(counts.facts)

    several = counted(row(0), row(1, policy="a"), row(2, policy="b"))
    assert several.records == 1
    assert why_not_counted(several.facts) == "2 of 3 rows say policies 'a', 'b', this session is 'mason'"


WITHOUT_INDEX = [{"episode_idx": at, "success": True} for at in range(10)]
WITHOUT_VERDICT = [{"episode": at, "metrics": {"success": True}} for at in range(10)]


@pytest.mark.parametrize(
    ("rows", "numbers", "refused", "words"),
    [
        (WITHOUT_INDEX, (0, 0, 0), {"index": 10}, ("no field 'episode'", "episode_idx")),
        ([row(at + 1) for at in range(10)], (9, 9, 4), {"outside": 1}, ("10", "0 to 9")),
        (WITHOUT_VERDICT, (10, 0, 0), {}, ("no field 'success'",)),
        ([row(0), row(0), row(1)], (2, 2, 1), {"repeated": 1}, ("1 of 3 rows",)),
    ],
    ids=["without an index", "not planned", "without a verdict", "twice"],
)
def test_what_does_not_count_or_counts_in_part_is_told(
    rows: list[object], numbers: tuple[int, int, int], refused: dict[str, int], words: tuple[str, ...]
) -> None:
    counts = counted(*rows)
    assert ((counts.records, counts.verdicts, counts.successes), counts.refused) == (numbers, refused)
    assert all(word in why_not_counted(counts.facts) for word in words), why_not_counted(counts.facts)


def test_rows_whose_verdict_is_null_or_empty_are_among_the_rows_without_one() -> None:
    odd = [row(0, success=[]), row(1, success={}), row(2, success=None), row(3, success="")]
    told = counted(*odd, *(row(at) for at in range(4, 10)))
    assert (told.records, told.errored) == (10, 4)
    sentence = "4 of 10 rows without a verdict: the field 'success' is neither true nor false (3 of them)"
    assert why_not_counted(told.facts) == sentence
    assert counted(*odd[2:3], *(row(at) for at in range(3, 10))).facts == ()


def test_a_file_that_holds_no_rows_is_named_and_what_is_left_for_later_not_countable_without_rows() -> None:
    told = Files()
    told.refused.append(("r.json", RefusedError(FORMAT, "one JSON list of 10 entries, of no format that is known")))
    counts = tally.tally(told, MASON, TEN)
    assert why_not_counted(counts.facts) == "r.json: one JSON list of 10 entries, of no format that is known"
    assert counts.countable
    told = Files()
    told.foreign.append(("r.json", Fact("counted_at_the_end", most_mib=4)))
    counts = tally.tally(told, MASON, TEN)
    assert not counts.countable
    assert why_not_counted(counts.facts).startswith("r.json: larger than 4 MiB")
    beside = files(row(1))
    beside.foreign.append(("r.json", Fact("counted_at_the_end", most_mib=4)))
    assert tally.tally(beside, MASON, TEN).countable


def test_a_count_is_of_one_attempt_as_a_whole_and_may_be_of_more_than_was_planned() -> None:
    def counted(successes: int, episodes: int) -> Files:
        rows = Rows(reader("kn-aggregate", MASON))
        rows.feed(f"│success_once={successes / episodes} │num_trajectories={episodes} │\n".encode())
        told = Files()
        told.rows.append(("log", rows.last()))
        return told

    part, whole = (tally.tally(counted(*pair), MASON, TEN) for pair in ((4, 8), (4, 16)))
    assert [(one.records, one.verdicts, one.successes) for one in (part, whole)] == [(8, 8, 4), (16, 16, 4)]
    told = counting.joined([(TEN, part), (TEN, whole)], TEN)
    assert (told.records, told.successes, told.errored) == (16, 4, 0)


def test_a_rebuilt_scene_goes_on_counting() -> None:
    def job(copy: int, order: int) -> dict[str, object]:
        return {"job_name": "j", "env_id": copy, "episode_in_env": order, "success": True}

    told = files(job(0, 0), job(1, 0), kind="job-rows", path="a/episode_results.jsonl")
    told.rows += files(job(0, 0), job(1, 0), kind="job-rows", path="a/episode_results_rebuild1.jsonl").rows
    counts = tally.tally(told, MASON, TEN)
    assert counts.records == 4
    assert counts.ordered


def test_counts_travel_in_a_record() -> None:
    counts = counted(row(0), row(3), row(4, policy="x"), row(7, success=None))
    back = Counts.of(records.parse(records.render(counts.pairs())))
    assert back.pairs() == counts.pairs()
    assert back.errored == 1


def test_a_smoke_test_passes_by_a_verdict_or_by_all_its_evidence() -> None:
    assert counting.proven({"completeness": "complete", "records": "0"})
    assert counting.proven({"completeness": "partial", "records": "2", "verdicts": "1"})
    assert not counting.proven({"completeness": "partial", "records": "2", "verdicts": "0"})
    assert not counting.proven({})


def test_marks_hold_every_episode_with_its_verdict() -> None:
    draw = random.Random(3)
    for _ in range(200):
        first = draw.choice([0, 5, 1000])
        count = draw.choice([1, 10, 301])
        verdicts = {at: draw.choice([None, True, False]) for at in range(first, first + count) if draw.random() < 0.6}
        assert counting.unmarked(counting.marked(verdicts, (first, count)), (first, count)) == verdicts
    assert counting.marked({}, TEN) == ""
    assert counting.unmarked("\u00e4!?", TEN) == {}
    assert counting.marked({10**9: True}, (0, 0)) == ""


def part(span: tuple[int, int], *rows: object) -> tuple[tuple[int, int], Counts]:
    return span, tally.tally(files(*rows), MASON, span)


def test_attempts_together_count_as_in_the_report() -> None:
    first = part(TEN, row(0), row(1), row(2, success=None), row(3, success=True))
    tail = part((2, 8), row(2), row(3, success=False), row(4))
    counts = counting.joined([first, tail], TEN)
    assert counting.unmarked(counts.marks, TEN) == {0: True, 1: False, 2: True, 3: True, 4: True}


def test_of_attempts_that_number_episodes_as_they_ended_one_counts_as_a_whole() -> None:
    few, more = part(TEN, row(0, success=True)), part(TEN, row(0, success=False), row(1, success=False))
    for _, one in (few, more):
        one.ordered = True
    counts = counting.joined([few, more], TEN)
    assert (counts.records, counts.successes) == (2, 0)


def test_that_an_attempt_wrote_nothing_does_not_matter_once_another_did() -> None:
    nothing = part(TEN)
    nothing[1].facts = (Fact(counting.WROTE_NOTHING),)
    for attempts in ([nothing, part(TEN, row(0))], [part(TEN, row(0)), nothing]):
        assert not counting.joined(attempts, TEN).facts
    assert counting.joined([nothing, nothing], TEN).facts == nothing[1].facts


def test_where_episodes_are_not_marked_the_best_attempt_counts() -> None:
    old = Counts.of({"records": "6", "successes": "2", "verdicts": "6"})
    assert counting.joined([(TEN, old), part(TEN, row(0))], TEN).records == 6


def judged(counts: Counts, code: int | None = 0, **asked: object) -> Completeness:
    wanted = counting.RequiredEvidence(**dict({"planned": 10, "records": True}, **asked))  # type: ignore[arg-type]
    return counting.completeness(wanted, counts, 0, 1, code)


def test_all_episodes_are_complete_and_fewer_are_partial_whatever_the_exit_code() -> None:
    whole = counted(*(row(at) for at in range(10)))
    assert judged(whole, 139) is Completeness.COMPLETE
    assert judged(counted(*(row(at) for at in range(9))), 0) is Completeness.PARTIAL
    assert judged(counted(), 0) is Completeness.NONE
    assert judged(counted(*WITHOUT_VERDICT)) is Completeness.PARTIAL
    assert judged(counted(*WITHOUT_VERDICT[:9], row(9))) is Completeness.COMPLETE
    assert judged(counted(row(0)), 0, planned=0) is Completeness.COMPLETE, (
        "the program decides how many, and exit code 0 shows that it is done"
    )
    assert judged(counted(row(0)), None, planned=0) is Completeness.PARTIAL
    other = counting.RequiredEvidence(10, True, 1)
    assert counting.completeness(other, whole, 0, 1, 0) is Completeness.PARTIAL
    assert counting.completeness(other, whole, 1, 1, None) is Completeness.COMPLETE


def test_of_a_format_that_is_not_counted_the_exit_code_decides_once_there_is_a_file() -> None:
    told = Files()
    told.foreign.append(("run.log", Fact("training")))
    unknown = tally.tally(told, MASON, TEN)
    asked = counting.RequiredEvidence(10, True)
    assert counting.completeness(asked, unknown, 0, 1, 0) is Completeness.COMPLETE
    assert counting.completeness(asked, unknown, 0, 1, 3) is Completeness.PARTIAL
    assert (
        counting.completeness(counting.RequiredEvidence(10, False, results=True), Counts(), 0, 0, 0)
        is Completeness.NONE
    )


def test_steps_are_rows() -> None:
    counts = tally.steps(files({"loss": 1}, {"loss": 2}, 7))
    assert counts.records == 2
    assert judged(counts, 1, planned=2, verdicts=False) is Completeness.COMPLETE
