"""What is compared: the episodes of a policy in an environment, or counts alone; and where two of them meet. Pure.

A repeated start is no new evidence: a deterministic program repeats what it did. So a start counts once, at its mean.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from math import fsum
from operator import attrgetter
from statistics import fmean
from types import MappingProxyType

from comborun.model.attempt import EpisodeRecord, Verdict, having
from comborun.model.work import Combo, Spans, combo_of, episodes_of, grouped, minus, size
from comborun.reporter.counting.combo import AggregateCounts, tallies
from comborun.reporter.evidence.context import NO_CONTEXT, Context, Lengths, context_of, lengths_of
from comborun.reporter.evidence.occasions import Occasion
from comborun.reporter.evidence.repeats import copies, with_parts, with_replays
from comborun.reporter.evidence.runs import Runs, run_rates
from comborun.reporter.evidence.sequence import by_setting, in_order
from comborun.reporter.evidence.settings import NO_SETTINGS, Settings, clusters_of, settings_of
from comborun.reporter.evidence.starts import UNTOLD, Settled, Starts, settle, starts_of
from comborun.reporter.merge import UNPLANNED, MergedCombo, merge
from comborun.reporter.records.collected import Collected
from comborun.reporter.statistics.difference import FEWEST_UNPAIRED, PairCounts
from comborun.reporter.statistics.pooled import Stratum
from comborun.rules.facts import Fact
from comborun.rules.results.fields import ResultRules

_NONE = frozenset[int]()
_ENDED = (Verdict.SUCCESS, Verdict.FAILURE, Verdict.MEASURED)


@dataclass(frozen=True)
class Arm:
    """The episodes of a policy in an environment, by their indexes."""

    policy: str
    completed: frozenset[int]
    successes: frozenset[int]
    starts: Starts = UNTOLD
    errored: frozenset[int] = frozenset()
    """ran, but gave no verdict"""
    missing: frozenset[int] = frozenset()
    """planned, and left no record"""
    contested: frozenset[int] = frozenset()
    """one record says success and another failure"""
    context: Context = field(default_factory=lambda: NO_CONTEXT)
    """the conditions that its records tell"""
    lengths: Lengths = field(default_factory=dict)
    """how long its episodes last, and at which length failures end"""
    settings: Settings = NO_SETTINGS
    """how often it had which setting"""
    runs: Runs = field(default_factory=dict)
    """its runs, as far as folders or fields name them"""
    runs_told: bool = True
    """whether files tell the runs; else equal seeds do, and they may be starts"""
    metric: str = ""
    """by which it is compared; empty: by success"""
    run_means: Mapping[str, float] = field(default_factory=dict)
    """of the metric, by run"""
    values: Mapping[int, float] = field(default_factory=dict)
    """of the metric, by episode: its completed episodes are those with a value"""
    only_successes: bool = False
    """whether only successful episodes have a value of the metric"""
    shares: tuple[tuple[frozenset[int], float], ...] = ()
    """episodes that met the same, and the weight at which these count, if the other policy met it more or less often"""

    @property
    def run_rates(self) -> dict[str, float]:
        return run_rates(self.runs, self.completed, self.successes) if self.runs else {}

    @property
    def counts(self) -> tuple[int, int]:
        return len(self.successes), len(self.completed)

    @cached_property
    def by_start(self) -> tuple[float, int]:
        """Successes and episodes, but a start with several episodes counts once, at its mean."""
        if not self.shares:
            return self._by_start(self.completed)
        cells = [(*self._by_start(own & self.completed), weight) for own, weight in self.shares]
        whole = fsum(weight for *_, weight in cells)
        rate = fsum(weight / whole * k / n for k, n, weight in cells)
        n = int(1 / fsum((weight / whole) ** 2 / n for _, n, weight in cells))  # Kish's effective number
        k, more = self._by_start(self.completed.difference(*(own for own, _ in self.shares)))
        return round(rate * n + k, 9), n + more

    def _by_start(self, episodes: frozenset[int]) -> tuple[float, int]:
        groups = self.starts.groups(episodes)
        if groups is None:
            return len(self.successes & episodes), len(episodes)
        return round(fsum(len(group & self.successes) / len(group) for group in groups), 9), len(groups)

    @property
    def values_by_start(self) -> list[float]:
        """The values of the metric; a start with several episodes counts once, at its mean."""
        groups = self.starts.groups(self.completed)
        each = [*self.values.values()]
        return each if groups is None else [fmean(map(self.values.__getitem__, group)) for group in groups]

    @cached_property
    def unknown(self) -> frozenset[int]:
        return self.errored | self.missing | self.contested

    @property
    def known(self) -> frozenset[int]:
        return self.completed | self.errored | self.missing

    @property
    def recorded(self) -> int:
        return len(self.completed | self.errored)

    @cached_property
    def met(self) -> dict[int, tuple[Side, Meeting]]:
        """The meetings with other sides so far, by their identity."""
        return {}

    def filled(self, *, success: bool) -> Arm:
        """The arm as if every unknown episode had succeeded, or had failed."""
        successes = self.successes | self.unknown if success else self.successes - self.unknown
        return replace(self, completed=self.completed | self.unknown, successes=successes)


@dataclass(frozen=True)
class CountsAlone:
    """A policy in an environment whose program only counts."""

    policy: str
    counts: tuple[int, int]
    absent: int = 0
    """planned episodes that are not among them"""

    @property
    def by_start(self) -> tuple[float, int]:
        return self.counts

    @property
    def unknown(self) -> range:
        return range(self.absent)

    @property
    def recorded(self) -> int:
        return self.counts[1]

    def filled(self, *, success: bool) -> CountsAlone:
        return replace(self, counts=(self.counts[0] + self.absent * success, self.counts[1] + self.absent))


Side = Arm | CountsAlone


@dataclass(frozen=True)
class Results:
    merged: Mapping[Combo, MergedCombo]
    """of combos with a record per episode, over the planned episodes that were needed"""
    counts: Mapping[Combo, AggregateCounts]
    sides: Mapping[Combo, Side]
    settled: Mapping[Combo, Settled]
    """what the starts of each combo with records rest on"""


def results_of(collected: Collected, spare: Mapping[Combo, Spans] = MappingProxyType({})) -> Results:
    """`spare`: planned episodes that turned out not to be needed."""
    planned = {
        # None where the plan leaves their number to the program.
        combo: minus(episodes_of(one.session for one in histories), spare.get(combo, ())) or None
        for combo, histories in collected.by_combo.items()
        if histories[0].session.unit == "episode" and histories[0].session.results.has_records
    }
    merged = {combo.key: combo for combo in merge(collected.records, planned)}
    sessions = {history.session.name: history.session.count for history in collected.sessions}
    found = tallies(collected.aggregates, sessions)
    counts = {combo: one for combo, one in found.items() if not (combo in merged and merged[combo].accepted)}
    accepted = {combo: one.accepted for combo, one in merged.items()}
    settled = _settled(accepted, collected)
    usual = ResultRules().success
    named = {combo_of(one.session) for one in collected.sessions if one.session.results.success != usual}
    sides: dict[Combo, Side] = {}
    like: Arm | None = None
    for combo, records in merged.items():
        if combo not in counts:
            sides[combo] = like = arm(records, settled[combo], like, chosen=combo in named)
    _mark_orders(sides, accepted, settled)
    for combo, one in counts.items():
        absent = sum(history.session.count for history in collected.by_combo.get(combo, ())) - one.episodes
        sides[combo] = CountsAlone(combo[0], (one.successes, one.episodes), max(0, absent))
    return Results(merged, counts, sides, settled)


def _settled(accepted: Mapping[Combo, Sequence[EpisodeRecord]], collected: Collected) -> dict[Combo, Settled]:
    """What the starts of each combo rest on, and its runs."""
    runs = collected.runs
    several = {combo for combo, found in runs.items() if len(found) > 1}
    settled = settle(accepted, collected.unpaired, several)
    settled = with_replays(settled, {combo: having(some, *_ENDED) for combo, some in accepted.items()})
    settled = with_parts(settled, accepted)
    for combo, fact in copies(accepted).items():
        settled[combo] = replace(settled[combo], facts=(*settled[combo].facts, fact))
    for combo, own in settled.items():
        if combo in several or (combo in runs and not own.runs):
            settled[combo] = replace(own, runs=runs[combo], runs_told=True)
    return settled


def _mark_orders(
    sides: dict[Combo, Side], accepted: Mapping[Combo, Sequence[EpisodeRecord]], settled: Mapping[Combo, Settled]
) -> None:
    """Mark sides whose verdicts go with their order; where a setting explains that, name its values as clusters."""
    for combo, fact in in_order(accepted, {combo: one.runs for combo, one in settled.items()}).items():
        side = sides.get(combo)
        # Objects one after another, or repeated starts, make such an order; they are told and counted as such.
        if isinstance(side, Arm) and not side.settings.clusters and side.by_start[1] == side.counts[1]:
            known = side.settings
            if name := by_setting(fact.code, accepted[combo], known.groups):
                known = replace(known, clusters=clusters_of(name, known))
            else:
                known = replace(known, marks=(*known.marks, fact))
            sides[combo] = replace(side, settings=known)


def arm(combo: MergedCombo, settled: Settled | None = None, like: Arm | None = None, *, chosen: bool = False) -> Arm:
    """`like`: an arm that may have the same episodes and seeds. Equal ones are kept once, since a run can have
    millions. `chosen`: the grid names the field of the verdict."""
    judged = having(combo.accepted, Verdict.SUCCESS, Verdict.FAILURE)
    whole = len(judged) == len(combo.accepted)
    errored = () if whole else having(combo.accepted, Verdict.ERRORED, Verdict.MEASURED)
    # Without a plan a gap may be no missing episodes at all, and behind an index of 10^18 it has too many to list.
    missing = combo.missing if combo.planned is not None or size(combo.missing) <= UNPLANNED else ()
    completed, starts = _episodes(judged), starts_of(judged, settled)
    if like and completed == like.completed:
        completed = like.completed
    if like and starts.seeds == like.starts.seeds:
        starts = replace(starts, seeds=like.starts.seeds)
    return Arm(
        policy=combo.policy,
        completed=completed,
        successes=_episodes(having(judged, Verdict.SUCCESS)),
        starts=starts,
        errored=_episodes(errored),
        missing=frozenset(chain(*missing)),
        contested=frozenset(chain(*combo.contested)),
        context=context_of(combo.accepted),
        lengths=lengths_of(combo.accepted),
        settings=settings_of(judged or having(combo.accepted, *_ENDED), chosen=chosen),
        runs=settled.runs if settled else {},
        runs_told=settled.runs_told if settled else True,
    )


def _episodes(records: Iterable[EpisodeRecord]) -> frozenset[int]:
    return frozenset(map(attrgetter("episode"), records))


@dataclass(frozen=True)
class Meeting:
    environment: str
    a: Side
    b: Side
    paired: bool
    """whether the common episodes are shown to have started the same"""
    why: str
    """one clause: `equal seeds in all 100 common episodes`"""
    facts: tuple[Fact, ...] = ()
    """what limits the comparison"""
    by_value: bool = False
    """whether the runs of both are the values of a setting, which they do not share"""

    @cached_property
    def parts(self) -> list[Meeting]:
        """A meeting for each value that both met, if one met it more often: those with values enough of a metric."""
        if not (isinstance(self.a, Arm) and isinstance(self.b, Arm) and self.a.shares):
            return [self]
        cells = [
            [_only(one, own) for one, own in zip((self.a, self.b), both, strict=True)]
            for both in zip(*([own for own, _ in one.shares] for one in (self.a, self.b)), strict=True)
        ]
        found = [both for both in cells if min(len(one.values) for one in both) >= FEWEST_UNPAIRED]
        # What has no value is of no part: it counts once.
        whole = [
            [replace(one, shares=(), errored=_NONE, missing=_NONE, contested=_NONE) for one in both]
            for both in found[1:]
        ]
        return [
            replace(self, a=a, b=b)
            for a, b in [*([replace(one, shares=()) for one in both] for both in found[:1]), *whole]
        ] or [self]

    @cached_property
    def seen(self) -> Stratum:
        return self._stratum(self.a, self.b)

    def against(self, sign: int) -> Stratum:
        """The stratum with every unknown episode counted against a (`sign` > 0), or against b."""
        return self._stratum(self.a.filled(success=sign < 0), self.b.filled(success=sign > 0))

    def _stratum(self, a: Side, b: Side) -> Stratum:
        if self.paired and isinstance(a, Arm) and isinstance(b, Arm):
            return Stratum.of_pairs(count_pairs(a, b))
        return Stratum(a.by_start, b.by_start)


def by_occasion(met: Meeting, occasion: Occasion) -> Meeting:
    """The meeting with the values of a setting as units, or within those that both have."""
    a, b = met.a, met.b
    assert isinstance(a, Arm)
    assert isinstance(b, Arm)
    first, second = (one.settings.groups[occasion.field] for one in (a, b))
    if not occasion.common:
        return replace(met, a=_by_values(a, first), b=_by_values(b, second), by_value=True)
    if met.paired:
        same = _NONE.union(*(first[value] & second[value] for value in occasion.common))
        return replace(met, a=_only(a, same), b=_only(b, same))
    cells = [(first[value] & a.completed, second[value] & b.completed) for value in occasion.common]
    sides = [_only(one, _NONE.union(*own)) for one, own in zip((a, b), zip(*cells, strict=True), strict=True)]
    if not occasion.even:
        weights = [len(own) * len(other) / (len(own) + len(other)) for own, other in cells]  # Mantel and Haenszel's
        sides = [
            replace(one, shares=(*zip(own, weights, strict=True),))
            for one, own in zip(sides, zip(*cells, strict=True), strict=True)
        ]
    return replace(met, a=sides[0], b=sides[1])


def _only(one: Arm, episodes: frozenset[int]) -> Arm:
    values = {episode: value for episode, value in one.values.items() if episode in episodes}
    return replace(one, completed=one.completed & episodes, successes=one.successes & episodes, values=values)


def _by_values(one: Arm, groups: Mapping[str, frozenset[int]]) -> Arm:
    runs = {name: some for name, some in groups.items() if some & one.completed}
    means = (
        {name: fmean(one.values[episode] for episode in some & one.values.keys()) for name, some in runs.items()}
        if one.metric
        else {}
    )
    return replace(one, runs=runs, runs_told=True, run_means=means)


def common_episodes(a: Arm, b: Arm) -> frozenset[int]:
    return a.completed if a.completed is b.completed else a.completed & b.completed


def outcomes(a: Arm, b: Arm, episodes: Iterable[int]) -> tuple[int, ...]:
    """+1 if only a succeeded, -1 if only b did, else 0, also if a verdict is missing."""
    both = a.completed & b.completed
    return tuple((one in both) * ((one in a.successes) - (one in b.successes)) for one in episodes)


def count_pairs(a: Arm, b: Arm) -> PairCounts:
    """Of the episodes that both completed. A start with several episodes counts once, at its mean."""
    common = common_episodes(a, b)
    groups = a.starts.groups(common, a.starts.shared(b.starts))
    if groups is None:
        return _counted(a, b, common)
    shares = [(len(group), _counted(a, b, group)) for group in groups]
    cells = zip(*((one.both / n, one.only_a / n, one.only_b / n, one.neither / n) for n, one in shares), strict=True)
    both, only_a, only_b, neither = (round(fsum(cell), 9) for cell in cells)
    return PairCounts(both, only_a, only_b, neither)


def _counted(a: Arm, b: Arm, episodes: frozenset[int]) -> PairCounts:
    first, second = (one.successes & episodes if one.completed is not episodes else one.successes for one in (a, b))
    both = len(first & second)
    only_a, only_b = len(first) - both, len(second) - both
    return PairCounts(both, only_a, only_b, len(episodes) - both - only_a - only_b)


# -- episodes that a folder without a plan may lack -------------------------------------------------------------------

FEWER = "fewer_records"
LACKS = "lacks_episodes_of_others"


def with_absent(results: Results) -> tuple[Results, Mapping[Combo, Fact]]:
    """The results with the episodes as missing ones that another policy of the environment has more, and a fact for
    each combo that has fewer records.

    Failures may leave no record. So what is not there counts against the better policy, as planned episodes without a
    verdict do.
    """
    sides, facts = dict(results.sides), {}
    for environment, combos in grouped(results.sides, lambda combo: combo[1]).items():
        most_of = max(combos, key=lambda combo: results.sides[combo].recorded)
        most = results.sides[most_of]
        longest = max(len(run) for combo in combos for run in _runs(results.sides[combo]))
        for combo in combos:
            own = results.sides[combo]
            lacking = most.recorded - (len(own.known) if isinstance(own, Arm) else own.recorded)
            lacking = min(lacking, sum(longest - len(run) for run in _runs(own)))
            elsewhere = _elsewhere(own, [results.sides[other] for other in combos if other != combo])
            fields = {"policy": combo[0], "environment": environment, "records": own.recorded}
            if isinstance(own, Arm) and max(lacking, 0) < len(elsewhere) <= UNPLANNED:
                facts[combo] = Fact(LACKS, **fields, episodes=len(elsewhere))
                sides[combo] = replace(own, missing=own.missing | elsewhere)
            elif lacking > 0:
                facts[combo] = Fact(FEWER, **fields, other=most_of[0], of=most.recorded)
                sides[combo] = _lacking(own, most, lacking)
    return replace(results, sides=sides), facts


def _elsewhere(own: Side, others: Sequence[Side]) -> frozenset[int]:
    """The episodes that others have and this one lacks, where all indexes that both have are shown to mean the same."""
    found = frozenset[int]()
    for other in others:
        if isinstance(own, Arm) and isinstance(other, Arm) and max(len(own.runs), len(other.runs)) < 2:
            lacking, common = other.known - own.known, own.completed & other.completed
            if lacking and common and {*own.starts.mismatches(other.starts, common)} == {None}:
                found |= lacking
    return found


def _runs(side: Side) -> Sequence[Collection[int]]:
    """The episodes of each run, where folders or fields name several: fewer runs are not missing episodes."""
    if not isinstance(side, Arm):
        return [range(side.counts[1])]
    named = [side.known.intersection(run) for run in side.runs.values()] if side.runs_told else []
    return named if len(named) > 1 else [side.known]


def _lacking(own: Side, most: Side, count: int) -> Side:
    if not isinstance(own, Arm):
        return replace(own, absent=own.absent + count)
    if count > UNPLANNED:
        return own
    # New indexes if the other one's are not known: then nothing is paired, and only their number matters.
    others = sorted(most.known - own.known) if isinstance(most, Arm) else ()
    last = max(own.known, default=0)
    indices = others[-count:] if len(others) >= count else range(last + 1, last + 1 + count)
    return replace(own, missing=own.missing | {*indices})
