"""How full the host is: load, memory, the run's disk, GPUs."""

from __future__ import annotations

from dataclasses import dataclass

from comborun.monitor.answer.fields import Fields
from comborun.text import KIB, MIB


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


def host_use(told: Fields) -> HostUse:
    """From the probe's document."""
    return HostUse(
        load=told.number("load"),
        cpus=told.integer("cpus"),
        memory=_room(told.pair("memory_kib")),
        disk=_room(told.pair("disk_kib")),
        gpus=tuple(map(_gpu, told.parts("gpus"))),
    )


def _room(kib: tuple[int, int] | None) -> Room | None:
    return Room(kib[0] * KIB, kib[1] * KIB) if kib else None


def _gpu(told: Fields) -> Gpu:
    used, total = told.integer("used_mib"), told.integer("total_mib")
    return Gpu(
        index=told.integer("index") or 0,
        used=None if used is None else used * MIB,
        total=None if total is None else total * MIB,
        utilization=told.integer("utilization"),
    )
