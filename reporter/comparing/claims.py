"""What the comparisons decide and leave open, in sentences. Names are not escaped. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar

from comborun.model.work import Combo
from comborun.reporter.comparing.comparison import Comparison, Overall, Tested
from comborun.reporter.comparing.factors import Factor, said
from comborun.reporter.comparing.family import MOST, Comparisons, EnvironmentComparisons
from comborun.reporter.comparing.graded import Graded, KindComparison, MeanDifference
from comborun.reporter.comparing.nominal import Loss
from comborun.reporter.counting.quality import DataFinding
from comborun.reporter.evidence.words import limits, say
from comborun.reporter.statistics.proportion import Proportion
from comborun.reporter.text import fraction, number, of, p_number, p_value, points, points_interval, rate
from comborun.rules.facts import Fact
from comborun.text import several

Causes = Mapping[Combo, str]

One = TypeVar("One", bound="Tested")

AMONG = "Only among episodes with a value: "
NOTHING_DECIDED = "No comparison is decided."
LEANING = " Stopped early, so the difference is exaggerated; the interval accounts for it."
PAIRS_TOLD = 6
"""undecided pairs of an environment that are named with numbers; of more only the names are given"""
PAIRS_NAMED = 24
"""undecided pairs that are named"""
FACTS_TOLD = 4
"""facts in a sentence about undecided pairs; final_benchmark_report.json has all"""
DIFFERS = 0.05
"""p of equal differences, over all overall comparisons, below which a sentence says that they differ"""


@dataclass(frozen=True)
class Claims:
    decided: tuple[str, ...]
    """what the comparisons decide, a sentence each, first over all environments, the largest difference first"""
    undecided: tuple[str, ...]
    """one for all environments together, and one for each environment with an undecided comparison"""
    left_out: tuple[str, ...]

    @property
    def left_open(self) -> tuple[str, ...]:
        """What the comparisons leave open, a sentence each."""
        return (*self.undecided, *self.left_out)

    @property
    def sentences(self) -> tuple[str, ...]:
        """All sentences, the decided ones first; if nothing was compared, only the reason."""
        if not self.decided and not self.undecided:
            return self.left_out
        return (*(self.decided or [NOTHING_DECIDED]), *self.left_open)


def claims(
    comparisons: Comparisons,
    causes: Causes | None = None,
    kinds: Sequence[KindComparison] = (),
    alike: Sequence[Fact] = (),
    besides: Sequence[Loss | Factor] = (),
) -> Claims:
    groups, graded = comparisons.environments, comparisons.graded
    causes = causes or {}
    alpha = DIFFERS / max(1, len(comparisons.overall))  # Bonferroni
    overall = [one for one in comparisons.overall if not one.decided]
    return Claims(
        decided=(
            *(_overall(one, alpha) for one in _ordered(comparisons.overall) if one.decided),
            *(
                f"{_claim(one)}{unknown_words(one, causes)}"
                for group in groups
                for one in _ordered(group.comparisons)
                if one.decided
            ),
            *_margins(comparisons),
            *(_graded(one) for one in graded if one.decided),
            *(_mean(one) for one in comparisons.mean_differences if one.decided),
            *(_kind(one) for one in kinds if one.found.decided),
            *(_loss(one) for one in besides if isinstance(one, Loss) and one.decided),
            *said([one for one in besides if isinstance(one, Factor)]),
        ),
        undecided=(
            *(
                f"Only among completed episodes: {_overall(one, alpha)}"
                for one in comparisons.overall
                if one.only_completed
            ),
            *([f"Not decided overall: {_pairs(overall)}.{_limits(overall)}"] if overall else ()),
            *(
                f"Only among completed episodes: {_claim(one)}{unknown_words(one, causes)}"
                for group in groups
                for one in _ordered(group.comparisons)
                if one.only_completed
            ),
            *(
                f"Not decided in {group.environment}{' so far' * group.so_far}: {_pairs(found)}. {_limit(group)}"
                f"{_limits(found)}"
                for group in groups
                if (found := [one for one in group.comparisons if not one.decided])
            ),
            *(f"{AMONG}{_graded(one)}" for one in graded if one.only_completed),
            *_not_shown(comparisons),
            *(f"{AMONG}{_mean(one)}" for one in comparisons.mean_differences if one.only_completed),
            *_undecided_graded(comparisons),
        ),
        left_out=(
            *(
                f"Not compared in {environment}: {', '.join(policies)} (no episode with a verdict)."
                for environment, policies in comparisons.left_out
                if not any(environment in one.environments for one in graded)
            ),
            *(f"Not joined: {say(fact)}." for fact in alike),
        ),
    )


def _ordered(found: Iterable[One]) -> list[One]:
    return sorted(found, key=lambda comparison: -abs(comparison.difference))


# -- within an environment --------------------------------------------------------------------------------------------


def _claim(comparison: Comparison) -> str:
    swapped = comparison.difference < 0
    first, second = (comparison.rate_b, comparison.rate_a) if swapped else (comparison.rate_a, comparison.rate_b)
    so_far = "So far " if comparison.so_far else ""
    return (
        f"{so_far}{_beats(comparison)} in {comparison.environment}: {_rate(first)} against {_rate(second)},"
        f" {_size(comparison)}, {_basis(comparison)},"
        f" Holm p {p_value(comparison.p_holm, bound=comparison.bounded)}.{LEANING * comparison.leans}"
        f"{limits(comparison.facts)}"
    )


def _beats(comparison: Tested) -> str:
    return f"{comparison.ahead} beats {comparison.behind}"


def _rate(found: Proportion) -> str:
    starts = f" (from {several(found.starts, 'different start')})" if found.starts else ""
    return f"{of(found)} = {rate(found)}{starts}"


def _size(comparison: Tested) -> str:
    low, high = comparison.interval
    limits = (-high, -low) if comparison.difference < 0 else (low, high)
    return f"{points(abs(comparison.difference))} points {points_interval(limits)}"


def _basis(comparison: Comparison) -> str:
    return f"{comparison.paired_word} ({comparison.test}){_pairs_used(comparison)}"


def _pairs_used(found: Comparison | MeanDifference) -> str:
    if not (planned := found.sequential):
        return ""
    stopped = "stopped at " if planned.stopped_early and not found.so_far else ""
    used = found.rate_a.n if isinstance(found, Comparison) else found.n[0]
    return f", {stopped}{used} of {planned.n_max} pairs"


def unknown_words(comparison: Comparison, causes: Causes) -> str:
    """The number of episodes that the claim leaves out, why they are missing, and what they change if they count."""
    reasons = [
        f"{count} of {policy}" + (f" ({cause})" if (cause := causes.get((policy, comparison.environment))) else "")
        for policy, count in zip((comparison.a, comparison.b), comparison.unknown, strict=True)
        if count
    ]
    if not reasons or comparison.bounded:
        return ""
    return f" Errored, missing or contradictory: {' and '.join(reasons)}; {_against(comparison)}."


def _against(found: Tested) -> str:
    if not found.decided or found.worst_difference is None:
        return "counted against it, nothing is decided"
    sign = -1 if found.difference < 0 else 1
    return f"counted against it, the difference is {points(sign * found.worst_difference)} points"


def _pairs(found: Sequence[Comparison | Overall]) -> str:
    named = "; ".join(_pair(one, numbers=len(found) <= PAIRS_TOLD) for one in found[:PAIRS_NAMED])
    return named + (f"; and {len(found) - PAIRS_NAMED} more" if len(found) > PAIRS_NAMED else "")


def _limits(found: Sequence[Comparison | Overall]) -> str:
    """What limits the evidence of these pairs; each fact once."""
    facts: list[Fact] = []
    for one in found:
        facts += [fact for fact in one.facts if fact not in facts]
    return limits(facts[:FACTS_TOLD])


def _pair(comparison: Comparison | Overall, *, numbers: bool) -> str:
    if not numbers:
        return f"{comparison.a} and {comparison.b}"
    p = "" if comparison.bounded else f", Holm p {p_value(comparison.p_holm)}"
    if any(comparison.unknown) and not comparison.bounded:
        p += f" ({p_number(comparison.worst_holm)} if episodes without a verdict count against it)"
    size = f"{points(comparison.difference)} points {points_interval(comparison.interval)}"
    return f"{comparison.a} minus {comparison.b} is {size}{p}"


def _limit(group: EnvironmentComparisons) -> str:
    """The gap that these episodes could show: `not decided` must not read like `equal`."""
    if planned := [test.n_max for comparison in group.comparisons if (test := comparison.sequential)]:
        undecided = (comparison.sequential for comparison in group.comparisons if not comparison.decided)
        given_up = any(test and test.stopped_early for test in undecided)
        ended = ", and given up where `stop_early` says so (futility, width)" if given_up and not group.so_far else ""
        return f"Tested after every pair, up to {max(planned)} of them{ended}; not decided does not mean equal."
    return " ".join(_findable([one for one in group.comparisons if not one.decided]))


def _findable(undecided: Sequence[Comparison]) -> Iterator[str]:
    """What gap each pair would find, by its own episodes."""
    none = [one for one in undecided if one.finds_nothing]
    if none:
        fewest = sorted({min(_independent(one.rate_a), _independent(one.rate_b)) for one in none})
        what = "different start" if all(one.rate_a.starts for one in none) else "episode"
        many = several(fewest[0], what) if len(fewest) == 1 else f"{fewest[0]} to {fewest[-1]} {what}s"
        which = f" ({_names(none)})" if len(none) < len(undecided) else ""
        yield f"With {many}{which} and this many comparisons, no difference at all could have been found."
    some = sorted((one for one in undecided if one.findable is not None), key=lambda one: one.findable or 0.0)
    if not some:
        return
    sizes = [f"{100 * gap:.0f}" if gap >= 0.095 else fraction(gap) for one in some if (gap := one.findable)]
    alone = len({*sizes}) == 1
    size = f"A true gap of {sizes[0]} points" if alone else f"True gaps of {sizes[0]} to {sizes[-1]} points"
    ends = "" if alone else f" (least {_names(some[:1])}, most {_names(some[-1:])})"
    paired = {one.paired for one in some}
    alike = "as many pairs that differ" if paired == {True} else "rates like these"
    if len(paired) > 1:
        alike = "pairs and rates like these"
    yield f"{size} would be found 4 times in 5{ends}, with {alike}."


def _independent(rate: Proportion) -> int:
    return rate.starts or rate.n


def _names(found: Sequence[Comparison]) -> str:
    more = f" and {len(found) - 3} more" if len(found) > 3 else ""
    return "; ".join(f"{one.a} and {one.b}" for one in found[:3]) + more


# -- over all environments --------------------------------------------------------------------------------------------


def _overall(overall: Overall, alpha: float) -> str:
    first, second = (overall.mean_b, overall.mean_a) if overall.difference < 0 else (overall.mean_a, overall.mean_b)
    paired = f"paired in {overall.paired}" if overall.paired else "unpaired"
    if overall.paired == overall.environments:
        paired = "paired"
    unknown = several(sum(overall.unknown), "errored, missing or contradictory episode")
    without = f" Without {unknown}; {_against(overall)}." if any(overall.unknown) else ""
    return (
        f"Overall {_beats(overall)}: mean rate {fraction(first)} % against {fraction(second)} % over"
        f" {several(overall.environments, 'environment')}, {_size(overall)}, {paired},"
        f" Holm p {p_value(overall.p_holm)}; {_spread(overall, alpha)}.{without}{limits(overall.facts)}"
    )


def _spread(overall: Overall, alpha: float) -> str:
    sign = -1 if overall.difference < 0 else 1
    low, high = sorted(sign * end for end in overall.range)
    words = "not the same everywhere," if overall.heterogeneity < alpha else "by environment"
    return f"{words} {points(low)} to {points(high)} (Cochran's Q, p {p_value(overall.heterogeneity)})"


# -- not worse by a margin --------------------------------------------------------------------------------------------


def _margins(comparisons: Comparisons) -> Iterator[str]:
    """Who is equivalent to whom, or not worse; what follows from being better is not told again."""
    shown = {(one.a, one.b, one.environments): one for one in comparisons.not_worse if one.decided}
    better = {(one.ahead, one.behind) for one in (*comparisons.overall, *comparisons.all) if one.decided}
    for (a, b, environments), one in shown.items():
        both = (b, a, environments) in shown
        if (a, b) in better or (both and a > b and (b, a) not in better):
            continue
        where = f"over {len(environments)} environments" if environments[1:] else f"in {environments[0]}"
        within = f"{fraction(one.margin).removesuffix('.0')} points"
        said = f"{a} and {b} are equivalent within {within}" if both else f"{a} is not worse than {b} by {within}"
        size = f"{points(one.difference)} points {points_interval(one.interval)}"
        which = f"{a} minus {b} is " if both else ""
        p = max(one.p_holm, shown[b, a, environments].p_holm) if both else one.p_holm
        yield f"{said} {where}: {which}{size}, Holm p {p_value(p)}.{limits(one.facts)}"


def _not_shown(comparisons: Comparisons) -> Iterator[str]:
    known = {(one.a, one.b) for one in comparisons.not_worse if one.decided}
    better = {(one.ahead, one.behind) for one in (*comparisons.overall, *comparisons.all) if one.decided}
    pairs = [
        one
        for one in comparisons.not_worse
        if one.a < one.b and not {(one.a, one.b), (one.b, one.a)} & (known | better)
    ]
    if pairs:
        named = "; ".join(f"{one.a} and {one.b}" for one in pairs[:PAIRS_NAMED])
        more = f"; and {len(pairs) - PAIRS_NAMED} more" if len(pairs) > PAIRS_NAMED else ""
        margin = fraction(pairs[0].margin).removesuffix(".0")
        yield f"Neither is shown to be not worse by {margin} points: {named}{more}."


# -- by metrics and by failure kinds ----------------------------------------------------------------------------------


def _graded(graded: Graded) -> str:
    first, second = graded.middle if graded.difference > 0 else graded.middle[::-1]
    low, high = graded.chance_interval
    if graded.difference <= 0:
        low, high = 1 - high, 1 - low
    chance = max(graded.chance, 1 - graded.chance)
    n = "n = " + " and ".join(dict.fromkeys(map(str, graded.n)))
    where = _capital(graded.where)
    if graded.only_successes:
        succeeded = f"{graded.n[0]} episodes in which both" if graded.paired else f"{n} episodes that"
        where = f"Of the {succeeded} succeeded {where[0].lower()}{where[1:]}, and of no others,"
    return (
        f"{where} {graded.ahead} has more {graded.metric} than {graded.behind}: in {fraction(chance)} % of"
        f" {'the same episodes' if graded.paired else 'episodes drawn from each'} [{fraction(low)}, {fraction(high)}]"
        f" (equal values count half), interquartile mean {number(first)} against {number(second)}, {graded.test},"
        f" {n}, Holm p {p_value(graded.p_holm)}.{limits(graded.facts)}"
    )


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]


def _mean(one: MeanDifference) -> str:
    first, second = one.means if one.difference > 0 else one.means[::-1]
    low, high = one.interval if one.difference > 0 else (-one.interval[1], -one.interval[0])
    n = "n = " + " and ".join(dict.fromkeys(map(str, one.n)))
    test = f"{one.test}{_pairs_used(one)}"
    where = f"So far {one.where}" if one.so_far else _capital(one.where)
    return (
        f"{where} {one.ahead} has a higher mean {one.metric} than {one.behind}: {number(first)} against"
        f" {number(second)}, +{number(abs(one.difference))} [{number(low)}, {number(high)}], {test}, {n},"
        f" Holm p {p_value(one.p_holm, bound=one.bounded)}.{LEANING * one.leans}{limits(one.facts)}"
    )


def _undecided_graded(comparisons: Comparisons) -> Iterator[str]:
    """Pairs that neither way of comparing decides."""
    decided = {(one.metric, one.a, one.b, one.environments) for one in comparisons.mean_differences if one.decided}
    found = [
        one
        for one in comparisons.graded
        if not one.decided and (one.metric, one.a, one.b, one.environments) not in decided
    ]
    for metric in dict.fromkeys(one.metric for one in found):
        some = [one for one in found if one.metric == metric]
        pairs = "; ".join(f"{one.a} and {one.b} {one.where}" for one in some[:PAIRS_TOLD])
        more = f"; and {len(some) - PAIRS_TOLD} more" if len(some) > PAIRS_TOLD else ""
        yield f"Not decided by {metric}: {pairs}{more}."
    for one in comparisons.mean_differences:
        if one.sequential and not one.decided:
            low, high = one.interval
            yield (
                f"Not decided {one.where}{' so far' * one.so_far} by {one.metric}: {one.a} minus {one.b} is"
                f" {number(one.difference)} [{number(low)}, {number(high)}]. Tested after every pair"
                f"{_pairs_used(one)}; not decided does not mean equal.{limits(one.facts)}"
            )


def _kind(kind: KindComparison) -> str:
    found = kind.found
    rates = (found.mean_a, found.mean_b) if isinstance(found, Overall) else (found.rate_a.rate, found.rate_b.rate)
    high, low = (rate or 0.0 for rate in (rates if found.difference > 0 else rates[::-1]))
    where = f"over {found.environments} environments" if isinstance(found, Overall) else f"in {found.environment}"
    return (
        f"{found.ahead} ends as {kind.kind!r} more often than {found.behind} {where}: {fraction(high)} % of episodes"
        f" against {fraction(low)} %, {_size(found)}, p {p_value(found.p_holm)} (Holm over all failure kinds)."
        f"{limits(found.facts)}"
    )


def _loss(one: Loss) -> str:
    where = f"the mean of {len(one.environments)} others" if one.environments[1:] else one.environments[0]
    verb = "loses" if one.difference > 0 else "gains"
    return (
        f"{one.policy} {verb} {fraction(abs(one.difference))} points {points_interval(one.interval)} from {one.nominal}"
        f" to {where}: {fraction(one.rate_nominal)} % against {fraction(one.rate)} %, Holm p {p_value(one.p_holm)}"
        " (over all losses)."
    )


def prevented(comparisons: Comparisons) -> Iterator[DataFinding]:
    """Comparisons that were not made, or not made as planned: a finding per environment and reason."""
    if comparisons.too_many:
        told = f"{comparisons.too_many} pairs of policies are too many, none is compared (at most {MOST})"
        yield DataFinding("comparisons", f"{told}: report a folder with fewer of them")
    reasons = [(one.environment, one.prevented, one.so_far) for one in comparisons.all]
    reasons += [(one.environments[0], one.prevented, one.so_far) for one in comparisons.mean_differences]
    found = Counter(reason for reason in reasons if reason[1])
    for (environment, why, so_far), count in found.items():
        if so_far:
            yield DataFinding(
                environment, f"{several(count, 'comparison')} can't be made before the run is over: {why}"
            )
            continue
        yield DataFinding(
            environment,
            f"{several(count, 'comparison')} of `stop_early` could not be tested after every pair of episodes, so that"
            f" nothing could stop early: {why}; {'it was' if count == 1 else 'each was'} made once, of all episodes",
        )
