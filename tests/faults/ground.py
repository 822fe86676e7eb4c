"""A place where a run goes through a fault: the user's desk, and the host, which may be this machine or behind sshd."""

from __future__ import annotations

import contextlib
import json
import os
import secrets
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from box import carrying, kill, until
from desk import Desk
from laptop import FarRun
from matrix import Cell
from quick_combo import Call, call
from sshd import Sshd

from comborun.model.attempt import Begin
from comborun.rules.names import MULTIPLEXER_NAMES
from comborun.rules.records import parse

WAYWARD = Path(__file__).with_name("wayward.py")
KNOBS = {
    "COMBORUN_GRACE_S": "1",
    "COMBORUN_LAUNCH_S": "5",
    "COMBORUN_STOP_INT_S": "1",
    "COMBORUN_STOP_TERM_S": "1",
    "COMBORUN_WATCH_S": "0.5",
    "COMBORUN_MEMORY_ASK_MS": "200",
    "COMBORUN_VMSTAT": "/dev/null",
    "COMBORUN_KEEP_S": "0",  # else a shell of the kept connection is left on the host
}
"""shorter than a user has them, so that a fault takes seconds"""
PATIENCE_S = 100.0
SOON = "{times: 2, wait: 100 ms}"
RETRY = "{" + ", ".join(f"{name}: {SOON}" for name in ("host_memory", "stalled", "killed", "crashed", "lost")) + "}"


@dataclass
class Ground:
    """`token` is in the environment of every process on the host, and of no other."""

    desk: Desk
    cell: Cell
    home: Path
    """the user's home on the host, seen from here"""
    user: int
    token: str
    environment: dict[str, str]
    """of the user on the host"""
    calls: list[Call] = field(default_factory=list)
    root: Path = field(init=False)

    def __post_init__(self) -> None:
        self.root = self.home / f"runs-{self.token}"
        for folder in (self.root, self.gates):
            folder.mkdir()
            os.chown(folder, self.user, self.user)

    @property
    def gates(self) -> Path:
        return self.home / f"gates-{self.token}"

    # What a user does.

    def grid(self, *policies: str, environments: str = "[maze]", episodes: int = 4, **keys: str) -> Path:
        """A grid of wayward programs."""
        command = (
            "/usr/bin/python3 -S ~/wayward.py --policy {policy} --env {environment} --episodes {episodes}"
            f" --first-episode {{first_episode}} --attempt {{attempt}} --output-dir {{output_dir}}"
            f" --gates ~/{self.gates.name}"
        )
        where = {"host": "testbox"} if self.cell.place == "sshd" else {}
        given = {"policies": f"[{', '.join(policies)}]", "environments": environments, "episodes": str(episodes)}
        patience = {"retry": RETRY, "evidence": "{grace: 1 s}", "limits": "{parallel: 4, attempts: 4}"}
        return self.desk.grid(
            **{"command": command, **where, "root": f"~/{self.root.name}", **given, **patience, **keys}
        )

    def begin(self, *words: object) -> Call:
        said = self.desk.home / f"said-{len(self.calls)}.txt"
        self.calls.append(call([str(word) for word in words], self.desk.environment, self.desk.home, said))
        return self.calls[-1]

    def combo(self, *words: object, codes: tuple[int, ...] = (0,)) -> str:
        """Call `combo` to its end; what it said."""
        made = self.begin(*words)
        assert made.code() in codes, f"combo {words[0]} ends with {made.code()}\n{made.text}"
        return made.text

    def launch(self, grid: Path) -> str:
        return self.combo("launch", grid, "--multiplexer", self.cell.multiplexer)

    def of_run(self) -> list[str]:
        """The options that tell a command where the run is."""
        return ["--host", "testbox" if self.cell.place == "sshd" else "local", "--root", f"~/{self.root.name}"]

    def open_gates(self, *sessions: str) -> None:
        """Let sessions do their last episode; all that the queue names when none is named."""
        queue = self.run.directory / "dispatch/queue.jsonl"
        for session in sessions or [json.loads(line)["name"] for line in queue.read_text().splitlines()]:
            (self.gates / session).touch()

    # What is on the host.

    @property
    def run(self) -> FarRun:
        (directory,) = self.root.glob("*-????????T??????Z-????")
        return FarRun(directory)

    def record(self, path: str) -> dict[str, str]:
        """A record of the run, by its path; empty when there is none."""
        with contextlib.suppress(OSError):
            return parse((self.run.directory / path).read_text(errors="replace"))
        return {}

    def begun(self, session: str, attempt: int = 1) -> Begin:
        """Its begin record, once the session waits at its gate."""
        begin = self.begun_at(session, attempt)
        at = self.run.directory / f"sessions/{session}/attempt-{attempt}"
        planned = int(parse((at / "claim").read_text())["count"])
        until(lambda: lines(at) >= planned - 1, lambda: f"{session} is at its gate\n{self.story}", PATIENCE_S)
        return begin

    def begun_at(self, session: str, attempt: int) -> Begin:
        """Its begin record, once there is one."""
        file = self.run.directory / f"sessions/{session}/attempt-{attempt}/begin"
        until(file.exists, lambda: f"{session} begins\n{self.story}", PATIENCE_S)
        return Begin.parse(file.read_text())

    def end(self, session: str, attempt: int = 1) -> dict[str, str]:
        """Its end record, once it has one."""
        path = f"sessions/{session}/attempt-{attempt}/end"
        until(lambda: self.record(path), lambda: f"{session}'s attempt {attempt} ends\n{self.story}", PATIENCE_S)
        return self.record(path)

    @property
    def dispatcher(self) -> int:
        return int(self.record("dispatch/dispatcher").get("pid") or 0)

    def await_done(self) -> dict[str, str]:
        until(lambda: self.record("dispatch/done"), lambda: f"the run is done\n{self.story}", PATIENCE_S)
        return self.record("dispatch/done")

    def everything(self) -> list[int]:
        """All that lives on the host because of this: sessions, windows, dispatchers."""
        return carrying(f"COMBORUN_TMUX_SOCKET={self.token}")

    def marked(self) -> list[int]:
        return carrying(f"COMBORUN_SESSION={self.run.id}/")

    def windows(self) -> list[int]:
        """The processes of multiplexers."""
        return [pid for pid in self.everything() if name(pid).startswith(MULTIPLEXER_NAMES)]

    def kill_everything(self) -> None:
        kill_all(self.everything)

    @property
    def story(self) -> str:
        """What there is to know when it has gone wrong."""
        with contextlib.suppress(OSError, ValueError):
            at = self.run.directory
            files = [at / "dispatch" / part for part in ("events.jsonl", "out", "hold", "waiting", "done")]
            files += sorted(at.glob("sessions/*/attempt-*/end"))
            told = [
                f"--- {file.relative_to(at)}\n{file.read_text(errors='replace')}" for file in files if file.exists()
            ]
            return "\n".join([*told, *(f"--- said\n{made.text[-1500:]}" for made in self.calls[-2:])])
        return "there is no run"

    def close(self) -> None:
        """End all of it; never raises."""
        for made in self.calls:
            with contextlib.suppress(Exception):
                made.kill()
        with contextlib.suppress(Exception):
            self.kill_everything()
        for folder in (self.root, self.gates):
            shutil.rmtree(folder, ignore_errors=True)
        with contextlib.suppress(OSError):
            Path(f"/tmp/tmux-{self.user}/{self.token}").unlink()


def lines(attempt: Path) -> int:
    """How many whole lines the results of an attempt have."""
    with contextlib.suppress(OSError):
        return (attempt / "out/episodes.jsonl").read_bytes().count(b"\n")
    return 0


def name(pid: int) -> str:
    with contextlib.suppress(OSError):
        return Path(f"/proc/{pid}/comm").read_text().lower()
    return ""


def kill_all(which: Callable[[], list[int]]) -> None:
    """KILL to all of them at once, and to what they had started just then."""
    deadline = time.monotonic() + 10
    while (found := which()) and time.monotonic() < deadline:
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for pid in found:
                kill(pid, number)


@contextlib.contextmanager
def ground_at(cell: Cell, desk: Desk, request: pytest.FixtureRequest) -> Iterator[Ground]:
    if not shutil.which(cell.multiplexer):
        pytest.skip(f"no {cell.multiplexer} here")
    token = f"fault{secrets.token_hex(4)}"
    if cell.place == "sshd":
        server: Sshd = request.getfixturevalue("fault_sshd")
        home, user = server.user.home, server.user.uid
        desk.environment["COMBORUN_SSH_CONFIG"] = str(server.config)
    else:
        home, user = desk.home, os.geteuid()
    screens = Path(tempfile.mkdtemp(prefix="cf"))
    os.chown(screens, user, user)
    environment = {**KNOBS, "COMBORUN_TMUX_SOCKET": token, "SCREENDIR": str(screens)}
    desk.environment.update(environment)
    shutil.copy(WAYWARD, home / "wayward.py")
    made = Ground(desk, cell, home, user, token, environment)
    try:
        with login_environment(made):
            yield made
    finally:
        made.close()
        shutil.rmtree(screens, ignore_errors=True)


@contextlib.contextmanager
def login_environment(ground: Ground) -> Iterator[None]:
    """What sshd gives to whoever logs in."""
    if ground.cell.place == "local":
        yield
        return
    file = ground.home / ".ssh/environment"
    file.parent.mkdir(mode=0o755, exist_ok=True)
    set_login_environment(ground)
    try:
        yield
    finally:
        file.unlink(missing_ok=True)


def set_login_environment(ground: Ground) -> None:
    if ground.cell.place == "sshd":
        text = "".join(f"{key}={value}\n" for key, value in ground.environment.items())
        (ground.home / ".ssh/environment").write_text(text)
    else:
        ground.desk.environment.update(ground.environment)


def as_user(ground: Ground, *command: str) -> subprocess.CompletedProcess[str]:
    """Run a command on the host by hand, as the user would there."""
    environment = {"PATH": os.environ["PATH"], "HOME": str(ground.home), **ground.environment}
    who = {"user": ground.user, "group": ground.user, "extra_groups": []} if ground.cell.place == "sshd" else {}
    return subprocess.run(
        command, env=environment, cwd="/", capture_output=True, text=True, timeout=60, check=False, **who
    )


def rewrite(file: Path, **fields: object) -> None:
    """Change what a record says, where it says it."""
    told = json.loads(file.read_text())
    file.write_text(json.dumps({key: fields.get(key, value) for key, value in told.items()}))
