"""What is known of a grid's sessions: how long they take and what they hold, as `combo calibrate` or earlier runs tell.

An episode's time is kept by the content of its work, not by names: another command, or another checkpoint's path, is
other work, of which nothing is known.
"""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Literal

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
class Level:
    """So many sessions side by side."""

    at_once: int
    speed: float
    """the work that they did in a time, in units of one session alone"""


@dataclass(frozen=True)
class Knowledge:
    source: Literal["", "calibration", "runs"] = ""
    told: str = ""
    """where it is from, for people"""
    paces: Mapping[str, Pace] = field(default_factory=lambda: MappingProxyType({}))
    """by pace_key"""
    levels: tuple[Level, ...] = ()
    best: int = 0
    """sessions at once beyond which nothing was gained; 0: not measured"""

    @property
    def alone(self) -> bool:
        """Whether paces are of sessions that had the host for themselves; else they ran beside others."""
        return self.source == "calibration"

    def pace(self, session: Session) -> Pace | None:
        return self.paces.get(pace_key(session))

    def slowdown(self, at_once: int) -> float:
        """How many times longer a session takes beside so many others, itself counted; between two levels in
        proportion, beyond the last one as if nothing more were gained."""
        if not self.alone or not self.levels or at_once <= 1:
            return 1.0
        levels = sorted(self.levels, key=lambda level: level.at_once)
        place = bisect_left([level.at_once for level in levels], at_once)
        if place == len(levels):
            return at_once / levels[-1].speed
        above = levels[place]
        below = levels[place - 1] if place else Level(1, 1.0)
        if above.at_once == below.at_once:
            return at_once / above.speed
        share = (at_once - below.at_once) / (above.at_once - below.at_once)
        return at_once / (below.speed + share * (above.speed - below.speed))


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
