"""Not worse by a margin, equivalent, and conditions that a program checks."""

from __future__ import annotations

import json
from collections.abc import Callable
from math import sqrt
from pathlib import Path
from statistics import fmean, stdev

import numpy as np
import pytest
from click.testing import CliRunner
from report_runs import RunDirectory, row, write_rows
from scipy import stats
from scipy.stats import beta, binomtest

from comborun.cli import combo
from comborun.errors import UserError
from comborun.reporter.comparing.family import compare
from comborun.reporter.comparing.margins import check, parse_gate
from comborun.reporter.comparing.sides import Arm, CountsAlone
from comborun.reporter.evidence.runs import above
from comborun.reporter.evidence.starts import Starts
from comborun.reporter.statistics.difference import PairCounts, paired_interval
from comborun.reporter.statistics.pooled import Stratum, not_worse_p
from comborun.reporter.statistics.proportion import at_least, at_least_p


@pytest.mark.parametrize("pairs", [(80, 6, 8, 6), (40, 1, 4, 5), (900, 20, 30, 50), (10, 0, 0, 2)])
@pytest.mark.parametrize("margin", [0.02, 0.05, 0.1, 0.2])
def test_not_worse_is_decided_as_the_interval_says(pairs: tuple[int, int, int, int], margin: float) -> None:
    counts = PairCounts(*pairs)
    p = not_worse_p([Stratum.of_pairs(counts)], margin)
    for level in (0.001, 0.05, 0.3):
        assert (p <= level) == (paired_interval(counts, 1 - level)[0] > -margin)


@pytest.mark.parametrize("paired", [True, False])
@pytest.mark.parametrize(("rate", "margin", "n"), [(0.9, 0.05, 100), (0.5, 0.1, 40), (0.97, 0.03, 200)])
def test_a_policy_that_is_worse_by_the_margin_is_seldom_said_not_to_be(
    rate: float, margin: float, n: int, paired: bool
) -> None:
    rng, found, runs = np.random.default_rng(3), 0, 800
    for _ in range(runs):
        first = rng.random(n)
        second = np.where(rng.random(n) < 0.7, first, rng.random(n)) if paired else rng.random(n)
        a, b = first < rate - margin, second < rate
        cells = [int((a & b).sum()), int((a & ~b).sum()), int((~a & b).sum()), int((~a & ~b).sum())]
        stratum = Stratum.of_pairs(PairCounts(*cells)) if paired else Stratum((int(a.sum()), n), (int(b.sum()), n))
        found += not_worse_p([stratum], margin) <= 0.05
    assert found / runs <= 0.025 + 2.5 * (0.025 * 0.975 / runs) ** 0.5


@pytest.mark.parametrize(("k", "n", "share"), [(18, 20, 0.7), (95, 100, 0.9), (20, 20, 0.85), (3, 10, 0.5)])
def test_at_least_is_exact(k: int, n: int, share: float) -> None:
    p = min(1.0, 2 * binomtest(k, n, share, alternative="greater").pvalue)
    assert at_least_p([(k, n)], share) == pytest.approx(p if k / n > share else 1.0)
    assert at_least(k, n) == pytest.approx(beta.ppf(0.05, k, n - k + 1))


def alike(names: str, n: int, differing: int) -> list[Arm]:
    """Policies that succeed in 4 of 5 episodes, but for a few."""
    starts = Starts({at: at for at in range(n)})
    won = frozenset(at for at in range(n) if at % 5)
    return [
        Arm(name, frozenset(range(n)), won ^ frozenset(range(place * differing, (place + 1) * differing)), starts)
        for place, name in enumerate(names)
    ]


def test_two_policies_that_differ_little_are_equivalent_in_the_family() -> None:
    found = compare({"s": alike("ab", 400, 6)}, margin=0.05)
    assert [(one.a, one.b, one.decided) for one in found.not_worse] == [("a", "b", True), ("b", "a", True)]
    assert not found.all[0].decided
    assert all(one.p_holm >= one.p for one in found.not_worse)
    narrow = compare({"s": alike("ab", 400, 6)}, margin=0.005)
    assert not any(one.decided for one in narrow.not_worse)


def test_episodes_without_a_verdict_count_against_the_one_that_is_not_worse() -> None:
    a, b = alike("ab", 400, 6)
    lost = frozenset(range(40))
    first = Arm("a", a.completed - lost, a.successes - lost, a.starts, errored=lost)
    found = {(one.a, one.b): one for one in compare({"s": [first, b]}, margin=0.05).not_worse}
    assert not found["a", "b"].decided
    assert found["a", "b"].only_completed


def test_over_environments_there_is_one_claim_for_each_direction() -> None:
    found = compare({name: alike("ab", 100, 2) for name in "xyz"}, margin=0.05)
    assert [one.environments for one in found.not_worse] == [("x", "y", "z")] * 2


def test_without_a_margin_nothing_is_tested() -> None:
    assert compare({"s": alike("ab", 50, 2)}).not_worse == ()


def folder(path: Path, rates: dict[str, Callable[[int], bool | None]], count: int = 100) -> Path:
    rows = [
        {"policy": policy, "environment": "s t", "episode": at, "seed": at, "success": success(at)}
        for policy, success in rates.items()
        for at in range(count)
    ]
    write_rows(path / "rows.jsonl", rows)
    return path


@pytest.mark.parametrize(
    ("gate", "code"),
    [
        ("new one better than old", 0),
        ("old better than new one", 4),
        ("new one not worse than old by 5 points in s t", 0),
        ("old not worse than new one by 5", 4),
        ("new one at least 60 %", 0),
        ("new one at least 95 %", 4),
        ("new one is nice", 2),
        ("new better than old", 2),
        ("old better than old", 2),
    ],
)
def test_the_exit_code_says_whether_a_condition_is_shown(gate: str, code: int, tmp_path: Path) -> None:
    results = folder(tmp_path / "r", {"new one": lambda at: at % 10 > 0, "old": lambda at: at % 2 > 0})
    arguments = ["report", str(results), "--output", str(tmp_path / "out"), "--gate", gate, "--json"]
    done = CliRunner().invoke(combo, arguments)
    if code == 2:
        assert isinstance(done.exception, UserError)
        return
    assert done.exit_code == code, done.output
    (found,) = json.loads(done.stdout)["gates"]
    assert found["holds"] is (code == 0)
    document = json.loads((tmp_path / "out" / "final_benchmark_report.json").read_text())
    assert document["gates"][0]["condition"] == gate


@pytest.mark.parametrize("gate", ["a better than b", "a not worse than b by 5", "a at least 50 %"])
def test_a_condition_says_what_limits_it(gate: str, tmp_path: Path) -> None:
    rows = [
        {
            "policy": policy,
            "environment": "s",
            "episode": at,
            "success": at < wins,
            "env_version": version,
            "valid": at > 9,
        }
        for policy, wins, version in (("a", 55, "v1"), ("b", 20, "v2"))
        for at in range(60)
    ]
    write_rows(tmp_path / "rows.jsonl", rows)
    out = ["--output", str(tmp_path / "out"), "--json"]
    done = CliRunner().invoke(combo, ["report", str(tmp_path), *out, "--gate", gate])
    codes = {fact["code"] for fact in json.loads(done.stdout)["gates"][0]["facts"]}
    sentence = next(one for one in (tmp_path / "out/report.md").read_text().splitlines() if "Condition shown" in one)
    assert "valid is false in 10 of 60 episodes" in sentence
    assert ("field_differs_between" in codes) is ("env_version is not the same" in sentence) is ("than" in gate)


def test_conditions_share_one_error_and_one_that_fails_is_enough(tmp_path: Path) -> None:
    results = folder(tmp_path / "r", {"a": lambda at: at < 65, "b": lambda at: at < 50})
    out = ["--output", str(tmp_path / "out")]
    alone = CliRunner().invoke(combo, ["report", str(results), *out, "--gate", "a at least 54", "--json"])
    both = ["--gate", "a at least 54", "--gate", "b at least 60"]
    together = CliRunner().invoke(combo, ["report", str(results), *out, *both, "--json"])
    assert (alone.exit_code, together.exit_code) == (0, 4)
    (one,), (first, _) = (json.loads(done.stdout)["gates"] for done in (alone, together))
    assert first["p"] == pytest.approx(2 * one["p"])


def test_errored_episodes_count_against_a_condition(tmp_path: Path) -> None:
    results = folder(tmp_path / "r", {"a": lambda at: None if at < 40 else True, "b": lambda at: at % 2 > 0})
    done = CliRunner().invoke(
        combo, ["report", str(results), "--output", str(tmp_path / "o"), "--gate", "a at least 80"]
    )
    assert done.exit_code == 4


@pytest.mark.parametrize("environments", [("s",), ("s", "t")])
def test_a_rate_of_several_runs_is_shown_with_the_spread_between_them(
    environments: tuple[str, ...], tmp_path: Path
) -> None:
    wins = (95, 90, 70)
    rows = [
        {"policy": "a", "environment": name, "episode": 100 * run + at, "train_seed": run, "success": at < won}
        for name in environments
        for run, won in enumerate(wins)
        for at in range(100)
    ]
    write_rows(tmp_path / "rows.jsonl", rows)
    out = ["--output", str(tmp_path / "out"), "--json"]
    done = CliRunner().invoke(combo, ["report", str(tmp_path), *out, "--gate", "a at least 75 %"])
    (found,) = json.loads(done.stdout)["gates"]
    rates = [won / 100 for won in wins]
    t = (fmean(rates) - 0.75) / (stdev(rates) / sqrt(3))
    assert (done.exit_code, found["p"]) == (4, pytest.approx(2 * stats.t.sf(t, 2), rel=1e-5))
    lower = CliRunner().invoke(combo, ["report", str(tmp_path), *out, "--gate", "a at least 45 %"])
    assert lower.exit_code == 0


@pytest.mark.parametrize(("rates", "told", "p"), [((0.9,), True, 0), ((0.9, 0.9), False, 1), ((0.9, 0.9), True, 0)])
def test_seeds_that_may_be_starts_show_a_rate_from_three_on(rates: tuple[float, ...], told: bool, p: float) -> None:
    assert above(rates, 0.5, told=told) == p
    three = (0.8, 0.9, 0.95)
    assert above(three, 0.5, told=False) > above(three, 0.5, told=True) > 0


@pytest.mark.parametrize("told", [True, False])
@pytest.mark.parametrize("gate", ["a at least 50 %", "a not worse than b by 10"])
def test_three_seeds_that_may_be_starts_and_all_succeed_show_nothing(gate: str, told: bool) -> None:
    done = frozenset(range(300))
    runs = {f"seed {run}": range(100 * run, 100 * run + 100) for run in range(3)}
    sides = [Arm(policy, done, done, runs=runs, runs_told=told) for policy in "ab"]
    (found,) = check([parse_gate(gate, ("a", "b"), ("s",))], {"s": sides})
    assert found.holds is told


def test_of_an_unfinished_run_nothing_is_shown(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path / "run")
    run.attempt(run.session("a", "s", 30), "".join(row(at, True) for at in range(30)))
    run.attempt(run.session("b", "s", 30), "".join(row(at, False) for at in range(20)), end=None)
    directory = run.write(done=False)
    done = CliRunner().invoke(combo, ["report", str(directory), "--gate", "a better than b", "--json"])
    assert done.exit_code == 4
    (found,) = json.loads(done.stdout)["gates"]
    assert found["why"]


def test_the_longest_name_is_meant() -> None:
    gate = parse_gate("pi0 fast not worse than pi0 by 2.5 points", ("pi0", "pi0 fast"), ("s",))
    assert (gate.a, gate.b, gate.share, gate.environment) == ("pi0 fast", "pi0", 0.025, "")


def test_counts_alone_have_margins_too() -> None:
    sides = [CountsAlone("a", (450, 500)), CountsAlone("b", (451, 500))]
    assert all(one.decided for one in compare({"s": sides}, margin=0.1).not_worse)


def test_a_comparison_of_runs_names_their_test_and_what_its_rates_are_without(tmp_path: Path) -> None:
    rows = [
        {"policy": policy, "environment": "s", "episode": 20 * run + at, "train_seed": run, "success": at < wins - run}
        for policy, wins in (("a", 18), ("b", 9))
        for run in range(3)
        for at in range(20)
    ]
    write_rows(tmp_path / "rows.jsonl", rows)
    CliRunner().invoke(combo, ["report", str(tmp_path), "--output", str(tmp_path / "out")])
    told = (tmp_path / "out" / "report.md").read_text()
    assert "Barnard and t of runs, unpaired" in told
    assert "Of several runs both hold for these runs alone" in told
