"""Collects the records of result files. The content of a file is dropped once its records are read."""

from __future__ import annotations

import glob
import os
import sys
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import replace
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from comborun.model.attempt import EpisodeRecord, packed
from comborun.model.work import Combo, grouped
from comborun.reporter.records import files, videos
from comborun.reporter.records.collected import Collected
from comborun.reporter.records.path_parts import COLUMNS
from comborun.reporter.records.reading import UNNAMED, Context, Defect, Reading, RejectKind
from comborun.reporter.records.verdicts import contradictions, leave_undecided, settle_counts
from comborun.reporter.records.wide import wide_table
from comborun.rules.facts import Fact
from comborun.rules.results.counts import EACH_AGAIN, REPEAT
from comborun.rules.results.episodes import rebuild
from comborun.rules.results.fields import (
    ENVIRONMENT,
    IGNORE,
    LINE,
    NO_VERDICTS,
    POLICY,
    Identity,
    ResultRules,
    unreadable,
)
from comborun.rules.results.filename_results import groups
from comborun.rules.results.formats import (
    DATABASE,
    EPISODES,
    JOB_ROWS,
    JSONL_ROWS,
    LIST_LAST,
    PER_FILE,
    TABLE,
    ending_of,
)
from comborun.rules.results.repeats import why_repeated
from comborun.rules.results.result_files import Folder
from comborun.rules.results.unread import uncounted
from comborun.text import several
from comborun.words import say
from comborun.words.rows import proposed

SCHEMA_FILE = "final_benchmark_report.schema.json"
_OF_REPORTS = {SCHEMA_FILE, "final_benchmark_report.json", "summary.csv", "episodes.csv"}
"""files beside it that repeat the content of others"""
DIFFERENT = 5
"""fewest different rows of which each stands several times before they are taken as written again"""
_OUTWARD = {PER_FILE: 0, LIST_LAST: 1}
"""formats with an episode's number in a name: how many folders further out all of a kind lie"""


class RecordCollector:
    def __init__(self, directory: Path, unread: Mapping[PurePosixPath, str] = MappingProxyType({})) -> None:
        self._directory = directory
        self._unread = unread
        self._rebuilt: Counter[str] = Counter()
        """how many episodes files had that the next file continues to count, by folder or attempt"""
        self._lines: defaultdict[str, Counter[Combo]] = defaultdict(Counter)
        self._keys: defaultdict[str, dict[tuple[object, ...], int]] = defaultdict(dict)
        self.files: list[Reading] = []
        """relative to the directory, with slashes; a folder for episodes that are file names"""
        self.passed: list[Reading] = []
        """files of a folder that hold no verdict; they are named if nothing else is read"""
        self.of_videos: Sequence[Defect] = ()
        self.videos_apart: Sequence[str] = ()
        """videos that can be played and show no episode that is known"""
        self.videos_missing: Counter[str] = Counter()
        """session -> videos of its episodes that are told to be missing"""
        self._sources: dict[str, tuple[Path, Context]] = {}

    def read_file(self, path: Path, context: Context, *, expected: bool) -> None:
        """Read one file. `expected`: the grid names it, so it is a fault if its format is not known."""
        at = PurePosixPath(context.path)
        ordered = bool(context.identity.episode.word)
        own = ordered or context.identity.episode.names or context.rules.named
        group = f"{context.session}:{context.attempt}" if own else str(at.parent)
        if ordered or rebuild(at.name):
            context = replace(context, skipped=self._rebuilt[group], lines=self._lines[group])
        if context.identity.episode.names:
            context = replace(context, keys=self._keys[group])
        reading = _read(path, context, self._unread.get(at, ""))
        self._sources[reading.path] = path, context
        if not expected and reading.format in {"", TABLE, EPISODES, DATABASE} and not reading.entries:
            self._pass_over(path, reading)
            return
        decides = reading.aggregates or any(record.success is not None for record in reading.records)
        unsure = not expected and reading.format in {JSONL_ROWS, TABLE, EPISODES, DATABASE} and not decides
        if unsure and (found := _line_for(path, _unnamed(reading))) and len(proposed(found)) > 1:
            reading.proposal = say(found)
            reading.defect(0, reading.proposal)
        if unsure and not reading.entries and (table := _wide(path)):
            reading.defect(0, say(table))
        if expected and not reading.format and not reading.rejects:
            reading.reject(0, reading.unknown or say(Fact("unknown_format")), RejectKind.UNREADABLE)
        if ordered or reading.format == JOB_ROWS:
            self._rebuilt[group] += len(reading.records)
        if reading.format or reading.rejects:
            self.files.append(reading)

    def _pass_over(self, path: Path, reading: Reading) -> None:
        """Name a file that is no result file by its name alone: because it is broken, or holds verdicts. Any table and
        any document may lie in a folder."""
        broken = any(reject.kind in {RejectKind.TORN, RejectKind.UNREADABLE} for reject in reading.rejects)
        found = _line_for(path, _unnamed(reading))
        if not found and (broken or (reading.format == EPISODES and reading.rejects)):
            self.files.append(reading)
            return
        if table := _wide(path):
            found, reading.unknown = None, say(table)
        why = say(found) if found else reading.unknown
        passed = Reading(reading.path)
        passed.defect(0, why or say(Fact("unknown_format")))
        if found and proposed(found).get("success") != NO_VERDICTS:
            self.files.append(passed)
        else:
            self.passed.append(passed)

    def pass_over(self, path: Path, why: Fact) -> None:
        """Name a file that is not read if nothing else is."""
        passed = Reading(path.relative_to(self._directory).as_posix())
        passed.defect(0, say(why))
        self.passed.append(passed)

    def read_names(self, paths: Iterable[Path], context: Context) -> None:
        """Read episodes that are names of files, one group per environment."""
        found = (path.relative_to(self._directory).as_posix() for path in paths if path.exists())
        for folder, group in groups(found).items():
            self.files.append(files.read_names(group, replace(context, path=folder)))

    def link_videos(
        self,
        found: Sequence[videos.Video],
        bases: Mapping[str, int] = MappingProxyType({}),
        unlisted: AbstractSet[tuple[str, int]] = frozenset(),
    ) -> None:
        """Give each record its video among these, in its field `video`. `bases`: by session, the episode that its
        program calls 0. `unlisted`: sessions and attempts that have not listed their videos, as while they run."""
        if not found:
            return
        links = videos.Links(found, self.records, bases, unlisted)
        self.of_videos = links.findings
        self.videos_apart = links.apart
        self.videos_missing.update(one.session for one in self.records if videos.key(one) in links.missing)
        for reading in self.files:
            shown = ((record, links.of.get(videos.key(record))) for record in reading.records)
            reading.records = [
                replace(record, **packed(record.metrics, {**record.extra, "video": video})) if video else record
                for record, video in shown
            ]

    def keep_whole_attempts(self, planned: Mapping[str, int]) -> None:
        """If episodes are numbered as they ended, keep one attempt of each session; `planned` is by session. A mixture
        of early episodes of one attempt and late ones of another would be biased."""
        ordered = [reading for reading in self.files if reading.by_ending]
        wanted = _accepted_attempts((record for reading in ordered for record in reading.records), planned)
        for reading in ordered:
            kept = [record for record in reading.records if record.attempt == wanted[record.session]]
            if passed := [record for record in reading.records if record.attempt != wanted[record.session]]:
                whole = f"attempt {wanted[passed[0].session]} counts as a whole"
                reading.defect(0, f"{whole}: these are numbered as they ended")
                reading.records = kept

    @property
    def records(self) -> tuple[EpisodeRecord, ...]:
        return tuple(record for reading in self.files for record in reading.records)

    def collected(self, name: str, *, settled: bool = False) -> Collected:
        """What the files say. `settled`: no two runs are in one combo."""
        leave_undecided(self.files)
        self._leave_repeated()
        settle_counts(self.files, {path for path, (_, context) in self._sources.items() if context.planned_names})
        aggregates = tuple(one for reading in self.files for one in reading.aggregates)
        collisions = () if settled else _collisions(self.files)
        defects = (defect for reading in self.files for defect in reading.defects)
        unpaired = ((combo, one.unpaired) for one in self.files if one.unpaired for combo in one.combos)
        return Collected(
            name=name,
            records=self.records,
            rejects=tuple(reject for reading in self.files for reject in reading.rejects),
            defects=(*defects, *self.of_videos, *contradictions(aggregates), *collisions),
            files=tuple(self.files),
            aggregates=aggregates,
            unpaired=MappingProxyType(dict(unpaired)),
        )

    def _leave_repeated(self) -> None:
        """Take away the records of an attempt if several rows have one index and are not repeats: nothing says which
        row is the episode's. Such files are read again, with all fields. They are rare, and fields take much memory."""
        attempts: defaultdict[tuple[str, int], list[Reading]] = defaultdict(list)
        for reading in self.files:
            if reading.records and reading.records[0].session:
                attempts[reading.records[0].session, reading.records[0].attempt].append(reading)
        for readings in attempts.values():
            episodes = [record.episode for reading in readings for record in reading.records]
            identity = next((reading.identity for reading in readings if reading.identity), None)
            if identity is None or identity.episode.names or len({*episodes}) == len(episodes):
                continue
            sources = [self._sources[reading.path] for reading in readings if reading.path in self._sources]
            again = [_read(path, replace(context, keeps=True), "") for path, context in sources]
            kept = [(reading.path, reading.kept) for reading in again]
            if why := why_repeated(kept, identity, (0, identity.planned)):
                rows = len(episodes) - len({*episodes})
                readings[0].defect(0, say(Fact(REPEAT, rows=rows, of=len(episodes), **why)))
                for reading in readings:
                    reading.records = []

    @property
    def formats_read(self) -> Iterator[Defect]:
        """Says how files were read, by format; rows, also those of tables, need no message."""
        read = (file for file in self.files if file.entries or not file.rejects)
        files = (file for file in read if file.format and file.format not in {JSONL_ROWS, TABLE})
        for (name, why), alike in grouped(files, lambda file: (file.format, file.why)).items():
            others = f", like {several(len(alike) - 1, 'other file')}" if len(alike) > 1 else ""
            yield Defect(alike[0].path, 0, f"read as {name}: {why}{others}")

    @property
    def names_guessed(self) -> Iterator[Defect]:
        """Says once that names of combos are those of paths."""
        found = [(file, words) for file in self.files if file.entries and (words := _guessed(file))]
        for file, words in found[:1]:
            others = f", like those of {several(len(found) - 1, 'other file')}" if len(found) > 1 else ""
            other = f"; {_OTHER_ORDER}" if len(words) > 1 else ""
            yield Defect(file.path, 0, f"{' and '.join(words)} guessed from its path{others}{other}")


WIDE_MOST = 1 << 20
"""bytes of a table that is looked at for columns that sum up episodes"""
_OTHER_ORDER = "if these are not, or are the other way round, give a grid with their names: `--grid GRID`"


def _guessed(file: Reading) -> list[str]:
    """The policy and the environment that only its path names."""
    told = []
    for place, kind in enumerate((POLICY, ENVIRONMENT)):
        names = sorted({name for of, name in file.guessed if of == kind} - {UNNAMED})
        kept = [name for name in names if any(combo[place] == name for combo in file.combos)]
        told += [f"{kind} {names[0]!r}" if len(names) == len(kept) == 1 else f"names of {kind}"] if names else []
    return told


def _unnamed(reading: Reading) -> list[str]:
    """The names of its combo that neither its rows nor its path have."""
    return [kind for kind in (POLICY, ENVIRONMENT) if (kind, UNNAMED) in reading.guessed]


def _line_for(path: Path, unnamed: Sequence[str]) -> Fact | None:
    """That a file holds episodes, with the line of a grid that counts them, if there is one."""
    identity = Identity("", "")
    within = path.parent.parent  # the folder may have the number of the episode
    held = Folder(str(within), [glob.escape(path.relative_to(within).as_posix())], identity, "")
    found = uncounted(held, (0, 0), {"files": f"**/*{ending_of(path.name)}"})
    if not found:
        return None
    rows = _by_lines(path) if unnamed or proposed(found).get("episode") == LINE else []
    if proposed(found).get("episode") == LINE and (times := _times(rows)) > 1:
        return Fact(EACH_AGAIN, rows=len(rows), times=times)
    fields = {name for one in rows[:1] for names in one.names for name in names}
    columns = {kind: [name for name in COLUMNS[kind] if name in fields] for kind in unnamed}
    keys = [{"key": kind, "value": names[0]} for kind, names in columns.items() if names]
    own = found.fields.get("keys")
    more = {"keys": [*own, *keys]} if isinstance(own, list) else {}
    return Fact(found.code, **{**found.fields, "file": "", **more})


def _wide(path: Path) -> Fact | None:
    return wide_table(_by_lines(path)) if path.is_file() and path.stat().st_size <= WIDE_MOST else None


def _by_lines(path: Path) -> Sequence[EpisodeRecord]:
    """The rows of a file in their order, whatever they name."""
    rules = ResultRules().replace(policy=IGNORE, environment=IGNORE, episode=LINE)
    return _read(path, Context(path.name, UNNAMED, UNNAMED, rules), "").records


def _times(rows: Sequence[EpisodeRecord]) -> int:
    """How often each row stands in a file, at least, if there are several that differ."""
    found = Counter((one.verdict, one.seed, one.names, one.numbers, str(one.others)) for one in rows)
    return min(found.values()) if len(found) >= DIFFERENT else 1


def _read(path: Path, context: Context, unread: str) -> Reading:
    """`unread` says why the file is not to be opened."""
    broken = "a link that leads nowhere" if path.is_symlink() and not path.exists() else ""
    reading = Reading(context.path)
    if not (reason := unread or broken):
        try:
            with path.open("rb") as stream:
                return files.read(stream, context)
        except OSError as error:
            reason = f"can't be read: {error.strerror}"
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001 - one file must not cost the report
            reason = say(unreadable(error).fact)
    reading.reject(0, reason, RejectKind.UNREADABLE)
    return reading


def _accepted_attempts(records: Iterable[EpisodeRecord], planned: Mapping[str, int]) -> dict[str, int]:
    """Per session the lowest attempt with all planned episodes, else the one with the most."""
    episodes: defaultdict[str, Counter[int]] = defaultdict(Counter)
    for record in records:
        episodes[record.session][record.attempt] += 1
    return {
        session: max(counts, key=lambda attempt: (min(counts[attempt], planned.get(session, sys.maxsize)), -attempt))
        for session, counts in episodes.items()
    }


def _collisions(files: Iterable[Reading]) -> Iterator[Defect]:
    """Folders of one attempt whose files have the episodes' numbers in their names."""
    numbered: defaultdict[tuple[str, str, str, int], set[str]] = defaultdict(set)
    for reading in files:
        if reading.format in _OUTWARD:
            folder = str(PurePosixPath(reading.path).parents[_OUTWARD[reading.format]])
            for record in reading.records:
                numbered[record.policy, record.environment, record.session, record.attempt].add(folder)
    for folders in numbered.values():
        if len(folders) > 1:
            reason = "number their episodes alike, and only one of each number counts"
            advice = "make each an environment of its own"
            yield Defect(min(folders), 0, f"{len(folders)} folders of one combo {reason}: {advice}")


def walk(directory: Path, wanted: Callable[[str], object]) -> Iterator[Path]:
    """Files with wanted names, folder by folder, each once even if several links lead to it. Hidden files, files of
    reports and pipes are left out. Links that lead nowhere are included, so that they are reported."""
    seen: set[tuple[int, int]] = set()
    for folder, folders, found in os.walk(directory):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        for name in sorted({*found} - _OF_REPORTS if SCHEMA_FILE in found else found):
            path = Path(folder, name)
            lost = path.is_symlink() and not path.exists()
            if name.startswith(".") or not wanted(name) or not (lost or path.is_file()):
                continue
            status = path.lstat() if lost else path.stat()
            if (status.st_dev, status.st_ino) not in seen:
                seen.add((status.st_dev, status.st_ino))
                yield path
