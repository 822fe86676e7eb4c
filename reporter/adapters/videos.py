"""Videos beside the records: which there are, which can be played, and which episode each shows.

A video belongs to the records that lie nearest to it. It is linked by what a record says of it, else by the number and
the outcome in its name; what contradicts its record is not linked but named.
"""

from __future__ import annotations

import re
from collections import defaultdict
from dataclasses import dataclass
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING

from comborun.attempt import Verdict
from comborun.reporter.adapters import Defect
from comborun.reporter.adapters.nearness import Near, attempt_folder
from comborun.rules.videos import FAULTS, fault, parse
from comborun.work import describe, gaps

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from comborun.attempt import EpisodeRecord

SUFFIXES = (".mp4", ".webm", ".avi", ".mkv", ".gif")

_OUTCOMES = {"success": True, "true": True, "failure": False, "false": False}
_NUMBERED = (
    (re.compile(r".*--episode=(?P<number>\d{1,15})--success=(?P<outcome>True|False)--task=.*"), 1),
    (re.compile(r"eval_episode_(?P<number>\d{1,15})"), 0),
    (re.compile(r"(?:.*[_-])?ep(?P<number>\d{1,15})(?:[_-](?P<outcome>success|failure))?"), 0),
)
"""names of one episode's video without their suffix, and what the first episode is called. Plain `episode_7` is not
among them: some programs count from 0 there, some from 1"""
_FOLDER = re.compile(r"episode_(?P<number>\d{1,15})/video")
_PER_TASK = re.compile(r"rollout_.+_(?:success|failure)")
"""one name for all episodes of a task that went alike: the last one stays"""


@dataclass(frozen=True)
class Video:
    path: str
    """relative to the directory that was collected from"""
    size: int
    fault: str
    """why it can't be played; empty when it can"""


Key = tuple[str, str, str, int]


def key(record: EpisodeRecord) -> Key:
    """What tells a record from every other one: many can come from one line."""
    return (record.source, *record.key)


@dataclass(frozen=True)
class Links:
    of: Mapping[Key, str]
    """the path of each record's video"""
    findings: tuple[Defect, ...]


def is_video(name: str) -> bool:
    return PurePosixPath(name).suffix.lower() in SUFFIXES


def index(directory: Path, names: Iterable[str]) -> tuple[Video, ...]:
    """The videos among these files below `directory`, each looked into."""
    paths = sorted(name for name in set(names) if is_video(name))
    return tuple(_look(directory / path, path) for path in paths)


def told(listed: str, folder: str) -> tuple[Video, ...]:
    """The videos that an attempt's host has listed."""
    return tuple(Video(f"{folder}/{path}", size, FAULTS[word]) for size, word, path in parse(listed))


def _look(file: Path, path: str) -> Video:
    try:
        size = file.stat().st_size
        with file.open("rb") as stream:
            return Video(path, size, FAULTS[fault(path, stream, size)])
    except OSError as error:
        return Video(path, 0, f"can't be read: {error.strerror}")


def link(videos: Sequence[Video], records: Sequence[EpisodeRecord]) -> Links:
    """Each record's video, and everything that is wrong with any of them. Pure."""
    linking = _Linking(records, [video.path for video in videos])
    for video in videos:
        if video.fault:
            linking.findings.append(Defect(video.path, 0, f"a video that can't be played: {video.fault}"))
        if _name(video.path) not in linking.claims:
            linking.by_name(video)
    linking.by_claim()
    linking.gaps()
    return Links(MappingProxyType(linking.of), tuple(linking.findings))


class _Linking:
    def __init__(self, records: Sequence[EpisodeRecord], paths: Sequence[str]) -> None:
        self.of: dict[Key, str] = {}
        self.findings: list[Defect] = []
        self._records = records
        self._by_episode = Near((one.episode, attempt_folder(one.source), _folders(one.source), one) for one in records)
        self._files = Near((_name(path), attempt_folder(path), _turned(path), path) for path in paths)
        self.claims = {_name(path) for record in records if (path := claim(record))}

    def by_claim(self) -> None:
        """Records that name their video themselves, often by its path on another machine."""
        claimed: defaultdict[tuple[str, str, str, str], set[int]] = defaultdict(set)
        for record in self._records:
            if not (wanted := claim(record)):
                continue
            # Of several files of one name it is the one that ends like the wanted path for the longest.
            found = self._files.of(_name(wanted), attempt_folder(record.source), _turned(wanted))
            claimed[wanted, found[0] if found else "", record.policy, record.environment].add(record.episode)
            if found:
                self.of[key(record)] = found[0]
            else:
                self.findings.append(Defect(wanted, 0, f"the video of episode {record.episode} is missing"))
        for (path, *_), episodes in claimed.items():
            if len(episodes) > 1:
                told = f"{len(episodes)} episodes name the same video: the last one is in it"
                self.findings.append(Defect(path, 0, told))

    def by_name(self, video: Video) -> None:
        stem = str(PurePosixPath(video.path).with_suffix(""))
        if _PER_TASK.fullmatch(PurePosixPath(stem).name):
            self.findings.append(
                Defect(video.path, 0, "overwritten by every episode of its task that went alike: no episode's video")
            )
        elif named := _named(stem):
            self._take(video, *named)

    def _take(self, video: Video, episode: int, outcome: bool | None) -> None:
        record = _sole(self._by_episode.of(episode, attempt_folder(video.path), _folders(video.path)))
        if record is None:
            return
        if outcome is not None and record.verdict is not (Verdict.SUCCESS if outcome else Verdict.FAILURE):
            told = "success" if outcome else "failure"
            reason = f"its name tells of a {told} where episode {episode} is recorded as {record.verdict.value}"
            self.findings.append(Defect(video.path, 0, f"{reason}: overwritten, or of another attempt"))
        elif key(record) in self.of:
            self.findings.append(Defect(video.path, 0, f"a second video of episode {episode}: the first is linked"))
        else:
            self.of[key(record)] = video.path

    def gaps(self) -> None:
        """Programs record the first few episodes, or every tenth: only what lacks between neighbours is told."""
        linked: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
        for record in self._records:
            if key(record) in self.of:
                linked[record.combo].append(record.episode)
        for (policy, environment), episodes in linked.items():
            dense = range(min(episodes), max(episodes) + 1)
            missing = gaps((dense,), sorted(set(episodes)))
            if missing and len(set(episodes)) * 2 > len(dense):
                where = f"{policy} × {environment}"
                self.findings.append(
                    Defect(where, 0, f"no video of {describe(missing)}, between episodes that have one")
                )


def claim(record: EpisodeRecord) -> str:
    """The video that a record names, as it names it."""
    video = record.extra.get("video")
    return video if isinstance(video, str) else ""


def _named(stem: str) -> tuple[int, bool | None] | None:
    if folder := _FOLDER.search(stem):
        return int(folder["number"]) - 1, None
    name = PurePosixPath(stem).name
    for pattern, first in _NUMBERED:
        if match := pattern.fullmatch(name):
            outcome = match.groupdict().get("outcome")
            return int(match["number"]) - first, _OUTCOMES[outcome.lower()] if outcome else None
    return None


def _sole(near: Sequence[EpisodeRecord]) -> EpisodeRecord | None:
    """The first of the records that are nearest; None where those of two combos or attempts are."""
    alike = near and all(_owner(record) == _owner(near[0]) for record in near)
    return near[0] if alike else None


def _owner(record: EpisodeRecord) -> tuple[str, str, str, int]:
    return record.policy, record.environment, record.session, record.attempt


def _name(path: str) -> str:
    return PurePosixPath(path).name


def _folders(path: str) -> tuple[str, ...]:
    return tuple(path.split("/")[:-1])


def _turned(path: str) -> tuple[str, ...]:
    """Its folders, the innermost first."""
    return PurePosixPath(path).parts[-2::-1]
