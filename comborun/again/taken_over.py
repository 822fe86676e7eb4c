"""What of a changed grid its run takes over without a question: how work is scheduled, watched, judged and shown."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from comborun.plan import Plan

_OF_SESSIONS = ("results.metrics", "progress", "evidence", "failures", "watch", "pin", "display")
_OF_PLAN = ("retry", "notify", "after", "secrets", "slurm")
_MIB = {"gpu_memory", "memory"}
_COUNTED = ("gpu_memory", "cpus", "memory", "per_gpu", "per_host")


def taken_over(before: Plan, after: Plan) -> tuple[str, ...]:
    """What goes by the grid from now on, a sentence each. `after` is the run's plan as amended, `before` as it was."""
    limits = ((f"limits.{key}", value, getattr(after.limits, key)) for key, value in asdict(before.limits).items())
    reserve = ((f"reserve.{key}", value, getattr(after.reserve, key)) for key, value in asdict(before.reserve).items())
    gpus = ("use_gpus", _listed(before.gpus), _listed(after.gpus))
    numbers = (*limits, *reserve, gpus, ("poll", before.poll, after.poll))
    derived = {"limits.per_gpu"} if _unlimited(before) and _unlimited(after) else set[str]()
    derived |= {"limits.parallel"} if after.slurm else set()  # there it stands in `slurm`
    changed = [(key, was, now) for key, was, now in numbers if was != now and key not in derived]
    told = [f"{key}: {_shown(was, key)} before, {_shown(now, key)} now" for key, was, now in changed]
    told += [f"{key} has changed" for key in _OF_PLAN if getattr(before, key) != getattr(after, key)]
    kept = {session.name for session in before.sessions if session.flag != "dropped"}
    kept &= {session.name for session in after.sessions if session.flag != "dropped"}
    told += _requests(before, after, kept)
    told += [f"{key} has changed" for key in _OF_SESSIONS if _of(before, key, kept) != _of(after, key, kept)]
    return tuple(told)


def _requests(before: Plan, after: Plan, names: set[str]) -> Iterator[str]:
    """What sessions ask for otherwise than they did."""
    for key in _COUNTED:
        pairs = zip(_of(before, f"request.{key}", names), _of(after, f"request.{key}", names), strict=True)
        if changed := [(was, now) for was, now in pairs if was != now]:
            was, now = (_span(values, key) for values in zip(*changed, strict=True))
            yield f"resources.{key}: {was} before, {now} now"
    if _of(before, "request.tokens", names) != _of(after, "request.tokens", names):
        yield "resources.exclusive has changed"


def _span(values: Sequence[int], key: str) -> str:
    least, most = min(values), max(values)
    shown = _shown(most, key) if most else "not said"
    return shown if least == most else f"{least or 'not said'} to {shown}"


def _unlimited(plan: Plan) -> bool:
    """Whether a GPU may hold all sessions, as it may where the grid sets no `per_gpu`."""
    return not plan.limits.per_gpu or plan.limits.per_gpu >= sum(not session.flag for session in plan.sessions)


def _of(plan: Plan, key: str, names: set[str]) -> list[Any]:
    values: list[Any] = [session for session in plan.sessions if session.name in names]
    for part in key.split("."):
        values = [getattr(value, part) for value in values]
    return values


def _listed(gpus: tuple[int, ...]) -> str:
    return ", ".join(map(str, gpus)) or "none"


def _shown(value: object, key: str) -> str:
    amount = f"{value:g}" if isinstance(value, float) else str(value)
    return f"{amount} MiB" if key.rpartition(".")[2] in _MIB else amount
