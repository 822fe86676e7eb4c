"""The doctor: one round trip for the facts, then every check judges them; and which files of a grid it looks at."""

from __future__ import annotations

import shlex
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import TYPE_CHECKING

from comborun.errors import HostError
from comborun.remote import program
from comborun.remote.doctor import gpus, machine, sessions
from comborun.remote.doctor.finding import Facts, Finding, Level
from comborun.remote.preflight import folder_of, question
from comborun.rules.names import DEFAULT_ROOT

if TYPE_CHECKING:
    from comborun.grid import Grid
    from comborun.remote.transport import Transport
    from comborun.resources import Display

CHECKS: tuple[Callable[[Facts], Iterator[Finding]], ...] = (
    machine.programs,
    sessions.multiplexers,
    sessions.logout,
    sessions.runtime,
    sessions.start_up,
    gpus.driver,
    gpus.memory,
    gpus.egl,
    machine.displays,
    machine.folders,
    machine.disks,
    machine.file_system,
    machine.memory,
    machine.processors,
    machine.open_files,
    machine.processes,
    machine.proc,
    sessions.earlier_runs,
    sessions.leases,
    sessions.files,
    machine.clock,
)
_TIMEOUT_S = 40.0
_SCRIPTS = (".sh", ".bash", ".py")
_MOST_FILES = 500
_X_SERVERS = "/tmp/.X11-unix"  # noqa: S108  (of the X protocol, wherever TMPDIR is)


@dataclass(frozen=True)
class Examination:
    facts: Facts
    findings: tuple[Finding, ...]
    """the worst first"""

    @property
    def healthy(self) -> bool:
        """Whether nothing keeps sessions from running."""
        return all(finding.level is not Level.ERROR for finding in self.findings)


@dataclass(frozen=True)
class Wanted:
    """What a grid needs on a host beside what every run needs."""

    files: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    python: str = ""
    """its `host_python`"""
    named: bytes = b""
    """what it names, for comborun/host/preflight.py"""


NOTHING_MORE = Wanted()


def examine(transport: Transport, root: str = DEFAULT_ROOT, wanted: Wanted = NOTHING_MORE) -> Examination:
    """Look at a host and judge it. Raises HostError when it can't answer."""
    asked = time.time()
    words = (root, ",".join(wanted.programs), *wanted.files)
    python = program.Python(named=wanted.python, roots=(root,))
    done = program.run_packed(transport, "doctor", *words, stdin=wanted.named, timeout=_TIMEOUT_S, python=python)
    facts = Facts.parse(f"asked={asked}\nanswered={time.time()}\n{done.text}")
    if not facts.one("end"):
        raise HostError(f"{transport.host} can't be examined", done.complaint)
    return Examination(facts, judge(facts))


def judge(facts: Facts) -> tuple[Finding, ...]:
    """All findings, the worst first, else in the order of the checks. An old bash is the only finding."""
    findings = [*machine.bash(facts)]
    if all(finding.level is Level.OK for finding in findings):
        findings += [finding for check in CHECKS for finding in check(facts)]
    return tuple(sorted(findings, key=lambda finding: list(Level).index(finding.level)))


def wanted_by(grid: Grid, *, local: bool) -> Wanted:
    """The scripts in commands and setups, and the sockets of X servers: absolute or below `~/`, each once.

    What holds a placeholder, and what is relative to a folder that is not known, is left out.
    """
    found: dict[str, None] = {}
    for settings in (grid.settings, *(combo.settings for combo in grid.combos)):
        folder = folder_of(settings, grid, local=local)
        for text in (settings.command, *settings.setup.splitlines(), grid.after or ""):
            found.update(dict.fromkeys(_placed(_scripts(text), folder)))
    displays = [combo.settings.display for combo in grid.combos if combo.settings.display]
    found.update(dict.fromkeys(path for display in displays for path in _sockets(display)))
    programs = (machine.XVFB,) if any(display.own for display in displays) else ()
    return Wanted(tuple(found)[:_MOST_FILES], programs, grid.host_python or "", question(grid, local=local))


def _sockets(display: Display) -> list[str]:
    """Of X servers that have to be there."""
    numbers = [number for _, number in display.by_gpu] or ([] if display.own else [int(display.server)])
    return [f"{_X_SERVERS}/X{number}" for number in numbers]


def _scripts(text: str) -> list[str]:
    try:
        words = shlex.split(text, comments=True)
    except ValueError:  # an open quote: text of several lines
        return []
    named = (word for word in words if word.endswith(_SCRIPTS) and not word.startswith("-"))
    return [word for word in named if not set(word) & set("{}$`*?=;|&<>")]


def _placed(words: Sequence[str], folder: str | None) -> Iterator[str]:
    for word in words:
        if word.startswith(("/", "~/")):
            yield word
        elif folder is not None:
            yield str(PurePosixPath(folder, word))
