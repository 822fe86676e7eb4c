"""Lay a grid out for Slurm: the same sessions, whose GPUs, cores and times are Slurm's to give."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from comborun.errors import UserError
from comborun.planner.laying import lay_out
from comborun.planner.placing import gpus_counted
from comborun.resources import Card

if TYPE_CHECKING:
    from collections.abc import Iterator

    from comborun.grid import Grid
    from comborun.plan import Plan
    from comborun.resources import HostFacts

_SHORT_MINUTES = 5
"""in a task that is as short, the time that Slurm's warning takes matters"""


def lay_out_on_slurm(grid: Grid, login: HostFacts, shipped: str = "") -> Plan:
    """The plan of `grid` for the cluster whose login node is `login`. Pure, as lay_out is.

    Raises UserError, with every reason, where the grid asks for what tasks on several nodes can't be given.
    """
    most = max((max(combo.settings.gpus, gpus_counted(combo)) for combo in grid.combos), default=0)
    nodes = replace(login, gpus=tuple(range(most)), cards=tuple(map(Card, range(most))))
    plan = lay_out(grid.model_copy(update={"use_gpus": None, "servers": {}}), nodes, shipped, here=False)
    plan = replace(
        plan,
        limits=replace(plan.limits, parallel=grid.limits.parallel or len(plan.sessions)),
        gpus=(),
        cpus=0,
        slurm=grid.slurm.asked(grid.limits.parallel),
    )
    if reasons := tuple(_refusals(plan, grid)):
        listed = "".join(f"\n  {reason}" for reason in reasons)
        raise UserError(f"{grid.path}: not with --slurm:{listed}", "without --slurm all of it works on one machine")
    return plan


def not_held(plan: Plan, grid: Grid) -> tuple[str, ...]:
    """What the grid says and Slurm decides instead, a sentence each."""
    limits = grid.limits
    said = {
        "use_gpus: Slurm picks the GPUs": grid.use_gpus is not None,
        "limits.per_gpu: a task has its GPUs alone": bool(limits.per_gpu) and any(s.gpus for s in plan.sessions),
        "resources.gpu_memory: a task has its GPUs alone": any(s.request.gpu_memory for s in plan.sessions),
        "limits.stagger: tasks start as soon as Slurm has room": bool(limits.stagger),
        "limits.warm_up: tasks start as soon as Slurm has room": bool(limits.warm_up),
        "all of slurm.time: Slurm tells a session to end up to 2 min before it is over": 0
        < (grid.slurm.time or 0)
        <= _SHORT_MINUTES,
        "reserve: Slurm knows what is taken": bool(grid.reserve.gpu_memory or grid.reserve.cpus or grid.reserve.memory),
    }
    return tuple(sentence for sentence, applies in said.items() if applies)


def _refusals(plan: Plan, grid: Grid) -> Iterator[str]:
    if gaps := [one.name for one in plan.sessions if one.components and one.request.only != tuple(range(one.gpus))]:
        yield f"`placement` ({', '.join(gaps)}): the GPUs of a task count from 0, so name all of them up to the last"
    if grid.servers:
        yield "`servers`: a server on one node is not there for tasks on another; start it by hand, where all reach it"
    if grid.replaces:
        yield "`replaces`: sessions of yours on the login node hold no node; end them by hand"
    if plan.slurm and plan.slurm.whole_node:
        return
    whole = "`slurm: {options: [--exclusive]}` gives each task a node of its own"
    if tokens := sorted({token for session in plan.sessions for token in session.request.tokens}):
        yield f"`resources.exclusive` ({', '.join(tokens)}): two tasks may come to one node; {whole}"
    if any(session.request.per_host for session in plan.sessions):
        yield f"`resources.per_host`: Slurm decides how many tasks come to one node; {whole}"
