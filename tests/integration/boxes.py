"""Three hosts that share a grid: real sshd, each with a user and a home of its own."""

from __future__ import annotations

import os
import random
import shutil
import signal
import subprocess
import time
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from box import until
from desk import EVALUATOR, Desk, evaluate
from sshd import Sshd, fresh_user, running_sshd

if TYPE_CHECKING:
    from collections.abc import Iterator

NAMES = ("alpha", "beta", "gamma")


@dataclass
class Boxes:
    desk: Desk
    servers: dict[str, Sshd]
    gate: Path
    """without this file, no session begins its last episode"""

    def grid(self, pace: float = 0.0, **keys: str) -> Path:
        """A grid of four sessions on all hosts, one at once on each; with a pace they wait for the gate."""
        words = evaluate(pace, gate=self.gate if pace else None).split(" --", 1)[1]
        command = f"/usr/bin/python3 ~/evaluator.py --{words}"
        usual = {
            "hosts": f"[{', '.join(self.servers)}]",
            "limits": "{parallel: 1}",
            "poll": "2",  # a look at three hosts is dear
            "workdir": "~/",
            "command": command,
        }
        return self.desk.grid(**{**usual, **keys})

    def home(self, host: str) -> Path:
        return self.servers[host].user.home

    def runs(self, host: str) -> list[Path]:
        """The oldest first; `storm9` came before `storm10`."""
        found = (self.home(host) / "comborun").glob("*-????????T??????Z-????")
        return sorted(found, key=lambda run: run.name.split("-")[-2:])

    def files(self, pattern: str) -> list[Path]:
        """The files of the runs on all hosts that match."""
        return [file for host in self.servers for run in self.runs(host) for file in run.glob(pattern)]

    def records(self, host: str) -> list[Path]:
        """The files of results there."""
        return [file for run in self.runs(host) for file in run.glob("sessions/*/attempt-*/out/*.jsonl")]

    def attempts(self, host: str) -> set[str]:
        """The sessions that have begun there, in any attempt."""
        return {path.parts[-3] for run in self.runs(host) for path in run.glob("sessions/*/attempt-*/begin")}

    @property
    def hosts_of(self) -> dict[str, list[str]]:
        """Session -> the hosts on which it has begun."""
        found: dict[str, list[str]] = {}
        for host in self.servers:
            for name in self.attempts(host):
                found.setdefault(name, []).append(host)
        return found

    @property
    def hosts_of_newest(self) -> dict[str, list[str]]:
        """The same, of the newest run on each host."""
        found: dict[str, list[str]] = {}
        for host in self.servers:
            for name in {path.parts[-3] for run in self.runs(host)[-1:] for path in run.glob("sessions/*/*/begin")}:
                found.setdefault(name, []).append(host)
        return found

    def killed(self, seconds: float, *arguments: object) -> None:
        """A command that is killed after so many seconds, if it has not ended."""
        with subprocess.Popen(
            self.desk.command(*arguments),
            env=self.desk.environment,
            cwd=self.desk.home,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        ) as started:
            try:
                started.wait(seconds)
            except subprocess.TimeoutExpired:
                started.kill()

    def kill_comborun(self, host: str, chance: random.Random) -> None:
        """Kill some of the dispatcher, supervisors and programs that run on a host."""
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                own = entry.stat().st_uid == self.servers[host].user.uid
                named = (entry / "comm").read_text().strip() in {"comborun", "python3"}
                if own and named and chance.random() < 0.6:
                    os.kill(int(entry.name), signal.SIGKILL)

    def status(self) -> dict[str, Any]:
        return self.desk.json("status")

    def alive(self, host: str) -> list[int]:
        """The pids of programs that run there."""
        found = []
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                own = entry.stat().st_uid == self.servers[host].user.uid
                if own and b"evaluator.py" in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
        return found

    def cut(self, host: str) -> None:
        """The host can't be reached; what runs there goes on."""
        self.servers[host].stop_all()

    def mend(self, host: str) -> None:
        self.servers[host].start()

    def power_off(self, host: str) -> None:
        """The host is gone, with all that ran there."""
        self.cut(host)
        for entry in Path("/proc").glob("[0-9]*"):
            with suppress(OSError):
                if entry.stat().st_uid == self.servers[host].user.uid:
                    os.kill(int(entry.name), signal.SIGKILL)


def freeze(server: Sshd) -> None:
    assert server.process
    server.signal_serving(signal.SIGSTOP)
    os.kill(server.process.pid, signal.SIGSTOP)


def thaw(server: Sshd) -> None:
    assert server.process
    os.kill(server.process.pid, signal.SIGCONT)
    server.signal_serving(signal.SIGCONT)


@contextmanager
def three_hosts(desk: Desk, ssh_place: Path, name_of_test: str) -> Iterator[dict[str, Sshd]]:
    """Three servers, each with a user who has the evaluator; the desk knows them by their names."""
    with ExitStack() as stack:
        servers = {}
        for name in NAMES:
            user = stack.enter_context(fresh_user())
            shutil.copy(EVALUATOR, user.home / "evaluator.py")
            place = ssh_place / f"{name_of_test}-{name}"
            servers[name] = stack.enter_context(running_sshd(place, user, alias=name))
        config = desk.home / "config"
        config.write_text("".join(one.config.read_text() for one in servers.values()))
        desk.environment |= {"COMBORUN_SSH_CONFIG": str(config), "XDG_STATE_HOME": str(desk.home / "state")}
        yield servers


@pytest.fixture
def boxes(desk: Desk, ssh_place: Path, tmp_path: Path) -> Iterator[Boxes]:
    with three_hosts(desk, ssh_place, tmp_path.name) as servers:
        desk.environment |= {"COMBORUN_KEEP_S": "0"}
        yield Boxes(desk, servers, ssh_place / f"{tmp_path.name}-gate")


def finished(boxes: Boxes, seconds: float = 60) -> dict[str, Any]:
    """The status, once all have ended. It is asked when all hosts have ended their parts, else every few seconds: it
    takes a second of a core."""
    asked, status = time.monotonic(), {}

    def over() -> bool:
        nonlocal asked, status
        runs = [run for host in boxes.servers for run in boxes.runs(host)]
        if all((run / "dispatch/done").exists() for run in runs) or time.monotonic() > asked + 4:
            status = boxes.status()
            asked = time.monotonic()
        return status.get("finished", False)

    until(over, "all have ended", seconds)
    return status
