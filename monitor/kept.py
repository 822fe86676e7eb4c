"""The last probe of a run on another host, saved here. `combo status` shows it while the host does not answer."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from comborun.errors import HostError
from comborun.monitor.observe import RunView
from comborun.plan import Plan
from comborun.remote.runs import copy_of
from comborun.remote.transport import LOCAL

if TYPE_CHECKING:
    from pathlib import Path

_LOOK = ".look"
_EVERY_S = 60.0
_SESSIONS = 1000
"""a run with so many more of them is looked at as a whole a minute less often"""


@dataclass(frozen=True)
class Kept:
    """A look that was kept."""

    view: RunView
    answer: bytes
    """of the probe, to a question for all that there is"""
    at: float
    """seconds since 1970, on this machine's clock"""


def is_due(view: RunView, *, done: bool = False) -> bool:
    """Whether the next look at a run should be at all of it, so that it can be kept; `done`: it is the last one."""
    if view.host == LOCAL:
        return False
    try:
        age = time.time() - _place(view.host, view.id, view.directory).stat().st_mtime
    except FileNotFoundError:
        return True
    except (OSError, HostError):  # there is no place to keep it
        return False
    return done or not 0 <= age < _EVERY_S * (1 + len(view.plan.sessions) / _SESSIONS)


def keep(view: RunView, answer: bytes) -> None:
    """Keep a look at all of a run. A disk that takes nothing hinders nobody."""
    if view.host == LOCAL:
        return
    try:
        place = _place(view.host, view.id, view.directory)
        place.parent.mkdir(parents=True, exist_ok=True)
        draft = place.with_name(f"{_LOOK}-{os.getpid()}")
        head = {"directory": view.directory, "number": view.number, "at": time.time(), "plan": view.plan.to_json()}
        draft.write_bytes(json.dumps(head).encode() + b"\n" + answer)
        draft.replace(place)
    except (OSError, HostError):
        return


def last_look(host: str, run: str, directory: str) -> Kept | None:
    """The look at a run that was kept; None where there is none that can be read."""
    try:
        head, _, answer = _place(host, run, directory).read_bytes().partition(b"\n")
        told = json.loads(head)
        view = RunView(run, host, told["directory"], Plan.from_json(told["plan"]), int(told["number"]))
        return Kept(view, answer, float(told["at"]))
    except (OSError, ValueError, KeyError, TypeError, HostError):
        return None


def _place(host: str, run: str, directory: str) -> Path:
    return copy_of(host, run, directory) / _LOOK
