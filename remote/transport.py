"""The transport: runs bash scripts on a host. Here also the transport for this machine.

Scripts also copy files, through standard input and output. So a transport needs a single method, and a fake one for
tests is a few lines.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from typing import IO, Protocol

from comborun.errors import HostError
from comborun.text import MIB

LOCAL = "local"
"""the name of this machine as a host"""
_COMMAND = 'read -r -d ""; eval "unset -v REPLY; $REPLY"'
"""the script comes first on standard input: an argument may be too long, and a file would be in the way"""
_LOOK_S = 0.02
"""between two looks at how much a script has written"""


@dataclass(frozen=True)
class Completed:
    """The result of a script on the host: its exit code (-N for signal N) and both streams, every byte."""

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
    """Runs bash scripts on one host."""

    @property
    def host(self) -> str:
        """The name that the user gave; `local` for this machine."""
        ...

    def run(
        self, script: str, *args: str, stdin: bytes = b"", timeout: float = 60.0, limit: int = 64 * MIB
    ) -> Completed:
        """Run `script` in `bash --noprofile --norc` with `args` as $1, $2 ...

        Raises HostError when the host can't be reached, when `timeout` seconds have passed (what the script started
        is ended first) and when a stream holds more than `limit` bytes. A code that is not 0 raises nothing.
        """
        ...


class LocalTransport:
    """Runs scripts here. Their streams are files: none blocks another, and what a script starts may keep them."""

    host = LOCAL
    warnings: tuple[str, ...] = ()
    """sentences for people, as ssh's transports have them"""

    def run(
        self, script: str, *args: str, stdin: bytes = b"", timeout: float = 60.0, limit: int = 64 * MIB
    ) -> Completed:
        with contextlib.ExitStack() as stack:
            given, *written = [stack.enter_context(_stream()) for _ in range(3)]
            given.write(script.encode("utf-8", "surrogateescape") + b"\0" + stdin)
            given.seek(0)
            process = _start(["bash", "--noprofile", "--norc", "-c", _COMMAND, "comborun", *args], given, *written)
            try:
                code = _wait(process, written, time.monotonic() + timeout, limit)
            except BaseException:
                with contextlib.suppress(ProcessLookupError):
                    os.killpg(process.pid, signal.SIGKILL)
                process.wait()
                raise
            stdout, stderr = (os.pread(stream.fileno(), limit, 0) for stream in written)
            return Completed(code, stdout, stderr)


def _stream() -> IO[bytes]:
    """A file without a name; in memory where the kernel has such, so that a full disk does not matter."""
    if hasattr(os, "memfd_create"):
        return os.fdopen(os.memfd_create("comborun"), "w+b")
    return tempfile.TemporaryFile()


def _start(command: list[str], stdin: IO[bytes], stdout: IO[bytes], stderr: IO[bytes]) -> subprocess.Popen[bytes]:
    try:
        return subprocess.Popen(command, stdin=stdin, stdout=stdout, stderr=stderr, start_new_session=True)
    except OSError as error:
        raise HostError(f"this machine can't start bash: {error.strerror}", "ulimit -a shows its limits") from error


def _wait(process: subprocess.Popen[bytes], written: list[IO[bytes]], deadline: float, limit: int) -> int:
    """The exit code. Raises HostError at the deadline, or when a stream holds more than the limit."""
    code = None
    while code is None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise HostError("the command on this machine did not finish in time", "is the machine overloaded?")
        with contextlib.suppress(subprocess.TimeoutExpired):
            code = process.wait(min(_LOOK_S, left))
        if any(os.fstat(stream.fileno()).st_size > limit for stream in written):
            raise HostError(f"a command on this machine answered with more than {limit} bytes")
    return code
