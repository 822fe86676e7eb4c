"""The launches from this machine, as it remembers them."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple


def short(run: str) -> str:
    """The last four characters of a run's id: enough for `combo status`, and for a narrow table."""
    return run.rpartition("-")[2]


class Launch(NamedTuple):
    """A launch, as this machine remembers it."""

    run: str
    host: str
    root: str
    directory: str
    grid: str
    transport: str = "ssh"
    file: str = ""
    """the grid's file; empty if an earlier version launched"""
    sha256: str = ""
    """of its bytes at the launch"""
    options: str = ""
    """what another launch of it needs, as it is typed"""
    grid_run: str = ""
    """the run on several hosts of which this is a part"""
    place: int = 0
    """its host's place among them"""

    @property
    def names(self) -> set[str]:
        return {self.grid, self.run, self.grid_run or self.run, self.directory, short(self.run)}


def memory(name: str = "launches.jsonl") -> Path:
    """A file in which this machine remembers something."""
    base = os.environ.get("XDG_STATE_HOME") or "~/.local/state"
    return Path(base).expanduser() / "comborun" / name


def remember(launch: Launch) -> None:
    """Remember where a run is. A laptop that can't write its memory can still launch."""
    import jsonlines  # slow to import, and only a launch needs it

    path = memory()
    if remembered()[-1:] == (launch,):
        return
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("a", encoding="utf-8") as file:
            writer = jsonlines.Writer(file, dumps=json.dumps)  # pyright: ignore[reportCallIssue] - attrs names it so
            writer.write(launch._asdict())
    except OSError:
        return


def remembered() -> tuple[Launch, ...]:
    """The launches from this machine, the latest last; unreadable lines are skipped."""
    try:
        lines = memory().read_text("utf-8", "replace").splitlines()
    except OSError:
        return ()
    launches = []
    for line in lines:
        with suppress(ValueError, TypeError, RecursionError):
            launches.append(Launch(**json.loads(line)))
    return tuple(launches)


def fitting(wanted: str | None) -> list[Launch]:
    """The launches from here that `wanted` names, by a whole name, else by how an id begins; the latest last.

    None names all.
    """
    launches = remembered()
    named = [one for one in launches if wanted is None or wanted in one.names]
    return named or [one for one in launches if one.run.startswith(wanted or "")]


def host_of(wanted: str | None) -> str | None:
    """The host of the latest launch from here that `wanted` names."""
    return next((launch.host for launch in reversed(fitting(wanted))), None)


def parts_of(wanted: str | None) -> tuple[Launch, ...]:
    """The parts of the run on several hosts that `wanted` names, the first host's first, as this machine knows them.

    Empty if the latest launch that fits is of a run on one host.
    """
    fits = fitting(wanted)
    if not fits or not fits[-1].grid_run:
        return ()
    parts = {one.host: one for one in remembered() if one.grid_run == fits[-1].grid_run}
    return tuple(sorted(parts.values(), key=lambda one: one.place))


def changed_since(run: str) -> Launch | None:
    """The latest launch of a run from here, if its grid's file differs now; None also where that is not known."""
    from hashlib import sha256  # slow to import

    last = next((one for one in reversed(remembered()) if one.run == run and one.file), None)
    try:
        return last if last and sha256(Path(last.file).read_bytes()).hexdigest() != last.sha256 else None
    except OSError:
        return None


def is_remembered(directory: str) -> bool:
    """Whether a launch from here made a run in this folder, on any host."""
    return any(launch.directory.rstrip("/") == directory.rstrip("/") for launch in remembered())
