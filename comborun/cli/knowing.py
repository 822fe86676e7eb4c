"""What is known of a grid's work before it runs, and how what is to be expected of it is told."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

from comborun.amounts import several
from comborun.cli.frame import program
from comborun.errors import UserError
from comborun.forecast.calibration import calibration_path, calibrations, knowledge_of
from comborun.forecast.outlook import outlook
from comborun.monitor.wording import duration
from comborun.planner import lay_out

if TYPE_CHECKING:
    from collections.abc import Iterator

    from comborun.facts import HostFacts
    from comborun.forecast.calibration import Calibration
    from comborun.forecast.outlook import Outlook
    from comborun.grid import Grid
    from comborun.plan import Plan
    from comborun.planner import Knowledge

_SHOWN = 3


def known_of(grid: Grid, host: HostFacts) -> Knowledge:
    """What a calibration of this grid on this host tells; else what earlier runs do, where their records are here."""
    sessions = lay_out(grid, host).sessions
    path = calibration_path(grid.path)
    for calibration in reversed(read_calibrations(grid)):
        if calibration.is_of(host) and (found := knowledge_of(calibration, sessions, path.name)):
            return found
    from comborun.remote.earlier import earlier

    return earlier(host.host, grid.name, sessions)


def read_calibrations(grid: Grid) -> tuple[Calibration, ...]:
    """Of the file beside the grid; none where there is none. Raises UserError for one that can't be read."""
    path = calibration_path(grid.path)
    try:
        return calibrations(path.read_text(encoding="utf-8"), path)
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} can't be read: {error}", "") from None


def expected_rows(plan: Plan, grid: Grid, host: HostFacts, known: Knowledge) -> dict[str, str]:
    """Rows of `combo plan` for what runs at once and when all has ended."""
    return dict(_rows(outlook(plan, grid, host, known), grid))


def expected_data(plan: Plan, grid: Grid, host: HostFacts, known: Knowledge) -> dict[str, Any]:
    """The same for programs."""
    return dataclasses.asdict(outlook(plan, grid, host, known))


def measured_notes(plan: Plan, grid: Grid, host: HostFacts) -> tuple[str, ...]:
    """What a new run goes by that the grid doesn't say: a sentence, where something was measured."""
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


def _rows(seen: Outlook, grid: Grid) -> Iterator[tuple[str, str]]:
    limited = f", limited by {seen.limited}" if seen.limited else ", all of them"
    caps = seen.caps if seen.limited else seen.caps[:-1]  # without the slots, of which there are enough
    yield "at once", f"{seen.at_once}{limited}" + (f" ({'; '.join(caps)})" if caps else "")
    if seen.never:
        yield "never", f"{', '.join(seen.never[:_SHOWN])}: asks for more than the host has free when nothing else runs"
    if seen.filled:
        yield "filled in", f"{', '.join(seen.filled)}: not said by the grid; as it was measured"
    if seen.makespan is not None and seen.bound is not None:
        bound = f"{duration(seen.bound.seconds)} ({seen.bound.of})"
        least = f"no order of sessions of the expected length ends before {bound}"
        yield "ends after", f"about {duration(seen.makespan)}; {least}"
    if seen.sequential is not None:
        pace = "" if seen.source == "calibration" else "at most, at the pace that they had beside others: "
        yield "one by one", f"{pace}{duration(seen.sequential)}"
    if seen.unknown:
        yield "ends after", f"not known: {_unknown(seen)}"
        yield "to measure", f"{program()} calibrate {grid.path}"
    elif seen.told:
        yield "known from", seen.told


def _unknown(seen: Outlook) -> str:
    names = ", ".join(seen.unknown[:_SHOWN])
    more = len(seen.unknown) - _SHOWN
    listed = f"{names} and {several(more, 'more combo')}" if more > 0 else names
    return f"nothing tells how long an episode takes of {listed}"
