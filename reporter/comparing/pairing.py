"""What can be compared, and which episodes of two policies started the same. Pure.

Episodes have the same start if their initial states have the same hash, or else if their seeds are equal. A repeated
start is no new evidence: a deterministic program repeats what it did.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from math import fsum
from operator import attrgetter
from types import MappingProxyType

from comborun.model.attempt import EpisodeRecord, Verdict, field_column, having
from comborun.model.work import Combo, Spans, episodes_of, grouped, minus, size
from comborun.reporter.counting.combo import AggregateCounts, tallies
from comborun.reporter.merge import MergedCombo, merge
from comborun.reporter.records.collected import Collected
from comborun.reporter.statistics.difference import PairCounts
from comborun.reporter.statistics.pooled import Stratum

HASH_FIELDS = ("init_hash", "initial_state_hash", "init_state_hash", "first_frame_hash")
"""fields that can hold a hash of the initial state, the best evidence first"""


@dataclass(frozen=True)
class Starts:
    seeds: Mapping[int, int]
    hash_field: str | None
    hashes: Mapping[int, object]
    caution: str = ""
    """why neither index nor seed says how its episodes started, or empty"""

    def of(self, episode: int) -> object:
        """A value that is equal for equal starts; None if unknown."""
        if episode in self.hashes:
            return self.hash_field, self.hashes[episode]
        return None if self.caution else self.seeds.get(episode)

    @cached_property
    def _all_differ(self) -> bool:
        """Whether all seeds differ. An episode without a seed counts as its own start."""
        return not self.hashes and bool(self.caution or len({*self.seeds.values()}) == len(self.seeds))

    def groups(self, episodes: Collection[int]) -> list[frozenset[int]] | None:
        """The episodes of each start; an unknown start has one episode. None if no start repeats."""
        if self._all_differ:
            return None
        starts = {episode: self.of(episode) for episode in episodes}
        found = grouped(episodes, lambda one: ("alone", one) if starts[one] is None else starts[one])
        return None if len(found) == len(episodes) else [frozenset(group) for group in found.values()]

    def mismatches(self, other: Starts, episodes: Collection[int]) -> Counter[str]:
        """Reason -> common episodes; the reason is empty where both are shown to have started the same."""
        if not (self.hashes or other.hashes or self.caution or other.caution):
            own = [*map(self.seeds.get, episodes)]
            if None not in own and (self.seeds is other.seeds or own == [*map(other.seeds.get, episodes)]):
                return Counter({"": len(own)})
        return Counter(self.mismatch(other, episode) for episode in episodes)

    def mismatch(self, other: Starts, episode: int) -> str:
        """Why an episode of both is not shown to have started the same, or empty."""
        if self.hash_field == other.hash_field and episode in self.hashes and episode in other.hashes:
            same = self.hashes[episode] == other.hashes[episode]
            return "" if same else f"initial states ({self.hash_field}) differ"
        if reason := self.caution or other.caution:
            return reason
        own, theirs = self.seeds.get(episode), other.seeds.get(episode)
        if own is None or theirs is None:
            return "no seeds in the records"
        return "" if own == theirs else "seeds differ"


UNTOLD = Starts(MappingProxyType({}), None, MappingProxyType({}))


def starts_of(judged: Sequence[EpisodeRecord], caution: str = "") -> Starts:
    # Decided by the first record: a program writes the same fields throughout.
    field = next((name for name in HASH_FIELDS if judged and judged[0].field(name) is not None), None)
    episodes, seeds = ([*map(attrgetter(name), judged)] for name in ("episode", "seed"))
    known = dict(zip(episodes, seeds, strict=True))
    if None in seeds:
        known = {episode: seed for episode, seed in known.items() if seed is not None}
    if seeded_once(judged):
        caution = caution or "one seed for all episodes, which says nothing of their starts"
    found = zip(episodes, field_column(judged, field), strict=True) if field else ()
    hashes = {episode: value for episode, value in found if isinstance(value, str | int | float)}
    return Starts(known, field, hashes, caution)


def seeded_once(records: Sequence[EpisodeRecord]) -> bool:
    """Whether all these records have the same seed, but differ. Then it is the seed of the run, not of an episode."""
    if len({*map(attrgetter("seed"), records)} - {None}) != 1:
        return False
    first, *others = (record for record in records if record.seed is not None)
    return any(record.verdict is not first.verdict or record.metrics != first.metrics for record in others)


def same_start(a: EpisodeRecord, b: EpisodeRecord) -> bool | None:
    """Whether the best hash that both records have is the same; None if they have none in common."""
    hashes = ((a.field(name), b.field(name)) for name in HASH_FIELDS)
    return next((first == second for first, second in hashes if first is not None and second is not None), None)


UNPLANNED = 10_000
"""most episodes that count as missing because others have a lower and a higher index; of more, none does"""


@dataclass(frozen=True)
class Arm:
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
        return len(self.successes), len(self.completed)

    @cached_property
    def by_start(self) -> tuple[float, int]:
        """The same, but a start with several episodes counts once, at its mean."""
        groups = self.starts.groups(self.completed)
        if groups is None:
            return self.counts
        return round(fsum(len(group & self.successes) / len(group) for group in groups), 9), len(groups)

    @property
    def unknown(self) -> frozenset[int]:
        return self.errored | self.missing | self.contested

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

    def filled(self, *, success: bool) -> CountsAlone:
        return replace(self, counts=(self.counts[0] + self.absent * success, self.counts[1] + self.absent))


Side = Arm | CountsAlone


@dataclass(frozen=True)
class Results:
    merged: Mapping[Combo, MergedCombo]
    """of combos with a record per episode, over the planned episodes that were needed"""
    counts: Mapping[Combo, AggregateCounts]
    sides: Mapping[Combo, Side]


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
        sides[combo] = CountsAlone(combo[0], (one.successes, one.episodes), max(0, absent))
    return Results(merged, counts, sides)


def arm(combo: MergedCombo, caution: str = "", like: Arm | None = None) -> Arm:
    """`like`: an arm that may have the same episodes and seeds. Equal ones are kept once, since a run can have
    millions."""
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
class Meeting:
    environment: str
    a: Side
    b: Side
    paired: bool
    """whether every common episode is shown to have started the same"""
    why: str
    """one clause: `equal seeds in all 100 common episodes`"""

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


def meet(environment: str, a: Side, b: Side) -> Meeting:
    return Meeting(environment, a, b, *_pairing(a, b))


def _pairing(a: Side, b: Side) -> tuple[bool, str]:
    if isinstance(a, CountsAlone) or isinstance(b, CountsAlone):
        return False, "counts alone, without episodes"
    common = _common(a, b)
    if not common:
        return False, "no episode index in common"
    reasons = a.starts.mismatches(b.starts, common)
    alike = reasons.pop("", 0)
    if not reasons:
        what = f"initial states ({a.starts.hash_field})" if common <= a.starts.hashes.keys() else "seeds"
        return True, f"equal {what} in all {len(common)} common episodes"
    reason, count = reasons.most_common(1)[0]
    return False, f"{reason} in {count} of {len(common)} common episodes" if alike else reason


def _common(a: Arm, b: Arm) -> frozenset[int]:
    return a.completed if a.completed is b.completed else a.completed & b.completed


def pairs_in_order(a: Arm, b: Arm, episodes: Iterable[int], *, alike: bool = True) -> tuple[tuple[int, ...], str]:
    """The episodes that both have, up to the first that is missing or is not a pair; and in the latter case, why.

    `alike`: a pair must be shown to start the same. Each pair is judged by itself and by those before it, so that later
    episodes change nothing.
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
    """+1 if only a succeeded, -1 if only b did, else 0, also if a verdict is missing."""
    both = a.completed & b.completed
    return tuple((one in both) * ((one in a.successes) - (one in b.successes)) for one in episodes)


def count_pairs(a: Arm, b: Arm) -> PairCounts:
    """Of the episodes that both completed. A start with several episodes counts once, at its mean."""
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
