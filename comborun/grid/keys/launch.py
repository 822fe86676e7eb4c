"""The keys `sync`, `hosts` and `slurm`: files that are put on the host first, several hosts, and options of jobs."""

from __future__ import annotations

import math
import re
from typing import Annotated

from pydantic import ConfigDict

from comborun.errors import UserError
from comborun.grid.keys.amounts import parse_duration
from comborun.grid.keys.resources import GpuIndexes, ReserveKeys
from comborun.grid.keys.shapes import ONE_OR_MANY, Keys, OrJust, key
from comborun.grid.keys.values import (
    DURATION,
    Host,
    Pattern,
    Positive,
    Reads,
    Root,
    Seconds,
    Size,
    Workdir,
    line_of,
    matching,
    scalar_of,
)
from comborun.model.resources import SlurmOptions
from comborun.text import GIB


class SyncKeys(Keys):
    """Files of this machine that are put on the host before the first session starts."""

    model_config = ConfigDict(json_schema_extra={"required": ["from", "to"]})

    source: Workdir = key("a folder or a file of this machine; relative to the grid file", "", alias="from")
    to: Root = key("its path on the host", "")
    exclude: Annotated[tuple[Pattern, ...], ONE_OR_MANY] = key(
        "patterns of files that are not shipped, besides .git, __pycache__, .venv, node_modules, *.pyc and those of"
        " desktops and editors",
        (),
    )
    max_size: Size = key("refuse to ship more than this in total", GIB)


class HostLimitKeys(Keys):
    """Limits of one of several hosts."""

    parallel: Positive | None = key("sessions that run at once there, at most")
    per_gpu: Positive | None = key("sessions that share one GPU there, at most")
    stagger: Seconds | None = key("time between two starts there, at least")


class HostKeys(Keys):
    """One of several hosts. What it does not say is as in the grid."""

    model_config = ConfigDict(json_schema_extra={"required": ["host"]})

    host: Host = key("an alias of ~/.ssh/config, or user@address; `local` for this machine", "")
    use_gpus: GpuIndexes | None = key("indexes of the GPUs that sessions may be granted there")
    limits: HostLimitKeys = key("how much runs at once there", HostLimitKeys)
    reserve: ReserveKeys | None = key("what sessions leave free for others there")
    root: Root | None = key("folder there that holds the runs")
    host_python: Root | None = key("the Python that comborun itself uses there")


Hosts = tuple[Annotated[HostKeys, OrJust("host")], ...]

_OPTION = r"--[a-z][a-z0-9-]*(=[A-Za-z0-9_.,:;+@%/=&|*()\[\]!~^-]+)?"
"""without blank, quote, # or backslash, which Slurm would interpret in the head of a script"""
_LONGEST_MINUTES = 525_600
_OWN_KEYS = ("partition", "account", "qos", "constraint", "reservation", "exclude", "time")
_RESOURCES = (
    *("gpus", "gpus-per-node", "gpus-per-task", "gpus-per-socket", "gres", "cpus-per-task", "cpus-per-gpu"),
    *("mem", "mem-per-cpu", "mem-per-gpu"),
)
_OURS = (
    *("array", "nodes", "ntasks", "ntasks-per-node", "output", "error", "input", "open-mode", "job-name", "comment"),
    *("dependency", "signal", "requeue", "no-requeue", "export", "export-file", "chdir", "wrap", "parsable", "wait"),
    *("test-only", "quiet", "verbose", "hold", "kill-on-invalid-dep"),
)
_ELSEWHERE = {*_OWN_KEYS, *_RESOURCES, *_OURS, "clusters"}
"""options that are refused in `options`"""


def _minutes(tree: object) -> int:
    minutes = math.ceil(parse_duration(scalar_of(tree).text) / 60)
    if not 1 <= minutes <= _LONGEST_MINUTES:
        raise UserError("a task takes between a minute and a year", "such as 4 h; or leave it to the partition")
    return minutes


def _option(tree: object) -> str:
    text = line_of(tree)
    name = text.partition("=")[0]
    if name.startswith("--") and name[2:] in _ELSEWHERE:
        hint = "use `resources` or another key of `slurm`; comborun sets the rest itself"
        raise UserError(f"`{name}` is not allowed here", hint)
    if re.fullmatch(r"-[A-Za-z].*", text):
        raise UserError(f"`{text}` is a short option", "write the long one, such as `--licenses=sim:1`")
    if not re.fullmatch(_OPTION, text):
        hint = "such as `--licenses=sim:1`: no blanks, no quotes"
        raise UserError(f"`{text}` is not a long option of sbatch in one word", hint)
    return text


Word = Annotated[
    str,
    matching(
        r"[A-Za-z0-9_][A-Za-z0-9_.@+/,&|*()\[\]!:=-]*",
        "is not a word that Slurm accepts here",
        "as Slurm writes it, without blanks: `gpu`, `a100|h100`, and in quotes `n[1-3]`",
    ),
]
Option = Annotated[str, Reads(_option, {"type": "string", "pattern": f"^{_OPTION}$"})]


class SlurmKeys(Keys):
    """Options for `--slurm`."""

    partition: Annotated[tuple[Word, ...], ONE_OR_MANY] = key("the partition, or several of which Slurm takes one", ())
    account: Word | None = key("the account that pays for the time")
    qos: Word | None = key("quality of service")
    constraint: Word | None = key("features that a node must have")
    reservation: Word | None = key("a reservation of yours")
    exclude: Annotated[tuple[Word, ...], ONE_OR_MANY] = key("nodes on which nothing runs", ())
    gpu_type: Word | None = key("the type of GPU, where the cluster has several")
    time: Annotated[int, Reads(_minutes, DURATION)] | None = key(
        "how long a task may take; if `max_time` is shorter, a task asks for less"
    )
    parallel: Positive | None = key("tasks that run at once, at most")
    array: Positive | None = key("tasks of one array, at most; else as many as the cluster accepts")
    settle_partition: Word | None = key("partition of the small job that retries and ends the run; else the same")
    options: Annotated[tuple[Option, ...], ONE_OR_MANY] = key("further long options of sbatch, in one word each", ())

    def asked(self, parallel: int | None) -> SlurmOptions:
        """The block for the plan. `parallel` is the grid's own limit, used if the block has none."""
        common = self._options("account", "qos")
        elsewhere = [f"--partition={self.settle_partition}"] if self.settle_partition else []
        return SlurmOptions(
            options=(
                *self._options("partition", "account", "qos", "reservation", "constraint", "exclude"),
                *self.options,
            ),
            settle_options=(*(elsewhere or self._options("partition", "reservation")), *common),
            gpu_type=self.gpu_type or "",
            minutes=self.time or 0,
            parallel=self.parallel or parallel or 0,
            array=self.array or 0,
        )

    def _options(self, *names: str) -> list[str]:
        """Keys whose names are options of sbatch."""
        given = {name: getattr(self, name) for name in names}
        return [f"--{name}={one if isinstance(one, str) else ','.join(one)}" for name, one in given.items() if one]
