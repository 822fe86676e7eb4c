"""`combo doctor`: lets a host check itself in one round trip, with the files that a grid needs there."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any

from comborun.errors import HostError
from comborun.model.codec import decoded
from comborun.remote import program
from comborun.remote.grids import needs_of, preflight_question
from comborun.rules.facts import Fact
from comborun.rules.findings import Finding, Found, Level
from comborun.rules.names import DEFAULT_ROOT

if TYPE_CHECKING:
    from comborun.grid import Grid
    from comborun.remote.transport import Transport

_XVFB = "Xvfb"
_TIMEOUT_S = 40.0
_SCRIPTS = (".sh", ".bash", ".py")
_MOST_FILES = 500
_X_SERVERS = "/tmp/.X11-unix"  # noqa: S108  (of the X protocol, wherever TMPDIR is)


@dataclass(frozen=True)
class Examination:
    findings: tuple[Finding, ...]
    """the worst first"""
    about: Mapping[str, Any]
    """hostname, os, cpus, memory_kib, python, root"""

    @property
    def healthy(self) -> bool:
        return all(finding.level is not Level.ERROR for finding in self.findings)


@dataclass(frozen=True)
class HostNeeds:
    """The needs of a grid on a host besides those of every run."""

    files: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    python: str = ""
    """its `host_python`"""
    named: bytes = b""
    """its paths and programs, for comborun/host/doctor/preflight.py"""


NOTHING_MORE = HostNeeds()


def examine(transport: Transport, root: str = DEFAULT_ROOT, wanted: HostNeeds = NOTHING_MORE) -> Examination:
    """Let a host examine itself. Raises HostError if it can't answer."""
    asked = time.time()
    words = (root, ",".join(wanted.programs), *wanted.files)
    python = program.Python(named=wanted.python, roots=(root,))
    done = program.run_packed(transport, "doctor", *words, stdin=wanted.named, timeout=_TIMEOUT_S, python=python)
    answered = time.time()
    try:
        document = json.loads(done.text)
        findings = list(decoded(tuple[Finding, ...], document["findings"]))
        begin, end = map(float, document["clock"])
    except (ValueError, TypeError, KeyError):
        raise HostError(f"{transport.host} can't be examined", done.complaint) from None
    if len(findings) > 1:  # otherwise its bash is too old for other checks
        findings.append(clock(asked, begin, end, answered))
    findings.sort(key=lambda finding: list(Level).index(finding.level))  # the worst first
    return Examination(tuple(findings), document["about"])


def clock(asked: float, begin: float, end: float, answered: float) -> Finding:
    """How far the host's clock is off, computed as in NTP: both directions are assumed to take equally long."""
    off = ((begin - asked) + (end - answered)) / 2
    doubt = max(0.0, (answered - asked) - (end - begin)) / 2
    beyond = abs(off) - doubt
    level = Level.WARNING if beyond > 300 else Level.NOTE if beyond > 2 else Level.OK
    code = Found.CLOCK_FAR_OFF if level is Level.WARNING else Found.CLOCK
    return Finding("clock", level, Fact(code, off_s=round(off, 3), doubt_s=round(doubt, 3)))


def wanted_by(grid: Grid, *, local: bool) -> HostNeeds:
    """The scripts in commands and setups, and the sockets of X servers: absolute or below `~/`, each once.

    Paths that are relative to an unknown folder are left out, and so is what `sync` brings.
    """
    found: dict[str, None] = {}
    for needs in needs_of(grid, local=local):
        for path in filter(lambda path: path.endswith(_SCRIPTS), needs["files"]):
            place = path if path.startswith("~/") else str(PurePosixPath(needs["folder"], path))
            found |= {place: None} if place.startswith(("/", "~/")) else {}
    displays = [combo.settings.display for combo in grid.combos if combo.settings.display]
    for display in displays:
        servers = [number for _, number in display.by_gpu] or ([] if display.own else [int(display.server)])
        found |= dict.fromkeys(f"{_X_SERVERS}/X{number}" for number in servers)
    programs = (_XVFB,) if any(display.own for display in displays) else ()
    return HostNeeds(
        tuple(found)[:_MOST_FILES], programs, grid.host_python or "", preflight_question(grid, local=local)
    )
