"""Who leads and who is last: the policies in their order, and what the comparisons between them decide. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from math import comb
from statistics import fmean
from typing import Literal

from comborun.reporter.comparing.comparison import Tested
from comborun.reporter.counting.combo import MacroMean
from comborun.reporter.counting.measures import MetricMean
from comborun.reporter.statistics.difference import letters
from comborun.reporter.statistics.means import mean_of_means
from comborun.reporter.statistics.proportion import Interval, mean_of_rates
from comborun.reporter.summary import Summary


@dataclass(frozen=True)
class Place:
    """A policy's own value."""

    policy: str
    value: float | None
    """None without an episode in one of the environments"""
    interval: Interval | None = None
    counts: str = ""
    """k/n in one environment; how many environments lack an episode"""
    early: bool = False
    runs: int | None = None
    """how many are joined, if several: the interval is without the spread between them"""


@dataclass(frozen=True)
class Standing:
    """By the comparisons over all environments; with a single environment, by those in it."""

    metric: str
    """by which; empty: by success rates"""
    environments: int
    environment: str
    """if there is only one"""
    places: tuple[Place, ...]
    """the best first"""
    comparisons: tuple[Tested, ...]
    letters: Mapping[str, str] = field(default_factory=dict)
    """policies that share one are not told apart; empty unless every pair is compared"""
    common: int = 0
    """environments that every policy has; the values are means over these"""
    better: Literal["higher", "lower", ""] = "higher"
    """which values are better; empty: nobody says it, so that nobody leads"""

    @property
    def by_rate(self) -> bool:
        return not self.metric

    @property
    def measure(self) -> str:
        return self.metric or "success rate"

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(place.policy for place in self.places)

    @property
    def where(self) -> str:
        """Over which environments the values are means."""
        if self.environment:
            return f"in {self.environment}"
        if self.common < self.environments:
            return f"over the {self.common} of {self.environments} environments that all policies have"
        return f"over {self.environments} environments"

    @property
    def complete(self) -> bool:
        """Whether every pair is compared."""
        return len(self.comparisons) == comb(len(self.places), 2)

    @property
    def by_pair(self) -> Mapping[tuple[str, str], Tested]:
        return {(one.a, one.b): one for one in self.comparisons}

    @property
    def won(self) -> tuple[tuple[str, str], ...]:
        """The better and the worse policy of each decided pair."""
        apart = self.apart if self.better else ()
        return tuple((less, more) for more, less in apart) if self.better == "lower" else apart

    @property
    def apart(self) -> tuple[tuple[str, str], ...]:
        """The policy with more and that with less of each decided pair."""
        return tuple((one.ahead, one.behind) for one in self.comparisons if one.decided)

    @property
    def leaders(self) -> tuple[str, ...]:
        """Better than some policy, and none is better."""
        return self._named({winner for winner, _ in self.won} - {loser for _, loser in self.won})

    @property
    def last(self) -> tuple[str, ...]:
        """Worse than some policy, and better than none."""
        return self._named({loser for _, loser in self.won} - {winner for winner, _ in self.won})

    @property
    def apart_from_none(self) -> tuple[str, ...]:
        return self._named({*self.names} - {name for pair in self.apart for name in pair})

    def _named(self, names: set[str]) -> tuple[str, ...]:
        return tuple(name for name in self.names if name in names)


def corrected(standing: Standing) -> str:
    """What stands behind "not told apart": that of many comparisons each counts less."""
    return ", after correction for several comparisons" if len(standing.comparisons) > 1 else ""


def standing_of(summary: Summary) -> Standing | None:
    """None if no policy has an episode that counts, or several environments have no comparison over all of them."""
    judged = [combo for combo in summary.combos if combo.rate and combo.rate.n]
    if not judged or any(one.sequential for one in summary.comparisons.mean_differences):
        return _by_metric(summary)
    environments = {combo.environment for combo in judged}
    if len(environments) > 1:
        common = environments - {name for mean in summary.macro_means if mean.episodes for name in mean.missing}
        places = [_mean(mean, summary, environments, common) for mean in summary.macro_means if mean.episodes]
        found = summary.comparisons
        pairs = {frozenset((one.a, one.b)) for one in found.overall}
        # Beside them two policies that share a single environment are compared in it.
        single = [one for one in found.all if pairs and frozenset((one.a, one.b)) not in pairs]
        return _standing("", environments, places, [*found.overall, *single], common=len(common))
    places = [
        Place(
            one.policy,
            one.rate.rate,
            one.rate.interval,
            f"{one.rate.successes}/{one.rate.n}",
            bool(one.not_needed),
            one.rate.runs,
        )
        for one in judged
        if one.rate
    ]
    return _standing("", environments, places, summary.comparisons.all)


def _mean(mean: MacroMean, summary: Summary, environments: set[str], common: Collection[str]) -> Place:
    """Over all environments, or over those that every policy has; these are the same for all policies."""
    value, interval = mean.mean, mean.interval
    if len(common) < mean.environments:
        own = [combo.rate for combo in summary.combos if combo.policy == mean.policy and combo.environment in common]
        counts = [(rate.successes, rate.n) for rate in own if rate]
        few = len(counts) < 2
        value, interval = (None, None) if few else (fmean(k / n for k, n in counts), mean_of_rates(counts))
    lacking = len(environments.intersection(mean.missing))
    words = f"{lacking} of {len(environments)} missing" if lacking else ""
    joined = (one.rate.runs for one in summary.combos if one.policy == mean.policy and one.rate)
    return Place(mean.policy, value, interval, words, bool(mean.early), max(filter(None, joined), default=None))


def _standing(
    metric: str,
    environments: Iterable[str],
    places: Sequence[Place],
    found: Sequence[Tested],
    common: int | None = None,
    better: Literal["higher", "lower", ""] = "higher",
) -> Standing:
    names = [*environments]
    sign = 1 if better == "lower" else -1
    lost = {place.policy: sum(one.decided and one.behind == place.policy for one in found) for place in places}
    ranked = sorted(places, key=lambda one: (one.value is None, sign * (one.value or 0.0), -sign * lost[one.policy]))
    different = [(one.a, one.b) for one in found if one.decided]
    whole = len(found) == comb(len(places), 2) > 0
    return Standing(
        metric,
        len(names),
        names[0] if len(names) == 1 else "",
        tuple(ranked),
        tuple(found),
        dict(letters([one.policy for one in ranked], different)) if whole else {},
        len(names) if common is None else common,
        better,
    )


def _by_metric(summary: Summary) -> Standing | None:
    if summary.metric is None:
        return None
    name = summary.metric.name
    found = summary.comparisons.by_metric(name)
    cells = [(combo, mean) for combo in summary.combos if (mean := combo.metrics_by_name.get(name))]
    if not cells:
        return None
    environments = list(dict.fromkeys(combo.environment for combo, _ in cells))
    places = []
    for policy in dict.fromkeys(combo.policy for combo, _ in cells):
        own = [mean for combo, mean in cells if combo.policy == policy]
        lacking = len(environments) - len(own)
        value = None if lacking else fmean(mean.mean for mean in own)
        words = f"{lacking} of {len(environments)} missing" if lacking else f"n = {sum(mean.n for mean in own)}"
        runs = max((mean.runs for mean in own if mean.runs), default=None)
        places.append(Place(policy, value, None if lacking else _over_all(own), words, runs=runs))
    wanted = max((len(one.environments) for one in found), default=0)
    over_all = min(wanted, 2) == min(len(environments), 2)
    used = [one for one in found if over_all and (len(one.environments) > 1) == (len(environments) > 1)]
    return _standing(name, environments, places, used, better=summary.metric.better)


def _over_all(means: Sequence[MetricMean]) -> Interval | None:
    """Of the mean over environments, or of the only one; None if one has no interval."""
    if len(means) == 1:
        return means[0].interval
    limits = [(one.interval, one.starts or one.n) for one in means if one.interval]
    return mean_of_means(limits) if len(limits) == len(means) else None
