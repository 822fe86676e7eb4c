"""How the episodes of a combo started, as far as its records show. Pure.

Episodes have the same start if their initial states have the same hash, or else if their seeds are equal. A repeated
start is no new evidence: a deterministic program then repeats what it did.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter
from types import MappingProxyType
from typing import TYPE_CHECKING

from comborun.attempt import field_column

if TYPE_CHECKING:
    from collections.abc import Collection, Mapping, Sequence

    from comborun.attempt import EpisodeRecord

HASH_FIELDS = ("init_hash", "initial_state_hash", "init_state_hash", "first_frame_hash")
"""fields of a record that can hold a hash of where its episode started, the best evidence first"""


@dataclass(frozen=True)
class Starts:
    """The starts of episodes with a verdict."""

    seeds: Mapping[int, int]
    hash_field: str | None
    hashes: Mapping[int, object]
    caution: str = ""
    """why neither index nor seed says how its episodes started; empty where they may"""

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
        found: defaultdict[object, list[int]] = defaultdict(list)
        for episode in episodes:
            start = self.of(episode)
            found[("alone", episode) if start is None else start].append(episode)
        return None if len(found) == len(episodes) else [frozenset(group) for group in found.values()]

    def mismatches(self, other: Starts, episodes: Collection[int]) -> Counter[str]:
        """Why episodes of both are not shown to have started the same, with how many; empty for those that are."""
        if not (self.hashes or other.hashes or self.caution or other.caution):
            own = [*map(self.seeds.get, episodes)]
            if None not in own and (self.seeds is other.seeds or own == [*map(other.seeds.get, episodes)]):
                return Counter({"": len(own)})
        return Counter(self.mismatch(other, episode) for episode in episodes)

    def mismatch(self, other: Starts, episode: int) -> str:
        """Why an episode of both is not shown to have started the same; empty where it is."""
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
    """From the records with a verdict. One seed for all of them is that of the run, unless all went the same."""
    # Decided by the first record: a program writes the same fields throughout.
    field = next((name for name in HASH_FIELDS if judged and judged[0].field(name) is not None), None)
    episodes, seeds = ([*map(attrgetter(name), judged)] for name in ("episode", "seed"))
    known = dict(zip(episodes, seeds, strict=True))
    if None in seeds:
        known = {episode: seed for episode, seed in known.items() if seed is not None}
    if of_the_run(judged):
        caution = caution or "one seed for all episodes, which says nothing of their starts"
    found = zip(episodes, field_column(judged, field), strict=True) if field else ()
    hashes = {episode: value for episode, value in found if isinstance(value, str | int | float)}
    return Starts(known, field, hashes, caution)


def of_the_run(records: Sequence[EpisodeRecord]) -> bool:
    """Whether those of these records that have a seed have the same one, and yet went differently: then it is none of
    their own."""
    if len({*map(attrgetter("seed"), records)} - {None}) != 1:
        return False
    first, *others = (record for record in records if record.seed is not None)
    return any(record.verdict is not first.verdict or record.metrics != first.metrics for record in others)


def same_start(a: EpisodeRecord, b: EpisodeRecord) -> bool | None:
    """Whether the best field that both records have holds the same hash; None where they have none in common."""
    hashes = ((a.field(name), b.field(name)) for name in HASH_FIELDS)
    return next((first == second for first, second in hashes if first is not None and second is not None), None)
