"""What the comparisons besides those of success rates decide, in sentences: margins, metrics, kinds, losses. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from comborun.reporter.comparing.comparison import Comparison, Overall, Tested, first_reasons, limited
from comborun.reporter.comparing.family import Comparisons
from comborun.reporter.comparing.graded import Graded, MeanDifference
from comborun.reporter.comparing.kinds import KindComparison
from comborun.reporter.comparing.nominal import Loss
from comborun.reporter.evidence.words import limits
from comborun.reporter.text import WHOLE, fraction, number, numbers, p_value, points, points_interval

LEANING = " Stopped early, so the difference is exaggerated; the interval accounts for it."
PAIRS_TOLD = 6
"""undecided pairs of an environment that are named with numbers; of more only the names are given"""
PAIRS_NAMED = 24
"""undecided pairs that are named"""


def first_of(texts: Iterable[str], most: int) -> str:
    shown = [*texts]
    return "; ".join([*shown[:most], *([f"and {len(shown) - most} more"] if len(shown) > most else [])])


def size(comparison: Tested) -> str:
    low, high = comparison.interval
    if (low, high) == WHOLE:
        return f"{points(abs(comparison.difference))} points"
    limits = (-high, -low) if comparison.difference < 0 else (low, high)
    return f"{points(abs(comparison.difference))} points {points_interval(limits)}"


def pairs_used(found: Comparison | MeanDifference) -> str:
    if not (planned := found.sequential):
        return ""
    stopped = "stopped at " if planned.stopped_early and not found.so_far else ""
    used = found.rate_a.n if isinstance(found, Comparison) else found.n[0]
    return f", {stopped}{used} of {planned.n_max} pairs"


# -- not worse by a margin --------------------------------------------------------------------------------------------


def not_worse(comparisons: Comparisons) -> Iterator[str]:
    """Which policies are equivalent, or not worse than another. A policy that is better is not also said not to be
    worse.
    """
    shown = {(one.a, one.b, one.environments): one for one in comparisons.not_worse if one.decided}
    better = {(one.ahead, one.behind) for one in (*comparisons.overall, *comparisons.all) if one.decided}
    for (a, b, environments), one in shown.items():
        both = (b, a, environments) in shown
        if (a, b) in better or (both and a > b and (b, a) not in better):
            continue
        where = f"over {len(environments)} environments" if environments[1:] else f"in {environments[0]}"
        within = f"{fraction(one.margin).removesuffix('.0')} points"
        said = f"{a} and {b} are equivalent within {within}" if both else f"{a} is not worse than {b} by {within}"
        gap = f"{points(one.difference)} points {points_interval(one.interval)}"
        which = f"{a} minus {b} is " if both else ""
        p = max(one.p_holm, shown[b, a, environments].p_holm) if both else one.p_holm
        spread, but = _by_environment(comparisons, a, b, either=both) if environments[1:] else ("", "")
        yield f"{said} {where}: {which}{gap}, Holm p {p_value(p)}{spread}.{but}{limits(one.facts)}"


def _by_environment(comparisons: Comparisons, a: str, b: str, *, either: bool) -> tuple[str, str]:
    """The smallest and the largest difference a - b, and where one of both is decided to be worse: a, or `either`."""
    spread = ""
    for one in comparisons.overall:
        if {one.a, one.b} == {a, b}:
            low, high = sorted((1 if one.a == a else -1) * end for end in one.range)
            spread = f"; by environment {points(low)} to {points(high)}"
    worse = [one for one in comparisons.all if one.decided and {one.ahead, one.behind} == {a, b}]
    worse = [one for one in worse if either or one.behind == a]
    told = "; ".join(f"{one.ahead} beats {one.behind} in {one.environment}, {size(one)}" for one in worse)
    return spread, f" But {told}." if told else ""


def not_shown(comparisons: Comparisons) -> Iterator[str]:
    known = {(one.a, one.b) for one in comparisons.not_worse if one.decided}
    better = {(one.ahead, one.behind) for one in (*comparisons.overall, *comparisons.all) if one.decided}
    pairs = [
        one
        for one in comparisons.not_worse
        if one.a < one.b and not {(one.a, one.b), (one.b, one.a)} & (known | better)
    ]
    if pairs:
        named = first_of((f"{one.a} and {one.b}" for one in pairs), PAIRS_NAMED)
        margin = fraction(pairs[0].margin).removesuffix(".0")
        yield f"Neither is shown to be not worse by {margin} points: {named}."


# -- by metrics and by failure kinds ----------------------------------------------------------------------------------


def graded(found: Graded, means: Sequence[MeanDifference] = ()) -> str:
    first, second = found.middle if found.difference > 0 else found.middle[::-1]
    low, high = found.chance_interval
    if found.difference <= 0:
        low, high = 1 - high, 1 - low
    chance = max(found.chance, 1 - found.chance)
    n = "n = " + " and ".join(dict.fromkeys(map(str, found.n)))
    where = _capital(found.where)
    if found.only_successes:
        succeeded = f"{found.n[0]} episodes in which both" if found.paired else f"{n} episodes that"
        where = f"Of the {succeeded} succeeded {where[0].lower()}{where[1:]}, and of no others,"
    return (
        f"{where} {found.ahead} has more {found.metric} than {found.behind}: in {fraction(chance)} % of"
        f" {'the same episodes' if found.paired else 'episodes drawn from each'} [{fraction(low)}, {fraction(high)}]"
        f" (equal values count half), interquartile mean {number(first)} against {number(second)}, {_by(found)},"
        f" {n}, Holm p {p_value(found.p_holm)}.{_other_way(found, means)}{limits(found.facts)}"
    )


def _other_way(found: Graded, means: Iterable[MeanDifference]) -> str:
    """That more episodes are higher and the mean is not: then neither word alone tells who has more."""
    key = (found.metric, found.a, found.b, found.environments)
    for one in means:
        if key == (one.metric, one.a, one.b, one.environments) and one.ahead != found.ahead and one.difference:
            lower, higher = sorted(one.means)
            return f" But its mean is lower: {number(lower)} against {number(higher)}."
    return ""


def _by(one: Graded | MeanDifference) -> str:
    return f"{one.test} (unpaired: {first_reasons(one.unpaired)})" if one.unpaired and not one.sequential else one.test


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def mean(one: MeanDifference) -> str:
    first, second = one.means if one.difference > 0 else one.means[::-1]
    ends = one.interval if one.difference > 0 else (-one.interval[1], -one.interval[0])
    n = "n = " + " and ".join(dict.fromkeys(map(str, one.n)))
    test = f"{_by(one)}{pairs_used(one)}"
    where = f"So far {one.where}" if one.so_far else _capital(one.where)
    return (
        f"{where} {one.ahead} has a higher mean {one.metric} than {one.behind}: {number(first)} against"
        f" {number(second)}, +{number(abs(one.difference))} {numbers(ends)}, {test}, {n},"
        f" Holm p {p_value(one.p_holm, bound=one.bounded)}.{LEANING * one.leans}{limits(one.facts)}"
    )


def undecided_graded(comparisons: Comparisons) -> Iterator[str]:
    """Pairs that neither way of comparing decides."""
    decided = {(one.metric, one.a, one.b, one.environments) for one in comparisons.mean_differences if one.decided}
    found = [
        one
        for one in comparisons.graded
        if not one.decided and (one.metric, one.a, one.b, one.environments) not in decided
    ]
    for metric in dict.fromkeys(one.metric for one in found):
        own = [one for one in found if one.metric == metric]
        pairs = (f"{one.a} and {one.b} {one.where}" for one in own)
        yield f"Not decided by {metric}: {first_of(pairs, PAIRS_TOLD)}.{limits(limited(own))}"
    for one in comparisons.mean_differences:
        if one.sequential and not one.decided:
            yield (
                f"Not decided {one.where}{' so far' * one.so_far} by {one.metric}: {one.a} minus {one.b} is"
                f" {number(one.difference)} {numbers(one.interval)}. Tested after every pair"
                f"{pairs_used(one)}; not decided does not mean equal.{limits(one.facts)}"
            )


def kind(one: KindComparison) -> str:
    found = one.found
    high, low = one.shares if found.difference > 0 else one.shares[::-1]
    where = f"over {found.environments} environments" if isinstance(found, Overall) else f"in {found.environment}"
    return (
        f"{found.ahead} ends as {one.kind!r} more often than {found.behind} {where}: {fraction(high)} % of episodes"
        f" against {fraction(low)} %, {size(found)}, p {p_value(found.p_holm)} (Holm over all failure kinds)."
        f"{limits(found.facts)}"
    )


def loss(one: Loss) -> str:
    where = f"the mean of {len(one.environments)} others" if one.environments[1:] else one.environments[0]
    verb = "loses" if one.difference > 0 else "gains"
    return (
        f"{one.policy} {verb} {fraction(abs(one.difference))} points {points_interval(one.interval)} from {one.nominal}"
        f" to {where}: {fraction(one.rate_nominal)} % against {fraction(one.rate)} %, Holm p {p_value(one.p_holm)}"
        f" (over all losses).{limits(one.facts)}"
    )
