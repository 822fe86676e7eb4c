"""What can be compared, and whether two policies ran the same episodes: the same index from the same start, as far as
the records show. Pure.

An episode starts the same for both when its initial state has the same hash, or else when its seed is the same. A seed
that several episodes share shows nothing: their starts then depend on what ran before them.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING

from comborun.attempt import Verdict
from comborun.reporter.counting.aggregates import tallies
from comborun.reporter.merge import merge
from comborun.reporter.statistics.difference import PairCounts
from comborun.work import episodes_of, minus

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable, Mapping, Sequence

    from comborun.attempt import EpisodeRecord
    from comborun.reporter.collected import Collected
    from comborun.reporter.counting.aggregates import AggregateCounts
    from comborun.reporter.merge import MergedCombo
    from comborun.work import Combo, Spans

HASH_FIELDS = ("init_hash", "initial_state_hash", "init_state_hash", "first_frame_hash")
"""fields of a record that can hold a hash of where its episode started, the best evidence first"""


@dataclass(frozen=True)
class Arm:
    """The episodes of one policy in one environment, by index."""

    policy: str
    completed: frozenset[int]
    successes: frozenset[int]
    errored: frozenset[int]
    """ran, but gave no verdict"""
    seeds: Mapping[int, int]
    hash_field: str | None
    hashes: Mapping[int, object]
    unpaired: str = ""
    """why neither index nor seed says how its episodes started; empty where they may"""

    @property
    def counts(self) -> tuple[int, int]:
        """Successes, and completed episodes."""
        return len(self.successes), len(self.completed)


@dataclass(frozen=True)
class Counted:
    """A policy in an environment of which only the counts are known."""

    policy: str
    counts: tuple[int, int]
    """successes, and completed episodes"""


Side = Arm | Counted


def merged_of(collected: Collected, spare: Mapping[Combo, Spans] = MappingProxyType({})) -> dict[Combo, MergedCombo]:
    """The records of every combo that leaves one per episode, over the planned episodes that are not `spare`."""
    planned = {
        # None where the plan leaves their number to the program.
        combo: minus(episodes_of(one.session for one in histories), spare.get(combo, ())) or None
        for combo, histories in collected.by_combo.items()
        if histories[0].session.unit == "episode" and histories[0].session.results.told
    }
    return {combo.key: combo for combo in merge(collected.records, planned)}


def tallies_of(collected: Collected, merged: Mapping[Combo, MergedCombo]) -> dict[Combo, AggregateCounts]:
    """Of the combos that have no records, which would tell more."""
    planned = {history.session.name: history.session.count for history in collected.sessions}
    found = tallies(collected.aggregates, planned)
    return {combo: tally for combo, tally in found.items() if not (combo in merged and merged[combo].accepted)}


def sides_of(
    collected: Collected, merged: Mapping[Combo, MergedCombo], tallied: Mapping[Combo, AggregateCounts]
) -> dict[Combo, Side]:
    """As far as records or counts tell."""
    counted = {combo: Counted(combo[0], (tally.successes, tally.episodes)) for combo, tally in tallied.items()}
    arms = {
        combo: arm(combo[0], found.accepted, collected.unpaired.get(combo, ""))
        for combo, found in merged.items()
        if combo not in tallied
    }
    return {**arms, **counted}


@dataclass(frozen=True)
class Pairing:
    paired: bool
    why: str
    """one clause: `equal seeds in all 100 common episodes`"""


def arm(policy: str, records: Sequence[EpisodeRecord], unpaired: str = "") -> Arm:
    """From the accepted records of a combo."""
    judged = [record for record in records if record.verdict is not Verdict.ERRORED]
    # Decided by the first record: a program writes the same fields throughout.
    field = next((name for name in HASH_FIELDS if judged and _field(judged[0], name) is not None), None)
    found = ((record.episode, _field(record, field)) for record in judged if field is not None)
    return Arm(
        policy=policy,
        completed=frozenset(record.episode for record in judged),
        successes=frozenset(record.episode for record in judged if record.verdict is Verdict.SUCCESS),
        errored=frozenset(record.episode for record in records if record.verdict is Verdict.ERRORED),
        seeds={record.episode: record.seed for record in judged if record.seed is not None},
        hash_field=field,
        hashes={episode: value for episode, value in found if isinstance(value, str | int | float)},
        unpaired=unpaired,
    )


def pairing(a: Side, b: Side) -> Pairing:
    """Paired only if every common episode is shown to have started the same."""
    if isinstance(a, Counted) or isinstance(b, Counted):
        return Pairing(paired=False, why="counts alone, without episodes")
    common = a.completed & b.completed
    if not common:
        return Pairing(paired=False, why="no episode index in common")
    if _hashed_alike(a, b) and common <= a.hashes.keys() & b.hashes.keys():
        return _matching(f"initial states ({a.hash_field})", common, a.hashes, b.hashes)
    if reason := a.unpaired or b.unpaired:
        return Pairing(paired=False, why=reason)
    if seeded := len(common & a.seeds.keys() & b.seeds.keys()):
        distinct = len({a.seeds.get(episode) for episode in common})
        if seeded < len(common):
            return Pairing(paired=False, why=f"seeds for only {seeded} of {len(common)} episodes")
        if distinct < len(common):
            few = f"only {distinct} different seeds in {len(common)} common episodes"
            return Pairing(paired=False, why=f"{few}, which says nothing of equal starts")
        return _matching("seeds", common, a.seeds, b.seeds)
    return Pairing(paired=False, why="no seeds in the records")


def _hashed_alike(a: Arm, b: Arm) -> bool:
    return a.hash_field is not None and a.hash_field == b.hash_field


def _matching(what: str, common: Collection[int], a: Mapping[int, object], b: Mapping[int, object]) -> Pairing:
    different = len(common) - len(a.items() & b.items())
    if different:
        return Pairing(paired=False, why=f"{what} differ in {different} of {len(common)} common episodes")
    return Pairing(paired=True, why=f"equal {what} in all {len(common)} common episodes")


def paired_outcomes(a: Arm, b: Arm, episodes: Iterable[int]) -> tuple[tuple[int, ...], str]:
    """+1 where only a succeeded, -1 where only b did, else 0: pair by pair, up to the first that is not there yet or is
    no pair; and, for the latter, why.

    A pair with an errored episode says nothing and is 0. Each pair is judged by itself and by those before it, so that
    what comes later takes nothing back.
    """
    known_a, known_b = a.completed | a.errored, b.completed | b.errored
    seeds: set[int] = set()
    found: list[int] = []
    for episode in episodes:
        if episode not in known_a or episode not in known_b:
            break
        if episode in a.completed and episode in b.completed:
            if reason := _no_pair(a, b, episode, seeds):
                return tuple(found), reason
            seeds.update({a.seeds[episode]} if episode in a.seeds else ())
            found.append((episode in a.successes) - (episode in b.successes))
        else:
            found.append(0)
    return tuple(found), ""


def _no_pair(a: Arm, b: Arm, episode: int, seeds: set[int]) -> str:
    """Why two episodes are not shown to have started the same; empty where they are."""
    hashes = a.hashes.get(episode), b.hashes.get(episode)
    if _hashed_alike(a, b) and None not in hashes:
        return "" if hashes[0] == hashes[1] else f"the initial states of episode {episode} differ ({a.hash_field})"
    if reason := a.unpaired or b.unpaired:
        return reason
    own, other = a.seeds.get(episode), b.seeds.get(episode)
    if own is None or other is None:
        return f"no seed in the records of episode {episode}"
    if own != other:
        return f"the seeds of episode {episode} differ"
    return f"episode {episode} has the seed of an earlier one" if own in seeds else ""


def count_pairs(a: Arm, b: Arm) -> PairCounts:
    """Of the episodes that both completed."""
    both = len(a.successes & b.successes)
    only_a = len(a.successes & b.completed) - both
    only_b = len(b.successes & a.completed) - both
    return PairCounts(both, only_a, only_b, len(a.completed & b.completed) - both - only_a - only_b)


def same_start(a: EpisodeRecord, b: EpisodeRecord) -> bool | None:
    """Whether the best field that both records have holds the same hash; None where they have none in common."""
    hashes = ((_field(a, name), _field(b, name)) for name in HASH_FIELDS)
    return next((first == second for first, second in hashes if first is not None and second is not None), None)


def _field(record: EpisodeRecord, name: str) -> object:
    return record.extra.get(name, record.metrics.get(name))
