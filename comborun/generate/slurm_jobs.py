"""A plan as jobs of Slurm: arrays in which each task runs one session. Pure.

comborun/host/engines/arrays.py submits them on the host.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, NamedTuple

from comborun.model.resources import SlurmOptions
from comborun.rules.names import RUN
from comborun.rules.records import render
from comborun.text import several

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from comborun.model.plan import Plan, Session

MARGIN_S = 300
"""seconds that a task gets beyond the session's own limit: for its start, for Slurm's warning 1 to 2 minutes before the
end, and for ending a command that ignores signals"""
SETTLE_MINUTES = 30
"""time limit of the small job that judges lost sessions and submits retries"""
_SHORT_MINUTES = 2
_PROGRAM = (
    f'read -r python <"$1/{RUN.python}"',
    # a node may lack the interpreter that the login node has
    f'[[ -x $python ]] || {{ source "$1/{RUN.find_python}" && python_or_leave ""; }}',
)


class TaskRequest(NamedTuple):
    """The request of one task. Sessions of one kind become one array. 0 or empty: the cluster decides."""

    gpus: int
    cpus: int
    memory: int
    """MiB"""
    minutes: int
    gpu_type: str

    @property
    def asks(self) -> bool:
        return bool(self.gpus or self.cpus or self.memory or self.minutes)

    def __str__(self) -> str:
        """`1 GPU, 4 CPUs, 8192 MiB, 1 h 5 min`."""
        amounts = [several(self.gpus, f"{self.gpu_type} GPU".strip())] if self.gpus else []
        amounts += [several(self.cpus, "CPU")] if self.cpus else []
        amounts += [f"{self.memory} MiB"] if self.memory else []
        amounts += [_span(self.minutes)] if self.minutes else []
        return ", ".join(amounts) or "what the cluster gives a job that asks for nothing"


def kind_of(session: Session, slurm: SlurmOptions) -> TaskRequest:
    """The request of a session's task, from its resources and its limit."""
    limit = -(-(session.watch.max_s + MARGIN_S) // 60) if session.watch.max_s else 0
    return TaskRequest(
        gpus=session.gpus,
        cpus=math.ceil(session.request.cpus),
        memory=session.request.memory,
        minutes=min(filter(None, (limit, slurm.minutes)), default=0),
        gpu_type=slurm.gpu_type if session.gpus else "",
    )


def kinds(plan: Plan) -> tuple[TaskRequest, ...]:
    """The different requests of a plan, in the order of the sessions."""
    slurm = plan.slurm
    assert slurm
    return tuple(dict.fromkeys(kind_of(session, slurm) for session in plan.sessions))


def texts(plan: Plan) -> Iterator[tuple[str, str]]:
    """Path below the run directory, and text, of each file for Slurm."""
    slurm, found = plan.slurm, kinds(plan)
    assert slurm
    numbers = {kind: number for number, kind in enumerate(found, 1)}
    yield RUN.engine, "slurm\n"
    yield RUN.slurm_sessions, render((session.name, numbers[kind_of(session, slurm)]) for session in plan.sessions)
    for kind, number in numbers.items():
        yield RUN.array(number), array_script(kind, slurm)
    yield RUN.settle, settle_script(slurm, after=bool(plan.after))


def array_script(kind: TaskRequest, slurm: SlurmOptions) -> str:
    """The text of `slurm/array-<kind>.sh`: a task runs the session in the line of its index in the batch."""
    # seconds before its limit at which Slurm warns a task; the warning may come a minute earlier
    warning = 60 if kind.minutes == 0 or kind.minutes > _SHORT_MINUTES else 20 * kind.minutes
    requests = {
        "gres": kind.gpus and ":".join(filter(None, ("gpu", kind.gpu_type, str(kind.gpus)))),
        "cpus-per-task": kind.cpus,
        "mem": kind.memory and f"{kind.memory}M",
        "time": kind.minutes,
        "signal": f"B:USR1@{warning}",
    }
    asked = [f"--{name}={value}" for name, value in requests.items() if value]
    return _script(f"one session a task: {kind}", "sbatch --array=0-LAST FILE RUN BATCH", slurm.options, asked, "task")


def settle_script(slurm: SlurmOptions, *, after: bool) -> str:
    """The text of `slurm/settle.sh`, which runs after each array, and at last the grid's `after`."""
    minutes = slurm.minutes if after else SETTLE_MINUTES
    time = [f"--time={minutes}"] if minutes else []
    what = "judges what was lost, submits what is due again, ends the run"
    return _script(what, "sbatch --dependency=afterany:JOB FILE RUN", slurm.settle_options, time, "settle")


def _script(what: str, how: str, given: Sequence[str], asked: Sequence[str], verb: str) -> str:
    options = (*given, "--nodes=1", "--ntasks=1", *asked, "--requeue", "--open-mode=append")
    lines = ["#!/usr/bin/env bash", f"# {what}", f"#   {how}", *(f"#SBATCH {option}" for option in options)]
    return "\n".join([*lines, *_PROGRAM, f'exec "$python" -I -S "$1/{RUN.program}" {verb} "$@"', ""])


def _span(minutes: int) -> str:
    hours, rest = divmod(minutes, 60)
    return " ".join([*([f"{hours} h"] if hours else []), *([f"{rest} min"] if rest else [])])
