"""What policies lose from a nominal environment."""

from __future__ import annotations

import pytest

from comborun.reporter.comparing.claims import claims
from comborun.reporter.comparing.family import compare
from comborun.reporter.comparing.nominal import losses
from comborun.reporter.comparing.pairing import Arm, CountsAlone, Side
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


def test_without_the_nominal_environment_nothing_is_lost() -> None:
    assert losses(sides({("a", "ice"): (5, 10), ("b", "flat"): (5, 10)}), "flat") == ()


def test_episodes_without_a_verdict_count_against_a_loss() -> None:
    done = frozenset(range(60))
    flat = Arm("a", done, frozenset(range(55)))
    ice = Arm("a", frozenset(range(40)), frozenset(range(15)), errored=frozenset(range(40, 60)))
    (found,) = losses({("a", "flat"): flat, ("a", "ice"): ice}, "flat")
    assert found.only_completed or found.worst_p > found.p
