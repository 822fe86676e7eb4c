"""The doctor: what on a host would hurt, what it would cost, and the fix. One round trip; the judging is pure."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from comborun.errors import HostError
from comborun.layout import DEFAULT_ROOT
from comborun.library import script_text
from remote.doctor import gpus, leases, machine, rendering, sessions
from remote.doctor.finding import Facts, Finding, Level
from remote.doctor.machine import Clock
from remote.host import NEEDED

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from comborun.transport import Transport

PROGRAMS = (*NEEDED, "cat", "chmod", "dd", "df", "head", "ln", "mkdir", "nproc", "realpath", "rm", "sort", "tr", "wc")
"""what the library calls, without which something of it fails"""
_PARTS = ("lib/base/record.sh", "lib/session/egl.sh", "doctor/probes.sh", "doctor/leases.sh", "doctor/doctor.sh")
_TIMEOUT_S = 40.0
_GUARD = """
if ((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] < 404)); then
  printf 'bash=%s\\nend=1\\n' "$BASH_VERSION"
  exit 0
fi
"""
"""an older bash could not even read what follows"""
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
) -> Examination:
    """Look at a host and judge it; `files` are paths there that a grid names, `programs` what it needs
    beside PROGRAMS. Raises HostError when it can't answer."""
    script = _GUARD + "\n".join(map(script_text, _PARTS))
    asked = clock()
    done = transport.run(script, root, ",".join((*PROGRAMS, *programs)), *files, timeout=_TIMEOUT_S)
    answered = clock()
    facts = Facts.parse(done.text)
    if not facts.one("bash") or not facts.one("end"):
        raise HostError(f"{transport.host} did not answer as a host with bash does", done.complaint)
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
