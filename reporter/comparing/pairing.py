"""Whether two policies ran the same episodes: the same index from the same start, as far as the records show. Pure.

An episode starts the same for both when its initial state has the same hash, or else when its seed is the same. A seed
that several episodes share shows nothing: their starts then depend on what ran before them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from comborun.attempt import Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comborun.attempt import EpisodeRecord

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
    """A policy in an environment of whose episodes no more than the counts is known."""

    policy: str
    counts: tuple[int, int]
    """successes, and completed episodes"""


@dataclass(frozen=True)
class Pairing:
    """What the records say about the starts of the episodes that two policies have in common."""

    paired: bool
    why: str
    """one clause: `the seeds of all 100 common episodes are equal`"""
    common: int
    """episodes with a verdict of both"""
    matched: int
    """of these, with evidence of equal starts"""


def arm(policy: str, records: Sequence[EpisodeRecord], unpaired: str = "") -> Arm:
    """From the accepted records of a combo."""
    judged = [record for record in records if record.verdict is not Verdict.ERRORED]
    field = _hash_field(judged)
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


def pairing(a: Arm | Counted, b: Arm | Counted) -> Pairing:
    """Paired only if every common episode is shown to have started the same."""
    if isinstance(a, Counted) or isinstance(b, Counted):
        return Pairing(paired=False, why="counts alone, without episodes", common=0, matched=0)
    common = a.completed & b.completed
    if not common:
        return Pairing(paired=False, why="no episode index in common", common=0, matched=0)
    if a.hash_field is not None and a.hash_field == b.hash_field and common <= a.hashes.keys() & b.hashes.keys():
        matched = len(a.hashes.items() & b.hashes.items())
        return _matching(f"initial states ({a.hash_field})", len(common), matched)
    if reason := a.unpaired or b.unpaired:
        return Pairing(paired=False, why=reason, common=len(common), matched=0)
    seeded = common & a.seeds.keys() & b.seeds.keys()
    if len(seeded) < len(common):
        why = "no seeds in the records" if not seeded else f"seeds for only {len(seeded)} of {len(common)} episodes"
        return Pairing(paired=False, why=why, common=len(common), matched=0)
    distinct = len({a.seeds[episode] for episode in common})
    if distinct < len(common):
        why = f"only {distinct} different seeds in {len(common)} common episodes, which says nothing of equal starts"
        return Pairing(paired=False, why=why, common=len(common), matched=0)
    return _matching("seeds", len(common), len(a.seeds.items() & b.seeds.items()))


def _matching(what: str, common: int, matched: int) -> Pairing:
    if matched == common:
        return Pairing(paired=True, why=f"equal {what} in all {common} common episodes", common=common, matched=matched)
    why = f"{what} differ in {common - matched} of {common} common episodes"
    return Pairing(paired=False, why=why, common=common, matched=matched)


def _hash_field(records: Sequence[EpisodeRecord]) -> str | None:
    """Decided by the first record: a program writes the same fields throughout."""
    return next((name for name in HASH_FIELDS if records and _field(records[0], name) is not None), None)


def same_start(a: EpisodeRecord, b: EpisodeRecord) -> bool | None:
    """Whether the best field that both records have holds the same hash; None where they have none in common."""
    hashes = ((_field(a, name), _field(b, name)) for name in HASH_FIELDS)
    return next((first == second for first, second in hashes if first is not None and second is not None), None)


def _field(record: EpisodeRecord, name: str) -> object:
    return record.extra.get(name, record.metrics.get(name))
