"""What a grid asks of Slurm beside what its sessions need."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Engine = Literal["local", "slurm"]
"""who starts sessions: the dispatcher of the run, on its host; or Slurm, on the nodes of a cluster"""


@dataclass(frozen=True)
class Slurm:
    """The grid's `slurm` block."""

    options: tuple[str, ...] = ()
    """long options of sbatch, each one clean word: `--partition=gpu`"""
    settle_options: tuple[str, ...] = ()
    """the same for the small job that settles the run"""
    gpu_type: str = ""
    """the type in `--gres=gpu:TYPE:N`; empty: any"""
    minutes: int = 0
    """that a task may take at most; 0: not said"""
    parallel: int = 0
    """tasks of the run that run at once, at most; 0: as many as Slurm starts"""
    array: int = 0
    """tasks of one array, at most; 0: as many as the cluster takes"""

    @classmethod
    def from_data(cls, data: dict[str, Any]) -> Slurm:
        """From the JSON of a plan."""
        lists = ("options", "settle_options")
        return cls(**{**data, **{key: tuple(data.get(key, ())) for key in lists}})

    @property
    def whole_node(self) -> bool:
        """Whether no task shares its node with another."""
        return any(option.partition("=")[0] == "--exclusive" for option in self.options)


NO_SLURM = Slurm()
