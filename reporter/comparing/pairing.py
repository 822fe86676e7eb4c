"""What can be compared, and whether two policies ran the same episodes: the same index from the same start, as far as
the records show. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from math import fsum
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING

from comborun.attempt import Verdict, having
from comborun.reporter.counting.aggregates import tallies
from comborun.reporter.counting.starts import UNTOLD, Starts, starts_of
from comborun.reporter.merge import merge
from comborun.reporter.statistics.difference import PairCounts
from comborun.reporter.statistics.pooled import Stratum
from comborun.work import episodes_of, minus, size

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from comborun.attempt import EpisodeRecord
    from comborun.reporter.collected import Collected
    from comborun.reporter.counting.aggregates import AggregateCounts
    from comborun.reporter.merge import MergedCombo
    from comborun.work import Combo, Spans


UNPLANNED = 10_000
"""episodes that count as missing because others have a lower and a higher index; of more, indices are no counts"""


@dataclass(frozen=True)
class Arm:
    """The episodes of one policy in one environment, by index."""

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

    @property
    def counts(self) -> tuple[int, int]:
        """Successes, and completed episodes."""
        return len(self.successes), len(self.completed)

    @cached_property
    def by_start(self) -> tuple[float, int]:
        """The same, but where starts come again each counts once, at its mean."""
        groups = self.starts.groups(self.completed)
        if groups is None:
            return self.counts
        return round(fsum(len(group & self.successes) / len(group) for group in groups), 9), len(groups)

    @property
    def unknown(self) -> frozenset[int]:
        return self.errored | self.missing | self.contested

    def filled(self, *, success: bool) -> Arm:
        """The arm as if every uncertain episode had succeeded, or had failed."""
        successes = self.successes | self.unknown if success else self.successes - self.unknown
        return replace(self, completed=self.completed | self.unknown, successes=successes)


@dataclass(frozen=True)
class Counted:
    """A policy in an environment of which only the counts are known."""

    policy: str
    counts: tuple[int, int]
    """successes, and completed episodes"""
    absent: int = 0
    """planned episodes that are not among them"""

    @property
    def by_start(self) -> tuple[float, int]:
        return self.counts

    @property
    def unknown(self) -> range:
        return range(self.absent)

    def filled(self, *, success: bool) -> Counted:
        return replace(self, counts=(self.counts[0] + self.absent * success, self.counts[1] + self.absent))


Side = Arm | Counted


@dataclass(frozen=True)
class Results:
    """What was found of each combo."""

    merged: Mapping[Combo, MergedCombo]
    """of those that leave a record per episode, over the planned episodes that were needed"""
    counts: Mapping[Combo, AggregateCounts]
    """of those without records, which would tell more"""
    sides: Mapping[Combo, Side]
    """as far as records or counts tell"""


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
    sides: dict[Combo, Side] = {}
    like: Arm | None = None
    for combo, records in merged.items():
        if combo not in counts:
            sides[combo] = like = arm(records, collected.unpaired.get(combo, ""), like)
    for combo, one in counts.items():
        absent = sum(history.session.count for history in collected.by_combo.get(combo, ())) - one.episodes
        sides[combo] = Counted(combo[0], (one.successes, one.episodes), max(0, absent))
    return Results(merged, counts, sides)


def arm(combo: MergedCombo, caution: str = "", like: Arm | None = None) -> Arm:
    """`like`: an arm that may have the same episodes and seeds. They are then kept once: a large run has millions."""
    judged = having(combo.accepted, Verdict.SUCCESS, Verdict.FAILURE)
    errored = having(combo.accepted, Verdict.ERRORED, Verdict.MEASURED)
    # Without a plan a gap may be no missing episodes at all, and behind an index of 10^18 it has too many to list.
    missing = combo.missing if combo.planned is not None or size(combo.missing) <= UNPLANNED else ()
    completed, starts = _episodes(judged), starts_of(judged, caution)
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
    )


def _episodes(records: Iterable[EpisodeRecord]) -> frozenset[int]:
    return frozenset(map(attrgetter("episode"), records))


@dataclass(frozen=True)
class Pairing:
    paired: bool
    why: str
    """one clause: `equal seeds in all 100 common episodes`"""


def pairing(a: Side, b: Side) -> Pairing:
    """Paired only if every common episode is shown to have started the same."""
    if isinstance(a, Counted) or isinstance(b, Counted):
        return Pairing(paired=False, why="counts alone, without episodes")
    common = _common(a, b)
    if not common:
        return Pairing(paired=False, why="no episode index in common")
    reasons = a.starts.mismatches(b.starts, common)
    alike = reasons.pop("", 0)
    if not reasons:
        what = f"initial states ({a.starts.hash_field})" if common <= a.starts.hashes.keys() else "seeds"
        return Pairing(paired=True, why=f"equal {what} in all {len(common)} common episodes")
    reason, count = reasons.most_common(1)[0]
    return Pairing(paired=False, why=f"{reason} in {count} of {len(common)} common episodes" if alike else reason)


@dataclass(frozen=True)
class Meeting:
    """Two policies in one environment."""

    environment: str
    a: Side
    b: Side
    starts: Pairing

    @cached_property
    def seen(self) -> Stratum:
        """Of the episodes that have a verdict."""
        return stratum(self.a, self.b, paired=self.starts.paired)

    @property
    def incomplete(self) -> bool:
        return bool(self.a.unknown or self.b.unknown)

    def against(self, sign: int) -> Stratum:
        """The stratum with every uncertain episode counted against a (`sign` > 0), or against b."""
        a, b = self.a.filled(success=sign < 0), self.b.filled(success=sign > 0)
        return stratum(a, b, paired=self.starts.paired)


def meet(environment: str, a: Side, b: Side) -> Meeting:
    return Meeting(environment, a, b, pairing(a, b))


def stratum(a: Side, b: Side, *, paired: bool) -> Stratum:
    if paired and isinstance(a, Arm) and isinstance(b, Arm):
        pairs = count_pairs(a, b)
        return Stratum(pairs.counts_a, pairs.counts_b, pairs)
    return Stratum(a.by_start, b.by_start)


def _common(a: Arm, b: Arm) -> frozenset[int]:
    """Episodes that both completed."""
    return a.completed if a.completed is b.completed else a.completed & b.completed


def pairs_in_order(a: Arm, b: Arm, episodes: Iterable[int], *, alike: bool = True) -> tuple[tuple[int, ...], str]:
    """The episodes that both have, up to the first that is not there yet or is no pair; and, for the latter, why.

    `alike`: a pair must be shown to start the same; else any two of one index are a pair. Each pair is judged by itself
    and by those before it, so that what comes later takes nothing back.
    """
    known_a, known_b = a.completed | a.unknown, b.completed | b.unknown
    seen: set[object] = set()
    found: list[int] = []
    for episode in episodes:
        if episode not in known_a or episode not in known_b:
            break
        if episode in a.completed and episode in b.completed:
            starts = {(side, one.starts.of(episode)) for side, one in enumerate((a, b))} - {(0, None), (1, None)}
            reason = a.starts.mismatch(b.starts, episode) if alike else ""
            if reason or starts & seen:
                return tuple(found), f"{reason or 'the start of an earlier one'} (episode {episode})"
            seen |= starts
        found.append(episode)
    return tuple(found), ""


def outcomes(a: Arm, b: Arm, episodes: Iterable[int]) -> tuple[int, ...]:
    """+1 where only a succeeded, -1 where only b did, else 0. A pair without both verdicts says nothing and is 0."""
    both = a.completed & b.completed
    return tuple((one in both) * ((one in a.successes) - (one in b.successes)) for one in episodes)


def count_pairs(a: Arm, b: Arm) -> PairCounts:
    """Of the episodes that both completed; where starts come again each start counts once, at its mean."""
    common = _common(a, b)
    groups = a.starts.groups(common)
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
