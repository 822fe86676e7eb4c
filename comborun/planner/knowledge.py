"""What is known of a grid's sessions: times and memory from `combo calibrate`, in a file beside the grid.

The file is JSON, to be read by people and kept with the grid. It has the measurements of each host. A combo is known by
the content of its work: with another command, or another checkpoint's path, it counts as unmeasured.
"""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING

from comborun.errors import UserError
from comborun.model.codec import decoded
from comborun.model.resources import BARE, HostFacts
from comborun.planner.ranges import digest_of

if TYPE_CHECKING:
    from pathlib import Path

    from comborun.model.plan import Session

SCHEMA = 1
_ABOUT = "measured by `combo calibrate`; `combo plan` and `combo launch` of the grid beside it use this"
_AGAIN = "`combo calibrate` writes it again; remove it to plan without it"
SPARE = 1.1
"""factor from the measured peak to the request: episodes differ"""
_STEP = 64
"""MiB; requests from a measurement are multiples of it"""
_KEY = 16


@dataclass(frozen=True)
class Pace:
    seconds: float
    """for an episode or a step"""
    start_up: float = 0.0
    """seconds before the first one begins; 0 if unknown, then it is part of `seconds`"""
    memory: int = 0
    """most MiB of main memory; 0: not measured"""
    gpu_memory: int = 0
    """most MiB that its processes held on one GPU; 0: not measured"""
    estimated: bool = False
    """whether it is estimated from other combos of its environment and of its policy"""

    def length(self, count: int) -> float:
        """Seconds that a session of `count` episodes takes alone."""
        return self.start_up + count * self.seconds

    def times(self, slowdown: float) -> Pace:
        return replace(self, seconds=self.seconds * slowdown, start_up=self.start_up * slowdown)


@dataclass(frozen=True)
class Knowledge:
    origin: str = ""
    """in words; empty: nothing is known"""
    paces: Mapping[str, Pace] = field(default_factory=lambda: MappingProxyType({}))
    speeds: Mapping[int, float] = field(default_factory=lambda: MappingProxyType({}))
    """sessions side by side -> their speed, in units of one session alone"""
    best: int = 0
    """more sessions than this gained nothing; 0: not measured"""

    def pace(self, session: Session) -> Pace | None:
        return self.paces.get(pace_key(session))

    def slowdown(self, at_once: int) -> float:
        """How many times longer a session takes with so many at once; beyond the last measurement more gain nothing."""
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
    """A digest of everything that decides the length of an episode; the range of episodes does not."""
    content = (
        *(session.policy, session.environment, session.unit, session.command, session.setup),
        *(session.workdir, session.variables, session.gpus),
    )
    around = () if session.around == BARE else (asdict(session.around),)
    servers = (session.servers,) if session.servers else ()
    return digest_of(*content, *around, *servers)[:_KEY]


def granted(peak: int) -> int:
    """MiB to request for a measured peak."""
    return -(-int(peak * SPARE) // _STEP) * _STEP if peak else 0


@dataclass(frozen=True)
class MeasuredCombo:
    """One combo, alone on the host."""

    policy: str
    environment: str
    work: str
    """pace_key"""
    episodes: int
    start_up_s: float
    episode_s: float
    memory_mib: int
    gpu_memory_mib: int
    cores: float | None
    """cores in use, on average; None: not measured"""

    @property
    def pace(self) -> Pace:
        return Pace(self.episode_s, self.start_up_s, self.memory_mib, self.gpu_memory_mib)


@dataclass(frozen=True)
class Step:
    """The result of so many sessions side by side, each with its share of the cores."""

    at_once: int
    seconds: float
    """from the first start to the last end"""
    speed: float
    """`one_by_one_s` / `seconds`"""
    note: str = ""
    episodes: int = 0
    """of all sessions together; each step has as many as fill its time"""
    one_by_one_s: float = 0.0
    """seconds that the same sessions take one after another"""


@dataclass(frozen=True)
class Calibration:
    hostname: str
    cpus: int
    gpus: tuple[str, ...]
    at: str
    """ISO 8601, UTC"""
    comborun: str
    combos: tuple[MeasuredCombo, ...]
    steps: tuple[Step, ...]
    best: int
    stopped: str
    """why no further step followed"""

    @property
    def host(self) -> tuple[str, int, tuple[str, ...]]:
        return self.hostname, self.cpus, self.gpus

    def is_of(self, host: HostFacts) -> bool:
        return self.host == (host.hostname, host.cpus, gpu_names(host))


def calibration_path(grid: Path) -> Path:
    return grid.with_name(f"{grid.stem}.calibration.json")


def gpu_names(host: HostFacts) -> tuple[str, ...]:
    return tuple(card.name for card in host.cards)


def calibrations(text: str, path: Path) -> tuple[Calibration, ...]:
    """All calibrations of a file. Raises UserError if this version can't read it."""
    try:
        data = json.loads(text)
        version = data["schema"]
        found: tuple[Calibration, ...] = decoded(tuple[Calibration, ...], data["hosts"]) if version == SCHEMA else ()
    except (ValueError, KeyError, TypeError, OverflowError) as error:
        raise UserError(f"{path} can't be read as a calibration: {error!r}", _AGAIN) from None
    if version != SCHEMA:
        raise UserError(f"{path} is of version {version} of the file, not {SCHEMA}", _AGAIN)
    if any(step.speed <= 0 or step.at_once < 1 for one in found for step in one.steps):
        raise UserError(f"{path} can't be read as a calibration: a step without sessions or without speed", _AGAIN)
    return found


def calibration_text(found: Sequence[Calibration], new: Calibration) -> str:
    """The text of the file with a new calibration instead of the host's last one."""
    hosts = [asdict(one) for one in (*(one for one in found if one.host != new.host), new)]
    return json.dumps({"schema": SCHEMA, "about": _ABOUT, "hosts": hosts}, indent=1, ensure_ascii=False) + "\n"


def knowledge_of(calibration: Calibration, sessions: Iterable[Session], name: str) -> Knowledge | None:
    """What is known of these sessions; None if none was measured. `name` is the file's.

    If a combo was not measured, but its environment with another policy and its policy in another environment were, its
    times are computed in proportion; its memory is the larger of the two.
    """
    sessions = list(sessions)
    keys = {pace_key(session): session for session in sessions}
    measured = [one for one in calibration.combos if one.work in keys]
    if not measured:
        return None
    paces = {one.work: one.pace for one in measured}
    by_name = {(one.policy, one.environment): one.pace for one in measured}
    for key, session in keys.items():
        if key not in paces and (pace := _estimated(session.policy, session.environment, by_name)):
            paces[key] = pace
    guessed = sum(pace.estimated for pace in paces.values())
    origin = f"{name}: measured on {calibration.hostname}, {calibration.at}"
    origin += f"; {guessed} of {len(paces)} combos in proportion to those that were" if guessed else ""
    speeds = {step.at_once: step.speed for step in calibration.steps}
    return Knowledge(origin, MappingProxyType(paces), MappingProxyType(speeds), calibration.best)


def _estimated(policy: str, environment: str, known: Mapping[tuple[str, str], Pace]) -> Pace | None:
    for (other_policy, other_environment), reference in known.items():
        row, column = known.get((other_policy, environment)), known.get((policy, other_environment))
        if row is None or column is None or not reference.seconds:
            continue
        return Pace(
            seconds=row.seconds * column.seconds / reference.seconds,
            start_up=max(row.start_up, column.start_up),
            memory=max(row.memory, column.memory),
            gpu_memory=max(row.gpu_memory, column.gpu_memory),
            estimated=True,
        )
    return None
