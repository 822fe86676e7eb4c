"""Policies compared by metrics, by the ways in which their episodes fail, and as checkpoints of one training."""

from __future__ import annotations

import random
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from statistics import fmean
from typing import Any

import pytest
from gridtext import plan
from report_runs import RunDirectory, document, episode, row, summarized, write_rows
from scipy import stats

from comborun.reporter.comparing.family import compare
from comborun.reporter.comparing.graded import Graded, compare_graded, scores
from comborun.reporter.comparing.kinds import MOST, KindComparison, compare_kinds
from comborun.reporter.comparing.orders import Trend, steps_of, trend_of
from comborun.reporter.comparing.sides import Arm, arm
from comborun.reporter.counting.measures import ends_of
from comborun.reporter.merge import MergedCombo, merge
from comborun.reporter.report import report_folder, report_run
from comborun.reporter.statistics.difference import dominance, interquartile_mean
from comborun.reporter.statistics.proportion import clopper_pearson
from comborun.rules.results.fields import ResultRules

RNG = random.Random(5)
NORMAL = [RNG.gauss(0, 1) for _ in range(24)], [RNG.gauss(0.6, 2) for _ in range(17)]


def combo(
    policy: str, values: Iterable[float | None], environment: str = "stairs", seed: int | None = 1
) -> MergedCombo:
    """An episode per value; None for one that gave no verdict."""
    told = [
        episode(index, "!", policy, environment, seed and seed + index)
        if value is None
        else episode(index, "-", policy, environment, seed and seed + index, progress=value)
        for index, value in enumerate(values)
    ]
    return merge(told, {})[0]


def graded(a: MergedCombo, b: MergedCombo) -> Graded:
    found, *_ = compare_graded("progress", {"stairs": [scores(one, "progress") for one in (a, b)]})
    assert isinstance(found, Graded)
    return found


# -- formulas ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("digits", [9, 0], ids=["no ties", "ties"])
def test_p_of_unpaired_values_is_the_larger_one_of_two_tests_of_scipy(digits: int) -> None:
    a, b = ([round(one, digits) for one in some] for some in NORMAL)
    found = dominance(a, b)
    by_scipy = (
        stats.brunnermunzel(a, b).pvalue,
        stats.mannwhitneyu(a, b, use_continuity=False, method="asymptotic").pvalue,
    )
    assert found.p == pytest.approx(max(by_scipy), abs=1e-12)
    assert found.difference == pytest.approx(2 * stats.mannwhitneyu(a, b).statistic / len(a) / len(b) - 1)
    assert found.interval[0] < found.difference < found.interval[1]


def test_values_that_do_not_overlap_have_an_interval_and_a_p_above_zero() -> None:
    found = dominance(range(20), range(50, 70))
    assert found.difference == -1
    assert 0 < found.p < 1e-6
    assert -1 == found.interval[0] < found.interval[1] < -0.5


def test_the_interquartile_mean_is_that_of_the_middle_half() -> None:
    assert interquartile_mean(range(8)) == 3.5
    assert interquartile_mean([-100, 1, 2, 100]) == 1.5


# -- comparisons ------------------------------------------------------------------------------------------------------


def test_pairs_are_won_by_the_policy_with_more_of_the_metric() -> None:
    found = graded(combo("a", [3, 2, 2, 5] * 6), combo("b", [1, 1, 2, 6] * 6))
    assert found.paired
    assert (found.difference, found.n) == (0.25, (24, 24))
    assert found.p == pytest.approx(stats.binomtest(12, 18).pvalue)
    turned = graded(combo("b", [1, 1, 2, 6] * 6), combo("a", [3, 2, 2, 5] * 6))
    assert (turned.difference, turned.p) == (-found.difference, pytest.approx(found.p))


def test_episodes_that_start_differently_are_no_pairs() -> None:
    found = graded(combo("a", [2.0] * 12, seed=1), combo("b", [1.0] * 12, seed=500))
    assert (found.paired, found.difference) == (False, 1.0)


def test_few_unpaired_values_are_not_compared() -> None:
    sides = [scores(combo(name, [1, 2, 3], seed=seed), "progress") for name, seed in (("a", 1), ("b", 50))]
    assert compare_graded("progress", {"stairs": sides}) == ()


@pytest.mark.parametrize("seed", [1, 500], ids=["paired", "unpaired"])
def test_episodes_without_a_value_count_against_the_policy_that_is_ahead(seed: int) -> None:
    values: list[float | None] = [2.0 + index / 100 for index in range(20)]
    whole = graded(combo("a", values), combo("b", [1.0 + index / 100 for index in range(20)], seed=seed))
    short = graded(
        combo("a", [*values[:10], *[None] * 10]), combo("b", [1.0 + index / 100 for index in range(20)], seed=seed)
    )
    assert whole.worst_p == whole.p < 0.05
    assert short.unknown == (10, 0)
    assert short.worst_p > 0.05


def test_over_environments_each_has_the_same_weight() -> None:
    sides = {
        name: [scores(combo(policy, values, name), "progress") for policy, values in (("a", first), ("b", [1.0] * 10))]
        for name, first in (("grass", [2.0] * 10), ("stairs", [2.0] * 5 + [1.0] * 5))
    }
    pooled, *within = (one for one in compare_graded("progress", sides) if isinstance(one, Graded))
    assert pooled.environments == ("grass", "stairs")
    assert pooled.difference == 0.75
    assert [one.difference for one in within] == [1.0, 0.5]
    assert pooled.p == pytest.approx(2 * 0.5**15)


def test_metrics_share_the_error_with_success_rates() -> None:
    a, b = combo("a", [2.0] * 7), combo("b", [1.0] * 7)
    sides = {"stairs": [arm(a), arm(b)]}
    found = compare_graded("progress", {"stairs": [scores(one, "progress") for one in (a, b)]})
    alone, both = compare(sides), compare(sides, None, found)
    assert (alone.size, both.size) == (1, 2)
    first = min((*both.graded, *both.mean_differences), key=lambda one: one.p)
    assert first.p_holm == pytest.approx(4 * first.p)


# -- failure kinds ----------------------------------------------------------------------------------------------------


def kinds(marks: dict[tuple[str, str], str]) -> tuple[KindComparison, ...]:
    """By policy and environment a mark per episode: `f` fell, `t` timed out, `+` success, `!` errored."""
    words = {"f": ("-", {"failure": "fell"}), "t": ("-", {"failure": "timeout"}), "+": ("+", {}), "!": ("!", {})}
    told = [
        episode(index, words[mark][0], *key, seed=index, **words[mark][1])
        for key, some in marks.items()
        for index, mark in enumerate(some)
    ]
    merged = {one.key: one for one in merge(told, {})}
    ends = {key: ends_of(one.accepted) for key, one in merged.items()}
    return compare_kinds(ends, {key: arm(one) for key, one in merged.items()})


def test_a_kind_is_compared_over_all_environments_and_corrected_over_all_kinds() -> None:
    found = kinds({(p, e): {"a": "fffffffft+", "b": "++++++++t+"}[p] for p in "ab" for e in ("grass", "stairs")})
    assert [one.kind for one in found] == ["fell", "timeout"]
    assert found[0].found.better == "a"
    assert found[0].found.p_holm == pytest.approx(2 * found[0].found.p)
    assert found[1].found.p_holm == 1


def test_episodes_without_a_verdict_are_a_kind_and_no_gap() -> None:
    found = {one.kind: one.found for one in kinds({("a", "s"): "!!!!!!!!f", ("b", "s"): "++++++++f"})}
    assert found["no verdict (errored)"].better == "a"
    assert found["no verdict (errored)"].unknown == (0, 0)


def test_very_many_kinds_and_policies_are_only_counted() -> None:
    policies = [f"p{index}" for index in range(25)]
    assert len(policies) * 24 > MOST
    assert kinds({(policy, "s"): "ft+" for policy in policies}) == ()


# -- checkpoints ------------------------------------------------------------------------------------------------------


def test_checkpoints_are_known_by_their_names_or_by_the_attribute_step() -> None:
    names = ["flat_step_2000", "flat_step_1000", "flat_step_10k", "rough_step_1", "seed1", "seed2", "seed3"]
    assert steps_of(names, {}) == [{"flat_step_1000": 1000, "flat_step_2000": 2000, "flat_step_10k": 10000}]
    assert steps_of(["late", "early", "middle"], {"late": 9, "early": 1, "middle": 5}) == [
        {"early": 1, "middle": 5, "late": 9}
    ]


def trend(rates: dict[str, list[bool]]) -> Trend:
    arms = {
        (policy, "stairs"): Arm(policy, frozenset(range(len(went))), frozenset(i for i, one in enumerate(went) if one))
        for policy, went in rates.items()
    }
    (steps,) = steps_of([*rates], {})
    found = trend_of(steps, arms)
    assert found
    return found


def test_the_band_holds_for_all_checkpoints_at_once() -> None:
    found = trend({f"ckpt_{step}": [index < 5 * step for index in range(20)] for step in (1, 2, 3, 4)})
    assert [one.rate for one in found.checkpoints] == [0.25, 0.5, 0.75, 1.0]
    assert found.checkpoints[1].interval == clopper_pearson(10, 20, 1 - 0.05 / 4)
    assert found.best.policy == "ckpt_4"


def test_the_best_of_equal_checkpoints_is_measured_again_without_having_been_chosen_for_it() -> None:
    rng = random.Random(3)
    runs = [trend({f"ckpt_{step}": [rng.random() < 0.5 for _ in range(50)] for step in range(8)}) for _ in range(60)]
    naive = sum(one.best.rate for one in runs) / 60
    again = sum(one.measured_again or 0 for one in runs) / 60
    assert naive > 0.57
    assert abs(again - 0.5) < 0.03


# -- in a report ------------------------------------------------------------------------------------------------------


def written(path: Path, *, done: bool = True) -> RunDirectory:
    run = RunDirectory(path / "run")
    for step in (1000, 2000, 3000):
        for environment in ("grass", "stairs"):
            session = run.session(f"step_{step}", environment, 20, results=ResultRules(compare=("progress",)))
            rows = (row(i, i % 4 == 0, seed=i, progress=step + i, failure="fell") for i in range(20))
            run.attempt(session, "".join(rows))
    run.write(done=done)
    return run


def test_a_report_holds_all_three_in_every_format(tmp_path: Path) -> None:
    report_run(written(tmp_path).path, tmp_path / "report")
    told = document(tmp_path / "report")
    assert len(told["graded"]) == 9
    assert {one["more"] for one in told["graded"][:3]} == {"step_2000", "step_3000"}
    assert [one["kind"] for one in told["failure_kinds"]] == ["fell"] * 3
    assert [one["step"] for one in told["trends"][0]["checkpoints"]] == [1000, 2000, 3000]
    page = (tmp_path / "report/report.html").read_text()
    assert all(f'id="{anchor}"' in page for anchor in ("graded", "kinds", "trends"))
    assert any("progress" in sentence for sentence in told["claims"])


def test_while_episodes_may_still_come_nothing_of_it_is_claimed(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "run")
    for policy in ("step_1", "step_2", "step_3"):
        session = run.session(policy, "grass", 20, results=ResultRules(compare=("progress",)))
        run.attempt(
            session, "".join(row(i, i % 4 == 0, seed=i, progress=i, failure="fell") for i in range(9)), end=None
        )
    run.write(done=False)
    report_run(run.path, tmp_path / "report")
    told = document(tmp_path / "report")
    assert not {"graded", "failure_kinds", "trends"} & told.keys()


def test_a_plan_keeps_the_attribute_step() -> None:
    text = "policies: {a: {step: 10}, b: {step: 2e3}, c: {}}\nenvironments: [x]\nepisodes: 3\n"
    assert plan(text + "command: e {policy} {environment} {episodes} {output_dir}\n").steps == (("a", 10), ("b", 2000))


RETURNS = {"sac": (3000, 3600, 3100), "td3": (2700, 2900, 3200)}


def returns(folder: Path, runs: Mapping[str, Sequence[int]], told_by: str) -> dict[str, Any]:
    """The report on runs of ten returns each; a folder or a field tells the runs."""
    for policy, means in runs.items():
        for run, mean in enumerate(means):
            path = folder / policy / "ant" / (f"seed{run}.jsonl" if told_by == "folder" else f"part{run}.jsonl")
            rows = [
                {"policy": policy, "environment": "ant", "episode": at, "return": mean + 7 * at % 30}
                | ({"train_seed": run} if told_by == "field" else {})
                for at in range(10)
            ]
            write_rows(path, rows)
    report_folder(folder, folder / "report")
    return document(folder / "report")


@pytest.mark.parametrize("told_by", ["folder", "field"])
def test_returns_of_several_runs_are_compared_with_the_run_as_the_unit(told_by: str, tmp_path: Path) -> None:
    told = returns(tmp_path, RETURNS, told_by)
    ((by_mean,), (by_rank,)) = told["mean_differences"], told["graded"]
    gap = fmean(RETURNS["sac"]) - fmean(RETURNS["td3"])
    expected = stats.ttest_ind(*RETURNS.values())
    assert [one["p"] for one in (by_mean, by_rank)] == pytest.approx([expected.pvalue] * 2)
    assert by_mean["interval"] == pytest.approx([*expected.confidence_interval()])
    assert by_mean["difference"] == pytest.approx(gap)
    assert by_rank["interval"][0] < 0.5 < by_rank["interval"][1]
    assert min(by_mean["p_holm"], by_rank["p_holm"]) > 0.05
    assert [one["metrics"]["return"]["runs"] for one in told["combos"]] == [3, 3]
    assert (tmp_path / "report/report.md").read_text().count("] within 3 runs") >= 2


def test_a_claim_by_returns_gives_the_means_of_the_runs_and_no_rates(tmp_path: Path) -> None:
    told = returns(tmp_path, {"sac": (5000, 5600, 5100), "td3": (700, 900, 1200)}, "folder")
    assert told["mean_differences"][0]["p_holm"] < 0.05
    (claim, *_) = (one for one in told["claims"] if "higher mean" in one)
    names = "(seed0, seed1, seed2)"
    assert f"sac is 3 runs {names}, whose means lie between 5014 and 5614;" in claim
    assert "rate" not in claim


def test_values_are_paired_by_equal_starts_under_other_indexes_too(tmp_path: Path) -> None:
    """B has a little more from each start, and met the starts in the other order."""
    rows = [
        {"policy": policy, "environment": "s", "episode": at, "seed": seed, "return": 7 * seed % 31 + (policy == "B")}
        for policy in "AB"
        for at in range(40)
        for seed in [39 - at if policy == "B" else at]
    ]
    summary = summarized(tmp_path, rows)
    for found in (*summary.comparisons.graded, *summary.comparisons.mean_differences):
        assert [fact.code for fact in found.facts] == ["paired_under_other_indexes"]
        assert (found.paired, found.difference, found.better) == (True, -1, "B")
