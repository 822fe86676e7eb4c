"""The key `slurm` of a grid file: what its jobs are asked to be besides what the sessions need."""

from __future__ import annotations

import math
import re
from typing import Annotated

from pydantic import Field, PlainValidator, WithJsonSchema

from comborun.errors import UserError
from comborun.grid.keys.quantity import parse_duration
from comborun.grid.keys.shapes import Keys, OneOrMany
from comborun.grid.keys.values import DURATION_SCHEMA, Positive, guarded, line_of, scalar_of
from comborun.resources import Slurm

_WORD = r"[A-Za-z0-9_][A-Za-z0-9_.@+/-]*"
_NODES = r"[A-Za-z0-9_][A-Za-z0-9_.,\[\]-]*"
_CONSTRAINT = r"[A-Za-z0-9_.&|*()\[\]!:=-]+"
_OPTION = r"--[a-z][a-z0-9-]*(=[A-Za-z0-9_.,:;+@%/=&|*()\[\]!~^-]+)?"
"""no blank, quote, # or backslash: Slurm would read them in its own way in the head of a script"""
_LONGEST_MINUTES = 525_600
_RESOURCES = "`resources` says it: gpus, cpus, memory"
_OURS = "comborun says it by itself"
_ELSEWHERE = {
    **dict.fromkeys(("--gpus", "--gpus-per-node", "--gpus-per-task", "--gpus-per-socket", "--gres"), _RESOURCES),
    **dict.fromkeys(("--cpus-per-task", "--cpus-per-gpu", "--mem", "--mem-per-cpu", "--mem-per-gpu"), _RESOURCES),
    **{f"--{key}": f"`slurm: {{{key}: ...}}` says it" for key in ("partition", "account", "qos", "constraint")},
    **{f"--{key}": f"`slurm: {{{key}: ...}}` says it" for key in ("reservation", "exclude", "time")},
    **dict.fromkeys(("--mail-user", "--mail-type"), "`slurm: {mail: you@example.org}` says it"),
    **dict.fromkeys(("--array", "--nodes", "--ntasks", "--output", "--error", "--input", "--open-mode"), _OURS),
    **dict.fromkeys(("--job-name", "--comment", "--dependency", "--signal", "--requeue", "--no-requeue"), _OURS),
    **dict.fromkeys(("--export", "--export-file", "--chdir", "--wrap", "--parsable", "--wait", "--test-only"), _OURS),
    **dict.fromkeys(("--quiet", "--verbose", "--hold", "--kill-on-invalid-dep", "--ntasks-per-node"), _OURS),
    "--clusters": "launch on a login node of that cluster",
}


def _word(tree: object) -> str:
    return _matching(tree, _WORD, "a name such as `gpu`")


def _gpu_type(tree: object) -> str:
    return _matching(tree, r"[A-Za-z0-9_][A-Za-z0-9_.-]*", "as `sinfo -o %G` tells: `gpu:a100:8` has the type a100")


def _nodes(tree: object) -> str:
    return _matching(tree, _NODES, "node names as Slurm writes them, such as `n[1-3]` in quotes")


def _constraint(tree: object) -> str:
    return _matching(tree, _CONSTRAINT, "features as Slurm writes them, such as `a100|h100`; no blanks, no quotes")


def _address(tree: object) -> str:
    return _matching(tree, r"[A-Za-z0-9_.+-]+@[A-Za-z0-9.-]+", "an address such as you@example.org")


def _matching(tree: object, pattern: str, hint: str) -> str:
    text = line_of(tree)
    if not re.fullmatch(pattern, text):
        raise UserError(f"`{text}` is nothing that Slurm would take here", hint)
    return text


def _minutes(tree: object) -> int:
    minutes = math.ceil(parse_duration(scalar_of(tree).text) / 60)
    if minutes < 1:
        raise UserError("a task without time", "such as 4 h; remove it for what the partition gives")
    if minutes > _LONGEST_MINUTES:
        raise UserError("a task of more than a year", "such as 4 h; remove it for what the partition gives")
    return minutes


def _option(tree: object) -> str:
    text = line_of(tree)
    name = text.partition("=")[0]
    if hint := _ELSEWHERE.get(name):
        raise UserError(f"`{name}` has no place here", hint)
    if re.fullmatch(r"-[A-Za-z].*", text):
        raise UserError(f"`{text}` is a short option", "write the long one, such as `--licenses=sim:1`")
    if not re.fullmatch(_OPTION, text):
        raise UserError(
            f"`{text}` is no long option of sbatch in one word", "such as `--licenses=sim:1`: no blanks, no quotes"
        )
    return text


def _pattern(pattern: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "pattern": f"^{pattern}$"})


Word = Annotated[str, PlainValidator(guarded(_word)), _pattern(_WORD)]
GpuType = Annotated[str, PlainValidator(guarded(_gpu_type)), _pattern("[A-Za-z0-9_][A-Za-z0-9_.-]*")]
Nodes = Annotated[str, PlainValidator(guarded(_nodes)), _pattern(_NODES)]
Constraint = Annotated[str, PlainValidator(guarded(_constraint)), _pattern(_CONSTRAINT)]
Address = Annotated[str, PlainValidator(guarded(_address)), _pattern("[A-Za-z0-9_.+-]+@[A-Za-z0-9.-]+")]
Minutes = Annotated[int, PlainValidator(guarded(_minutes)), WithJsonSchema(DURATION_SCHEMA)]
Option = Annotated[str, PlainValidator(guarded(_option)), _pattern(_OPTION)]


class SlurmKeys(Keys):
    """For `--slurm`; without it nothing of this is read."""

    partition: Annotated[tuple[Word, ...], OneOrMany()] = Field(
        default=(), description="the partition, or several of which Slurm takes one"
    )
    account: Word | None = Field(default=None, description="whom the time is charged to")
    qos: Word | None = Field(default=None, description="quality of service")
    constraint: Constraint | None = Field(default=None, description="features that a node must have")
    reservation: Word | None = Field(default=None, description="a reservation of yours")
    exclude: Annotated[tuple[Nodes, ...], OneOrMany()] = Field(default=(), description="nodes on which nothing runs")
    gpu_type: GpuType | None = Field(default=None, description="the type of GPU, where the cluster has several")
    time: Minutes | None = Field(
        default=None, description="how long a task may take; one whose session has a shorter `max_time` asks for less"
    )
    parallel: Positive | None = Field(default=None, description="tasks of the run that run at once, at most")
    array: Positive | None = Field(default=None, description="tasks of one array, at most; else what the cluster takes")
    mail: Address | None = Field(default=None, description="where Slurm sends word of arrays that end or fail")
    settle_partition: Word | None = Field(
        default=None, description="where the small job runs that retries and ends the run; else as all others"
    )
    options: Annotated[tuple[Option, ...], OneOrMany()] = Field(
        default=(), description="further long options of sbatch, in one word each"
    )


def slurm_settings(keys: SlurmKeys, parallel: int | None) -> Slurm:
    """The block as the plan has it; `parallel` is the grid's own limit, which holds where the block has none."""
    common = [f"--{key}={value}" for key, value in (("account", keys.account), ("qos", keys.qos)) if value]
    reserved = [f"--reservation={keys.reservation}"] if keys.reservation else []
    there = [f"--constraint={keys.constraint}"] if keys.constraint else []
    there += [f"--exclude={','.join(keys.exclude)}"] if keys.exclude else []
    mail = [f"--mail-user={keys.mail}", "--mail-type=END,FAIL"] if keys.mail else []
    partition = [f"--partition={','.join(keys.partition)}"] if keys.partition else []
    settle = [f"--partition={keys.settle_partition}"] if keys.settle_partition else [*partition, *reserved]
    return Slurm(
        options=(*partition, *common, *reserved, *there, *mail, *keys.options),
        settle_options=(*settle, *common),
        gpu_type=keys.gpu_type or "",
        minutes=keys.time or 0,
        parallel=keys.parallel or parallel or 0,
        array=keys.array or 0,
    )
