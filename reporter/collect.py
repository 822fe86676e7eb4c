"""Everything that a report is made of, read from a directory on this machine: a run, or any folder of records."""

from __future__ import annotations

import json
import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from comborun.attempt import Begin, End, parse_record
from comborun.errors import UserError
from comborun.layout import AttemptLayout, RunLayout
from comborun.plan import Plan, Session
from reporter.adapters import Context, Defect, Reading, Reject, RejectKind, jsonl_rows

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from comborun.episode import EpisodeRecord

RUN = RunLayout(PurePosixPath())
"""names relative to the run directory"""


@dataclass(frozen=True)
class Attempt:
    number: int
    begin: Begin | None
    end: End | None


@dataclass(frozen=True)
class SessionHistory:
    session: Session
    attempts: tuple[Attempt, ...]
    """by number"""


@dataclass(frozen=True)
class ResultFile:
    path: str
    """relative to the directory that was collected from, with slashes"""
    size: int
    records: int


@dataclass(frozen=True)
class Collected:
    name: str
    """the run's id, or the folder's name"""
    plan: Plan | None
    """None for a folder of records that nobody planned"""
    sessions: tuple[SessionHistory, ...]
    records: tuple[EpisodeRecord, ...]
    rejects: tuple[Reject, ...]
    defects: tuple[Defect, ...]
    files: tuple[ResultFile, ...]
    done: Mapping[str, str]
    """the dispatcher's last record; empty while the run lasts"""
    provenance: Mapping[str, str]


def collect_run(directory: Path, unread: Mapping[PurePosixPath, str] = MappingProxyType({})) -> Collected:
    """Everything in a run directory, from all attempts of all sessions.

    `unread` are result files that the directory lacks or should not be asked for, each with the reason. They are told
    like files that can't be read here, so that a copy of a run gives the report that the run itself gives.
    """
    plan = _plan(directory)
    histories = tuple(SessionHistory(session, _attempts(directory, session.name)) for session in plan.sessions)
    shelf = _Shelf(directory, unread)
    for history in histories:
        if history.session.unit == "episode":
            for attempt in history.attempts:
                shelf.take_attempt(history.session, attempt.number)
    return shelf.collected(
        name=_text(directory / RUN.id).strip() or directory.resolve().name,
        plan=plan,
        sessions=histories,
        done=MappingProxyType(parse_record(_text(directory / RUN.done))),
        provenance=MappingProxyType(_provenance(directory)),
    )


def collect_folder(directory: Path) -> Collected:
    """Every .jsonl file below a folder; its records name their own combos, and `attempt-N` in a path is its attempt."""
    if not directory.is_dir():
        raise UserError(f"{directory} is not a folder", "give a run directory, or a folder of .jsonl files")
    if (directory / RUN.plan(1)).is_file() and not (directory / RUN.manifest).is_file():
        raise _half(directory, RUN.plan(1), RUN.manifest)
    shelf = _Shelf(directory, {})
    for path in _distinct(_walk(directory)):
        name = path.relative_to(directory)
        shelf.take(path, Context(path=name.as_posix(), attempt=_attempt_in(name)))
    return shelf.collected(
        name=directory.resolve().name,
        plan=None,
        sessions=(),
        done=MappingProxyType({}),
        provenance=MappingProxyType({}),
    )


class _Shelf:
    """What has been read so far. A file's bytes are gone as soon as its records are there."""

    def __init__(self, directory: Path, unread: Mapping[PurePosixPath, str]) -> None:
        self._directory = directory
        self._unread = unread
        self._readings: list[Reading] = []
        self._files: list[ResultFile] = []

    def take_attempt(self, session: Session, number: int) -> None:
        output = RUN.attempt(session.name, number).output
        here = self._directory / output
        found = {path for pattern in session.results.files for path in _matching(here, pattern) if not _empty(path)}
        found |= {self._directory / name for name in self._unread if name.is_relative_to(output)}
        for path in sorted(found):
            context = Context(
                path=path.relative_to(self._directory).as_posix(),
                policy=session.policy,
                environment=session.environment,
                rules=session.results,
                session=session.name,
                attempt=number,
            )
            self.take(path, context)

    def take(self, path: Path, context: Context) -> None:
        reason = self._unread.get(PurePosixPath(context.path)) or _broken(path)
        reading, size = _unreadable(context, reason) if reason else _read(path, context)
        self._readings.append(reading)
        self._files.append(ResultFile(context.path, size, len(reading.records)))

    def collected(
        self,
        name: str,
        plan: Plan | None,
        sessions: tuple[SessionHistory, ...],
        done: Mapping[str, str],
        provenance: Mapping[str, str],
    ) -> Collected:
        return Collected(
            name=name,
            plan=plan,
            sessions=sessions,
            records=tuple(record for reading in self._readings for record in reading.records),
            rejects=tuple(reject for reading in self._readings for reject in reading.rejects),
            defects=tuple(defect for reading in self._readings for defect in reading.defects),
            files=tuple(self._files),
            done=done,
            provenance=provenance,
        )


def _read(path: Path, context: Context) -> tuple[Reading, int]:
    """What a file says, and its size."""
    try:
        with path.open("rb") as stream:
            return jsonl_rows.read(stream, context), stream.tell()
    except OSError as error:
        return _unreadable(context, f"can't be read: {error.strerror}")


def _unreadable(context: Context, reason: str) -> tuple[Reading, int]:
    return Reading(rejects=(Reject(context.path, 0, RejectKind.UNREADABLE, reason),)), 0


def _broken(path: Path) -> str:
    return "a link that leads nowhere" if path.is_symlink() and not path.exists() else ""


def _empty(path: Path) -> bool:
    """What holds nothing yet is no result, here as in evidence.sh."""
    return path.exists() and path.stat().st_size == 0


def _plan(directory: Path) -> Plan:
    path = directory / RUN.plan(1)
    try:
        return Plan.from_json(path.read_text("utf-8", "surrogateescape"))
    except OSError as error:
        if (directory / RUN.manifest).is_file():
            raise _half(directory, RUN.manifest, RUN.plan(1)) from None
        raise UserError(
            f"{directory} is no run directory: {path.name}: {error.strerror}",
            "give a run directory, or report a folder of .jsonl files",
        ) from None
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} can't be read as a plan: {error!r}", "was it written by this version?") from None


def _half(directory: Path, held: PurePosixPath, lacking: PurePosixPath) -> UserError:
    return UserError(
        f"{directory} is a run directory that was not copied whole: it holds {held} but no {lacking}",
        f"copy it again with all that is in it, or report its results alone: combo report {directory / RUN.sessions}",
    )


def _attempts(directory: Path, name: str) -> tuple[Attempt, ...]:
    folders = (directory / RUN.session(name)).glob("attempt-*")
    numbers = sorted(int(number) for folder in folders if (number := folder.name[len("attempt-") :]).isdecimal())
    return tuple(_attempt(directory, RUN.attempt(name, number), number) for number in numbers)


def _attempt(directory: Path, layout: AttemptLayout, number: int) -> Attempt:
    begin, end = _text(directory / layout.begin), _text(directory / layout.end)
    return Attempt(number, Begin.parse(begin) if begin else None, End.parse(end) if end else None)


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def _provenance(directory: Path) -> dict[str, str]:
    """What run.json says beside the plan, flat: `{"git": {"commit": ...}}` becomes `git.commit`."""
    try:
        manifest = json.loads(_text(directory / RUN.manifest) or "{}")
    except ValueError:
        return {}
    told = manifest.get("provenance") if isinstance(manifest, dict) else None
    return dict(_flat(told or {}, ()))


def _flat(value: Any, keys: tuple[str, ...]) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from _flat(entry, (*keys, str(key)))
    elif value is not None and value not in ("", [], {}):
        yield ".".join(keys), value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _walk(directory: Path) -> Iterator[Path]:
    for folder, folders, names in os.walk(directory):
        folders[:] = sorted(folder for folder in folders if not folder.startswith("."))
        paths = (Path(folder, name) for name in sorted(names) if name.endswith(".jsonl"))
        yield from (path for path in paths if _shown(Path(path.name)) and _readable(path))


def _matching(directory: Path, pattern: str) -> Iterator[Path]:
    """What evidence.sh takes the pattern for, beginning with bash's own ways: `a/**` has files, `**.x` is `*.x`."""
    parts = [part if part == "**" else re.sub(r"\*\*+", "*", part.replace("[^", "[!")) for part in pattern.split("/")]
    deep = "**" in pattern
    for path in directory.glob("/".join([*parts, "*"] if parts[-1] == "**" else parts)):
        inner = path.relative_to(directory)
        if _shown(inner) and _readable(path) and not (deep and _through_link(directory, inner)):
            yield path


def _through_link(directory: Path, inner: Path) -> bool:
    """Whether a folder on the way is a link: `latest` leads to files that are found without it."""
    return any((directory / folder).is_symlink() for folder in list(inner.parents)[:-1])


def _shown(path: Path) -> bool:
    """As the shell's patterns have it: what is hidden is meant for nobody, such as a file being written."""
    return not any(part.startswith(".") for part in path.parts)


def _readable(path: Path) -> bool:
    """Files, and links that lead nowhere, so that they are named; no pipes, which would be waited for."""
    return path.is_file() or (path.is_symlink() and not path.exists())


def _distinct(paths: Iterable[Path]) -> Iterator[Path]:
    """Each file once, whatever the number of links to it."""
    seen: set[tuple[int, int]] = set()
    for path in paths:
        status = path.stat() if path.exists() else path.lstat()
        if (status.st_dev, status.st_ino) not in seen:
            seen.add((status.st_dev, status.st_ino))
            yield path


def _attempt_in(path: Path) -> int:
    numbers = (part.removeprefix("attempt-") for part in path.parts if part.startswith("attempt-"))
    return next((int(number) for number in numbers if number.isdecimal()), 0)
