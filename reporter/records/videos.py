"""Videos beside the records: which can be played, and which episode each shows.

A video belongs to the nearest records. A record's field links it, or else the number and the outcome in its name. A
video that contradicts its record is reported.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Hashable, Iterable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Generic, TypeVar

from comborun.model.attempt import EpisodeRecord, Verdict
from comborun.model.work import Combo, describe, gaps
from comborun.reporter.records.reading import Defect
from comborun.rules.names import ATTEMPT, NUMBER
from comborun.rules.results.videos import FAULTS, fault, is_video, numbered, of_task, parse

_OUTCOMES = {"success": Verdict.SUCCESS, "true": Verdict.SUCCESS, "failure": Verdict.FAILURE, "false": Verdict.FAILURE}
_ATTEMPT = re.compile(rf"(?:.*?/)?{ATTEMPT}{NUMBER}(?=/)")

_FILMED_LEAST, _ROUND = 4, 5
"""episodes with a video that lead to expect a further one; of what a program's own limit is a multiple"""

_ROW_LEAST = 3
"""videos whose names differ only by a number that lead to expect those between them"""

Key = tuple[str, str, str, int]


@dataclass(frozen=True)
class Video:
    path: str
    size: int
    fault: str


def key(record: EpisodeRecord) -> Key:
    """The identity of a record: many can come from one line."""
    return (record.source, *record.key)


def index(directory: Path, names: Iterable[str]) -> tuple[Video, ...]:
    return tuple(_video(directory / path, path) for path in sorted(set(names)) if is_video(path))


def _video(file: Path, path: str) -> Video:
    try:
        size = file.stat().st_size
        with file.open("rb") as stream:
            return Video(path, size, FAULTS[fault(path, stream, size)])
    except OSError as error:
        return Video(path, 0, f"can't be read: {error.strerror}")


def listed(text: str, folder: str) -> tuple[Video, ...]:
    return tuple(Video(f"{folder}/{path}", size, FAULTS[word]) for size, word, path in parse(text))


class Links:
    def __init__(
        self,
        videos: Sequence[Video],
        records: Sequence[EpisodeRecord],
        bases: Mapping[str, int] = MappingProxyType({}),
        unlisted: AbstractSet[tuple[str, int]] = frozenset(),
    ) -> None:
        self.of: dict[Key, str] = {}
        self.findings: list[Defect] = []
        self._unlisted = unlisted
        self.missing: set[Key] = set()
        """records whose video is told to be missing"""
        self.apart: list[str] = []
        """videos that can be played, show no record's episode, and are not told of otherwise"""
        fields = ((record, record.extra.get("video")) for record in records)
        claims = [(record, path) for record, path in fields if isinstance(path, str) and path]
        claimed = {_name(path) for _, path in claims}
        by_episode = _Near(
            (one.episode - bases.get(one.session, 0), one.source, _folders(one.source), one) for one in records
        )
        for video in videos:
            if video.fault:
                self._report(video.path, f"a video that can't be played: {video.fault}")
            if _name(video.path) not in claimed:
                self._by_name(video.path, by_episode)
        self._by_claim(claims, _Near((_name(one.path), one.path, _folders(one.path)[::-1], one.path) for one in videos))
        self._gaps(records)
        if not unlisted:  # else they may come
            self._numbers({video.path for video in videos}.difference(self.of.values()))
        shown = {*self.of.values(), *(finding.path for finding in self.findings)}
        self.apart = [video.path for video in videos if not video.fault and video.path not in shown]

    def _may_come(self, record: EpisodeRecord) -> bool:
        """Whether its attempt has not said yet which videos it has."""
        return (record.session, record.attempt) in self._unlisted

    def _report(self, where: str, what: str) -> None:
        self.findings.append(Defect(where, 0, what))

    def _by_claim(self, claims: Sequence[tuple[EpisodeRecord, str]], files: _Near[str]) -> None:
        """Records that name their video, often by its path on another machine."""
        claimed: defaultdict[tuple[str, str, str, str], set[int]] = defaultdict(set)
        for record, wanted in claims:
            # Of several files of one name it is the one that ends like the wanted path for the longest.
            found = files.of(_name(wanted), record.source, _folders(wanted)[::-1])
            claimed[wanted, found[0] if found else "", record.policy, record.environment].add(record.episode)
            if found:
                self.of[key(record)] = found[0]
            elif not self._may_come(record):
                self.missing.add(key(record))
                self._report(wanted, f"the video of episode {record.episode} is missing")
        for (wanted, *_), episodes in claimed.items():
            if len(episodes) > 1:
                self._report(wanted, f"{len(episodes)} episodes name the same video: the last one is in it")

    def _by_name(self, path: str, by_episode: _Near[EpisodeRecord]) -> None:
        if of_task(path):
            self._report(path, "overwritten by every episode of its task that went alike: no episode's video")
            return
        if not (found := numbered(path)):
            return
        episode, outcome = found[0], _OUTCOMES.get(found[1])
        near = by_episode.of(episode, path, _folders(path))
        owners = {(record.policy, record.environment, record.session, record.attempt) for record in near}
        if len(owners) != 1:  # the owner is ambiguous
            return
        record = near[0]
        if outcome is not None and record.verdict is not outcome:
            reason = f"its name says {outcome}, but episode {episode} is recorded as {record.verdict}"
            self._report(path, f"{reason}: overwritten, or of another attempt")
        elif key(record) in self.of:
            self._report(path, f"a second video of episode {episode}: the first is linked")
        else:
            self.of[key(record)] = path

    def _gaps(self, records: Iterable[EpisodeRecord]) -> None:
        """Report videos that are missing between neighbours, or behind them. Programs record the first few episodes, or
        every tenth."""
        known: defaultdict[Combo, dict[int, EpisodeRecord]] = defaultdict(dict)
        for record in records:
            known[record.combo].setdefault(record.episode, record)
        for (policy, environment), episodes in known.items():
            linked = {at for at, one in episodes.items() if key(one) in self.of}
            told = {at for at, one in episodes.items() if key(one) in self.missing or self._may_come(one)}
            there = linked | told if linked else set()
            dense = range(min(linked), max(linked) + 1) if linked else range(0)
            missing = gaps((dense,), sorted(there)) if linked else ()
            lacking: list[int] = []
            if missing and len(linked) * 2 > len(dense):
                complaint = f"no video of {describe(missing)}, between episodes that have one"
                self._report(f"{policy} × {environment}", complaint)
                lacking = [one for span in missing for one in span]
            last = _lacks_last({at: one.verdict for at, one in episodes.items()}, sorted({*there, *lacking}))
            if last is not None:
                self._report(f"{policy} × {environment}", f"no video of episode {last}, the last one")
                lacking.append(last)
            self.missing.update(key(episodes[one]) for one in lacking if one in episodes)

    def _numbers(self, paths: Iterable[str]) -> None:
        """Report numbers that are missing between those of names that are alike but for them: of workers, cameras and
        episodes that no record names."""
        rows: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
        for path in paths:
            for found in re.finditer(r"\d{1,9}", path[len(_attempt(path)) :]):
                start, end = (len(_attempt(path)) + at for at in found.span())
                rows[path[:start], path[end:]].add(int(found[0]))
        for (before, after), there in sorted(rows.items()):
            dense = range(min(there), max(there) + 1)
            if _ROW_LEAST <= len(there) < len(dense) < 2 * len(there):
                missing = [number for number in dense if number not in there]
                some = ", ".join(map(str, missing[:_ROUND])) + ", ..." * (len(missing) > _ROUND)
                self._report(f"{before}*{after}", f"no video with the number {some}, between others of this name")


def _lacks_last(verdicts: Mapping[int, Verdict], filmed: Sequence[int]) -> int | None:
    """The last episode, if it alone lacks the video that those before it lead to expect: all of them have one, or every
    tenth. Not if the program may record the first so many (5, 10 ...), or only what went like those before.
    """
    steps = {after - before for before, after in pairwise(filmed)}
    if len(filmed) < _FILMED_LEAST or len(steps) != 1:
        return None
    (step,) = steps
    last = filmed[-1] + step
    capped = step == 1 and len(filmed) % _ROUND == 0
    alike = verdicts.get(last) in {verdicts[one] for one in filmed if one in verdicts}
    return last if alike and not capped and last + step > max(verdicts) else None


def _name(path: str) -> str:
    return PurePosixPath(path).name


Thing = TypeVar("Thing")
Folders = tuple[str, ...]
"""their names, the most important first"""


def _folders(path: str) -> Folders:
    return tuple(part for part in path.split("/")[:-1] if part not in {"", "."})


def _attempt(path: str) -> str:
    """The folder of the attempt with this file, or empty."""
    found = _ATTEMPT.match(path)
    return found[0] if found else ""


class _Near(Generic[Thing]):
    """Things that may share a name, each with a path and its folders.

    Files of two attempts are never near, even if their folders have the same names.
    """

    def __init__(self, things: Iterable[tuple[Hashable, str, Folders, Thing]]) -> None:
        self._groups: defaultdict[tuple[str, Hashable], list[tuple[Folders, Thing]]] = defaultdict(list)
        self._by_folders: dict[tuple[str, Hashable], dict[Folders, list[Thing]]] = {}
        for name, path, folders, thing in things:
            for attempt in {_attempt(path), "*"}:
                self._groups[attempt, name].append((folders, thing))

    def of(self, name: Hashable, path: str, folders: Folders) -> Sequence[Thing]:
        """Those of this name that share the most folders. For a path in an attempt, of that attempt or of none."""
        attempt = _attempt(path)
        for among in (attempt, "") if attempt else ("*",):
            if (among, name) in self._groups:
                return self._nearest((among, name), folders)
        return ()

    def _nearest(self, group: tuple[str, Hashable], folders: Folders) -> Sequence[Thing]:
        """Divided by folders on demand, since most groups are never used."""
        with_prefix = self._by_folders.get(group)
        if with_prefix is None:
            with_prefix = self._by_folders[group] = defaultdict(list)
            for known, thing in self._groups[group]:
                for depth in range(len(known) + 1):
                    with_prefix[known[:depth]].append(thing)
        prefixes = (folders[:depth] for depth in range(len(folders), -1, -1))
        return next(with_prefix[prefix] for prefix in prefixes if prefix in with_prefix)
