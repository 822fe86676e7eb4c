"""Reads a grid, with checks that need a machine: whether bash can parse its setup, and which files are policies."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from comborun.errors import GridError, HostError, Problem, UserError
from comborun.grid import Grid, load_grid
from comborun.page import says_something
from comborun.planner import absent_gpus
from comborun.policy_files import Match, named
from comborun.remote import program
from comborun.remote.transport import LocalTransport

if TYPE_CHECKING:
    from pathlib import Path

    from comborun.policy_files import PolicyGlob
    from comborun.remote.transport import Transport
    from comborun.resources import HostFacts

_MOST = 2000
"""files that one glob may find"""


def read_grid(path: Path, given: tuple[str, ...] = ()) -> Grid:
    """A grid without mistakes. bash reads every `setup` once, without running it. Raises UserError with all of them."""
    grid = load_grid(path, given)
    for text in filter(says_something, dict.fromkeys(combo.settings.setup for combo in grid.combos)):
        done = LocalTransport().run("bash -n", stdin=f"setup() {{\n{text}\n}}\n".encode())
        if done.code:
            raise UserError(f"{grid.path}: bash can't read setup:\n{done.complaint}", "check quotes, `fi` and `done`")
    return grid


def host_warnings(grid: Grid, host: HostFacts) -> tuple[str, ...]:
    """What of a grid the host can't do, though it can do the rest."""
    absent = absent_gpus(grid, host)
    if not absent:
        return ()
    gpus = f"GPU{'s' * (len(absent) > 1)} {', '.join(map(str, absent))}"
    has = ", ".join(map(str, host.gpus))
    return (f"{grid.path}: `use_gpus` names {gpus}, and {host.called} has {has}: the others of it are used",)


def with_policies(grid: Grid, transport: Transport) -> Grid:
    """The grid with the files that its glob finds on the host, if it has one. Raises GridError when there are none."""
    glob = grid.policy_glob
    if glob is None or grid.policy_files:
        return grid
    matches = _find(transport, glob, grid.host_python)
    if not matches:
        hint = 'mind that `~/` is the home there; a pattern in quotes, such as "~/ckpt/*.pt"'
        raise _refused(grid, glob, f"nothing on {transport.host} matches {glob}", hint)
    if len(matches) > _MOST:
        raise _refused(grid, glob, f"more than {_MOST} files match {glob}", "make it narrower, or `exclude` some")
    try:
        found = named(matches)
    except UserError as error:
        raise _refused(grid, glob, error.message, error.hint) from None
    return grid.with_files(found)


def _refused(grid: Grid, glob: PolicyGlob, message: str, hint: str) -> GridError:
    return GridError((Problem(str(grid.path), glob.line, glob.column, f"`policies`: {message}", hint),), str(grid.path))


def _find(transport: Transport, glob: PolicyGlob, host_python: str | None) -> tuple[Match, ...]:
    """The files and folders that a glob finds on the host, in one round trip, without links that lead nowhere."""
    question = json.dumps({"patterns": glob.patterns, "exclude": glob.exclude}).encode()
    python = program.Python(named=host_python or "")
    done = program.run_packed(transport, "runs", "policies", stdin=question, timeout=120, python=python)
    if done.code:
        raise HostError(f"{transport.host} can't look for {glob}", done.complaint)
    return tuple(Match(pattern, path, folder) for pattern, path, folder in program.answer(transport, done))
