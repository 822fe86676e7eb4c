"""The forecast of a plan on its host: how many sessions run at once and why, when it ends, and a bound for that. Pure.

A number is given only if all its inputs are known.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from comborun.planner.packing import Job, Stage, beside_servers, fits, play, stage
from comborun.work import combo_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from comborun.grid import Grid
    from comborun.plan import Plan, Session
    from comborun.planner.knowledge import Knowledge
    from comborun.resources import HostFacts
    from comborun.rules.placement import Capacity, Request
    from comborun.work import Combo

PARALLEL = "limits.parallel"
_FILLED = {"gpu_memory": " MiB", "memory": " MiB", "cpus": " (its share of the cores)"}
"""requests that may be filled in, and their units"""


@dataclass(frozen=True)
class Bound:
    """A time that no order of the sessions can beat, if each takes as long as predicted."""

    seconds: float
    of: str
    """the reason for the bound"""


@dataclass(frozen=True)
class Outlook:
    at_once: int
    limited: str
    """the limiting resource; empty if all sessions run at once"""
    caps: tuple[str, ...]
    """what each resource allows, for the most frequent request"""
    never: tuple[str, ...]
    """sessions that need more than the empty host has"""
    makespan: float | None
    """seconds; None if the time of a session is unknown"""
    bound: Bound | None
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
    beside = beside_servers(on)
    otherwise = "the best that was measured" if known.best else "one for each core"
    slots = PARALLEL if grid.limits.parallel else otherwise
    possible = [job for job in jobs if _possible(job.request, on)]
    first = play([job._replace(seconds=1.0) for job in possible], replace(on, stagger=0.0))
    unknown = tuple(dict.fromkeys(f"{one.policy} in {one.environment}" for one in sessions if not one.expected_s))
    whole = not unknown and len(possible) == len(jobs)
    return Outlook(
        at_once=first.most,
        limited=slots if first.short_of == "slots" else first.short_of,
        caps=tuple(_caps(_usual(jobs), beside, slots)),
        never=tuple(one.name for one in sessions if not _possible(one.resources, on)),
        makespan=play(jobs, on).makespan if whole else None,
        bound=bound(jobs, beside) if whole else None,
        sequential=_sequential(sessions, known) if not unknown else None,
        unknown=unknown,
        told=known.told,
        filled=tuple(_filled(sessions, grid)) if known.told else (),
    )


def _usual(jobs: Sequence[Job]) -> Request:
    return Counter(job.request for job in jobs).most_common(1)[0][0]


def _possible(request: Request, on: Stage) -> bool:
    return fits([request], replace(on, slots=1))[0] == 1


def _caps(asked: Request, on: Stage, slots: str) -> Iterator[str]:
    capacity, gpus = on.capacity, asked.gpus
    if asked.cpus and capacity.cpus is not None:
        yield f"CPUs: {capacity.cpus // asked.cpus} at once"
    if asked.memory and capacity.memory is not None:
        yield f"memory: {capacity.memory // asked.memory} at once"
    if gpus and asked.gpu_memory:
        yield f"GPU memory: {_per_gpu(capacity, asked.gpu_memory)}"
    elif gpus and not capacity.per_gpu:
        yield "GPUs: 1 per GPU, since how much of its memory a session takes isn't known"
    if gpus and capacity.per_gpu:
        yield f"limits.per_gpu: {capacity.per_gpu} per GPU"
    if gpus and asked.per_gpu:
        yield f"per_gpu of {asked.group}: {asked.per_gpu} per GPU"
    if asked.per_host:
        yield f"per_host of {asked.group}: {asked.per_host} at once"
    for token in asked.tokens:
        yield f"`{token}`: 1 at once"
    yield f"{slots}: {on.slots} at once"


def _per_gpu(capacity: Capacity, memory: int) -> str:
    frees = {gpu: capacity.gpu_memory.get(gpu) for gpu in capacity.gpus}
    counts = {gpu: None if free is None else free // memory for gpu, free in frees.items()}
    if len(set(counts.values())) == 1:
        (count,) = set(counts.values())
        return "not known, since nvidia-smi doesn't tell" if count is None else f"{count} per GPU"
    return ", ".join(f"{'not known' if count is None else count} on GPU {gpu}" for gpu, count in counts.items())


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


def bound(jobs: Sequence[Job], on: Stage) -> Bound:
    """The largest of: the longest session, and for each resource demand x time / capacity."""
    capacity = on.capacity
    found = [Bound(max((job.seconds for job in jobs), default=0.0), "the longest session")]
    found.append(Bound(sum(job.seconds for job in jobs) / max(1, on.slots), "sessions at once"))
    if capacity.cpus:
        found.append(Bound(sum(job.seconds * job.request.cpus for job in jobs) / capacity.cpus, "CPUs"))
    if capacity.memory:
        found.append(Bound(sum(job.seconds * job.request.memory for job in jobs) / capacity.memory, "memory"))
    found += _gpu_bounds(jobs, capacity)
    found += _shared_bounds(jobs)
    return max(found, key=lambda one: one.seconds)


def _shared_bounds(jobs: Sequence[Job]) -> list[Bound]:
    """Bounds of tokens, which one session has at a time, and of groups with a cap on the host."""
    seconds: defaultdict[str, float] = defaultdict(float)
    for length, asked in jobs:
        for token in asked.tokens:
            seconds[f"`{token}`"] += length
        if asked.per_host:
            seconds[f"per_host of {asked.group}"] += length / asked.per_host
    return [Bound(total, of) for of, total in seconds.items()]


def _gpu_bounds(jobs: Sequence[Job], capacity: Capacity) -> list[Bound]:
    asking = [job for job in jobs if job.request.gpus]
    if not asking or not capacity.gpus:
        return []
    found: list[Bound] = []
    places = capacity.per_gpu * len(capacity.gpus)
    if places:
        found.append(Bound(sum(length * asked.gpus for length, asked in asking) / places, "sessions on a GPU"))
    else:
        alone = sum(length * asked.gpus for length, asked in asking if not asked.gpu_memory)
        found.append(Bound(alone / len(capacity.gpus), "GPUs"))
    total = sum(capacity.gpu_memory.values())
    if all(gpu in capacity.gpu_memory for gpu in capacity.gpus) and total:
        demand = sum(length * asked.gpus * asked.gpu_memory for length, asked in asking)
        found.append(Bound(demand / total, "GPU memory"))
    return found
