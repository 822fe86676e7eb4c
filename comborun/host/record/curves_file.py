"""The curves of a training's attempt, in a file that travels with its records. The training is never judged by it."""

from __future__ import annotations

import json
import time

from comborun.host.system import children, files
from comborun.rules.facts import Fact
from comborun.rules.names import AttemptLayout

NOT_IN_TIME = "curves_not_in_time"
EVERY_S = 5.0
"""seconds between two looks while it runs"""
LIVE_S, AT_END_S = 5.0, 20.0
"""seconds for reading, while it runs and at its end: neither waits long for curves"""
_SHARE = 100
"""so many times as long as a look took, it waits for the next one"""


class LiveCurves:
    """Keeps the curves of an attempt that runs."""

    def __init__(self, at: AttemptLayout) -> None:
        self._at = at
        self._next = 0.0
        self._trained: Fact | None = None

    def look(self) -> Fact | None:
        """How far it is; files that take long to read are read less often."""
        begun = time.monotonic()
        if begun >= self._next:
            in_time = keep_within(LIVE_S, self._at)
            self._trained = told(trained(self._at), in_time, LIVE_S)
            ended = time.monotonic()
            self._next = ended + max(EVERY_S, _SHARE * (ended - begun))
        return self._trained


def keep(at: AttemptLayout) -> None:
    """Read the curves of an attempt and write them down. If that fails, the file of before stays."""
    from comborun.rules.curves import training

    try:
        found = training.read(at.log, at.output)
        text = json.dumps(found, allow_nan=False, separators=(",", ":")) + "\n"
    except Exception:  # noqa: BLE001 - whatever a program wrote
        return
    if found["curves"] or found["checkpoints"]:
        files.write_text(at.curves, text)


def keep_within(seconds: float, at: AttemptLayout) -> bool:
    """The same in a child process, which has so many seconds: no file of a program holds up or ends its supervisor.
    Returns whether it was done in time."""
    from comborun.rules.curves import training  # noqa: F401 - here, so that not each child loads it

    def kept() -> str:
        keep(at)
        return ""

    return children.within(seconds, kept) is not None


def told(fact: Fact | None, in_time: bool, seconds: float) -> Fact | None:
    """How far the training is; `late`: the seconds in which its files were not read, so this is how far it was."""
    if in_time:
        return fact
    return Fact(fact.code, **{**fact.fields, "late": seconds}) if fact else Fact(NOT_IN_TIME, late=seconds)


def trained(at: AttemptLayout) -> Fact | None:
    """How far the training is, as its file says."""
    from comborun.rules.curves import record

    return record.newest(record.parse(files.read_text(at.curves)))
