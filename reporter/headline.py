"""What the report says in words, before any table. Pure.

Only facts: what is complete, who has the highest rate in each environment, and whether its interval lies apart from
the others. Nothing here is a test of a difference.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from comborun.state import Completeness, Outcome
from reporter.text import claim, duration, plural, printable

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from reporter.statistics import Proportion
    from reporter.summary import ComboSummary, Summary


@dataclass(frozen=True)
class Leader:
    """The highest success rate of one environment, among the policies with completed episodes."""

    environment: str
    policies: tuple[str, ...]
    """more than one when they are level"""
    rates: tuple[Proportion, ...]
    """theirs; equal, but not always of as many episodes"""
    apart: bool
    """whether its interval lies above that of every other policy"""
    rivals: int
    """other policies with completed episodes"""
    whole: bool
    """whether every planned episode of this environment has a verdict"""

    @property
    def names(self) -> str:
        return " and ".join(map(printable, self.policies))

    @property
    def words(self) -> str:
        """What follows the names: `89/100 = 89.0 % [81.2, 94.4]; its interval lies above the other's`"""
        caution = "" if self.whole else " (not all episodes have a verdict)"
        if len(self.policies) > 1:
            return f"level at {' and '.join(dict.fromkeys(map(claim, self.rates)))}{caution}"
        others = "the other's" if self.rivals == 1 else f"all {self.rivals} others"
        relation = f"lies above {others}" if self.apart else "overlaps with another's"
        return f"{claim(self.rates[0])}; its interval {relation}{caution}"


def sentences(summary: Summary) -> tuple[str, ...]:
    """The state of the whole run."""
    words = [*_unfinished(summary), _episodes(summary), *_sessions(summary), *_times(summary)]
    return tuple(filter(None, words))


def leaders(summary: Summary) -> tuple[Leader, ...]:
    """One per environment in which at least two policies have completed episodes."""
    found = (
        _leader(environment, [combo for combo in summary.combos if combo.environment == environment])
        for environment in summary.environments
    )
    return tuple(leader for leader in found if leader)


def _leader(environment: str, combos: Sequence[ComboSummary]) -> Leader | None:
    rated = [(combo.policy, combo.rate) for combo in combos if combo.rate and combo.rate.n]
    if len(rated) < 2:
        return None
    best = max((rate for _, rate in rated), key=lambda rate: rate.rate or 0.0)
    winners = tuple(policy for policy, rate in rated if rate.rate == best.rate)
    others = [rate.interval for policy, rate in rated if policy not in winners and rate.interval]
    lowest = best.interval[0] if best.interval else 0.0
    return Leader(
        environment=environment,
        policies=winners,
        rates=tuple(rate for _, rate in rated if rate.rate == best.rate),
        apart=len(winners) == 1 and all(interval[1] < lowest for interval in others),
        rivals=len(rated) - len(winners),
        whole=all(combo.counts.completed == combo.counts.planned for combo in combos if combo.counts),
    )


def _unfinished(summary: Summary) -> Sequence[str]:
    return () if summary.ended else ("Not all sessions had ended when this report was made.",)


def _episodes(summary: Summary) -> str:
    counted = [combo for combo in summary.combos if combo.counts]
    counts = summary.counts
    if not counted:
        return ""
    if not summary.planned:
        errored = f" and {plural(counts.errored, 'errored one')}" if counts.errored else ""
        return (
            f"{plural(counts.completed, 'completed episode')}{errored} of {plural(len(counted), 'combo')};"
            " no plan says how many there should be."
        )
    whole = sum(combo.counts.completeness is Completeness.COMPLETE for combo in counted if combo.counts)
    among = "" if len(counted) == len(summary.combos) else " counted in episodes"
    state = f"{whole} of {len(counted)} combos{among} {'is' if whole == 1 else 'are'}"
    if whole == len(counted) > 1:
        state = f"All {len(counted)} combos{among} are"
    short = [f"{count} {word}" for count, word in ((counts.errored, "errored"), (counts.missing, "missing")) if count]
    rest = f" ({', '.join(short)})" if short else ""
    return f"{state} complete: {counts.completed} of {counts.planned} planned episodes have a verdict{rest}."


def _sessions(summary: Summary) -> Iterator[str]:
    """Outcomes other than success, and training, which has nothing but an outcome."""
    outcomes = Counter(combo.ending.words for combo in summary.combos)
    bad = [f"{count} {words}" for words, count in outcomes.items() if words != Outcome.SUCCEEDED]
    if summary.planned and bad:
        yield f"Outcomes other than succeeded: {', '.join(bad)}."
    if steps := sum(combo.unit == "step" for combo in summary.combos):
        yield f"{plural(steps, 'combo')} counted in steps: outcome and duration, no rate."


def _times(summary: Summary) -> Sequence[str]:
    timing = summary.timing
    if timing.makespan is None:
        return ()
    words = f"From the first start to the last end: {duration(timing.makespan)}"
    if timing.sequential is None:
        return (f"{words}.",)
    return (f"{words}; the session times add up to {duration(timing.sequential)}.",)
