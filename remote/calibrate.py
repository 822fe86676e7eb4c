"""Runs of `combo calibrate`: in a folder of their own below the root, watched closely, and gone when they have told."""

from __future__ import annotations

import json
from collections import defaultdict
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from comborun.errors import HostError
from comborun.remote import program

if TYPE_CHECKING:
    from comborun.remote.transport import Transport

FOLDER = ".calibrate"
_SAMPLE_S = 20.0


def calibration_root(root: str) -> str:
    return f"{root.rstrip('/')}/{FOLDER}"


@dataclass
class Held:
    """The most that each session was seen to hold, by name."""

    memory_kib: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    gpu_mib: defaultdict[str, int] = field(default_factory=lambda: defaultdict(int))
    """on the GPU where it held most"""
    cpu_s: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """CPU time so far"""
    at: defaultdict[str, float] = field(default_factory=lambda: defaultdict(float))
    """when that was, on the host's clock"""

    def take(self, answer: str, now: float) -> None:
        """Add one answer of `sample`."""
        told = json.loads(answer)
        for marker, use in told["uses"].items():
            name = marker.partition("/")[0]
            self.memory_kib[name] = max(self.memory_kib[name], use["kib"])
            self.cpu_s[name], self.at[name] = max(self.cpu_s[name], use["ticks"] / told["hertz"]), now
            self.gpu_mib[name] = max(self.gpu_mib[name], *use["gpus"].values(), 0)


def sample(transport: Transport, directory: str, held: Held, now: float) -> None:
    """Look once at what the sessions hold. One look that fails costs nothing but its numbers."""
    try:
        held.take(program.run(transport, directory, "sample", timeout=_SAMPLE_S).text, now)
    except (HostError, ValueError, KeyError, TypeError, AttributeError):
        return


def abandon(transport: Transport, directory: str) -> None:
    """Note that nobody wants the run of a calibration any more, so that the next one removes what is left of it."""
    program.run_packed(transport, "calibrated", "abandon", directory, timeout=30, python=program.of_run(directory))


def abandoned(transport: Transport, root: str) -> tuple[str, ...]:
    """The runs below `calibration_root` that were abandoned and are not gone."""
    done = program.run_packed(transport, "calibrated", "abandoned", calibration_root(root), timeout=30)
    return () if done.code else tuple(program.answer(transport, done))


def discard(transport: Transport, directory: str) -> None:
    """Remove the run of a calibration, with what it has promised, and only that, when its dispatcher has left."""
    program.run_packed(transport, "calibrated", "discard", directory, timeout=60, python=program.of_run(directory))
