"""Verdicts that follow one another more often than chance makes them are named, also in claims that rest on them."""

from __future__ import annotations

import random
from collections import Counter
from itertools import combinations, pairwise
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from report_runs import summarized

from comborun.reporter.evidence import sequence
from comborun.reporter.evidence.sequence import DRIFT, IN_ORDER, p_of, p_of_drift
from comborun.reporter.evidence.settings import SettingFact
from comborun.reporter.summary import Summary

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping, Sequence

COUNT = 60


def stretches(verdicts: Sequence[bool]) -> int:
    return 1 + sum(one is not other for one, other in pairwise(verdicts))


def summary_of(
    folder: Path, verdicts: Mapping[str, Sequence[bool]], more: Iterable[Mapping[str, object]] = ()
) -> Summary:
    fields = [*more] or [{}] * COUNT
    rows = [
        {"policy": policy, "environment": "s", "episode": at, "success": success, **fields[at]}
        for policy, own in verdicts.items()
        for at, success in enumerate(own)
    ]
    return summarized(folder, rows)


def independent(rate: float, seed: int) -> list[bool]:
    drawn = random.Random(seed)
    return [drawn.random() < rate for _ in range(COUNT)]


HALVES = [at < COUNT // 2 for at in range(COUNT)]


@pytest.mark.parametrize(("successes", "failures"), [(3, 4), (5, 5), (2, 7)])
def test_p_is_that_of_all_orders(successes: int, failures: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sequence, "FAR", 99)
    every = range(successes + failures)
    found = Counter(stretches([at in some for at in every]) for some in combinations(every, successes))
    for most in found:
        share = sum(count for one, count in found.items() if one <= most) / found.total()
        assert p_of(most, successes, failures) == pytest.approx(share)


def test_the_normal_distribution_takes_over_without_a_step() -> None:
    assert p_of(430, 501, 501) == pytest.approx(p_of(429, 500, 500), rel=0.2)


def test_verdicts_that_follow_one_another_are_in_the_claim_and_among_the_findings(tmp_path: Path) -> None:
    summary = summary_of(tmp_path, {"A": HALVES, "B": independent(0.1, 1)})
    (comparison,) = summary.comparisons.all
    assert comparison.decided
    (fact,) = (one for one in comparison.facts if one.code == IN_ORDER)
    assert (fact.text("of_policy"), fact.count("stretches"), fact.count("episodes")) == ("A", 2, COUNT)
    assert any("follow one another" in one.what for one in summary.quality.findings)


@pytest.mark.parametrize(
    ("own", "fields"),
    [
        (independent(0.5, 3), {}),
        ([at < COUNT - 2 for at in range(COUNT)], {}),  # too few to say anything of others
        (HALVES, {"object": lambda at: f"object {at // 6}"}),  # told as such
        (HALVES, {"seed": lambda at: at // 4}),  # starts count once
        (HALVES, {"env_id": lambda at: at % 8}),  # side by side, successes end first
    ],
    ids=["independent", "two failures", "objects", "starts", "copies"],
)
def test_what_other_facts_tell_or_chance_explains_is_not_told(
    own: Sequence[bool], fields: Mapping[str, object], tmp_path: Path
) -> None:
    more = [{name: make(at) for name, make in fields.items() if callable(make)} for at in range(COUNT)]
    (comparison,) = summary_of(tmp_path, {"A": own, "B": independent(0.5, 2)}, more).comparisons.all
    assert IN_ORDER not in {one.code for one in comparison.facts}


def test_the_order_is_that_of_the_file(tmp_path: Path) -> None:
    shuffled = random.Random(4).sample(range(COUNT), COUNT)
    more = [{"episode": at} for at in shuffled]
    (comparison,) = summary_of(tmp_path, {"A": HALVES, "B": independent(0.5, 2)}, more).comparisons.all
    assert IN_ORDER in {one.code for one in comparison.facts}


@pytest.mark.parametrize("policies", [2, 20])
def test_the_more_combos_the_clearer_it_must_be(policies: int, tmp_path: Path) -> None:
    own = [at // 3 % 2 == 0 for at in range(COUNT)]  # 20 stretches, p = 0.003
    others = {f"p{at}": [at % 2 == 0 for at in range(COUNT)] for at in range(1, policies)}
    told = {one.code for found in summary_of(tmp_path, {"p0": own, **others}).comparisons.all for one in found.facts}
    assert (IN_ORDER in told) == (policies == 2)


FALLING = [7 * at % 10 < 9 - at // 6 for at in range(COUNT)]
"""from nine in ten to none, with as many stretches as chance makes"""


def codes(found: Summary) -> set[str]:
    return {one.code for comparison in found.comparisons.all for one in comparison.facts}


def test_success_that_falls_while_a_policy_runs_is_in_the_claim_and_among_the_findings(tmp_path: Path) -> None:
    summary = summary_of(tmp_path, {"A": FALLING, "B": independent(0.5, 2)})
    (fact,) = (one for one in summary.comparisons.all[0].facts if one.code == DRIFT)
    assert (fact.text("of_policy"), fact.fields["rates"]) == (
        "A",
        [pytest.approx(0.7, abs=0.05), pytest.approx(0.2, abs=0.05)],
    )
    assert any("falls with the order" in one.what for one in summary.quality.findings)


IN_BLOCKS = [(at // 20 == 1) is (at % 20 in {5, 13}) for at in range(COUNT)]
"""two easy tasks, and a hard one between them"""


@pytest.mark.parametrize(
    ("name", "value", "explains"),
    [
        ("task_id", lambda at, size: at // size, True),
        ("object", lambda at, _: at % 5, False),
        ("scene", lambda at, _: at // 30, False),
        ("date", lambda at, size: f"2026-11-{10 + at // size}", False),
    ],
    ids=["tasks one after another", "objects by turns", "within two scenes, too", "days"],
)
@pytest.mark.parametrize(
    ("own", "size", "code"), [(FALLING, 6, DRIFT), (IN_BLOCKS, 20, IN_ORDER)], ids=["falls", "in order"]
)
def test_tasks_one_after_another_explain_the_order_of_outcomes(
    own: list[bool],
    size: int,
    code: str,
    name: str,
    value: Callable[[int, int], object],
    explains: bool,
    tmp_path: Path,
) -> None:
    more = [{name: value(at, size)} for at in range(COUNT)]
    found = codes(summary_of(tmp_path, {"A": own, "B": independent(0.5, 2)}, more))
    assert (code not in found) is explains
    assert (SettingFact.CLUSTERS in found) is (explains and code == DRIFT)  # of three tasks nobody takes others


def test_episodes_that_are_paired_by_their_starts_are_compared_whatever_rises_or_falls(tmp_path: Path) -> None:
    more = [{"seed": at} for at in range(COUNT)]
    assert DRIFT not in codes(summary_of(tmp_path, {"A": FALLING, "B": FALLING[:30] + HALVES[:30]}, more))


def test_p_of_a_drift_is_that_of_rank_sums() -> None:
    stats = pytest.importorskip("scipy.stats")
    where = [at for at, success in enumerate(FALLING) if success]
    others = [at for at, success in enumerate(FALLING) if not success]
    p = stats.mannwhitneyu(where, others, use_continuity=False, method="asymptotic").pvalue
    assert p_of_drift(FALLING) == pytest.approx(p)


def in_groups(rates: Sequence[float], each: int = 20) -> list[bool]:
    return [at < round(rate * each) for rate in rates for at in range(each)]


@pytest.mark.parametrize(
    ("own", "other", "share", "unit", "decided"),
    [
        ((0.9, 0.6, 0.9), (0.7, 0.2, 0.5), False, True, False),
        ((0.9, 0.6, 0.9), (0.7, 0.2, 0.5), True, False, True),  # the same days
        ((0.7, 0.7, 0.75), (0.4, 0.35, 0.4), False, True, True),  # days make no difference
        ((1.0, 0.65, 1.0), (0.3, 0.0, 0.1), False, True, True),
    ],
    ids=["other days", "the same days", "days that do not matter", "more than days differ"],
)
def test_where_two_policies_had_other_days_the_day_is_the_unit(
    own: Sequence[float], other: Sequence[float], share: bool, unit: bool, decided: bool, tmp_path: Path
) -> None:
    rows = [
        {
            "policy": policy,
            "environment": "s",
            "episode": at,
            "success": success,
            "day": f"{policy * (not share)}{at // 20}",
        }
        for policy, rates in (("A", own), ("B", other))
        for at, success in enumerate(in_groups(rates))
    ]
    (comparison,) = summarized(tmp_path, rows).comparisons.all
    assert (SettingFact.NESTED in {one.code for one in comparison.facts}) == unit
    assert comparison.decided is decided
    assert comparison.findable is None  # of days nothing says how they would differ


@pytest.mark.parametrize("gap", [0.3, 0.0], ids=["everywhere", "in some scenes"])
def test_where_outcomes_go_with_scenes_the_claim_says_what_the_difference_is_for_others(
    gap: float, tmp_path: Path
) -> None:
    rates = [0.0, 0.1, 0.3, 0.5, 0.7]
    better = [rate + gap for rate in rates] if gap else [1.0, 1.0, 0.3, 0.5, 0.7]
    rows = [
        {"policy": policy, "environment": "s", "episode": at, "success": success, "scene": f"scene {at // 20}"}
        for policy, own in (("A", better), ("B", rates))
        for at, success in enumerate(in_groups(own))
    ]
    (comparison,) = summarized(tmp_path, rows).comparisons.all
    (fact,) = (one for one in comparison.facts if one.code == SettingFact.CLUSTERS)
    difference, half = fact.fields["difference"], fact.fields["half"]
    assert difference == pytest.approx(comparison.difference)
    assert comparison.decided
    assert (half < difference) == bool(gap)
