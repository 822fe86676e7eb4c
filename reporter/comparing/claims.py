"""What the comparisons decide and leave open, in sentences. Names are not escaped. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import TypeVar

from comborun.model.work import Combo
from comborun.reporter.comparing.claims_besides import (
    LEANING,
    PAIRS_NAMED,
    PAIRS_TOLD,
    first_of,
    graded,
    kind,
    loss,
    mean,
    not_shown,
    not_worse,
    pairs_used,
    size,
    undecided_graded,
)
from comborun.reporter.comparing.comparison import Comparison, Overall, Tested, first_reasons, limited, not_paired
from comborun.reporter.comparing.factors import Factor, said
from comborun.reporter.comparing.family import MOST, Comparisons, EnvironmentComparisons
from comborun.reporter.comparing.kinds import KindComparison
from comborun.reporter.comparing.nominal import Loss
from comborun.reporter.counting.quality import DataFinding
from comborun.reporter.evidence.runs import RunFact
from comborun.reporter.evidence.words import limits, say
from comborun.reporter.statistics.proportion import Proportion
from comborun.reporter.text import fraction, of, p_number, p_value, points, rate
from comborun.rules.facts import Fact
from comborun.text import several

Causes = Mapping[Combo, str]

One = TypeVar("One", bound="Tested")

AMONG = "Only among episodes with a value: "
COMPLETED = "Only among completed episodes: "
NAMED = 3
"""environments that are named of many"""
NOTHING_DECIDED = "No comparison is decided."
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
    *,
    by_numbers: bool = False,
) -> Claims:
    """`by_numbers`: whether episodes have no verdicts, but numbers."""
    causes = causes or {}
    why = "too few values, and not paired" if by_numbers else "no episode with a verdict"
    alpha = DIFFERS / max(1, len(comparisons.overall))  # Bonferroni
    return Claims(
        decided=(
            *_decided(comparisons, causes, alpha),
            *not_worse(comparisons),
            *(graded(one, comparisons.mean_differences) for one in comparisons.graded if one.decided),
            *(mean(one) for one in comparisons.mean_differences if one.decided),
            *(kind(one) for one in kinds if one.found.decided),
            *(loss(one) for one in besides if isinstance(one, Loss) and one.decided),
            *said([one for one in besides if isinstance(one, Factor)]),
        ),
        undecided=(
            *_undecided(comparisons, causes, alpha),
            *(
                f"{AMONG}{graded(one, comparisons.mean_differences)}"
                for one in comparisons.graded
                if one.only_completed
            ),
            *not_shown(comparisons),
            *(f"{AMONG}{mean(one)}" for one in comparisons.mean_differences if one.only_completed),
            *undecided_graded(comparisons),
        ),
        left_out=(
            *(
                f"Not compared in {environment}: {', '.join(policies)} ({why})."
                for environment, policies in comparisons.left_out
                if not any(environment in one.environments for one in comparisons.graded)
            ),
            *(f"Not joined: {say(fact)}." for fact in alike),
        ),
    )


def _decided(comparisons: Comparisons, causes: Causes, alpha: float) -> Iterator[str]:
    """By success rates: over all environments, then in each."""
    yield from (_overall(one, alpha) for one in _ordered(comparisons.overall) if one.decided)
    for group in comparisons.environments:
        yield from (_claim(one, causes) for one in _ordered(group.comparisons) if one.decided)


def _undecided(comparisons: Comparisons, causes: Causes, alpha: float) -> Iterator[str]:
    """By success rates; first what only completed episodes decide."""
    overall = [one for one in comparisons.overall if not one.decided]
    yield from (f"{COMPLETED}{_overall(one, alpha)}" for one in comparisons.overall if one.only_completed)
    if overall:
        yield f"Not decided overall: {_pairs(overall)}.{limits(limited(overall))}"
    for group in comparisons.environments:
        partly = (one for one in _ordered(group.comparisons) if one.only_completed)
        yield from (f"{COMPLETED}{_claim(one, causes)}" for one in partly)
    single = [group for group in comparisons.environments if _of_single_episodes(group)]
    single = single if len(single) > 1 else []
    if single:
        names = [group.environment for group in single]
        more = f" and {len(names) - NAMED} more" if len(names) > NAMED else ""
        found = [one for group in single for one in group.comparisons]
        told = " ".join(filter(None, (f"{', '.join(names[:NAMED])}{more}.", not_paired(found))))
        yield f"Single episodes decide nothing in {len(names)} environments: {told}{limits(limited(found))}"
    for group in (one for one in comparisons.environments if one not in single):
        if found := [one for one in group.comparisons if not one.decided]:
            where = f"{group.environment}{' so far' * group.so_far}"
            yield f"Not decided in {where}: {_pairs(found)}.{_limit(group)}{limits(limited(found))}"


def _of_single_episodes(group: EnvironmentComparisons) -> bool:
    """Whether no policy that is compared there has more than an episode."""
    found = group.comparisons
    few = all(_independent(rate) < 2 for one in found for rate in (one.rate_a, one.rate_b))
    return bool(found) and few and not any(one.sequential or one.decided for one in found)


def _ordered(found: Iterable[One]) -> list[One]:
    return sorted(found, key=lambda comparison: -abs(comparison.difference))


# -- within an environment --------------------------------------------------------------------------------------------


def _claim(comparison: Comparison, causes: Causes) -> str:
    swapped = comparison.difference < 0
    first, second = (comparison.rate_b, comparison.rate_a) if swapped else (comparison.rate_a, comparison.rate_b)
    so_far = "So far " if comparison.so_far else ""
    return (
        f"{so_far}{_beats(comparison)} in {comparison.environment}: {_rate(first)} against {_rate(second)},"
        f" {size(comparison)}, {comparison.basis}{pairs_used(comparison)},"
        f" Holm p {p_value(comparison.p_holm, bound=comparison.bounded)}.{LEANING * comparison.leans}"
        f"{limits(comparison.facts)}{unknown_words(comparison, causes)}"
    )


def _beats(comparison: Tested) -> str:
    return f"{comparison.ahead} beats {comparison.behind}"


def _rate(found: Proportion) -> str:
    starts = f" (from {several(found.starts, 'different start')})" if found.starts else ""
    return f"{of(found)} = {rate(found)}{starts}"


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
    return first_of((_pair(one, numbers=len(found) <= PAIRS_TOLD) for one in found), PAIRS_NAMED)


def _pair(comparison: Comparison | Overall, *, numbers: bool) -> str:
    if not numbers:
        return f"{comparison.a} and {comparison.b}"
    p = "" if comparison.bounded or not comparison.computed else f", Holm p {p_value(comparison.p_holm)}"
    if any(comparison.unknown) and p:
        p += f" ({p_number(comparison.worst_holm)} if episodes without a verdict count against it)"
    # The rates beside it are of all episodes of each policy, and may lie the other way round.
    pairs = comparison.pairs if isinstance(comparison, Comparison) and any(comparison.unknown) else None
    some = f" in the {pairs.n} episodes of both" if pairs else ""
    return f"{comparison.ahead} minus {comparison.behind} is {size(comparison)}{some}{p}"


def _limit(group: EnvironmentComparisons) -> str:
    """The gap that these episodes could show: `not decided` must not read like `equal`."""
    if planned := [test.n_max for comparison in group.comparisons if (test := comparison.sequential)]:
        undecided = (comparison.sequential for comparison in group.comparisons if not comparison.decided)
        given_up = any(test and test.stopped_early for test in undecided)
        ended = ", and given up where `stop_early` says so (futility, width)" if given_up and not group.so_far else ""
        return f" Tested after every pair, up to {max(planned)} of them{ended}; not decided does not mean equal."
    left_open = [one for one in group.comparisons if not one.decided]
    told = filter(None, (*_findable(left_open), not_paired(left_open)))
    return "".join(f" {one}" for one in told)


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
    one_way = [
        bool(one.pairs and (one.findable or 0) * one.pairs.n > one.pairs.only_a + one.pairs.only_b) for one in some
    ]
    alike = "with as many pairs that differ" if paired == {True} else "with rates like these"
    if any(one_way):
        too_few = "with as many pairs that differ, or more where these are too few"
        alike = "if all pairs that differ go one way" if all(one_way) else too_few
    if len(paired) > 1:
        alike = "with pairs and rates like these"
    if any(any(one.unknown) and not one.bounded for one in some):
        alike += ", if every episode had a verdict"  # a claim must hold also if those without one count against it
    yield f"{size} would be found 4 times in 5{ends}, {alike}."


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
    if overall.unpaired:
        paired += f" ({first_reasons(overall.unpaired)}{' in the others' * bool(overall.paired)})"
    return (
        f"Overall {_beats(overall)}: mean rate {fraction(first)} % against {fraction(second)} % over"
        f" {several(overall.environments, 'environment')}, {size(overall)}, {paired},"
        f" Holm p {p_value(overall.p_holm)}; {_spread(overall, alpha)}.{left_out(overall)}{limits(overall.facts)}"
    )


def left_out(overall: Overall) -> str:
    """The number of episodes that a claim over all environments leaves out, and what they change if they count."""
    unknown = several(sum(overall.unknown), "errored, missing or contradictory episode")
    return f" Without {unknown}; {_against(overall)}." if any(overall.unknown) else ""


def _spread(overall: Overall, alpha: float) -> str:
    sign = -1 if overall.difference < 0 else 1
    low, high = sorted(sign * end for end in overall.range)
    words = "not the same everywhere," if overall.heterogeneity < alpha else "by environment"
    return f"{words} {points(low)} to {points(high)} (Cochran's Q, p {p_value(overall.heterogeneity)})"


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


def single_runs(comparisons: Comparisons) -> Iterator[DataFinding]:
    tested = chain(comparisons.all, comparisons.graded, comparisons.mean_differences)
    facts = (fact for one in tested for fact in one.facts if fact.code == RunFact.ONE_EACH)
    if runs := [*dict.fromkeys(run for fact in facts for run in fact.texts("runs"))]:
        yield DataFinding("runs", say(Fact(RunFact.ONE_EACH, runs=runs)))
