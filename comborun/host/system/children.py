"""Forks a child process for work that may take seconds, so that the dispatcher does not wait."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import sys
import time
from collections.abc import Callable, Sequence

from comborun.host.system.files import write_all
from comborun.host.system.process import end_with_parent
from comborun.rules.names import RunLayout


class Child:
    __slots__ = ("code", "pid")

    def __init__(self, pid: int, code: int | None = None) -> None:
        self.pid = pid
        self.code = code

    def poll(self) -> int | None:
        """None while it runs, then its exit code: -N for signal N."""
        return self._waited(os.WNOHANG)

    def wait(self) -> int:
        return self._waited(0) or 0

    def _waited(self, options: int) -> int | None:
        if self.code is None:
            try:
                pid, status = os.waitpid(self.pid, options)
            except ChildProcessError:
                self.code = 0
            else:
                if pid:
                    self.code = -os.WTERMSIG(status) if os.WIFSIGNALED(status) else os.WEXITSTATUS(status)
        return self.code

    def kill(self) -> None:
        if self.poll() is None:
            os.kill(self.pid, signal.SIGKILL)


def fork(work: Callable[[], object], streams: Sequence[int] = (), keep: Sequence[int] = ()) -> Child:
    """Do `work` in a child that keeps only the descriptors in `keep`, so no locks. A number that `work` returns is its
    exit code. Raises OSError.

    `streams` become its standard input, output and error. Without them it has no input, and our output.
    """
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid:
        return Child(pid)
    code = 1
    try:
        signal.set_wakeup_fd(-1)
        for number in (signal.SIGTERM, signal.SIGCHLD, signal.SIGHUP, signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, signal.SIG_DFL)
        for place, fd in enumerate(streams or [os.open(os.devnull, os.O_RDONLY)]):
            os.dup2(fd, place)
        if streams:  # those of a test, say, lead elsewhere
            sys.stdin, sys.stdout, sys.stderr = (open(fd, mode, closefd=False) for fd, mode in enumerate("rww"))  # noqa: SIM115
        for name in os.listdir("/proc/self/fd" if sys.platform == "linux" else "/dev/fd"):
            if int(name) > 2 and int(name) not in keep:
                with contextlib.suppress(OSError):
                    os.close(int(name))
        said = work()
        code = said if isinstance(said, int) else 0
    except Exception:  # noqa: BLE001 # no caller is left in a child
        import traceback

        traceback.print_exc()
    finally:
        with contextlib.suppress(OSError, ValueError):
            sys.stdout.flush()
            sys.stderr.flush()
        os._exit(code)


def within(seconds: float, work: Callable[[], str]) -> str | None:
    """What `work` returns, done in a child; None if it takes longer, or fails. Then the child is ended."""
    if seconds <= 0:
        return None
    reading, writing = os.pipe()

    def answer() -> None:
        end_with_parent(yes=True)
        write_all(writing, work().encode("utf-8", "surrogateescape"))

    try:
        child = fork(answer, keep=(writing,))
    except OSError:
        os.close(reading)
        os.close(writing)
        return None
    os.close(writing)
    try:
        said = _said(reading, time.monotonic() + seconds)
        return said.decode("utf-8", "surrogateescape") if said is not None and child.wait() == 0 else None
    finally:
        os.close(reading)
        child.kill()
        child.wait()


def _said(fd: int, until: float) -> bytes | None:
    """Everything up to the end of a pipe; None if that does not come in time."""
    pieces, poll = [], select.poll()
    poll.register(fd, select.POLLIN)
    while (left := until - time.monotonic()) > 0:
        if poll.poll(left * 1000):
            pieces.append(os.read(fd, 65536))
            if not pieces[-1]:
                return b"".join(pieces)
    return None


def host_program(run: RunLayout, verb: str, *words: object) -> list[str]:
    """The command that runs a verb of a run's own program on that run."""
    return [sys.executable, "-I", "-S", run.program, verb, run.directory, *map(str, words)]


NOT_RUN = 126
"""the code of what could not be started"""


def background(command: Sequence[str], out: str) -> Child:
    """Start a command with its output in a file. One that can't be started has ended with `NOT_RUN`."""
    import subprocess  # slow to load, and neither a supervisor nor a look at a run needs it

    try:
        with open(out, "ab") as log:
            started = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log)
    except OSError:
        return Child(0, NOT_RUN)
    started.returncode = 0  # it is waited for by the Child alone
    return Child(started.pid)
