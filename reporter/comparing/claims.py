"""What the comparisons decide and leave open, in sentences. Names are not escaped. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

from comborun.reporter.comparing.comparison import Overall
from comborun.reporter.comparing.family import MOST
from comborun.reporter.counting.quality import Finding
from comborun.reporter.text import fraction, number, of, p_number, p_value, points, points_interval, rate
from comborun.text import several

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from comborun.model.work import Combo
    from comborun.reporter.comparing.comparison import Comparison, Tested
    from comborun.reporter.comparing.family import Comparisons, EnvironmentComparisons
    from comborun.reporter.comparing.graded import Graded, KindComparison
    from comborun.reporter.statistics.proportion import Proportion

    Causes = Mapping[Combo, str]

One = TypeVar("One", bound="Tested")

NOTHING_DECIDED = "No comparison is decided."
PAIRS_TOLD = 6
"""undecided pairs of an environment that are named with numbers; of more only the names are given"""
PAIRS_NAMED = 24
"""undecided pairs that are named"""
DIFFERS = 0.05
"""p of equal differences below which a sentence says that they differ"""


@dataclass(frozen=True)
class Claims:
    decided: tuple[str, ...]
    """over all environments, then by environment, the largest difference first"""
    undecided: tuple[str, ...]
    """one for all environments together, and one for each environment with an undecided comparison"""
    left_out: tuple[str, ...]

    @property
    def left_open(self) -> tuple[str, ...]:
        return (*self.undecided, *self.left_out)

    @property
    def sentences(self) -> tuple[str, ...]:
        """All sentences, the decided ones first; if nothing was compared, only the reason."""
        if not self.decided and not self.undecided:
            return self.left_out
        return (*(self.decided or [NOTHING_DECIDED]), *self.left_open)


def claims(comparisons: Comparisons, causes: Causes | None = None, kinds: Sequence[KindComparison] = ()) -> Claims:
    groups, graded = comparisons.environments, comparisons.graded
    causes = causes or {}
    overall = [one for one in comparisons.overall if not one.decided]
    return Claims(
        decided=(
            *(_overall(one) for one in _ordered(comparisons.overall) if one.decided),
            *(_claim(one) for group in groups for one in _ordered(group.comparisons) if one.decided),
            *(_graded(one) for one in graded if one.decided),
            *(_kind(one) for one in kinds if one.found.decided),
        ),
        undecided=(
            *(f"Only among completed episodes: {_overall(one)}" for one in comparisons.overall if one.only_completed),
            *([f"Not decided overall: {_pairs(overall)}."] if overall else ()),
            *(
                f"Only among completed episodes: {_claim(one)}{_unknown(one, causes)}"
                for group in groups
                for one in _ordered(group.comparisons)
                if one.only_completed
            ),
            *(
                f"Not decided in {group.environment}{' so far' * group.so_far}: {_pairs(found)}. {_limit(group)}"
                for group in groups
                if (found := [one for one in group.comparisons if not one.decided])
            ),
            *(f"Only among episodes with a value: {_graded(one)}" for one in graded if one.only_completed),
            *_undecided_graded([one for one in graded if not one.decided]),
        ),
        left_out=tuple(
            f"Not compared in {environment}: {', '.join(policies)} (no episode with a verdict)."
            for environment, policies in comparisons.left_out
        ),
    )


def _ordered(found: Iterable[One]) -> list[One]:
    return sorted(found, key=lambda one: -abs(one.difference))


# -- within an environment --------------------------------------------------------------------------------------------


def _claim(one: Comparison) -> str:
    swapped = one.difference < 0
    first, second = (one.rate_b, one.rate_a) if swapped else (one.rate_a, one.rate_b)
    so_far = "So far " if one.so_far else ""
    stopped = one.sequential and one.sequential.stopped
    leaning = " Stopped early, so the difference is exaggerated; the interval accounts for it." if stopped else ""
    return (
        f"{so_far}{_beats(one)} in {one.environment}: {_rate(first)} against {_rate(second)}, {_size(one)},"
        f" {_basis(one)}, Holm p {p_value(one.p_holm, bound=one.bounded)}.{'' if one.so_far else leaning}"
    )


def _beats(one: Tested) -> str:
    return f"{one.a} beats {one.b}" if one.difference > 0 else f"{one.b} beats {one.a}"


def _rate(found: Proportion) -> str:
    starts = f" (from {several(found.starts, 'different start')})" if found.starts else ""
    return f"{of(found)} = {rate(found)}{starts}"


def _size(one: Tested) -> str:
    low, high = one.interval
    limits = (-high, -low) if one.difference < 0 else (low, high)
    return f"{points(abs(one.difference))} points {points_interval(limits)}"


def _basis(one: Comparison) -> str:
    if planned := one.sequential:
        stopped = "stopped at " if planned.stopped and not one.so_far else ""
        return f"paired ({one.test}), {stopped}{one.rate_a.n} of {planned.n_max} pairs"
    return f"{one.paired_word} ({one.test})"


def _unknown(one: Comparison, causes: Causes) -> str:
    """The number of episodes that the claim leaves out, and why they are missing."""
    reasons = [
        f"{count} of {policy}" + (f" ({cause})" if (cause := causes.get((policy, one.environment))) else "")
        for policy, count in zip((one.a, one.b), one.unknown, strict=True)
        if count
    ]
    return f" Errored, missing or contradictory: {' and '.join(reasons)}; counted against it, nothing is decided."


def _pairs(found: Sequence[Comparison | Overall]) -> str:
    named = "; ".join(_pair(one, numbers=len(found) <= PAIRS_TOLD) for one in found[:PAIRS_NAMED])
    return named + (f"; and {len(found) - PAIRS_NAMED} more" if len(found) > PAIRS_NAMED else "")


def _pair(one: Comparison | Overall, *, numbers: bool) -> str:
    if not numbers:
        return f"{one.a} and {one.b}"
    p = "" if one.bounded else f", Holm p {p_value(one.p_holm)}"
    if any(one.unknown) and not one.bounded:
        p += f" ({p_number(one.worst_holm)} if episodes without a verdict count against it)"
    return f"{one.a} minus {one.b} is {points(one.difference)} points {points_interval(one.interval)}{p}"


def _limit(group: EnvironmentComparisons) -> str:
    """The gap that these episodes could show: `not decided` must not read like `equal`."""
    if planned := [one.sequential.n_max for one in group.comparisons if one.sequential]:
        given_up = any(one.sequential and one.sequential.stopped and not one.decided for one in group.comparisons)
        ended = ", and given up where `stop_early` says so (futility, width)" if given_up and not group.so_far else ""
        return f"Tested after every pair, up to {max(planned)} of them{ended}; not decided does not mean equal."
    gap, n = group.gap_in_family, group.n
    if gap is None:
        return f"With {several(n, 'episode')} and this many comparisons, no difference at all could have been found."
    size = f"{100 * gap:.0f}" if gap > 0.01 else fraction(gap)
    return f"With {several(n, 'episode')}, a true gap of {size} points would be found 4 times in 5."


# -- over all environments --------------------------------------------------------------------------------------------


def _overall(one: Overall) -> str:
    first, second = (one.mean_b, one.mean_a) if one.difference < 0 else (one.mean_a, one.mean_b)
    paired = "paired" if one.paired == one.environments else f"paired in {one.paired}" if one.paired else "unpaired"
    left = sum(one.unknown)
    without = f" Without {several(left, 'errored, missing or contradictory episode')}." if one.only_completed else ""
    return (
        f"Overall {_beats(one)}: mean rate {fraction(first)} % against {fraction(second)} % over"
        f" {several(one.environments, 'environment')}, {_size(one)}, {paired}, Holm p {p_value(one.p_holm)};"
        f" {_spread(one)}.{without}"
    )


def _spread(one: Overall) -> str:
    sign = -1 if one.difference < 0 else 1
    low, high = sorted(sign * end for end in one.range)
    words = "not the same everywhere," if one.heterogeneity < DIFFERS else "by environment"
    return f"{words} {points(low)} to {points(high)} (Cochran's Q, p {p_value(one.heterogeneity)})"


# -- by metrics and by failure kinds ----------------------------------------------------------------------------------


def _graded(one: Graded) -> str:
    ahead, behind = (one.a, one.b) if one.difference > 0 else (one.b, one.a)
    first, second = one.middle if one.difference > 0 else one.middle[::-1]
    low, high = one.chance_interval if one.difference > 0 else [1 - end for end in reversed(one.chance_interval)]
    chance = max(one.chance, 1 - one.chance)
    return (
        f"{_place(one)} {ahead} has more {one.metric} than {behind}: in {fraction(chance)} % of"
        f" {'the same episodes' if one.paired else 'episodes drawn from each'} [{fraction(low)}, {fraction(high)}]"
        f" (equal values count half), interquartile mean {number(first)} against {number(second)}, {one.test},"
        f" n = {one.n[0]}{'' if one.n[0] == one.n[1] else f' and {one.n[1]}'}, Holm p {p_value(one.p_holm)}."
    )


def _place(one: Graded) -> str:
    return f"In {one.environments[0]}" if len(one.environments) == 1 else f"Over {len(one.environments)} environments"


def _undecided_graded(found: Sequence[Graded]) -> Iterator[str]:
    for metric in dict.fromkeys(one.metric for one in found):
        some = [one for one in found if one.metric == metric]
        pairs = "; ".join(f"{one.a} and {one.b} {_place(one).lower()}" for one in some[:PAIRS_TOLD])
        more = f"; and {len(some) - PAIRS_TOLD} more" if len(some) > PAIRS_TOLD else ""
        yield f"Not decided by {metric}: {pairs}{more}."


def _kind(one: KindComparison) -> str:
    found = one.found
    rates = (found.mean_a, found.mean_b) if isinstance(found, Overall) else (found.rate_a.rate, found.rate_b.rate)
    more, less = (found.a, found.b) if found.difference > 0 else (found.b, found.a)
    high, low = (rate or 0.0 for rate in (rates if found.difference > 0 else rates[::-1]))
    where = f"over {found.environments} environments" if isinstance(found, Overall) else f"in {found.environment}"
    return (
        f"{more} ends as {one.kind!r} more often than {less} {where}: {fraction(high)} % of episodes against"
        f" {fraction(low)} %, {_size(found)}, p {p_value(found.p_holm)} (Holm over all failure kinds)."
    )


def prevented(comparisons: Comparisons) -> Iterator[Finding]:
    """Comparisons that were not made, or not made as planned: a finding per environment and reason."""
    if comparisons.too_many:
        told = f"{comparisons.too_many} pairs of policies are too many, none is compared (at most {MOST})"
        yield Finding("comparisons", f"{told}: report a folder with fewer of them")
    found = Counter((one.environment, one.prevented, one.so_far) for one in comparisons.all if one.prevented)
    for (environment, why, so_far), count in found.items():
        if so_far:
            yield Finding(environment, f"{several(count, 'comparison')} can't be made before the run is over: {why}")
            continue
        yield Finding(
            environment,
            f"{several(count, 'comparison')} of `stop_early` could not be tested after every pair of episodes, so that"
            f" nothing could stop early: {why}; {'it was' if count == 1 else 'each was'} made once, of all episodes",
        )
