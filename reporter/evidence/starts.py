"""What identifies the start of an episode. Pure.

Settled over all policies together, and never by the outcomes of one: whether a seed is that of an episode or of a whole
run of the program, and whether a hash says anything. A repeated start is no new evidence: a deterministic program
repeats what it did.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from functools import cached_property
from itertools import groupby
from operator import attrgetter
from types import MappingProxyType
from typing import Literal, NamedTuple

from comborun.model.attempt import EpisodeRecord, Verdict, field_column, having
from comborun.model.work import Combo, grouped
from comborun.reporter.evidence.states import Told, episodes_by, field_names, hashes, in_order, names_of, plain, told_of
from comborun.rules.facts import Fact
from comborun.rules.results.proposals import SEEDS

RUN_LENGTH = 10
"""fewest episodes in a row with one seed, of several, that can be those of a run"""
RUN_LEAST = 5
"""fewest episodes of each value of a field that names runs"""
RUN = re.compile(
    r"(?:train|training|policy|model|run)_?seed|(?:run|replica|replicate)(?:_?(?:id|index|number))?", re.IGNORECASE
)
REPEAT_OTHERS = "episodes of one policy repeat one another, whatever their seeds"
ONE_SEED = "one seed for all episodes, which says nothing of their starts"
SEED = "seed"
REPLAYS = "equal results"
"""stands for a field with the start, where equal results tell it"""


class StartFact(StrEnum):
    RUN_SEEDS = "seeds_of_runs"
    RUN_OR_START = "seeds_of_runs_or_starts"
    CONSTANT_HASH = "hash_never_varies"
    ONE_SIDED_HASH = "hash_of_one_side"
    UNKNOWN_STARTS = "starts_not_told"
    BY_SEED = "paired_under_other_indexes"
    ALONE = "starts_without_a_partner"
    REPEATED = "starts_repeat"
    REPLAYS = "episodes_repeat_others"
    PARTS = "rows_of_a_group_end_alike"


class Unlike(NamedTuple):
    """Why an episode of two policies is not shown to have started the same, with its words."""

    kind: Literal["states", "seeds", "no_seeds", "caution"]
    words: str


NO_SEEDS = Unlike("no_seeds", "no seeds in the records")
_OTHER_SEEDS = Unlike("seeds", "seeds differ")


@dataclass(frozen=True)
class Starts:
    seeds: Mapping[int, object]
    hashes: Mapping[str, Mapping[int, object]] = field(default_factory=lambda: MappingProxyType({}))
    """by field, the best evidence first; of each episode that has one"""
    caution: str = ""
    """why neither index nor seed says how its episodes started, or empty"""
    facts: tuple[Fact, ...] = ()
    """what limits this evidence"""
    coarse: frozenset[str] = frozenset()
    """hashes that differ only if starts do, and may be equal where they differ: seeds tell more"""
    parts: Mapping[int, object] = field(default_factory=lambda: MappingProxyType({}))
    """by episode, the group whose rows count once; it pairs nothing"""

    def of(self, episode: int, among: Collection[str] | None = None) -> object:
        """A value that is equal for equal starts, of the best of these fields; None if unknown."""
        if episode in self.parts:
            return "parts", self.parts[episode]
        for name, values in self.hashes.items():
            if (among is None or name in among) and name not in self.coarse and episode in values:
                return name, values[episode]
        return None if self.caution or (among is not None and SEED not in among) else self.seeds.get(episode)

    @cached_property
    def _all_differ(self) -> bool:
        """Whether all seeds differ. An episode without a seed counts as its own start."""
        return (
            not self.hashes and not self.parts and bool(self.caution or len({*self.seeds.values()}) == len(self.seeds))
        )

    def groups(self, episodes: Collection[int], among: Collection[str] | None = None) -> list[frozenset[int]] | None:
        """The episodes of each start; an unknown start has one episode. None if no start repeats."""
        if self._all_differ:
            return None
        starts = {episode: self.of(episode, among) for episode in episodes}
        found = grouped(episodes, lambda one: ("alone", one) if starts[one] is None else starts[one])
        return None if len(found) == len(episodes) else [frozenset(group) for group in found.values()]

    def shared(self, other: Starts) -> tuple[str, ...]:
        """The fields that both have, and that tell which starts are equal."""
        return (*(name for name in self.hashes if name in other.hashes and self._tells(other, name)), SEED)

    def _tells(self, other: Starts, name: str) -> bool:
        return name not in self.coarse and name not in other.coarse

    def mismatches(self, other: Starts, episodes: Collection[int]) -> Counter[Unlike | None]:
        """Reason -> common episodes; None where both are shown to have started the same."""
        if not ((self.hashes and other.hashes) or self.caution or other.caution):
            own = [*map(self.seeds.get, episodes)]
            if None not in own and (self.seeds is other.seeds or own == [*map(other.seeds.get, episodes)]):
                return Counter({None: len(own)})
        return Counter(self.mismatch(other, episode) for episode in episodes)

    def mismatch(self, other: Starts, episode: int) -> Unlike | None:
        """Why an episode of both is not shown to have started the same, or None. Hashes in any field must agree."""
        compared = False
        for name, values in self.hashes.items():
            theirs = other.hashes.get(name, {})
            if episode in values and episode in theirs:
                if values[episode] != theirs[episode]:
                    return Unlike("states", f"initial states ({name}) differ")
                compared = compared or self._tells(other, name)
        if compared:
            return None
        if reason := self.caution or other.caution:
            return Unlike("caution", reason)
        own, seed = self.seeds.get(episode), other.seeds.get(episode)
        if own is None or seed is None:
            return NO_SEEDS
        return None if own == seed else _OTHER_SEEDS

    def one_sided(self, other: Starts, episodes: Collection[int]) -> tuple[str, int]:
        """The first field with a hash that only one of both has, where none is compared, and in how many episodes."""
        shared = [name for name in self.hashes if name in other.hashes]
        names = dict.fromkeys(name for name in (*self.hashes, *other.hashes) if name != REPLAYS)
        if not names:
            return "", 0
        both = [(self.hashes[name], other.hashes[name]) for name in shared]
        alone = [one for one in episodes if not any(one in own and one in theirs for own, theirs in both)]
        for name in names:
            own, theirs = self.hashes.get(name, {}), other.hashes.get(name, {})
            if count := sum((one in own) is not (one in theirs) for one in alone):
                return name, count
        return "", 0

    def field_of_all(self, other: Starts, episodes: Collection[int]) -> str:
        """The first hash that both have in all of these episodes, or empty."""
        both = (name for name in self.shared(other) if name != SEED)
        return next(
            (name for name in both if all(one in self.hashes[name] and one in other.hashes[name] for one in episodes)),
            "",
        )


UNTOLD = Starts(MappingProxyType({}))


@dataclass(frozen=True)
class Settled:
    """What was settled of one combo before its starts are read."""

    caution: str = ""
    silent: frozenset[str] = frozenset()
    """hashes that say nothing"""
    facts: tuple[Fact, ...] = ()
    runs: Mapping[str, Collection[int]] = field(default_factory=dict)
    """by run, its episodes: of a field that names it, or of a seed that may be that of a run"""
    runs_told: bool = True
    """whether they are known to be runs"""
    seed: str = SEED
    """the field that holds the seeds"""
    coarse: frozenset[str] = frozenset()
    """fields that number starts, of which seeds tell more"""
    same: Mapping[object, object] = field(default_factory=dict)
    """by the text of a state, the one that it is equal to within rounding"""
    replays: Mapping[int, object] = field(default_factory=dict)
    """by episode, what is equal for those that repeat one another, whatever their seeds"""
    parts: Mapping[int, object] = field(default_factory=dict)
    """by episode, the group of rows whose outcomes go together"""


def starts_of(judged: Sequence[EpisodeRecord], settled: Settled | None = None) -> Starts:
    settled = settled or settle({("", ""): judged})["", ""]
    known = _known_seeds(judged, settled.seed)
    if settled.replays:
        again = {one.episode: settled.replays[one.episode] for one in judged if one.episode in settled.replays}
        return Starts(known, {REPLAYS: again}, REPEAT_OTHERS, settled.facts)
    found, same = {}, settled.same
    for name in in_order(names_of(judged) - settled.silent):
        if values := hashes(judged, name):
            found[name] = {one: same.get(value, value) for one, value in values.items()} if same else values
    return Starts(known, found or MappingProxyType({}), settled.caution, settled.facts, settled.coarse, settled.parts)


def _known_seeds(records: Sequence[EpisodeRecord], name: str) -> dict[int, object]:
    seeds = _seeds(records, name)
    known = dict(zip(map(attrgetter("episode"), records), seeds, strict=True))
    return {episode: seed for episode, seed in known.items() if seed is not None} if None in seeds else known


def _seeds(records: Sequence[EpisodeRecord], name: str) -> list[object]:
    return [*map(attrgetter("seed"), records)] if name == SEED else [*map(plain, field_column(records, name))]


def _seed_field(combos: Iterable[Sequence[EpisodeRecord]]) -> str:
    """`seed`, or if no record has one, the field such as `env_seed` that has most different values."""
    values: dict[str, set[object]] = {}
    for records in combos:
        if any(record.seed is not None for record in records):
            return SEED
        for name in {*field_names(records)}.intersection(SEEDS):
            values.setdefault(name, set()).update(map(plain, field_column(records, name)))
    return max(values, key=lambda name: (len(values[name]), name), default=SEED)


def settle(
    combos: Mapping[Combo, Sequence[EpisodeRecord]],
    cautions: Mapping[Combo, str] = MappingProxyType({}),
    runs: Collection[Combo] = (),
) -> dict[Combo, Settled]:
    """Over all policies together: seeds that are those of runs, and hashes that say nothing.

    `runs`: combos whose runs lie side by side, so that a seed of one of them is known to be the run's.
    """
    judged = {
        combo: having(records, Verdict.SUCCESS, Verdict.FAILURE, Verdict.MEASURED) for combo, records in combos.items()
    }
    seed = _seed_field(judged.values())
    seeded_by_run = _seeded_by_run(judged, runs, seed)
    told = told_of(judged)
    silent = {one.name: _silent(one, judged, seed) for one in told}
    same = {text: other for one in told for text, other in one.same.items()}
    found = {}
    for combo, records in judged.items():
        caution = cautions.get(combo, "")
        of_runs = seeded_by_run.get(combo, Settled()) if not caution else Settled(caution)
        numbers = [one for one in told if one.numbers and combo in one.by_combo and not of_runs.caution]
        seeds = _known_seeds(records, seed) if numbers else {}
        facts = [fact for one in told for fact in _of_field(one, combo, combo in silent[one.name])]
        named = {} if combo in runs else _runs_by_field(records, names_of(records))
        own = of_runs.runs if of_runs.runs and len(named) < 2 else named
        found[combo] = Settled(
            of_runs.caution,
            frozenset(name for name, some in silent.items() if combo in some),
            (*facts, *of_runs.facts),
            own,
            own is named or of_runs.runs_told,
            seed,
            frozenset(one.name for one in numbers if one.tells_less(combo, seeds)),
            same,
        )
    return found


def _of_field(told: Told, combo: Combo, silent: bool) -> Iterable[Fact]:
    if not silent:
        return told.rounding(combo)
    return [] if told.numbers else [Fact(StartFact.CONSTANT_HASH, field=told.name)]


def _runs_by_field(records: Sequence[EpisodeRecord], names: Iterable[str]) -> dict[str, frozenset[int]]:
    """The episodes of each run, by the first field that tells several apart, else by the first that names one."""
    single: dict[str, frozenset[int]] = {}
    for name in sorted(filter(RUN.fullmatch, names)):
        found = episodes_by(records, name)
        if found and min(map(len, found.values())) >= RUN_LEAST:
            if len(found) > 1:
                return found
            single = single or found
    return single


def _silent(told: Told, combos: Mapping[Combo, Sequence[EpisodeRecord]], seed: str) -> set[Combo]:
    """The combos in which a hash never varies, if anywhere it doesn't while seeds and results do; a number of the start
    also where no seed varies, as one seed for all episodes says nothing."""
    constant = told.constant()
    for combo in constant:
        hashed = [record for record in combos[combo] if record.episode in told.by_combo[combo]]
        if (told.numbers or len({*_seeds(hashed, seed)} - {None}) > 1) and differ(hashed):
            return constant
    return set()


def _seeded_by_run(
    combos: Mapping[Combo, Sequence[EpisodeRecord]], known: Collection[Combo], name: str = SEED
) -> dict[Combo, Settled]:
    """The combos whose seeds are those of runs, as far as records can tell, and why that matters.

    Nothing tells a seed of a run from that of a start that was repeated: both are shared by episodes in a row that
    differ. So pairs are not made of it, and a comparison also takes the seed as the unit, which holds for both.
    """
    one: dict[Combo, Sequence[EpisodeRecord]] = {}
    several: dict[Combo, list[tuple[object, list[EpisodeRecord]]]] = {}
    for combo, records in combos.items():
        seeded = [
            (record, seed) for record, seed in zip(records, _seeds(records, name), strict=True) if seed is not None
        ]
        if len(seeded) < 2 or len({seed for _, seed in seeded}) > len(seeded) // 2:
            continue
        in_order = groupby(sorted(seeded, key=lambda pair: pair[0].episode), lambda pair: pair[1])
        runs = [(seed, [record for record, _ in run]) for seed, run in in_order]
        if len(runs) == 1:
            one[combo] = runs[0][1]
        elif len({seed for seed, _ in runs}) == len(runs) < RUN_LENGTH <= min(len(run) for _, run in runs):
            several[combo] = runs
    found: dict[Combo, Settled] = {}
    if told := any(map(differ, one.values())):  # the program takes a seed for each run
        found |= dict.fromkeys(one, Settled(ONE_SEED))
    if any(map(differ, (run for runs in several.values() for _, run in runs))):
        for combo, runs in several.items():
            code = StartFact.RUN_SEEDS if told or combo in known else StartFact.RUN_OR_START
            fact = Fact(code, seeds=len(runs), fewest=min(len(run) for _, run in runs), policy=combo[0])
            episodes = {f"{name} {seed}": frozenset(map(attrgetter("episode"), run)) for seed, run in runs}
            why = "a seed for each run, which says nothing of the starts of its episodes"
            found[combo] = Settled(why, facts=(fact,), runs={} if combo in known else episodes, runs_told=told)
    return found


def differ(records: Sequence[EpisodeRecord]) -> bool:
    first, *others = records
    return any(record.verdict is not first.verdict or record.metrics != first.metrics for record in others)


def seeded_once(records: Sequence[EpisodeRecord]) -> bool:
    """Whether all these records have the same seed, but differ. Then it is the seed of the run, not of an episode."""
    seeded = [record for record in records if record.seed is not None]
    return len({*map(attrgetter("seed"), seeded)}) == 1 and differ(seeded)
