"""The one seam between comborun and the world: something that runs bash on a host; and this machine as a host.

Files are put there and fetched by scripts that read standard input or write standard output, so a transport needs a
single method, and a fake one for tests is a few lines.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import signal
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TYPE_CHECKING, Protocol

from comborun.errors import HostError
from comborun.text import MIB

if TYPE_CHECKING:
    from collections.abc import Iterator

LOCAL = "local"
"""the name of this machine as a host"""


@dataclass(frozen=True)
class Completed:
    """What a script on the host left: its exit code (-N for signal N) and both streams, every byte."""

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


_CHUNK = 1 << 16
_LONGEST_ARGUMENT = 100_000
"""bytes; Linux takes 128 KiB"""
_LINGER_S = 0.2
"""How long after the script's end a stream may stay silent while something that it started still holds it open."""


class LocalTransport:
    """Runs scripts here. Both streams are drained together, so neither can block the other."""

    host = LOCAL
    warnings: tuple[str, ...] = ()
    """sentences for people, as ssh's transports have them"""

    def run(
        self, script: str, *args: str, stdin: bytes = b"", timeout: float = 60.0, limit: int = 64 * MIB
    ) -> Completed:
        with _in_a_file(script) as file:
            what = [str(file)] if file else ["-c", script, "comborun"]
            return _run(["bash", "--noprofile", "--norc", *what, *args], stdin, timeout, limit)


@contextlib.contextmanager
def _in_a_file(script: str) -> Iterator[Path | None]:
    """A file for a script that is too long for an argument; None for one that is not."""
    if len(script.encode()) <= _LONGEST_ARGUMENT:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="comborun-") as folder:
        file = Path(folder, "script.sh")
        file.write_text(script, encoding="utf-8")
        yield file


def _run(command: list[str], stdin: bytes, timeout: float, limit: int) -> Completed:
    try:
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
        )
    except OSError as error:
        raise HostError(f"this machine can't start bash: {error.strerror}", "ulimit -a shows its limits") from error
    try:
        stdout, stderr = _Exchange(process, stdin, limit).until(time.monotonic() + timeout)
    except BaseException:
        _end_group(process)
        raise
    finally:
        for stream in (process.stdin, process.stdout, process.stderr):
            _close(stream)
    return Completed(process.wait(), stdout, stderr)


class _Exchange:
    """Feeds standard input and drains both outputs at once, bounded in bytes and in time."""

    def __init__(self, process: subprocess.Popen[bytes], stdin: bytes, limit: int) -> None:
        self.process = process
        self.pending = memoryview(stdin)
        self.limit = limit
        self.selector = selectors.DefaultSelector()
        self.received: dict[IO[bytes], bytearray] = {}
        for stream in (process.stdout, process.stderr):
            assert stream
            self.received[stream] = bytearray()
            self._register(stream, selectors.EVENT_READ)
        assert process.stdin
        if stdin:
            self._register(process.stdin, selectors.EVENT_WRITE)
        else:
            process.stdin.close()

    def until(self, deadline: float) -> tuple[bytes, bytes]:
        """Both outputs, complete. Raises HostError at the deadline or above the limit."""
        with self.selector:
            self._drain(deadline)
        self._wait(deadline)
        stdout, stderr = self.received.values()
        return bytes(stdout), bytes(stderr)

    def _drain(self, deadline: float) -> None:
        silent_since = None
        while self.selector.get_map():
            now = time.monotonic()
            if now >= deadline:
                raise HostError("the command on this machine did not finish in time", "is the machine overloaded?")
            events = self.selector.select(min(deadline - now, 0.05))
            for key, _ in events:
                self._serve(key.fileobj)  # type: ignore[arg-type]
            if events or self.process.poll() is None:
                silent_since = None
            elif silent_since is None:
                silent_since = now
            elif now - silent_since >= _LINGER_S:
                return

    def _register(self, stream: IO[bytes], event: int) -> None:
        os.set_blocking(stream.fileno(), False)
        self.selector.register(stream, event)

    def _serve(self, stream: IO[bytes]) -> None:
        if stream is self.process.stdin:
            self._feed(stream)
            return
        chunk = os.read(stream.fileno(), _CHUNK)
        if not chunk:
            self.selector.unregister(stream)
        self.received[stream] += chunk
        if len(self.received[stream]) > self.limit:
            raise HostError(f"a command on this machine answered with more than {self.limit} bytes")

    def _feed(self, stream: IO[bytes]) -> None:
        try:
            sent = os.write(stream.fileno(), self.pending[:_CHUNK])
        except BrokenPipeError:  # the script has read what it wants
            self.pending = self.pending[:0]
        else:
            self.pending = self.pending[sent:]
        if not self.pending:
            self.selector.unregister(stream)
            _close(stream)

    def _wait(self, deadline: float) -> None:
        try:
            self.process.wait(max(0.0, deadline - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise HostError("the command on this machine did not finish in time") from None


def _close(stream: IO[bytes] | None) -> None:
    try:
        if stream:
            stream.close()
    except BrokenPipeError:
        return


def _end_group(process: subprocess.Popen[bytes]) -> None:
    try:
        os.killpg(process.pid, signal.SIGKILL)
    except ProcessLookupError:
        return
    process.wait()
