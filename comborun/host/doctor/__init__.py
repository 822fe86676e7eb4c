"""`doctor ROOT MORE_PROGRAMS [FILE]...`: problems on this machine, as one JSON document.

Changes nothing: tests run in a temporary folder, which is removed. Each check has a thread. One that hangs is reported
at the deadline and left behind, because nothing can end a process that hangs in the kernel.
"""

from __future__ import annotations

import json
import os
import sys
import threading
import time

from comborun.host.doctor import gpus, machine, sessions, variables
from comborun.host.doctor.machine import Box
from comborun.host.system import commands
from comborun.rules.findings import Finding, Level, error, warning

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Iterator

    Check = Callable[[Box], Iterator[Finding]]

_SLOW_DISK = "they may be on a slow disk"
CHECKS: tuple[tuple[Check, Finding | None], ...] = (
    (machine.programs, None),
    (sessions.multiplexers, error("tmux", "tmux does not answer", sessions.NO_VIEW, "tmux -V")),
    (sessions.logout, warning("logout", *sessions.SYSTEMD_HANGS)),
    (gpus.driver, gpus.HANGS),
    (gpus.egl, None),
    (machine.folders, error("root", *machine.DISK_HANGS)),
    (machine.memory, None),
    (machine.load, None),
    (machine.limits, None),
    (variables.variables, None),
    (sessions.files_named, error("grid", "the files that the grid names could not all be looked at", _SLOW_DISK)),
)
"""each check, with the finding if it does not end in time"""


def main(arguments: list[str]) -> int:
    """Run the verb. It leaves without waiting for checks that hang."""
    begin = time.time()
    root, programs, *named = arguments
    box = Box(root, named, programs.split(",") if programs else (), sys.stdin.read())
    findings = [*machine.bash(box)]
    if all(finding.level is Level.OK for finding in findings):  # otherwise an old bash would be the only finding
        findings += examine(box)
    document = {"findings": [list(map(_shown, one)) for one in findings], "about": box.about()}
    sys.stdout.buffer.write(json.dumps({**document, "clock": [begin, time.time()]}).encode())
    sys.stdout.flush()
    commands.end_running()
    os._exit(0)


def examine(box: Box) -> list[Finding]:
    """All checks at once; their findings in the order of the table."""
    found: list[list[Finding]] = [[] for _ in CHECKS]
    whole = [False for _ in CHECKS]

    def work(place: int) -> None:
        found[place] += CHECKS[place][0](box)
        whole[place] = True

    threads = [threading.Thread(target=work, args=(place,), daemon=True) for place in range(len(CHECKS))]
    for thread in threads:
        try:
            thread.start()
        except RuntimeError:  # no more threads (`ulimit -u`); another check reports that
            thread.run()
    deadline = time.monotonic() + box.slow_s + 3
    for thread in filter(threading.Thread.is_alive, threads):
        thread.join(max(0.1, deadline - time.monotonic()))
    late = [[] if over or late is None else [late] for over, (_, late) in zip(whole, CHECKS)]
    return [finding for place in range(len(CHECKS)) for finding in (*found[place], *late[place])]


def _shown(text: str) -> str:
    return "".join(char if char.isprintable() else " " for char in text).encode("utf-8", "replace").decode()
