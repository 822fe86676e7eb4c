"""What a session asks of the host, and what of it stays free for others. Memory is in MiB, as nvidia-smi counts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, get_args

from comborun.amounts import MIB

PinMode = Literal["cvd", "device-arg", "both", "none"]
"""how a session finds its GPUs: CUDA_VISIBLE_DEVICES, an argument of its command, both, or in its own way"""
PIN_MODES: tuple[PinMode, ...] = get_args(PinMode)


@dataclass(frozen=True)
class Request:
    """Beside the number of GPUs. 0 and empty: not said. None of it is a part of the work."""

    gpu_memory: int = 0
    """MiB, on each GPU that the session is granted"""
    cpus: int = 0
    """cores"""
    memory: int = 0
    """MiB of main memory"""
    tokens: tuple[str, ...] = ()
    """names of what only one session on the host may have: clean words"""
    group: str = ""
    """the environment, as a clean word, where the caps below are said"""
    per_gpu: int = 0
    """sessions of the group on one GPU, at most"""
    per_host: int = 0
    """sessions of the group on the host, at most"""
    only: tuple[int, ...] = ()
    """the very GPUs that it has to get; empty: any"""


NOTHING = Request()


@dataclass(frozen=True)
class Reserve:
    """What stays free for others, a training job say; they may use it or not. In MiB and cores."""

    gpu_memory: int = 0
    """on each GPU"""
    cpus: int = 0
    memory: int = 0


NO_RESERVE = Reserve()


def mebibytes(size: int) -> int:
    """MiB that hold `size` bytes."""
    return -(-size // MIB)
