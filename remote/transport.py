"""The transport: runs bash scripts on a host. This module also has the transport for this machine.

Scripts also copy files, through standard input and output. So a transport needs only one method, and a fake one for
tests is a few lines.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from typing import IO, TYPE_CHECKING, NamedTuple, Protocol, TypeVar

from comborun.errors import HostError
from comborun.host.system.children import fork
from comborun.text import MIB

if TYPE_CHECKING:
    from comborun.host.system.children import Child

    Opening = subprocess.Popen[bytes] | Child

T = TypeVar("T")

LOCAL = "local"
"""the name of this machine as a host"""
RUNS_SESSIONS = sys.platform == "linux"
"""whether sessions can run on this machine"""
_COMMAND = 'read -r -d ""; eval "unset -v REPLY; $REPLY"'
"""the script comes first on standard input: it may be too long for an argument, and a file would have to be removed"""
_OPTIONS = frozenset(("SHELLOPTS", "BASHOPTS"))
"""variables with options of the caller's bash, which ours would take over"""
_LOOK_S = 0.02
"""seconds between two checks of a script's output size"""


class Completed(NamedTuple):
    """The result of a script on the host: its exit code (-N for signal N) and both complete streams."""

    code: int
    stdout: bytes
    stderr: bytes

    @property
    def text(self) -> str:
        return self.stdout.decode("utf-8", "replace")

    @property
    def complaint(self) -> str:
        return self.stderr.decode("utf-8", "replace").strip()


class Transport(Protocol):
    @property
    def host(self) -> str:
        """The name that the user gave; `local` for this machine."""
        ...

    def run(
        self, script: str, *args: str, stdin: bytes = b"", timeout: float = 60.0, limit: int = 64 * MIB
    ) -> Completed:
        """Run `script` in `bash --noprofile --norc` with `args` as $1, $2 ...

        Raises HostError if the host can't be reached, after `timeout` seconds (the script's processes are ended first),
        and if a stream holds more than `limit` bytes. Another exit code than 0 raises nothing.
        """
        ...


class LocalTransport:
    """Runs scripts here. Their streams are files: none blocks another, and lasting processes may keep them open."""

    host = LOCAL
    warnings: tuple[str, ...] = ()
    """sentences for the user, like those of the ssh transports"""

    forks = True
    """whether `call` may be used: this process has no threads that could hold a lock"""

    def __init__(self, *, forks: bool = True) -> None:
        self.forks = forks

    def close(self) -> None:
        """Nothing is open."""

    def run(
        self, script: str, *args: str, stdin: bytes = b"", timeout: float = 60.0, limit: int = 64 * MIB
    ) -> Completed:
        command = ["bash", "--noprofile", "--norc", "-c", _COMMAND, "comborun", *args]
        given = script.encode("utf-8", "surrogateescape") + b"\0" + stdin
        own = {name: value for name, value in os.environ.items() if name not in _OPTIONS}

        return _finish(
            lambda **on: subprocess.Popen(command, start_new_session=True, env=own, **on), given, timeout, limit
        )

    def call(self, work: Callable[[], int], stdin: bytes, timeout: float, limit: int = 64 * MIB) -> Completed:
        """Run a function in a fork of this process, which is faster than starting an interpreter."""

        def leading() -> int:
            os.setsid()
            return work()

        return _finish(lambda **files: fork(leading, [one.fileno() for one in files.values()]), stdin, timeout, limit)


def in_threads(transport: T) -> T:
    """The transport, which threads may use from now on: that to this machine forks no more."""
    if isinstance(transport, LocalTransport):
        transport.forks = False
    return transport


def _finish(start: Callable[..., Opening], given: bytes, timeout: float, limit: int) -> Completed:
    """Start a child with its standard input, and wait for its end. Raises HostError as `run` does."""
    with contextlib.ExitStack() as stack:
        stdin, *written = [stack.enter_context(_stream()) for _ in range(3)]
        stdin.write(given)
        stdin.seek(0)
        try:
            child = start(stdin=stdin, stdout=written[0], stderr=written[1])
        except OSError as error:
            hint = "`ulimit -u` shows the limit on processes, `ulimit -a` all of them"
            raise HostError(f"this machine can't start a process: {error.strerror}", hint) from error
        try:
            code = _wait(child, written, time.monotonic() + timeout, limit)
        except BaseException:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(child.pid, signal.SIGKILL)
            if child.poll() is None:  # the fork may not lead its group yet
                os.kill(child.pid, signal.SIGKILL)
            child.wait()
            raise
        stdout, stderr = (os.pread(stream.fileno(), limit, 0) for stream in written)
        return Completed(code, stdout, stderr)


def _stream() -> IO[bytes]:
    """A file without a name; in memory if the kernel can do that, so that a full disk does not matter."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("comborun"), "w+b")
    import tempfile

    return tempfile.TemporaryFile()


def _wait(child: Opening, written: list[IO[bytes]], deadline: float, limit: int) -> int:
    """The exit code. Raises HostError at the deadline, or if a stream holds more than the limit."""
    with contextlib.ExitStack() as stack:
        ended = []
        with contextlib.suppress(OSError, AttributeError):  # an old kernel, or macOS
            ended.append(os.pidfd_open(child.pid))
            stack.callback(os.close, ended[0])
        while (code := child.poll()) is None:
            left = deadline - time.monotonic()
            if left <= 0:
                raise HostError("the command on this machine did not finish in time", "is the machine overloaded?")
            select.select(ended, (), (), min(_LOOK_S, left))
            _check_size(written, limit)
    _check_size(written, limit)
    return code


def _check_size(written: list[IO[bytes]], limit: int) -> None:
    if any(os.fstat(stream.fileno()).st_size > limit for stream in written):
        raise HostError(f"a command on this machine answered with more than {limit} bytes")
