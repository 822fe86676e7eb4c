"""How full the host is: load, memory, the run's disk, GPUs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from comborun.amounts import KIB, MIB
from comborun.attempt import integer, seconds


@dataclass(frozen=True)
class Gpu:
    """One GPU. None is unknown, which is never the same as 0."""

    index: int
    used: int | None
    """bytes of its memory, by whomever"""
    total: int | None
    utilization: int | None
    """percent of the time during which something ran on it"""


@dataclass(frozen=True)
class Room:
    """A space in bytes, and how much of it is free."""

    total: int
    free: int

    @property
    def scarce(self) -> bool:
        """A twentieth or less is left."""
        return self.free * 20 <= self.total


@dataclass(frozen=True)
class HostUse:
    load: float | None = None
    """over the last minute"""
    cpus: int | None = None
    memory: Room | None = None
    """free is what programs could be given without swapping"""
    disk: Room | None = None
    """of the file system of the run"""
    gpus: tuple[Gpu, ...] = ()
    """asked for only where the run uses any"""


def host_use(header: Mapping[str, str], gpus: Sequence[Mapping[str, str]]) -> HostUse:
    """From the fields of the probe's header."""
    return HostUse(
        load=seconds(header, "load"),
        cpus=integer(header, "cpus"),
        memory=_room(header, "memory"),
        disk=_room(header, "disk"),
        gpus=tuple(_gpu(fields) for fields in gpus),
    )


def _room(header: Mapping[str, str], name: str) -> Room | None:
    total, free = integer(header, f"{name}_kib"), integer(header, f"{name}_available_kib")
    return None if total is None or free is None else Room(total * KIB, free * KIB)


def _gpu(fields: Mapping[str, str]) -> Gpu:
    used, total = integer(fields, "used_mib"), integer(fields, "total_mib")
    return Gpu(
        index=integer(fields, "index") or 0,
        used=None if used is None else used * MIB,
        total=None if total is None else total * MIB,
        utilization=integer(fields, "utilization"),
    )
