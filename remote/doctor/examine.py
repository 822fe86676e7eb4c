"""The doctor: what on a host would hurt, what it would cost, and the fix. One round trip; the judging is pure."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from comborun.errors import HostError
from comborun.remote import program
from comborun.remote.doctor import gpus, leases, machine, rendering, sessions
from comborun.remote.doctor.finding import Facts, Finding, Level
from comborun.remote.doctor.machine import Clock
from comborun.rules.names import DEFAULT_ROOT

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from comborun.transport import Transport

PROGRAMS = (
    *("bash", "env", "flock", "setsid", "grep", "mkfifo", "mktemp", "mv", "sha256sum", "stat", "tail", "timeout"),
    *("cat", "chmod", "dd", "df", "head", "ln", "mkdir", "nproc", "realpath", "rm", "sort", "tr", "wc"),
)
"""what scripts on a host call, without which something of them fails"""
_TIMEOUT_S = 40.0
_ORDER = (Level.ERROR, Level.WARNING, Level.NOTE, Level.OK)


@dataclass(frozen=True)
class Examination:
    facts: Facts
    findings: tuple[Finding, ...]
    """the worst first"""

    @property
    def healthy(self) -> bool:
        """Whether nothing keeps sessions from running."""
        return all(finding.level is not Level.ERROR for finding in self.findings)


def examine(
    transport: Transport,
    root: str = DEFAULT_ROOT,
    files: Sequence[str] = (),
    programs: Sequence[str] = (),
    clock: Callable[[], float] = time.time,
    host_python: str | None = None,
) -> Examination:
    """Look at a host and judge it; `files` are paths there that a grid names, `programs` what it needs
    beside PROGRAMS. Raises HostError when it can't answer."""
    asked = clock()
    words = (root, ",".join((*PROGRAMS, *programs)), *files)
    python = program.Python(named=host_python or "", roots=(root,))
    done = program.run_packed(transport, "doctor", *words, timeout=_TIMEOUT_S, python=python)
    answered = clock()
    facts = Facts.parse(done.text)
    if not facts.one("end"):
        raise HostError(f"{transport.host} can't be examined", done.complaint)
    return Examination(facts, judge(facts, Clock(asked, answered)))


def judge(facts: Facts, clock: Clock) -> tuple[Finding, ...]:
    """All findings, the worst first, else in the order of the checks."""
    findings = [*machine.bash(facts)]
    if all(finding.level is Level.OK for finding in findings):
        for check in (
            machine.programs,
            sessions.multiplexers,
            sessions.logout,
            sessions.runtime,
            sessions.start_up,
            gpus.gpus,
            rendering.egl,
            rendering.displays,
            machine.folders,
            machine.disks,
            machine.file_system,
            machine.memory,
            machine.processors,
            machine.limits,
            machine.proc,
            sessions.earlier_runs,
            leases.leases,
            sessions.files,
        ):
            findings += check(facts)
        findings += machine.skew(facts, clock)
    return tuple(sorted(findings, key=lambda finding: _ORDER.index(finding.level)))
