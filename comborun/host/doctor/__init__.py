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
from collections.abc import Callable, Iterator

from comborun.host.doctor import gpus, machine, sessions
from comborun.host.doctor.machine import Box
from comborun.host.system import commands
from comborun.rules.findings import Finding, Found, Level, error, warning

CHECKS: tuple[tuple[Callable[[Box], Iterator[Finding]], Finding | None], ...] = (
    (machine.programs, None),
    (sessions.multiplexers, error("tmux", Found.TMUX_HANGS)),
    (sessions.logout, warning("logout", Found.SYSTEMD_HANGS)),
    (gpus.driver, error("driver", Found.DRIVER_HANGS)),
    (gpus.egl, None),
    (machine.folders, error("root", Found.DISK_HANGS)),
    (machine.memory, None),
    (machine.load, None),
    (machine.limits, None),
    (machine.variables, None),
    (sessions.files_named, error("grid", Found.FILES_NOT_SEEN)),
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
    told = [{"check": check, "level": level, "fact": fact.as_data()} for check, level, fact in findings]
    print(json.dumps({"findings": told, "about": box.about(), "clock": [begin, time.time()]}), flush=True)
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
