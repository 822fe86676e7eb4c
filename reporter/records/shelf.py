"""What has been read from result files so far. A file's bytes are gone as soon as its records are there."""

from __future__ import annotations

import sys
from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING

from comborun.reporter.adapters import (
    CautionKind,
    Context,
    Defect,
    Reading,
    RejectKind,
    filename_encoded,
    videos,
)
from comborun.reporter.adapters.findings import refused
from comborun.reporter.adapters.reading import read
from comborun.reporter.adapters.sniff import Format, Sniffed
from comborun.reporter.records.combos import Told, settled
from comborun.reporter.records.found import broken
from comborun.rules.episodes import DOCUMENT_MOST, describe, rebuild
from comborun.text import several

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from comborun.attempt import Aggregate, EpisodeRecord
    from comborun.reporter.adapters import Reject


FOLDERS = {Format.JSON_PER_FILE: 0, Format.JSON_LIST_LAST: 1}
"""formats with an episode's number in a name: how many folders further out all of a kind lie"""


@dataclass(frozen=True)
class ResultFile:
    path: str
    """relative to the directory that was collected from, with slashes; a folder for episodes that are file names"""
    size: int
    records: int
    format: str
    """what it was taken for; empty where it could not be"""
    why: str
    """what it was recognised by"""


class Shelf:
    def __init__(self, directory: Path, unread: Mapping[PurePosixPath, str]) -> None:
        self._directory = directory
        self._unread = unread
        self._rebuilt: Counter[str] = Counter()
        """episodes of jobs by folder: a further rebuild's file goes on counting"""
        self._numbered: defaultdict[tuple[str, str, str, int], set[str]] = defaultdict(set)
        """folders of files with numbers in their names, by combo, session and attempt"""
        self.readings: list[Reading] = []
        self.files: list[ResultFile] = []

    def take(self, path: Path, context: Context, *, asked: bool) -> None:
        """One file. Whether it was asked for by name decides if it is a fault that it is nothing known."""
        reason = self._unread.get(PurePosixPath(context.path)) or broken(path)
        folder = str(PurePosixPath(context.path).parent)
        if rebuild(PurePosixPath(context.path).name):
            context = replace(context, first=context.first + self._rebuilt[folder])
        sniffed, reading, size = (None, refused(context, reason), 0) if reason else _read(path, context)
        if asked and sniffed is None and not reading.rejects:
            reading = refused(context, _unknown(path), RejectKind.UNREADABLE)
        if sniffed and sniffed.format is Format.JOB_ROWS:
            self._rebuilt[folder] += len(reading.records)
        if sniffed or reading.rejects:
            self._put(context.path, size, sniffed, reading)

    def take_names(self, paths: Iterable[Path], context: Context) -> None:
        """Episodes that are told by the names of files, one group per environment."""
        sizes = {path.relative_to(self._directory).as_posix(): path.stat().st_size for path in paths if path.exists()}
        for folder, names in filename_encoded.groups(sizes).items():
            reading = filename_encoded.read(names, replace(context, path=folder))
            sniffed = Sniffed(Format.FILENAME_ENCODED, "outcomes in files' names")
            self._put(folder, sum(sizes[name] for name in names), sniffed, reading)

    def settle_combos(self) -> None:
        """In a folder, once all is read: which combo each file is of, and never two runs as one."""
        files = [Told(file.path, file.format, reading) for file, reading in zip(self.files, self.readings, strict=True)]
        self.readings = list(settled(files))
        self._numbered.clear()  # folders that number alike have been told apart

    def watch(self, paths: Iterable[Path]) -> None:
        """Look into the videos among the files, and give each record its own."""
        names = (path.relative_to(self._directory).as_posix() for path in paths)
        self.show(videos.index(self._directory, names))

    def show(self, found: Sequence[videos.Video]) -> None:
        """Give each record its video among these."""
        if found:
            links = videos.link(found, self.records)
            self.readings = [replace(reading, records=_shown(reading.records, links)) for reading in self.readings]
            self.readings.append(Reading(defects=links.findings))

    def _put(self, path: str, size: int, sniffed: Sniffed | None, reading: Reading) -> None:
        self.readings.append(reading)
        taken = (sniffed.format.value, sniffed.why) if sniffed else ("", "")
        if sniffed and sniffed.format in FOLDERS:
            folder = str(PurePosixPath(path).parents[FOLDERS[sniffed.format]])
            for record in reading.records:
                self._numbered[record.policy, record.environment, record.session, record.attempt].add(folder)
        self.files.append(ResultFile(path, size, len(reading.records), *taken))

    def keep_whole_attempts(self, planned: Mapping[str, int]) -> None:
        """Of episodes that are numbered as they ended, one attempt of a session counts; `planned` is by session.

        Early enders of one attempt and late ones of another would be no sample of anything.
        """
        numbered = [reading for reading in self.readings if _in_ending_order(reading)]
        wanted = accepted_attempts(chain.from_iterable(reading.records for reading in numbered), planned)
        for place, reading in enumerate(self.readings):
            if _in_ending_order(reading):
                self.readings[place] = _of_attempts(reading, wanted)

    @property
    def records(self) -> tuple[EpisodeRecord, ...]:
        return tuple(chain.from_iterable(reading.records for reading in self.readings))

    @property
    def rejects(self) -> tuple[Reject, ...]:
        return tuple(chain.from_iterable(reading.rejects for reading in self.readings))

    @property
    def aggregates(self) -> tuple[Aggregate, ...]:
        return tuple(chain.from_iterable(reading.aggregates for reading in self.readings))

    @property
    def defects(self) -> tuple[Defect, ...]:
        """Of the files, and what is to be known of them as a whole."""
        told = chain.from_iterable((*reading.defects, *_told(reading)) for reading in self.readings)
        return (*told, *_contradictions(self.aggregates), *_collisions(self._numbered.values()))

    @property
    def taken(self) -> tuple[Defect, ...]:
        """What files were taken for, by format; our own rows need no telling."""
        files: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        for file in self.files:
            if file.format and file.format != Format.JSONL_ROWS:
                files[file.format, file.why].append(file.path)
        return tuple(
            Defect(paths[0], 0, f"read as {format_name}: {why}{_others(len(paths) - 1)}")
            for (format_name, why), paths in files.items()
        )

    @property
    def unpaired(self) -> Mapping[tuple[str, str], str]:
        """Combos whose indices and seeds say nothing of how their episodes started, and why."""
        found: dict[tuple[str, str], str] = {}
        for reading in self.readings:
            combos = {one.combo for one in reading.records} | {one.combo for one in reading.aggregates}
            for caution in reading.cautions:
                if caution.kind in {CautionKind.UNPAIRED, CautionKind.ENDING_ORDER}:
                    found |= dict.fromkeys(sorted(combos), caution.reason)
        return MappingProxyType(found)


def _others(count: int) -> str:
    return f", like {several(count, 'other file')}" if count else ""


def _collisions(numbered: Iterable[set[str]]) -> Iterator[Defect]:
    for folders in numbered:
        if len(folders) > 1:
            told = (
                "number their episodes alike, and only one of each number counts: make each an environment of its own"
            )
            yield Defect(min(folders), 0, f"{len(folders)} folders of one combo {told}")


def accepted_attempts(records: Iterable[EpisodeRecord], planned: Mapping[str, int]) -> dict[str, int]:
    """Per session the lowest attempt with all planned episodes, else the one with the most, the lowest of these."""
    episodes: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for record in records:
        episodes[record.session][record.attempt] += 1
    return {
        session: max(counts, key=lambda attempt: (min(counts[attempt], planned.get(session, sys.maxsize)), -attempt))
        for session, counts in episodes.items()
    }


def _in_ending_order(reading: Reading) -> bool:
    return any(caution.kind is CautionKind.ENDING_ORDER for caution in reading.cautions)


def _of_attempts(reading: Reading, wanted: Mapping[str, int]) -> Reading:
    """Without the records of other attempts, which are told."""
    kept = tuple(record for record in reading.records if record.attempt == wanted[record.session])
    passed = [record for record in reading.records if record.attempt != wanted[record.session]]
    if not passed:
        return reading
    path = reading.cautions[0].path
    told = f"attempt {wanted[passed[0].session]} counts as a whole: these are numbered as they ended"
    return replace(reading, records=kept, defects=(*reading.defects, Defect(path, 0, told)))


def _read(path: Path, context: Context) -> tuple[Sniffed | None, Reading, int]:
    """What a file was taken for, what it says, and its size."""
    try:
        with path.open("rb") as stream:
            return *read(stream, context), stream.tell()
    except OSError as error:
        return None, refused(context, f"can't be read: {error.strerror}"), 0


def _unknown(path: Path) -> str:
    """What a file is that is of no known format, in the words of whoever counted while the run lasted."""
    small = path.suffix.lower() == ".json" and path.stat().st_size <= DOCUMENT_MOST
    return describe(path.read_text("utf-8", "replace") if small else "")


def _told(reading: Reading) -> Iterator[Defect]:
    for caution in reading.cautions:
        if caution.kind is CautionKind.FIRST_K:
            yield Defect(caution.path, 0, caution.reason)
    for training in reading.trainings:
        of = f" of {training.total}" if training.total else ""
        yield Defect(training.path, 0, f"a training, at step {training.step}{of}: it has no episodes to count")


def _contradictions(aggregates: Sequence[Aggregate]) -> Iterator[Defect]:
    """Files of one attempt that count differently: the one with the most episodes is taken."""
    counts: defaultdict[tuple[str, str, str, int], list[Aggregate]] = defaultdict(list)
    for aggregate in aggregates:
        counts[aggregate.policy, aggregate.environment, aggregate.session, aggregate.attempt].append(aggregate)
    for found in counts.values():
        told = {f"{aggregate.successes} of {aggregate.episodes}" for aggregate in found}
        if len(told) > 1:
            yield Defect(found[0].source, 0, f"{len(told)} files count differently: {', '.join(sorted(told))}")


def _shown(records: Iterable[EpisodeRecord], links: videos.Links) -> tuple[EpisodeRecord, ...]:
    """Where a video is linked, the record's field `video` says where it lies."""
    return tuple(
        replace(record, extra=MappingProxyType({**record.extra, "video": path}))
        if (path := links.of.get(videos.key(record)))
        else record
        for record in records
    )
