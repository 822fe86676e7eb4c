"""What is known of a grid's sessions: how long they take and what they hold, as `combo calibrate` measured them.

An episode's time is kept by the content of its work, not by names: another command, or another checkpoint's path, is
other work, of which nothing is known.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from comborun.planner.ranges import digest_of
from comborun.resources import BARE

if TYPE_CHECKING:
    from comborun.plan import Session

SPARE = 1.1
"""of the peak that was measured, what a session is granted: episodes differ"""
_STEP = 64
"""MiB that a request filled from a measurement is a multiple of"""
_KEY = 16


@dataclass(frozen=True)
class Pace:
    """Of one combo."""

    seconds: float
    """for an episode or a step"""
    start_up: float = 0.0
    """seconds before the first one begins; 0 where it can't be told apart, and then it is in `seconds`"""
    memory: int = 0
    """MiB of main memory at the most; 0: not measured"""
    gpu_memory: int = 0
    """MiB that its processes held on one GPU at the most; 0: not measured"""
    estimated: bool = False
    """not measured itself, but from its environment's and its policy's"""

    def length(self, count: int) -> float:
        """Seconds that a session of `count` episodes takes alone."""
        return self.start_up + count * self.seconds

    def times(self, slowdown: float) -> Pace:
        return replace(self, seconds=self.seconds * slowdown, start_up=self.start_up * slowdown)


@dataclass(frozen=True)
class Knowledge:
    told: str = ""
    """where it is from, for people; empty: nothing is known"""
    paces: Mapping[str, Pace] = field(default_factory=lambda: MappingProxyType({}))
    speeds: Mapping[int, float] = field(default_factory=lambda: MappingProxyType({}))
    """sessions side by side -> the work that they did in a time, in units of one session alone"""
    best: int = 0
    """sessions at once beyond which nothing was gained; 0: not measured"""

    def pace(self, session: Session) -> Pace | None:
        return self.paces.get(pace_key(session))

    def slowdown(self, at_once: int) -> float:
        """How many times longer a session takes beside so many others, itself counted; between two measurements in
        proportion, beyond the last one as if nothing more were gained."""
        if not self.speeds or at_once <= 1:
            return 1.0
        speeds = {1: 1.0, **self.speeds}
        levels = sorted(speeds)
        place = bisect_left(levels, at_once)
        if place == len(levels):
            return at_once / speeds[levels[-1]]
        below, above = levels[place - 1 : place + 1]
        share = (at_once - below) / (above - below)
        return at_once / (speeds[below] + share * (speeds[above] - speeds[below]))


NOTHING_KNOWN = Knowledge()


def pace_key(session: Session) -> str:
    """Of what makes an episode as long as it is, whatever range of episodes the session is for."""
    content = (
        *(session.policy, session.environment, session.unit, session.command, session.setup),
        *(session.workdir, session.variables, session.gpus),
    )
    around = () if session.around == BARE else (asdict(session.around),)
    servers = (session.servers,) if session.servers else ()
    return digest_of(*content, *around, *servers)[:_KEY]


def granted(peak: int) -> int:
    """MiB to ask for where so many were measured at the most."""
    return -(-int(peak * SPARE) // _STEP) * _STEP if peak else 0
