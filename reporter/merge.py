"""Picks one record per episode from all records of a run, and finds missing episodes. Pure.

For an episode the lowest attempt with a verdict counts, whatever the verdict; if no attempt has one, the lowest errored
record. Within an attempt the first such line counts.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import compress, groupby, islice
from operator import attrgetter, lt, not_
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from comborun.model.attempt import EpisodeRecord, Verdict
from comborun.model.work import Combo, Spans, combo_of, gaps, grouped, minus, size, spans, union, within
from comborun.reporter.records.collected import Collected
from comborun.reporter.records.combos import content
from comborun.reporter.records.reading import RejectKind

if TYPE_CHECKING:
    from comborun.amendment.resumption import Rejected


ERRORED = {Verdict.ERRORED}
UNPLANNED = 10_000
"""most episodes that count as missing because others have a lower and a higher index; of more, none does"""


@dataclass(frozen=True)
class MergedCombo:
    policy: str
    environment: str
    planned: Spans | None
    accepted: tuple[EpisodeRecord, ...]
    missing: Spans
    """planned episodes without a record; without a plan, the gaps between recorded ones"""
    outside: tuple[EpisodeRecord, ...]
    duplicates: Spans
    """episodes that an attempt recorded more than once, always the same"""
    conflicts: Spans
    """episodes that an attempt recorded more than once, and differently"""
    replays: Spans
    differing: Spans
    contested: Spans
    """episodes with a record of success and one of failure"""
    retried: int
    """accepted records that come from a second attempt or a later one"""

    @property
    def key(self) -> Combo:
        return self.policy, self.environment

    def count(self, verdict: Verdict) -> int:
        return [*map(attrgetter("verdict"), self.accepted)].count(verdict)


def merge(records: Iterable[EpisodeRecord], planned: dict[Combo, Spans | None]) -> tuple[MergedCombo, ...]:
    """One entry per combo in the order of `planned`, then those that only the records know, by name."""
    by_combo: dict[Combo, list[EpisodeRecord]] = {combo: [] for combo in planned}
    for combo, group in groupby(records, attrgetter("policy", "environment")):
        by_combo.setdefault(combo, []).extend(group)
    unplanned = sorted(by_combo.keys() - planned.keys(), key=lambda combo: (combo[1], combo[0]))
    merged = [_merge_combo(combo, by_combo[combo], planned.get(combo)) for combo in (*planned, *unplanned)]
    return (*_without_turns(merged),)


def _without_turns(merged: Sequence[MergedCombo]) -> Iterator[MergedCombo]:
    """Without a plan, policies that took turns may share one numbering: the indexes that one lacks are another's, and
    they have none in common."""
    if not any(one.missing for one in merged if one.planned is None):
        yield from merged
        return
    indices = [frozenset(map(attrgetter("episode"), one.accepted)) for one in merged]
    for combo, own in zip(merged, indices, strict=True):
        if combo.planned is None and 0 < size(combo.missing) <= UNPLANNED:
            others = spans(index for some in indices if own.isdisjoint(some) for index in some)
            yield replace(combo, missing=minus(combo.missing, others))
        else:
            yield combo


def _merge_combo(combo: Combo, records: list[EpisodeRecord], planned: Spans | None) -> MergedCombo:
    ordered = sorted(records, key=attrgetter("episode", "attempt"))  # stable: then by file and line
    inside, outside = _divide(ordered, planned)
    accepted, several = _accepted(inside)
    indices = [*map(attrgetter("episode"), accepted)]
    known = planned if planned is not None else tuple(range(i[0], i[-1] + 1) for i in [indices] if i)
    return MergedCombo(
        policy=combo[0],
        environment=combo[1],
        planned=planned,
        accepted=accepted,
        missing=gaps(known, indices),
        outside=outside,
        duplicates=spans(episode.index for episode in several if episode.repeats == {False}),
        conflicts=spans(episode.index for episode in several if True in episode.repeats),
        replays=spans(episode.index for episode in several if len(episode.verdicts) > 1),
        differing=spans(episode.index for episode in several if len(set(episode.verdicts)) > 1),
        contested=spans(episode.index for episode in several if episode.contested),
        retried=sum(record.attempt > 1 for record in accepted),
    )


def _divide(
    records: Sequence[EpisodeRecord], planned: Spans | None
) -> tuple[Sequence[EpisodeRecord], tuple[EpisodeRecord, ...]]:
    """Those of planned episodes, and the others; `records` are in the order of their index."""
    ends = (records[0], records[-1]) if records else ()
    if planned is None or (len(planned) == 1 and all(record.episode in planned[0] for record in ends)):
        return records, ()
    known = [within(planned, record.episode) for record in records]
    return list(compress(records, known)), tuple(compress(records, map(not_, known)))


def _accepted(records: Sequence[EpisodeRecord]) -> tuple[tuple[EpisodeRecord, ...], list[_Episode]]:
    """One record of each episode, and the episodes that have several; `records` are in order."""
    indices = [*map(attrgetter("episode"), records)]
    if all(map(lt, indices, islice(indices, 1, None))):  # the common case, fast
        return tuple(records), []
    episodes = [_Episode(index, tuple(group)) for index, group in groupby(records, attrgetter("episode"))]
    several = [episode for episode in episodes if len(episode.records) > 1]
    return tuple(episode.accepted for episode in episodes), several


@dataclass(frozen=True)
class _Episode:
    """An episode with several records, by attempt and then by their place in the files."""

    index: int
    records: Sequence[EpisodeRecord]

    @property
    def accepted(self) -> EpisodeRecord:
        return next((one for one in self.records if one.verdict is not Verdict.ERRORED), self.records[0])

    @property
    def verdicts(self) -> list[Verdict]:
        judged = ([one.verdict for one in records if one.success is not None] for records in self._attempts)
        return [verdicts[0] for verdicts in judged if verdicts]

    @property
    def contested(self) -> bool:
        return len({record.verdict for record in self.records} - ERRORED) > 1

    @property
    def repeats(self) -> set[bool]:
        """For each attempt with several records, whether they differ."""
        contents = ([content(record) for record in records] for records in self._attempts)
        return {any(one != some[0] for one in some) for some in contents if len(some) > 1}

    @property
    def _attempts(self) -> Iterable[Sequence[EpisodeRecord]]:
        """By session, too: attempt 2 of one session is not attempt 2 of another."""
        return grouped(self.records, lambda record: (record.session, record.attempt)).values()


def missing(collected: Collected) -> dict[Combo, Spans]:
    """Planned episodes without a record, for each combo whose records can show it."""
    planned: defaultdict[Combo, list[range]] = defaultdict(list)
    counted = {one.combo for one in collected.aggregates}
    for history in collected.sessions:
        session = history.session
        combo = combo_of(session)
        if session.unit == "episode" and session.results.has_records and session.count and combo not in counted:
            planned[combo].append(session.episodes)
    merged = merge(collected.records, {combo: union(ranges) for combo, ranges in planned.items()})
    return {one.key: one.missing for one in merged if one.key in planned}


def rejected(collected: Collected) -> dict[str, Rejected]:
    """Session -> rows that gave no record. Without lines that are cut off: their end may still come."""
    from comborun.amendment.resumption import Rejected  # imports the planner and the grid, which a report does not need

    kept = (reject for reject in collected.rejects if reject.kind is not RejectKind.TORN)
    by_session = grouped(kept, lambda reject: PurePosixPath(reject.path).parts[1])  # sessions/<name>/attempt-N/...
    return {
        name: Rejected(
            len(rejects), sum(one.kind is RejectKind.FOREIGN for one in rejects), rejects[0].reason, rejects[0].place
        )
        for name, rejects in by_session.items()
    }
