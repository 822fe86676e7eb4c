"""Expected times and memory of a grid, from its calibration, and plans that use them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comborun.errors import UserError
from comborun.planner import NOTHING_KNOWN, Knowledge, lay_out, lay_out_on_slurm
from comborun.planner.knowledge import calibration_path, calibrations, knowledge_of
from comborun.planner.packing import outlook

if TYPE_CHECKING:
    from comborun.grid import Grid
    from comborun.plan import Plan
    from comborun.planner.knowledge import Calibration
    from comborun.resources import HostFacts


def known_of(grid: Grid, host: HostFacts) -> Knowledge:
    """The knowledge from a calibration of this grid on this host."""
    of_host = [one for one in reversed(read_calibrations(grid)) if one.is_of(host)]
    sessions = lay_out(grid, host).sessions if of_host else ()
    found = (knowledge_of(one, sessions, calibration_path(grid.path).name) for one in of_host)
    return next(filter(None, found), NOTHING_KNOWN)


def read_calibrations(grid: Grid) -> tuple[Calibration, ...]:
    """The calibrations in the file beside the grid, if any. Raises UserError if it can't be read."""
    path = calibration_path(grid.path)
    try:
        return calibrations(path.read_text(encoding="utf-8"), path)
    except FileNotFoundError:
        return ()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"{path} can't be read: {error}", "") from None


def measured_notes(plan: Plan, grid: Grid, host: HostFacts) -> tuple[str, ...]:
    """A sentence about measured values that a new run uses because the grid gives none."""
    if plan.slurm:  # a login node may have no GPUs, so the grid is not laid out for it
        return ()
    known = known_of(grid, host)
    if not known.told:
        return ()
    filled = list(outlook(plan, grid, host, known).filled)
    if not grid.limits.parallel:
        filled.append(f"limits.parallel {plan.limits.parallel}")
    name = calibration_path(grid.path).name
    return (f"{', '.join(filled)}: as measured, by {name}",) if filled else ()


def laid_out(grid: Grid, host: HostFacts, shipped: str, known: Knowledge | None = None, *, slurm: bool) -> Plan:
    """The plan for the wanted engine; without `known`, with all that is known."""
    if slurm:
        return lay_out_on_slurm(grid, host, shipped)
    return lay_out(grid, host, shipped, known_of(grid, host) if known is None else known)
