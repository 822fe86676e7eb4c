"""Which runs there are, and which one a person means."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass, field, fields
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import jsonlines

from comborun.errors import HostError, UserError
from comborun.remote import program
from comborun.remote.transport import LOCAL

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from comborun.remote.mirror import Skipped
    from comborun.remote.transport import Transport


@dataclass(frozen=True)
class Launch:
    """What this machine remembers of a launch."""

    run: str
    host: str
    root: str
    directory: str
    grid: str
    transport: str = "ssh"


@dataclass(frozen=True)
class Run:
    """A run directory on a host."""

    id: str
    directory: str
    done: Mapping[str, str]
    """the fields of dispatch/done; empty while the run has not ended"""
    held: Mapping[str, str] = field(default_factory=dict[str, str])
    """what keeps it from going on: `kind` is stopped, paused, draining or halted, `why` is a line"""

    @property
    def started(self) -> str:
        """`YYYYmmddTHHMMSSZ`, from the id."""
        return self.id.rsplit("-", 2)[-2]


def _memory() -> Path:
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser() / "comborun" / "launches.jsonl"


def remember(launch: Launch) -> None:
    """Keep in mind where a run is. A laptop that can't write its memory still launches."""
    path = _memory()
    if remembered()[-1:] == (launch,):
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            writer = jsonlines.Writer(file, dumps=json.dumps)  # pyright: ignore[reportCallIssue] - attrs names it so
            writer.write(asdict(launch))
    except OSError:
        return


def remembered() -> tuple[Launch, ...]:
    """The launches from this machine, the latest last; lines that can't be read are passed over."""
    names = {field.name for field in fields(Launch)}
    needed = names - {"transport"}
    try:
        with _memory().open(encoding="utf-8", errors="replace") as file:
            reader = jsonlines.Reader(file, loads=json.loads)  # pyright: ignore[reportCallIssue] - the same
            entries = list(reader.iter(type=dict, skip_invalid=True))
    except OSError:
        return ()
    return tuple(Launch(**entry) for entry in entries if needed <= set(entry) <= names)


def list_runs(transport: Transport, roots: Iterable[str]) -> tuple[Run, ...]:
    """The runs below `roots`, newest first, in one round trip.

    Those of one root are in the order in which they were made, whatever the clock said.
    """
    roots = tuple(dict.fromkeys(roots))
    done = program.run_packed(transport, "runs", "list", *roots, timeout=30, python=program.Python(roots=roots))
    if done.code:
        raise HostError(f"the runs on {transport.host} can't be looked at", done.complaint)
    found: dict[str, tuple[tuple[str, int], Run]] = {}
    for below in program.answer(transport, done):
        started = ""
        for number, entry in enumerate(below):
            directory = entry["directory"]
            run = Run(PurePosixPath(directory).name, directory, entry["done"], entry["held"])
            started = max(started, run.started)
            found[directory] = (started, number), run
    return tuple(run for _, run in sorted(found.values(), key=lambda entry: (*entry[0], entry[1].id), reverse=True))


def choose(runs: tuple[Run, ...], wanted: str | None, host: str) -> Run:
    """The run that `wanted` names (id, its beginning, or the grid's name), or the newest.

    Raises UserError when there is none, or when several runs could be meant by the beginning of an id.
    """
    if not runs:
        raise UserError(f"there are no runs on {host}", "combo launch GRID starts one")
    if wanted is None:
        return runs[0]
    for run in runs:
        if wanted in {run.id, run.directory, run.id.rsplit("-", 2)[0]}:
            return run
    begun = [run for run in runs if run.id.startswith(wanted)]
    if len(begun) == 1:
        return begun[0]
    if begun:
        names = ", ".join(run.id for run in begun[:5])
        raise UserError(f"{wanted!r} could be any of {len(begun)} runs: {names}", "write more of the id")
    if "/" in wanted:
        raise UserError(f"there is no run in the folder {wanted!r} on {host}", "combo runs lists all that there are")
    raise UserError(f"there is no run {wanted!r} on {host}", f"the newest is {runs[0].id}; combo runs lists all")


def copy_of(host: str, run: str, directory: str) -> Path:
    """Where the records of a run are on this machine: in the run itself, or in the mirror of a run elsewhere."""
    if host == LOCAL:
        return Path(directory)
    from comborun.remote.fetch import mirror_directory

    return mirror_directory(host, run)


def bring(transport: Transport, run: str, directory: str, most: int | None = None) -> tuple[Path, tuple[Skipped, ...]]:
    """Where the records of a run are on this machine, as new as on its host, and what could not be brought here.

    `most` are the bytes that a mirror may hold, unless that is left to comborun.
    """
    copy = copy_of(transport.host, run, directory)
    if transport.host == LOCAL:
        return copy, ()
    from comborun.remote.fetch import MOST, fetch

    return copy, fetch(transport, directory, copy, most=MOST if most is None else most).skipped
