"""Two network namespaces and the link between them: real TCP over any delay, on one machine.

Nothing has a name that could stay behind: namespaces and link last as long as their processes, and those end with the
process that made them, however it ends.
"""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from delaynet import Counted

CLIENT_ADDRESS = "10.231.0.1"
HOST_ADDRESS = "10.231.0.2"
HERE = Path(__file__).parent
ORPHANS_DIE = ("setpriv", "--pdeathsig", "KILL", "--")
"""in front of a command: it ends with the thread that started it"""


def await_that(what: str, true: Callable[[], Any], seconds: float = 15.0) -> Any:
    """What `true` returns as soon as it is something."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        found = true()
        if found:
            return found
        time.sleep(0.02)
    raise TimeoutError(f"still not after {seconds:g} s: {what}")


def end(process: subprocess.Popen[Any]) -> None:
    """Kill a process of ours and wait; never raises."""
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        process.kill()
        process.wait(10)


@dataclass(frozen=True)
class Namespace:
    """A network namespace, held by a process that does nothing else."""

    pid: int

    @property
    def path(self) -> Path:
        return Path(f"/proc/{self.pid}/ns/net")

    def inside(self, *command: str) -> list[str]:
        """The command that runs `command` in there."""
        return ["nsenter", f"--net={self.path}", "--", *command]


@contextlib.contextmanager
def namespace() -> Iterator[Namespace]:
    ours = os.readlink("/proc/self/ns/net")  # noqa: PTH115 - it is a link to nowhere
    holder = subprocess.Popen([*ORPHANS_DIE, "unshare", "--net", "sleep", "infinity"])
    try:
        made = Namespace(holder.pid)
        await_that("the namespace is there", lambda: _link(made.path) not in {"", ours})
        yield made
    finally:
        end(holder)


def _link(path: Path) -> str:
    with contextlib.suppress(OSError):
        return os.readlink(path)  # noqa: PTH115
    return ""


class Link:
    """The relay between two namespaces: delaynet.py."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def _tell(self, command: str) -> Counted:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(command + "\n")
        self._process.stdin.flush()
        return Counted(**json.loads(self._process.stdout.readline()))

    def delay(self, round_trip_ms: float) -> None:
        self._tell(f"delay {round_trip_ms / 2}")

    def cut(self) -> None:
        """From now on packets get lost, both ways, and nobody is told."""
        self._tell("down")

    def mend(self) -> None:
        self._tell("up")

    def counted(self) -> Counted:
        return self._tell("count")


@dataclass(frozen=True)
class Network:
    client: Namespace
    host: Namespace
    link: Link


@contextlib.contextmanager
def network(round_trip_ms: float = 0.0) -> Iterator[Network]:
    """A namespace for the laptop and one for the host, CLIENT_ADDRESS and HOST_ADDRESS, and a link between them."""
    with namespace() as client, namespace() as host:
        ends = (str(client.pid), CLIENT_ADDRESS, str(host.pid), HOST_ADDRESS)
        relay = subprocess.Popen(
            [*ORPHANS_DIE, sys.executable, str(HERE / "delaynet.py"), *ends],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        try:
            assert relay.stdout
            if relay.stdout.readline() != "ready\n":
                raise RuntimeError("the relay did not start; it has said why")
            link = Link(relay)
            link.delay(round_trip_ms)
            yield Network(client, host, link)
        finally:
            end(relay)
            for stream in (relay.stdin, relay.stdout):
                with contextlib.suppress(OSError):
                    if stream:
                        stream.close()


def missing() -> str:
    """Why there can be no test bed here; empty when there can."""
    import shutil

    if os.geteuid():
        return "only root can make network namespaces"
    if not Path("/dev/net/tun").exists():
        return "there is no /dev/net/tun"
    wanted = {"ip": "iproute2", "nsenter": "util-linux", "setpriv": "util-linux", "unshare": "util-linux"}
    wanted |= {"/usr/sbin/sshd": "openssh-server", "ssh": "openssh-client", "tmux": "tmux", "screen": "screen"}
    absent = sorted({package for program, package in wanted.items() if not shutil.which(program)})
    return f"install {' '.join(absent)}" if absent else ""
