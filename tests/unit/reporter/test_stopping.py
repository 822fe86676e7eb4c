"""Decisions from records: the same whatever the order of arrival, the number of sessions and the time of looking."""

from __future__ import annotations

import json
import random
from dataclasses import replace
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from recorded import record as one_record
from report_runs import RUN, RunDirectory, document, episode, planned_session, row, write_rows

from comborun.model.attempt import EpisodeRecord, Verdict
from comborun.model.stopping import PlannedComparison, StopRule
from comborun.reporter.collect import collect_run
from comborun.reporter.comparing.family import compare
from comborun.reporter.comparing.sides import Arm, CountsAlone, arm
from comborun.reporter.comparing.stopping import ComparisonProgress, EarlyStopping, decide_run, not_needed, standings
from comborun.reporter.merge import merge
from comborun.reporter.pages.answer import answer
from comborun.reporter.pages.words import methods
from comborun.reporter.report import report_run
from comborun.reporter.summary import Summary, summarize

N_MAX = 40
PLANNED = PlannedComparison("stairs", "good", "poor", 0, N_MAX)
RULE = StopRule(0.05, 1, (PLANNED,))


def record(policy: str, index: int, success: bool | None, **fields: Any) -> EpisodeRecord:
    mark = "!" if success is None else "-+"[success]
    return episode(index, mark, policy, **{"seed": 1000 + index, **fields})


def drawn(seed: int, good: float = 0.9, poor: float = 0.4, count: int = N_MAX) -> list[EpisodeRecord]:
    """What both policies leave if all runs."""
    rng = random.Random(seed)
    rates = {"good": good, "poor": poor}
    return [record(policy, i, rng.random() < rate) for i in range(count) for policy, rate in rates.items()]


def stand(records: list[EpisodeRecord]) -> ComparisonProgress:
    merged = merge(records, {})
    # While the run lasts, what is missing may still come.
    arms = {combo.key: replace(arm(combo), missing=frozenset()) for combo in merged}
    (found,) = standings(RULE, arms)
    return found


@settings(max_examples=40)
@given(st.integers(0, 500), st.randoms(use_true_random=False), st.integers(1, 5))
def test_neither_the_order_of_arrival_nor_the_number_of_sessions_nor_the_looks_change_a_decision(
    seed: int, shuffled: random.Random, sessions: int
) -> None:
    whole = [replace(one, session=f"s{one.episode % sessions}") for one in drawn(seed, 0.8, 0.4)]
    final = stand(whole)
    arriving = list(whole)
    shuffled.shuffle(arriving)
    for looked in sorted(shuffled.sample(range(len(whole) + 1), 6)):
        then = stand(arriving[:looked])
        assert then == final if then.final else (then.winner is None and then.pairs <= final.pairs)
    assert stand(arriving) == final


def _side(records: list[EpisodeRecord], policy: str) -> Arm:
    (combo,) = merge([one for one in records if one.policy == policy], {})
    return arm(combo)


def test_a_gap_is_waited_for_and_what_came_beyond_it_is_not_looked_at() -> None:
    records = [one for one in drawn(1) if (one.policy, one.episode) != ("poor", 2)]
    assert (stand(records).pairs, stand(records).final) == (2, False)


@pytest.mark.parametrize(
    ("fields", "why"),
    [
        ({"seed": None}, "no seeds in the records (episode 3)"),
        ({"seed": 77}, "seeds differ (episode 3)"),
        ({"init_hash": "other"}, ""),
    ],
)
def test_episodes_that_are_not_shown_to_start_the_same_are_no_pair(fields: dict[str, Any], why: str) -> None:
    records = [one for one in drawn(1) if (one.policy, one.episode) != ("poor", 3)]
    found = stand([*records, record("poor", 3, False, **fields)])
    assert found.unpaired == why
    assert (found.pairs == 3) == bool(why)


def test_a_seed_that_comes_again_pairs_nothing() -> None:
    one_seed = stand([replace(one, seed=5) for one in drawn(1)])
    assert one_seed.unpaired == "one seed for all episodes, which says nothing of their starts (episode 0)"
    again = stand([replace(one, seed=one.episode % 4) for one in drawn(1)])
    assert again.unpaired == "the start of an earlier one (episode 4)"


def test_a_comparison_is_given_up_where_the_grid_says_so_and_nobody_wins() -> None:
    records = drawn(4, 0.5, 0.5)
    (combo, other) = merge(records, {})
    arms = {combo.key: arm(combo), other.key: arm(other)}
    (given_up,) = standings(replace(RULE, futility=0.2), arms)
    assert (given_up.winner, given_up.final, given_up.stopped_early) == (None, True, True)
    (comparison,) = EarlyStopping(RULE, (given_up,)).comparisons("stairs", [*arms.values()])
    assert (comparison.better, comparison.rate_a.n) == (None, given_up.pairs)
    (as_before,) = standings(RULE, arms)
    assert as_before.pairs == N_MAX


def test_a_policy_is_not_needed_once_all_its_comparisons_in_an_environment_are_over() -> None:
    third = PlannedComparison("stairs", "good", "third", 0, N_MAX)
    rule = StopRule(0.05, 2, (PLANNED, third))
    sessions = [
        planned_session(policy, environment, 10, name=f"{environment}_{policy}")
        for environment in ("stairs", "grass")
        for policy in ("good", "poor", "third", "fourth")
    ]
    over = ComparisonProgress(PLANNED, (1,) * 9, "good", final=True)
    assert not_needed(EarlyStopping(rule, (over, ComparisonProgress(third))), sessions) == ("stairs_poor",)
    both = not_needed(EarlyStopping(rule, (over, ComparisonProgress(third, (0,) * N_MAX, final=True))), sessions)
    assert both == ("stairs_good", "stairs_poor", "stairs_third")


BLOCK = 10


def stopping_run(path: Path, blocks: int = 4, ran: int = 2, *, seeded: bool = True) -> Path:
    """Two policies in `blocks` blocks each, of which `ran` have run; the others were not needed."""
    run = RunDirectory(path)
    for first in range(0, BLOCK * blocks, BLOCK):
        for policy in ("good", "poor"):
            session = run.session(policy, "stairs", BLOCK, first=first, name=f"stairs_{policy}_e{first}")
            outcomes = {i: policy == "good" or i % 5 == 4 for i in range(first, first + BLOCK)}
            rows = [row(i, success, **({"seed": 1000 + i} if seeded else {})) for i, success in outcomes.items()]
            if first < ran * BLOCK:
                run.attempt(session, "".join(rows))
            else:
                end = one_record(attempt=1, ended=1778312200.5, cause="not_needed", completeness="none")
                run.put(RUN.attempt(session.name, 1).end, end)
    run.write()
    planned = PlannedComparison("stairs", "good", "poor", 0, BLOCK * blocks)
    manifest = {"schema": 1, "grid": "g", "stop_early": StopRule(0.05, 1, (planned,)).as_data()}
    run.put(RUN.manifest, json.dumps(manifest))
    return path


def told(path: Path) -> Summary:
    return summarize(collect_run(path)).summary


def test_a_run_tells_its_decisions_on_a_line_each(tmp_path: Path) -> None:
    decided = decide_run(stopping_run(tmp_path))
    assert [json.loads(line) for line in decided.lines().splitlines()] == [
        {"environment": "stairs", "a": "good", "b": "poor", "better": "good", "pairs": 9, "n_max": 40}
    ]
    assert len(decided.not_needed) == 8


def test_an_errored_episode_is_waited_for_as_long_as_it_may_be_run_again(tmp_path: Path) -> None:
    run = RunDirectory(stopping_run(tmp_path))
    lines = "".join(row(i, None if i == 3 else True, seed=1000 + i) for i in range(BLOCK))
    session = planned_session("good", "stairs", BLOCK, name="stairs_good_e0")
    (tmp_path / RUN.done).unlink()
    run.attempt(session, lines, completeness="partial", code=1)
    assert decide_run(tmp_path).standings[0].pairs == 3
    run.attempt(session, lines)
    assert decide_run(tmp_path).standings[0].winner == "good"


def test_what_was_not_needed_is_neither_missing_nor_failed(tmp_path: Path) -> None:
    summary = told(stopping_run(tmp_path))
    for combo in summary.combos:
        assert combo.counts
        assert (combo.counts.planned, combo.counts.completed, combo.counts.missing) == (20, 20, 0)
        assert (combo.not_needed, combo.ending.outcome, combo.ending.attempts) == (20, "succeeded", 2)


def test_the_report_uses_the_pairs_up_to_the_decision_and_says_what_an_early_stop_means(tmp_path: Path) -> None:
    summary = told(stopping_run(tmp_path))
    (one,) = summary.comparisons.all
    assert (one.rate_a.successes, one.rate_a.n, one.rate_b.successes, one.rate_b.n) == (9, 9, 1, 9)
    assert one.test == "CASM"
    assert one.p_holm <= 0.05
    (claim,) = summary.claims.decided
    assert "stopped at 9 of 40 pairs, Holm p ≤ 0.05." in claim
    assert "the difference is exaggerated" in claim


def test_a_planned_test_that_the_records_do_not_allow_is_told_everywhere(tmp_path: Path) -> None:
    path = stopping_run(tmp_path, ran=4, seeded=False)
    summary = told(path)
    (one,) = summary.comparisons.all
    assert (one.test, one.prevented) == ("Barnard", "no seeds in the records (episode 0)")
    (finding,) = [found.what for found in summary.quality.findings if found.where == "stairs"]
    assert "1 comparison of `stop_early` could not be tested after every pair" in finding
    assert finding.endswith("no seeds in the records (episode 0); it was made once, of all episodes")
    assert "planned to be tested after every pair of episodes, and could not be" in methods(summary)
    report_run(path, tmp_path / "out")
    (planned,) = document(tmp_path / "out")["comparisons"]
    assert planned["prevented"] == one.prevented
    for name in ("report.md", "report.html"):
        assert "Barnard, not CASM as planned" in (tmp_path / "out" / name).read_text()


def test_counts_alone_prevent_a_test_after_every_pair_too() -> None:
    sides = [CountsAlone("good", (9, 10)), CountsAlone("poor", (2, 10))]
    (one,) = EarlyStopping(RULE, standings(RULE, {})).comparisons("stairs", sides)
    assert one.prevented == "counts alone, without episodes"


def test_all_that_ran_gives_the_same_decision_as_what_was_stopped(tmp_path: Path) -> None:
    stopped, whole = (told(stopping_run(tmp_path / str(ran), ran=ran)) for ran in (2, 4))
    assert stopped.comparisons == whole.comparisons
    assert whole.combos[0].not_needed == 0


# -- runs that are under way ------------------------------------------------------------------------------------------


def unfinished(path: Path, ran: int, *, stopped: bool = False, seeded: bool = True) -> Summary:
    """Two policies of 40 episodes of which `ran` have run; the good one never fails, the poor one mostly."""
    run = RunDirectory(path)
    for environment in ("stairs", "grass"):
        for policy in ("good", "poor"):
            session = run.session(policy, environment, N_MAX)
            whole = environment == "grass"
            outcomes = {i: policy == "good" or i % 5 == 4 for i in range(N_MAX if whole else ran)}
            rows = [row(i, success, **({"seed": 1000 + i} if seeded else {})) for i, success in outcomes.items()]
            end = {} if whole else {"cause": "stopped", "completeness": "partial"} if stopped else {"end": None}
            run.attempt(session, "".join(rows), **end)
    return told(run.write(done=stopped))


@pytest.mark.parametrize("stopped", [False, True])
@pytest.mark.parametrize("seeded", [False, True])
def test_what_is_claimed_of_an_environment_under_way_is_said_so_far(
    tmp_path: Path, stopped: bool, seeded: bool
) -> None:
    summary = unfinished(tmp_path, 30, stopped=stopped, seeded=seeded)
    by_environment = {one.environment: one for one in summary.comparisons.all}
    assert by_environment["stairs"].so_far
    assert by_environment["stairs"].test == "CASM"
    assert not by_environment["grass"].so_far
    assert by_environment["grass"].test == ("exact McNemar" if seeded else "Barnard")
    assert summary.comparisons.overall == ()
    (so_far,) = [claim for claim in summary.claims.decided if "stairs" in claim]
    assert so_far.startswith("So far good beats poor in stairs: 11/11 = 100.0 % against 2/11")


def test_a_few_episodes_of_a_run_under_way_claim_nothing(tmp_path: Path) -> None:
    summary = unfinished(tmp_path, 7)
    assert [claim.split(":")[0] for claim in summary.claims.decided] == ["good beats poor in grass"]
    assert any(sentence.startswith("Not decided in stairs so far:") for sentence in summary.claims.undecided)


def test_an_errored_episode_counts_against_an_early_decision() -> None:
    records = drawn(1)
    decided = stand(records)
    crashed = {decided.episodes[1], decided.episodes[2]}
    without = [
        replace(one, verdict=Verdict.ERRORED) if one.episode in crashed and one.policy == "good" else one
        for one in records
    ]
    assert (stand(without).pairs > decided.pairs) or stand(without).winner is None


@settings(max_examples=30)
@given(st.integers(0, 10_000))
def test_whatever_stops_early_is_what_the_report_claims(seed: int) -> None:
    planned = tuple(PlannedComparison(f"e{index}", "good", "poor", 0, N_MAX) for index in range(6))
    arms = {}
    for index, one in enumerate(planned):
        for policy in ("good", "poor"):
            records = [replace(record, environment=one.environment) for record in drawn(seed * 6 + index, 0.8, 0.45)]
            arms[policy, one.environment] = _side(records, policy)
    rule = StopRule(0.05, 6, planned)
    found = standings(rule, arms)
    sides = {one.environment: [arms[combo] for combo in one.combos] for one in planned}
    report = compare(sides, EarlyStopping(rule, found))
    assert [one.better for one in report.all] == [one.winner for one in found]


# -- by a metric ------------------------------------------------------------------------------------------------------


def graded_run(
    path: Path, ran: int = 3, *, gap: float = 0.4, odd: dict[int, Any] | None = None, others: tuple[str, ...] = ()
) -> Path:
    """All fail, and the good one comes further. `odd`: what some episodes of the good one record.

    `others`: environments beside the stairs.
    """
    run = RunDirectory(path)
    for first, place in product(range(0, 40, BLOCK), ("stairs", *others)):
        for policy in ("good", "poor"):
            session = run.session(policy, place, BLOCK, first=first, name=f"{place}_{policy}_e{first}")
            values = {i: 0.2 + i % 3 / 10 + gap * (policy == "good") for i in range(first, first + BLOCK)}
            values |= {i: value for i, value in (odd or {}).items() if policy == "good" and i in values}
            if first < ran * BLOCK:
                rows = [row(i, False, seed=1000 + i, progress=value) for i, value in values.items()]
                run.attempt(session, "".join(rows))
            else:
                end = one_record(attempt=1, ended=1778312200.5, cause="not_needed", completeness="none")
                run.put(RUN.attempt(session.name, 1).end, end)
    run.write()
    planned = (PLANNED, *(replace(PLANNED, environment=place) for place in others))
    rule = StopRule(0.05, len(planned), planned, metric="progress")
    run.put(RUN.manifest, json.dumps({"schema": 1, "grid": "g", "stop_early": rule.as_data()}))
    return path


def test_progress_ends_a_comparison_early_and_the_report_claims_what_the_monitor_decided(tmp_path: Path) -> None:
    decided = decide_run(graded_run(tmp_path))
    (line,) = map(json.loads, decided.lines().splitlines())
    assert (line["better"], line["metric"]) == ("good", "progress")
    assert line["pairs"] < 30
    summary = told(tmp_path)
    assert summary.comparisons.all == ()
    (one,) = summary.comparisons.mean_differences
    assert (one.better, one.n, one.test) == ("good", (line["pairs"],) * 2, "betting")
    assert one.interval[0] < 0.4 < one.interval[1]
    (claim,) = summary.claims.decided
    assert f"stopped at {line['pairs']} of 40 pairs" in claim
    assert "exaggerated" in claim
    report_run(tmp_path, tmp_path / "out")
    (found,) = document(tmp_path / "out")["mean_differences"]
    assert found["sequential"] == {"n_max": 40, "stopped_early": True, "alpha": 0.05}
    assert "good beats poor by progress in stairs" in (tmp_path / "out/report.md").read_text()


@pytest.mark.parametrize(
    ("gap", "line"),
    [
        (0.4, "good beats poor by progress in 2 of 2 environments."),
        (0.0, "2 policies are not told apart by progress in any environment."),
    ],
    ids=["apart", "alike"],
)
def test_progress_that_is_decided_in_several_environments_is_answered_by_them(
    tmp_path: Path, gap: float, line: str
) -> None:
    assert answer(told(graded_run(tmp_path, ran=4, gap=gap, others=("ramp",)))) == line


def test_progress_that_is_alike_or_outside_of_its_range_decides_nothing(tmp_path: Path) -> None:
    alike = told(graded_run(tmp_path / "alike", ran=4, gap=0.0))
    assert alike.claims.decided == ()
    assert any("not decided does not mean equal" in one for one in alike.claims.undecided)
    per_cent = told(graded_run(tmp_path / "odd", ran=4, odd=dict.fromkeys(range(0, 40, 2), 60.0)))
    assert per_cent.claims.decided == ()


def test_progress_without_seeds_is_compared_once_and_that_is_said(tmp_path: Path) -> None:
    path = graded_run(tmp_path, ran=4)
    for file in path.rglob("*.jsonl"):
        rows = [
            {key: value for key, value in json.loads(line).items() if key != "seed"}
            for line in file.read_text().splitlines()
        ]
        write_rows(file, rows)
    summary = told(path)
    assert decide_run(path).not_needed == ()
    (one,) = summary.comparisons.mean_differences
    assert "no seeds" in one.prevented
    assert any("could not be tested after every pair" in found.what for found in summary.quality.findings)
