"""The last probe of a run, kept on this machine and shown while the host does not answer."""

from __future__ import annotations

import json
import os
import time
from dataclasses import dataclass
from pathlib import Path

from comborun.errors import HostError
from comborun.monitor.observe import RunView
from comborun.plan import Plan
from comborun.remote.runs import copy_of
from comborun.remote.transport import LOCAL

_LOOK = ".look"
_EVERY_S = 60.0
_SESSIONS = 1000
"""the time between complete looks grows by a minute for so many sessions"""


@dataclass(frozen=True)
class SavedLook:
    view: RunView
    answer: bytes
    """the answer to a probe that requested everything"""
    at: float
    """seconds since 1970, on this machine's clock"""


def is_due(view: RunView, *, done: bool = False) -> bool:
    """Whether the next look should request everything, so that it can be saved; `done`: it is the last one."""
    if view.host == LOCAL:
        return False
    try:
        age = time.time() - _place(view.host, view.id, view.directory).stat().st_mtime
    except FileNotFoundError:
        return True
    except (OSError, HostError):  # it can't be saved
        return False
    return done or not 0 <= age < _EVERY_S * (1 + len(view.plan.sessions) / _SESSIONS)


def save(view: RunView, answer: bytes) -> None:
    """Save a complete look at a run. A full disk is no error."""
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


def last_look(host: str, run: str, directory: str) -> SavedLook | None:
    """The saved look at a run, or None."""
    try:
        head, _, answer = _place(host, run, directory).read_bytes().partition(b"\n")
        fields = json.loads(head)
        view = RunView(run, host, fields["directory"], Plan.from_json(fields["plan"]), int(fields["number"]))
        return SavedLook(view, answer, float(fields["at"]))
    except (OSError, ValueError, KeyError, TypeError, HostError):
        return None


def _place(host: str, run: str, directory: str) -> Path:
    return copy_of(host, run, directory) / _LOOK
