"""What `combo calibrate` measured, in a file beside the grid: by host, and by the content of the work. Pure.

The file is JSON, for people to read and to keep with the grid. A combo is known again by the digest of its work, so
what was measured of another command is never taken for this one's.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Self

from comborun.errors import UserError
from comborun.plan import decoded
from comborun.planner.knowledge import Knowledge, Pace, pace_key

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from comborun.plan import Session
    from comborun.resources import HostFacts

SCHEMA = 1
_ABOUT = "measured by `combo calibrate`; `combo plan` and `combo launch` of the grid beside it go by this"
_AGAIN = "`combo calibrate` writes it anew; remove it to plan without"


@dataclass(frozen=True)
class Measured:
    """One combo, alone on the host."""

    policy: str
    environment: str
    work: str
    """pace_key"""
    episodes: int
    """that were run for it"""
    start_up_s: float
    episode_s: float
    memory_mib: int
    gpu_memory_mib: int
    cores: float | None
    """kept busy, on average; None: not measured"""

    @property
    def pace(self) -> Pace:
        return Pace(self.episode_s, self.start_up_s, self.memory_mib, self.gpu_memory_mib)


@dataclass(frozen=True)
class Step:
    """So many sessions side by side, each with its share of the cores."""

    at_once: int
    seconds: float
    """from the first start to the last end"""
    speed: float
    """`one_by_one_s` / `seconds`"""
    note: str = ""
    episodes: int = 0
    """of all sessions together; each level has as many as fill its time"""
    one_by_one_s: float = 0.0
    """seconds that the same sessions take one after another"""


@dataclass(frozen=True)
class Calibration:
    """Of one host."""

    hostname: str
    cpus: int
    gpus: tuple[str, ...]
    at: str
    """ISO 8601, UTC"""
    comborun: str
    combos: tuple[Measured, ...]
    steps: tuple[Step, ...]
    best: int
    stopped: str
    """why no more were tried side by side"""

    @property
    def host(self) -> tuple[str, int, tuple[str, ...]]:
        return self.hostname, self.cpus, self.gpus

    def is_of(self, host: HostFacts) -> bool:
        return self.host == (host.hostname, host.cpus, gpu_names(host))

    @classmethod
    def from_data(cls, data: Mapping[str, Any]) -> Self:
        """Raises KeyError, TypeError or ValueError for what no calibration says."""
        found: Self = decoded(cls, dict(data))
        parts: tuple[Any, ...] = (found, *found.combos, *found.steps)
        numbers = [value for part in parts for value in vars(part).values() if isinstance(value, int | float)]
        if min(numbers) < 0:
            raise ValueError(f"{min(numbers)} is below 0")
        if any(step.speed <= 0 or step.at_once < 1 for step in found.steps):
            raise ValueError("sessions side by side that did nothing")
        return found


def calibration_path(grid: Path) -> Path:
    return grid.with_name(f"{grid.stem}.calibration.json")


def gpu_names(host: HostFacts) -> tuple[str, ...]:
    return tuple(card.name for card in host.cards)


def calibrations(text: str, path: Path) -> tuple[Calibration, ...]:
    """All of a file. Raises UserError when it is none that this version reads."""
    try:
        data = json.loads(text)
        if data["schema"] != SCHEMA:
            raise UserError(f"{path} is of version {data['schema']} of the file, not {SCHEMA}", _AGAIN)
        return tuple(map(Calibration.from_data, data["hosts"]))
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise UserError(f"{path} is no calibration that can be read: {error!r}", _AGAIN) from None


def text_of(found: Sequence[Calibration], new: Calibration) -> str:
    """The file with a new measurement in the place of the host's last one."""
    hosts = [asdict(one) for one in (*(one for one in found if one.host != new.host), new)]
    return json.dumps({"schema": SCHEMA, "about": _ABOUT, "hosts": hosts}, indent=1, ensure_ascii=False) + "\n"


def knowledge_of(calibration: Calibration, sessions: Iterable[Session], name: str) -> Knowledge | None:
    """What is known of these sessions; None where not one of them was measured. `name` is the file's.

    Where a combo was not measured itself, but its environment with another policy and its policy in another
    environment, its times are taken to be in proportion; what it holds is the larger of the two.
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
