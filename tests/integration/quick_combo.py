"""The program `combo` without the second that Python takes to import it: each call is a fork of one that has it all."""

from __future__ import annotations

import ctypes
import multiprocessing
import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from multiprocessing.connection import Connection
from multiprocessing.context import ForkServerContext, ForkServerProcess
from multiprocessing.forkserver import ensure_running
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
PLAIN = {"PYTHONPATH": str(CHECKOUT), "LANG": "C.UTF-8"}
"""what the forks have of the variables that count before Python's first line; others need a Python of their own"""

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    [
        *(f"comborun.cli.{file.stem}" for file in (CHECKOUT / "comborun/cli").glob("[a-z]*.py")),
        *(f"comborun.words.{file.stem}" for file in (CHECKOUT / "comborun/words").glob("[a-z]*.py")),
        *("comborun.cli", "comborun.monitor.watch", "comborun.remote.program", "comborun.remote.fetch"),
        *("comborun.host.verbs.probe", "comborun.reporter.comparing.power", "comborun.rules.results.row_readers"),
        *("comborun.remote.transport", "comborun.remote.ssh.shell", "comborun.reporter.report"),
        *("jsonlines", "paramiko", "scipy.special", "quick_combo", "packed_programs"),  # else each fork imports pytest
    ]
)


@cache
def _forks() -> ForkServerContext:
    """With its server running, which finds `packed_programs` by its environment."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("PYTHONPATH", str(Path(__file__).parent))
        ensure_running()
    return _FORKS


@dataclass
class Call:
    """One call of `combo`; what it says goes to a file."""

    process: ForkServerProcess
    said: Path

    @property
    def text(self) -> str:
        return self.said.read_text(errors="replace") if self.said.exists() else ""

    def code(self, seconds: float = 90.0) -> int:
        """The exit code, once it has one."""
        self.process.join(seconds)
        assert self.process.exitcode is not None, f"combo has not ended within {seconds:g} s; it says\n{self.text}"
        return self.process.exitcode

    def interrupt(self) -> None:
        os.kill(self.process.pid or 0, signal.SIGINT)

    def kill(self) -> None:
        self.process.kill()
        self.process.join(10)


def call(words: list[str], environment: Mapping[str, str], folder: Path, said: Path) -> Call:
    process = _forks().Process(target=_into_file, args=(words, dict(environment), folder, said), daemon=True)
    process.start()
    return Call(process, said)


def at_terminal(words: list[str], environment: Mapping[str, str], folder: Path, end: int) -> ForkServerProcess:
    """With the terminal's end as all its streams, which is closed here."""
    with Connection(end) as terminal:
        process = _forks().Process(target=_onto, args=(words, dict(environment), folder, terminal), daemon=True)
        process.start()
    return process


def can_run(environment: Mapping[str, str]) -> bool:
    early = {name for name in environment if name.startswith(("PYTHON", "LANG", "LC_", "LD_", "TZ"))}
    return {name: environment[name] for name in early} == PLAIN


def run(
    words: list[str], environment: Mapping[str, str], folder: Path, seconds: float, inside: int = 0
) -> subprocess.CompletedProcess[str]:
    """As `subprocess.run`: to the end of both streams, so whatever it leaves running must have closed them.

    `inside`: a process in whose namespaces it runs.
    """
    deadline = time.monotonic() + seconds
    (out, to_out), (err, to_err) = multiprocessing.Pipe(duplex=False), multiprocessing.Pipe(duplex=False)
    with out, err:
        with to_out, to_err:
            arguments = (words, dict(environment), folder, to_out, to_err, inside)
            process = _forks().Process(target=_into_pipes, args=arguments, daemon=True)
            process.start()
        said = _read((out, err), deadline)
        process.join(max(0.0, deadline - time.monotonic()))
    if said is None or process.exitcode is None:
        process.kill()
        raise subprocess.TimeoutExpired(words, seconds)
    return subprocess.CompletedProcess(words, process.exitcode, *said)


def _read(streams: tuple[Connection, ...], deadline: float) -> list[str] | None:
    """All that comes until the streams are closed at the other end; None when that is not in time."""
    pieces: dict[int, list[bytes]] = {stream.fileno(): [] for stream in streams}
    with selectors.DefaultSelector() as open_ones:
        for descriptor in pieces:
            open_ones.register(descriptor, selectors.EVENT_READ)
        while open_ones.get_map():
            if time.monotonic() > deadline:
                return None
            for key, _ in open_ones.select(1):
                piece = os.read(key.fd, 1 << 16)
                pieces[key.fd].append(piece)
                if not piece:
                    open_ones.unregister(key.fd)
    return [b"".join(each).decode().replace("\r\n", "\n").replace("\r", "\n") for each in pieces.values()]


def _into_file(words: list[str], environment: dict[str, str], folder: Path, said: Path) -> None:
    os.setsid()
    file = os.open(said, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    _become(["combo", *words], environment, folder, (os.open(os.devnull, os.O_RDONLY), file, file))


def _onto(words: list[str], environment: dict[str, str], folder: Path, terminal: Connection) -> None:
    with terminal:
        end = os.dup(terminal.fileno())
    _become(["combo", *words], environment, folder, (end, end, end))


def _into_pipes(
    words: list[str], environment: dict[str, str], folder: Path, out: Connection, err: Connection, inside: int
) -> None:
    if inside:
        _enter(inside)
    with out, err:
        ends = os.open(os.devnull, os.O_RDONLY), os.dup(out.fileno()), os.dup(err.fileno())
    _become([str(CHECKOUT / "comborun/__main__.py"), *words], environment, folder, ends)


def _enter(pid: int) -> None:
    """Go on in the namespaces of a process, as `nsenter` does."""
    libc = ctypes.CDLL(None, use_errno=True)
    for space in [os.open(f"/proc/{pid}/ns/{name}", os.O_RDONLY) for name in ("mnt", "uts", "time", "pid")]:
        assert libc.setns(space, 0) == 0, os.strerror(ctypes.get_errno())
        os.close(space)
    if child := os.fork():  # only a child is in the new process namespace
        os._exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) & 255)


def _become(words: list[str], environment: dict[str, str], folder: Path, ends: tuple[int, int, int]) -> None:
    for place, descriptor in enumerate(ends):
        os.dup2(descriptor, place)
    for descriptor in set(ends):
        os.close(descriptor)
    sys.stdin, sys.stdout, sys.stderr = (open(end, "rww"[end], closefd=False) for end in (0, 1, 2))  # noqa: SIM115
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = words
    from comborun.__main__ import main

    try:
        main()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
