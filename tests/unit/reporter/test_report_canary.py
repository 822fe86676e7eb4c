"""What a canary shows: verdicts, starts and seeds of the same episodes, alone and beside others."""

from __future__ import annotations

from typing import Any

import pytest
from monitor_stage import a_plan, a_session
from report_runs import episode

from comborun.amendment.resumption import episodes_each, recheck_plan
from comborun.model.attempt import EpisodeRecord
from comborun.reporter.canary import compare_canary, told_rejects
from comborun.reporter.records.collected import Canary, CanaryCombo
from comborun.reporter.records.reading import Reject, RejectKind


def record(index: int, mark: str = "+", **fields: Any) -> EpisodeRecord:
    return episode(index, mark, **{"seed": index, **fields})


def compared(parallel: list[EpisodeRecord], alone: list[EpisodeRecord]) -> CanaryCombo:
    (combo,) = compare_canary("canary-1", parallel, alone).combos
    return combo


def test_episodes_that_went_the_same_are_counted_and_nothing_else() -> None:
    found = compared([record(i) for i in range(9)], [record(i) for i in range(3)])
    assert (found.compared, found.differs) == (3, False)
    assert found.words == "3 episodes run alone once more: all went the same (no start is recorded)"


def test_other_verdicts_other_starts_and_other_seeds_are_told_apart() -> None:
    parallel = [record(0, "-"), record(1, init_hash="a"), record(2, seed=9)]
    alone = [record(0), record(1, init_hash="b"), record(2)]
    hashed = [record(0, init_hash="x"), *alone[1:]]
    found = compared([record(0, "-", init_hash="x"), *parallel[1:]], hashed)
    assert (found.verdicts, found.starts, found.seeds) == ((0,), (1,), (2,))
    assert found.words == (
        "3 episodes run alone once more: another verdict in 0; another start in 1; another seed in 2"
        " (starts compared in 2 of them)"
    )


def test_a_start_is_another_one_only_where_both_say_where_they_started() -> None:
    alone = [record(0, init_hash="a"), record(1, init_hash="b"), record(2, "!")]
    parallel = [record(0), record(1, init_hash="b"), record(2, init_hash="c", seed=None)]
    found = compared(parallel, alone)
    assert (found.starts, found.seeds, found.starts_compared) == ((), (), 1)
    assert "another start" not in found.words
    assert found.words.endswith("(starts compared in 1 of them)")


def test_starts_are_compared_by_the_best_field_that_both_have() -> None:
    alone = [record(0, init_hash="a", first_frame_hash="f"), record(1, first_frame_hash="g")]
    parallel = [record(0, first_frame_hash="f"), record(1, first_frame_hash="h")]
    found = compared(parallel, alone)
    assert (found.starts, found.starts_compared) == ((1,), 2)
    other = compared([record(0, init_hash="a", first_frame_hash="x")], alone)
    assert other.starts == (), "the first image may be drawn otherwise where the state is the same"


def test_records_that_were_rejected_are_not_told_as_none_that_were_left() -> None:
    rejects = [Reject("out/a.jsonl", line, "no episode", RejectKind.NOT_A_RECORD) for line in (1, 2)]
    assert told_rejects(Canary("canary-1", ()), rejects) == (
        "2 records of the recheck were rejected and none is left, so nothing can be said;"
        " the first, out/a.jsonl:1: no episode"
    )
    found = compare_canary("canary-1", [], [record(0)])
    assert told_rejects(found, rejects[:1]).startswith(
        "1 record of the recheck was rejected; the first, out/a.jsonl:1:"
    )


def test_what_is_told_to_run_is_what_the_canary_has_planned_however_many_were_asked_for() -> None:
    four = recheck_plan(a_plan([a_session("act", "grass", 4)]), "RUN", 99)
    assert episodes_each(four) == "4 episodes"
    uneven = recheck_plan(a_plan([a_session("act", "grass", 4), a_session("act", "maze", 6)]), "RUN", 6)
    assert episodes_each(uneven) == "up to 6 episodes"


def test_a_canary_that_shares_no_episode_says_nothing_and_says_so() -> None:
    found = compare_canary("canary-1", [], [record(0)])
    assert [combo.name for combo in found.silent] == ["flat × stairs"]
    assert "the same" not in found.combos[0].words
    assert found.differing == ()


def test_a_canary_is_read_as_it_was_written_and_another_text_is_refused() -> None:
    found = compare_canary("canary-1", [record(0, "-")], [record(0), record(1)])
    assert Canary.from_json(found.to_json()) == found
    wrong = (
        "",
        "null",
        "[]",
        "{}",
        '{"run": "x", "combos": [1]}',
        found.to_json().replace('"compared": 1', '"compared": "1"'),
    )
    for text in wrong:
        with pytest.raises((ValueError, TypeError)):
            Canary.from_json(text)
