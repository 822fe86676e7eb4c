"""Runs programs that may not answer, with a deadline.

Supervisors load this module and run no program with it, so what is slow to load is loaded where it is used.
"""

from __future__ import annotations

import os
import signal
from _thread import allocate_lock

from comborun.host.system import process

NO_ANSWER = 124
ABSENT = "absent"
PATIENCE_S = 10
_MOST = 16384
"""most bytes of a program's output that are kept"""
_RUNNING: set[int] = set()
"""pids of the programs that have not answered yet"""
_STARTING = allocate_lock()
"""a threading.Lock: that module is slow to load"""
_OVER: set[int] = set()
"""the pid of this process when it leaves: it starts no more programs"""


def run(seconds: float, *command: str, errors: bool = False, stdin: bytes = b"", most: int = _MOST) -> tuple[int, str]:
    """Exit code and last bytes of a program's output, with `errors` of both streams; 124: no answer in time.

    The output goes to a file, because a process that outlives the program could hold a pipe open for ever.
    """
    import subprocess
    import tempfile

    folder = "/dev/shm" if os.path.isdir("/dev/shm") else None  # noqa: S108
    with tempfile.TemporaryFile(dir=folder) as output, tempfile.TemporaryFile(dir=folder) as given:
        given.write(stdin)
        given.seek(0)
        try:
            with _STARTING:
                if os.getpid() in _OVER:
                    return NO_ANSWER, ""
                child = subprocess.Popen(
                    command,
                    stdin=given,
                    stdout=output,
                    stderr=subprocess.STDOUT if errors else subprocess.DEVNULL,
                    start_new_session=True,
                )
                _RUNNING.add(child.pid)
        except OSError as error:
            return 127, str(error)
        try:
            code = child.wait(seconds)
        except subprocess.TimeoutExpired:
            code = child.returncode = NO_ANSWER  # not waited for: a process that hangs in the kernel never ends
            process.send_group(child.pid, signal.SIGKILL)
        _RUNNING.discard(child.pid)
        output.seek(max(0, output.seek(0, os.SEEK_END) - most))
        return code, output.read().decode("utf-8", "replace").strip()


def end_running() -> None:
    """End the programs that have not answered yet; for a process that leaves before its threads do."""
    _OVER.add(os.getpid())
    held = _STARTING.acquire(True, 1.0)  # the start itself may hang on a dead file system
    for pid in tuple(_RUNNING):
        process.send_group(pid, signal.SIGKILL)
    if held:
        _STARTING.release()


def first_line(*command: str) -> str:
    """The first line that a program prints, or nothing. Some programs end with 1 although all is well."""
    from shutil import which

    return run(PATIENCE_S, *command)[1].partition("\n")[0].strip() if which(command[0]) else ""


def bash_version() -> str:
    return first_line("bash", "--noprofile", "--norc", "-c", 'printf %s "$BASH_VERSION"')


def lack(name: str) -> str:
    """What is wrong with a needed program: `absent`, or the box that stands in for it; empty if nothing is."""
    from shutil import which

    found = which(name)
    real = os.path.basename(os.path.realpath(found)) if found else ABSENT
    return real if not found or real.startswith(("busybox", "toybox")) else ""
