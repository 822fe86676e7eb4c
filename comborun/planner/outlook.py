"""The forecast of a plan on its host: how many sessions run at once and why, and when all have ended. Pure.

A number is given only if all its inputs are known.
"""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from comborun.planner.packing import Job, Stage, fits, play, stage
from comborun.work import combo_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from comborun.grid import Grid
    from comborun.plan import Plan, Session
    from comborun.planner.knowledge import Knowledge
    from comborun.resources import HostFacts
    from comborun.rules.placement import Request
    from comborun.work import Combo

PARALLEL = "limits.parallel"
_FILLED = {"gpu_memory": " MiB", "memory": " MiB", "cpus": " (its share of the cores)"}
"""requests that may be filled in, and their units"""


@dataclass(frozen=True)
class Outlook:
    at_once: int
    limited: str
    """the limiting resource; empty if all sessions run at once"""
    never: tuple[str, ...]
    """sessions that need more than the empty host has"""
    makespan: float | None
    """seconds; None if the time of a session is unknown"""
    sequential: float | None
    """seconds of all combos one after another, each in one session"""
    unknown: tuple[str, ...]
    told: str
    """the source of the times; empty: nothing is known"""
    filled: tuple[str, ...]
    """requests of sessions that are not from the grid"""


def outlook(plan: Plan, grid: Grid, host: HostFacts, known: Knowledge) -> Outlook:
    """The forecast of `plan`, which lay_out made from the other three."""
    sessions = [one for one in plan.sessions if one.flag != "dropped"]
    jobs, on = [Job(float(one.expected_s), one.resources) for one in sessions], stage(plan, host)
    otherwise = "the best that was measured" if known.best else "one for each core"
    slots = PARALLEL if grid.limits.parallel else otherwise
    possible = [job for job in jobs if _possible(job.request, on)]
    first = play([job._replace(seconds=1.0) for job in possible], replace(on, stagger=0.0))
    unknown = tuple(dict.fromkeys(f"{one.policy} in {one.environment}" for one in sessions if not one.expected_s))
    whole = not unknown and len(possible) == len(jobs)
    return Outlook(
        at_once=first.most,
        limited=slots if first.short_of == "slots" else first.short_of,
        never=tuple(one.name for one in sessions if not _possible(one.resources, on)),
        makespan=play(jobs, on).makespan if whole else None,
        sequential=_sequential(sessions, known) if not unknown else None,
        unknown=unknown,
        told=known.told,
        filled=tuple(_filled(sessions, grid)) if known.told else (),
    )


def _possible(request: Request, on: Stage) -> bool:
    return fits([request], replace(on, slots=1))[0] == 1


def _sequential(sessions: Sequence[Session], known: Knowledge) -> float:
    """Seconds of all combos one after another, with one start-up each."""
    counts: defaultdict[Combo, int] = defaultdict(int)
    for one in sessions:
        counts[combo_of(one)] += one.count
    paces = {combo_of(one): pace for one in sessions if (pace := known.pace(one))}
    return sum(pace.length(counts[combo]) for combo, pace in paces.items())


def _filled(sessions: Sequence[Session], grid: Grid) -> Iterator[str]:
    """Says which requests the grid leaves open and a measurement has filled in."""
    said = {(combo.policy.name, combo.environment.name): combo.settings.request for combo in grid.combos}
    for key, unit in _FILLED.items():
        values = {getattr(one.request, key) for one in sessions if not getattr(said[combo_of(one)], key)} - {0}
        if values:
            least, most = min(values), max(values)
            yield f"{key} {least}{f' to {most}' if most > least else ''}{unit}"
