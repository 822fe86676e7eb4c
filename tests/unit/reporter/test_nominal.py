"""What policies lose from a nominal environment."""

from __future__ import annotations

import pytest
from scipy.stats import ttest_1samp

from comborun.reporter.comparing.claims import claims
from comborun.reporter.comparing.family import compare
from comborun.reporter.comparing.nominal import losses
from comborun.reporter.comparing.sides import Arm, CountsAlone, Side
from comborun.reporter.evidence.starts import Starts
from comborun.reporter.statistics.barnard import barnard
from comborun.reporter.statistics.difference import newcombe


def sides(counts: dict[tuple[str, str], tuple[int, int]]) -> dict[tuple[str, str], Side]:
    return {combo: CountsAlone(combo[0], found) for combo, found in counts.items()}


def test_each_policy_is_compared_with_itself_in_the_nominal_environment() -> None:
    found = losses(sides({("a", "flat"): (90, 100), ("a", "ice"): (50, 100), ("a", "sand"): (85, 100)}), "flat")
    assert [one.environments for one in found] == [("ice", "sand"), ("ice",), ("sand",)]
    overall, ice, sand = found
    assert overall.difference == pytest.approx(0.9 - 0.675)
    assert ice.p == pytest.approx(barnard((90, 100), (50, 100)))
    assert ice.interval == pytest.approx(newcombe((90, 100), (50, 100)))
    assert (ice.decided, sand.decided) == (True, False)
    assert all(one.p_holm >= one.p for one in found)
    said = claims(compare({}), besides=found).decided
    assert any(one.startswith("a loses 40.0 points") for one in said)


def of_runs(policy: str, rates: list[float], *, told: bool = True) -> Arm:
    """50 episodes of each run."""
    won = {50 * run + at for run, rate in enumerate(rates) for at in range(round(50 * rate))}
    runs = {f"seed{run}": range(50 * run, 50 * run + 50) for run in range(len(rates))}
    return Arm(policy, frozenset(range(50 * len(rates))), frozenset(won), runs=runs, runs_told=told)


@pytest.mark.parametrize("others", [1, 2])
def test_each_run_has_its_own_loss_and_the_spread_between_them_counts(others: int) -> None:
    flat, ice = [0.9, 0.88, 0.92], [0.8, 0.7, 0.3]
    cells: dict[tuple[str, str], Side] = {("a", "flat"): of_runs("a", flat)}
    cells |= {("a", f"ice{number}"): of_runs("a", ice) for number in range(others)}
    found = losses(cells, "flat")
    lost = ttest_1samp([one - other for one, other in zip(flat, ice, strict=True)], 0)
    for one in found:
        assert one.p == pytest.approx(lost.pvalue)
        assert one.interval[0] == pytest.approx(lost.confidence_interval().low)
        assert [fact.code for fact in one.facts] == ["run_as_random_effect"]
    assert not any(one.decided for one in found)
    two = {("a", name): of_runs("a", [rate, rate], told=False) for name, rate in (("flat", 1.0), ("ice", 0.0))}
    few = losses(dict(two), "flat")
    assert not few[0].decided


def test_several_runs_in_one_environment_count_for_the_loss_from_another() -> None:
    flat, ice = of_runs("a", [0.9]), of_runs("a", [0.8, 0.7, 0.2])
    (found,) = losses({("a", "flat"): flat, ("a", "ice"): ice}, "flat")
    assert not found.decided


def test_repeated_starts_are_told_beside_a_loss() -> None:
    counts = frozenset(range(100))
    flat = Arm("a", counts, counts, Starts({at: at % 50 for at in counts}))
    ice = Arm("a", counts, frozenset(), Starts({at: at % 50 for at in counts}))
    found = losses({("a", "flat"): flat, ("a", "ice"): ice}, "flat")
    (said,) = claims(compare({}), besides=found).decided
    assert "100 episodes have 50 different starts, and each counts once" in said


def test_without_the_nominal_environment_nothing_is_lost() -> None:
    assert losses(sides({("a", "ice"): (5, 10), ("b", "flat"): (5, 10)}), "flat") == ()


def test_episodes_without_a_verdict_count_against_a_loss() -> None:
    done = frozenset(range(60))
    flat = Arm("a", done, frozenset(range(55)))
    ice = Arm("a", frozenset(range(40)), frozenset(range(15)), errored=frozenset(range(40, 60)))
    (found,) = losses({("a", "flat"): flat, ("a", "ice"): ice}, "flat")
    assert found.only_completed or found.worst_p > found.p
