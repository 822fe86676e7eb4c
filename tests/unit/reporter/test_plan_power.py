"""What a plan can find, by the functions that decide in the report."""

from __future__ import annotations

from dataclasses import replace

import pytest
from report_runs import planned_session

from comborun.reporter.comparing import power
from comborun.reporter.comparing.power import POWER, Design, answers, chance, designs, detectable, needed
from comborun.reporter.statistics.findable import detectable_gap

ONE = Design(pairs=1, environments=1, episodes=60, level=0.05)


def sessions(policies: str, environments: str, count: int = 50, **fields: object) -> list[object]:
    return [planned_session(a, e, count, **fields) for e in environments for a in policies]


def test_the_family_is_that_of_the_report() -> None:
    overall, within = designs(sessions("abc", "xy"), sequential=False)
    assert (overall.environments, overall.level) == (2, pytest.approx(0.025 / 3))
    assert (within.environments, within.level) == (1, pytest.approx(0.025 / 6))
    (stopping,) = designs(sessions("abc", "xy"), sequential=True)
    assert stopping.level == pytest.approx(0.05 / 6)
    assert designs(sessions("a", "xy"), sequential=False) == ()
    assert designs(sessions("ab", "x", 0), sequential=False) == ()


def test_the_gap_that_is_found_is_near_the_exact_one() -> None:
    gap = detectable(ONE, "unpaired")
    assert gap is not None
    assert chance(ONE, gap, "unpaired") == pytest.approx(POWER, abs=0.1)
    exact = detectable_gap(60, 0.05)
    assert exact is not None
    assert 0.75 * exact < gap < 1.1 * exact  # Barnard's test finds a little more than McNemar's of independent pairs
    assert (detectable(ONE, "paired") or 1) < gap
    assert detectable(replace(ONE, episodes=3), "paired") is None


def test_the_episodes_that_a_gap_needs_are_near_statsmodels() -> None:
    from statsmodels.stats.power import zt_ind_solve_power

    effect = 0.2 / ((1 - 0.2**2) / 4) ** 0.5
    expected = zt_ind_solve_power(effect, None, 0.05, POWER, alternative="two-sided")
    assert needed(ONE, 0.2, "unpaired") == pytest.approx(expected, rel=0.15)
    assert needed(ONE, 0.001, "paired") is None


def test_environments_share_the_work_of_an_overall_comparison() -> None:
    ten = replace(ONE, environments=10)
    assert (needed(ten, 0.1, "paired") or 0) == pytest.approx((needed(ONE, 0.1, "paired") or 0) / 10, rel=0.25)


def test_a_test_after_every_pair_finds_a_little_less() -> None:
    fixed, stopping = detectable(ONE, "paired"), detectable(replace(ONE, sequential=True), "paired")
    assert fixed is not None
    assert stopping is not None
    assert fixed < stopping < 1.4 * fixed


def test_a_wanted_gap_is_answered_paired_and_unpaired() -> None:
    plain = answers(sessions("ab", "xy"), None, sequential=False)
    assert list(plain) == ["overall", "in one environment"]
    assert list(plain["overall"]) == ["would_find"]
    wanted = answers(sessions("ab", "x", 20, unpaired="because"), 0.3, sequential=False)["in one environment"]
    assert (wanted["paired"] or 0) < (wanted["unpaired"] or 0)


@pytest.mark.parametrize("sequential", [False, True])
def test_any_number_of_episodes_is_answered_at_once(monkeypatch: pytest.MonkeyPatch, *, sequential: bool) -> None:
    simulated: list[int] = []
    monkeypatch.setattr(power, "chance", lambda design, *_: simulated.append(design.episodes) or POWER)
    found = detectable(replace(ONE, episodes=10**15, sequential=sequential), "unpaired")
    assert found is not None
    assert 0 < found < 0.1
    assert all(episodes <= power.MANY for episodes in simulated)
