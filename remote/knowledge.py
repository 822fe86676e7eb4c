"""Expected times and memory of a grid: from its calibration, else from earlier runs' records on this machine."""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING

from comborun.attempt import End
from comborun.errors import HostError, UserError
from comborun.forecast.calibration import calibration_path, calibrations, knowledge_of
from comborun.forecast.outlook import outlook
from comborun.planner import NOTHING_KNOWN, Knowledge, Pace, lay_out, lay_out_on_slurm, pace_key
from comborun.remote.runs import copy_of, newest_plan, remembered
from comborun.text import MIB

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from comborun.forecast.calibration import Calibration
    from comborun.grid import Grid
    from comborun.plan import Plan, Session
    from comborun.resources import HostFacts

_RUNS = 3
"""that are looked at, the latest first"""


def known_of(grid: Grid, host: HostFacts) -> Knowledge:
    """What a calibration of this grid on this host tells; else what earlier runs do, where their records are here."""
    sessions = lay_out(grid, host).sessions
    path = calibration_path(grid.path)
    for calibration in reversed(read_calibrations(grid)):
        if calibration.is_of(host) and (found := knowledge_of(calibration, sessions, path.name)):
            return found
    return _from_earlier_runs(host.host, grid.name, sessions)


def read_calibrations(grid: Grid) -> tuple[Calibration, ...]:
    """Of the file beside the grid; none where there is none. Raises UserError for one that can't be read."""
    path = calibration_path(grid.path)
    try:
        return calibrations(path.read_text(encoding="utf-8"), path)
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} can't be read: {error}", "") from None


def measured_notes(plan: Plan, grid: Grid, host: HostFacts) -> tuple[str, ...]:
    """A sentence about measured values that a new run uses because the grid gives none."""
    if plan.slurm:  # a login node may have no GPUs at all, so the grid is not laid out for it
        return ()
    known = known_of(grid, host)
    if known.source != "calibration":
        return ()
    filled = list(outlook(plan, grid, host, known).filled)
    if not grid.limits.parallel:
        filled.append(f"limits.parallel {plan.limits.parallel}")
    name = calibration_path(grid.path).name
    return (f"{', '.join(filled)}: as measured, by {name}",) if filled else ()


def laid_out(grid: Grid, host: HostFacts, shipped: str, known: Knowledge | None = None, *, slurm: bool) -> Plan:
    """The plan for the wanted engine; without `known`, with everything that is known."""
    if slurm:
        return lay_out_on_slurm(grid, host, shipped)
    return lay_out(grid, host, shipped, known_of(grid, host) if known is None else known)


def _from_earlier_runs(host: str, grid: str, sessions: Iterable[Session]) -> Knowledge:
    """What the grid's latest runs on `host` that were launched from here tell of the work of `sessions`."""
    wanted = {pace_key(session) for session in sessions}
    spent: defaultdict[str, list[End]] = defaultdict(list)
    runs: list[str] = []
    for run, directory in _runs(host, grid):
        found = [(key, end) for key, end in _ends(directory) if key in wanted]
        runs += [run] if found else []
        for key, end in found:
            spent[key].append(end)
    if not spent:
        return NOTHING_KNOWN
    paces = MappingProxyType({key: _pace(ends) for key, ends in spent.items()})
    return Knowledge("runs", f"records of {', '.join(runs)}", paces)


def _pace(ends: Sequence[End]) -> Pace:
    """All their time, start-up included, over all their episodes; and the MiB that one of them held at most."""
    seconds = sum(end.ended - (end.started or 0) for end in ends)
    memory = max((end.peak_memory or 0) // MIB for end in ends)
    return Pace(seconds / sum(end.records or 0 for end in ends), memory=memory)


def _runs(host: str, grid: str) -> Iterator[tuple[str, Path]]:
    """The latest runs whose records are on this machine."""
    launches = {one.run: one for one in reversed(remembered()) if (one.host, one.grid) == (host, grid)}
    count = 0
    for launch in launches.values():
        try:
            directory = copy_of(host, launch.run, launch.directory)
        except HostError:
            continue
        if (directory / "plan-1.json").is_file():
            count += 1
            yield launch.run, directory
        if count == _RUNS:
            return


def _ends(directory: Path) -> Iterator[tuple[str, End]]:
    """Of every attempt that did work and ended by itself, with the key of its session's work."""
    try:
        plan, _ = newest_plan(directory)
    except (OSError, ValueError):
        return  # a plan of another version says nothing
    for session in plan.sessions:
        files = (directory / "sessions" / session.name).glob("attempt-*/end") if session.flag != "dropped" else ()
        for file in sorted(files):
            try:
                end = End.parse(file.read_text(encoding="utf-8", errors="replace"))
            except OSError:
                continue
            if end.clean and end.started and end.records and end.ended > end.started:
                yield pace_key(session), end
