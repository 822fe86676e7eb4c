"""A run directory made by hand and the host program run on it, with windows of its own (windows.py).

The fixtures are `box` (tmux), `screen_box`, `any_box` (every multiplexer, one after the other), `usual_box` (the same
with COMBORUN_SLOW=1, else tmux: for what does not depend on the windows) and `small_disk_box`.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from bytecode import compiled_library, share
from happened import events, words
from recorded import record
from windows import WINDOWS, TmuxWindows, Windows

from comborun.generate.bundle import server_manifest, session_manifest
from comborun.generate.run_scripts import FRONT
from comborun.generate.script import page
from comborun.host.system.files import read_rows
from comborun.model.attempt import Begin, End
from comborun.model.plan import Session
from comborun.model.resources import NOTHING, BashWord, ModelServer, ServerInstance
from comborun.rules.facts import Fact
from comborun.rules.names import MULTIPLEXER_NAMES
from comborun.rules.records import parse
from comborun.rules.results.fields import ResultRules
from comborun.rules.room.capacity import Request
from comborun.rules.room.waits import waits_for

WAIT = 20.0
"""seconds after which a test gives up on something that should take a fraction of one"""

PYTHON = sys.executable


def until(condition: Callable[[], object], what: str | Callable[[], str], seconds: float = WAIT) -> None:
    """Poll until `condition` holds; fail with `what` when it does not in time, made then where it is a function.

    A condition that takes long, as a look at all processes or a `combo` does, is asked less often: others need the
    cores, too.
    """
    began = asked = time.monotonic()
    while not condition():
        now = time.monotonic()
        if now > began + seconds:
            pytest.fail(f"within {seconds:g} s: {what() if callable(what) else what}")
        time.sleep(min(1.0, max(0.02, 3 * (now - asked))))
        asked = time.monotonic()


def put_library(run: Path, *, link: bool = False) -> None:
    """Give a run directory what travels with every run, or a link to it, and the interpreter of the tests."""
    if link:
        (run / "lib").symlink_to(compiled_library())
    else:
        shutil.copytree(compiled_library(), run / "lib", copy_function=share, dirs_exist_ok=True)
    (run / "run_parallel.sh").write_text(FRONT)
    (run / "dispatch").mkdir(exist_ok=True)
    (run / "dispatch/python").write_text(f"{Path(sys.executable).resolve()}\n")


@dataclass(frozen=True)
class Script:
    """A session, or a model server, of a run that is made by hand. Words are bash text: quoted literals and
    "$COMBORUN_..."."""

    command: tuple[str, ...]
    count: int = 1
    first: int = 0
    results: tuple[str, ...] | ResultRules = ()
    workdir: str = ""
    variables: tuple[str, ...] = ()
    setup: str = ""
    gpus: int = 0
    request: Request = NOTHING
    more: Mapping[str, Any] = field(default_factory=dict)
    """further fields of the session in a plan, such as `watch=WatchRules(2)`; for a server those of `Server`"""

    def text(self, name: str, family: str = "sessions") -> str:
        """The page, as a plan's would be."""
        return page(self._session(name, family), "made by hand", family=family)

    def session_json(self, name: str, family: str = "sessions") -> str:
        """session.json, as a plan's would be."""
        if family == "sessions":
            return session_manifest(self._session(name, family))
        return server_manifest(ServerInstance(name, None, ModelServer(name=name, **self._run, **self.more)))

    def _session(self, name: str, family: str) -> Session:
        own: dict[str, Any] = {"policy": "", "environment": "", "unit": "episode", "seed": None, "digest": ""}
        own |= {"first": self.first, "count": self.count, "request": self.request}
        own |= {"results": self.results if isinstance(self.results, ResultRules) else ResultRules(self.results)}
        return Session(name=name, **{**own, **self._run, **(self.more if family == "sessions" else {})})

    @property
    def _run(self) -> dict[str, Any]:
        """What a session and a server have in common."""
        pairs = (word.partition("=") for word in self.variables)
        return {
            "command": tuple(map(BashWord, self.command)),
            "setup": self.setup,
            "workdir": BashWord(self.workdir) if self.workdir else None,
            "variables": tuple((key, BashWord(value)) for key, _, value in pairs),
            "gpus": self.gpus,
        }


def bash(text: str, **options: object) -> Script:
    """A session whose command is `bash -c text`."""
    return Script(("bash", "-c", shlex.quote(text)), **options)  # type: ignore[arg-type]


def python(text: str, **options: object) -> Script:
    """A session whose command is a Python program."""
    return Script((shlex.quote(PYTHON), "-c", shlex.quote(text)), **options)  # type: ignore[arg-type]


def _row(name: str, script: Script) -> str:
    """Its row of queue.jsonl."""
    return record(name=name, **{**asdict(script.request), "gpus": script.gpus, "alone": None})


@dataclass
class Box:
    """One run directory and what can be done to it."""

    directory: Path
    multiplexer: str
    environment: dict[str, str]
    names: list[str] = field(default_factory=list)

    def plan(
        self,
        sessions: dict[str, Script],
        *,
        parallel: int = 4,
        per_gpu: int = 0,
        stagger_ms: int = 0,
        attempts: int = 2,
        gpus: str = "",
        policy: Mapping[str, object] = MappingProxyType({}),
    ) -> None:
        """Write the run directory as a launch would; `policy` are further fields of policy.json."""
        for name, script in sessions.items():
            self.lay(name, script)
        self.names = [name for name in sessions if name != "after"]
        self.write("dispatch/queue.jsonl", "".join(_row(name, sessions[name]) for name in self.names))
        limits = {"parallel": parallel, "per_gpu": per_gpu, "stagger_ms": stagger_ms, "attempts": attempts}
        rows = {**limits, "gpus": gpus, **policy}
        self.write("dispatch/policy.json", record(**rows))

    def lay(self, name: str, script: Script, family: str = "sessions") -> None:
        """Write what a session, or a model server, consists of."""
        self.write(f"{family}/{name}/session.sh", script.text(name, family))
        self.write(f"{family}/{name}/session.json", script.session_json(name, family))

    def supervisor(self, name: str = "stairs_flat", attempt: object = 1, engine: str = "none") -> list[str]:
        """The words that supervise an attempt in a terminal."""
        program = [str(Path(PYTHON).resolve()), "-I", "-S", str(self.directory / "lib/comborun_host"), "session"]
        return [*program, str(self.directory), name, str(attempt), engine]

    def write(self, path: str, text: str) -> Path:
        file = self.directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def own_library(self) -> Path:
        """The library, which this test may change."""
        library = self.directory / "lib"
        library.unlink()
        shutil.copytree(compiled_library(), library)
        return library

    def stand_in(self, name: str, script: str) -> Path:
        """Put a script in the place of a program; its first comment says so."""
        text = f"#!/bin/bash\n# stand-in, not the real {name}\n{script}\n"
        file = self.write(f"../bin/{name}", text).resolve()
        file.chmod(0o755)
        self.environment["PATH"] = f"{file.parent}:{self.environment['PATH']}"
        return file

    @property
    def id(self) -> str:
        return (self.directory / "id").read_text().strip()

    def program(self, verb: str, *args: str, told: str | None = None) -> subprocess.CompletedProcess[str]:
        """Run a verb of the host program on this run; `told` is its standard input."""
        return subprocess.run(
            self.command(verb, *args),
            env=self.environment,
            input=told or "",
            capture_output=True,
            text=True,
            errors="replace",
            timeout=60,
            check=False,
        )

    def look(self) -> dict[str, Any]:
        """The document that the probe answers with."""
        document: dict[str, Any] = json.loads(self.program("probe").stdout.splitlines()[1])
        return document

    def command(self, verb: str, *args: str) -> list[str]:
        python = (self.directory / "dispatch/python").read_text().strip()
        return [python, "-I", "-S", str(self.directory / "lib/comborun_host"), verb, str(self.directory), *args]

    def start(self, *args: str) -> subprocess.CompletedProcess[str]:
        return self.program("start", "--multiplexer", self.multiplexer, *args)

    def stop(self, *names: str) -> subprocess.CompletedProcess[str]:
        return self.program("stop", *names)

    def run(self, sessions: dict[str, Script], **limits: object) -> None:
        """Plan, start, and wait until the run is done."""
        self.plan(sessions, **limits)  # type: ignore[arg-type]
        started = self.start()
        assert started.returncode == 0, started.stderr
        self.await_done()

    def await_done(self, seconds: float = WAIT) -> dict[str, str]:
        until(lambda: self.done, lambda: f"the run is done; this happened:\n{self.happened}", seconds)
        until(lambda: not self.dispatcher_lives, "the dispatcher leaves")
        return self.done

    @property
    def done(self) -> dict[str, str]:
        return self.fields("dispatch/done")

    def fields(self, path: str) -> dict[str, str]:
        file = self.directory / path
        return parse(file.read_text(errors="replace")) if file.exists() else {}

    @property
    def happened(self) -> str:
        """Its events, one a line."""
        return "\n".join(map(words, events(self.directory)))

    def told(self, pattern: str) -> list[str]:
        """The events that match, each as `KIND SESSION ATTEMPT FIELD=VALUE ...`."""
        return [one for one in self.happened.splitlines() if re.search(pattern, one)]

    @property
    def waiting(self) -> dict[str, Fact]:
        """Why each session waits, as dispatch/waiting says."""
        return {row["session"]: row["reason"] for row in read_rows(str(self.directory / "dispatch/waiting"))}

    def waits_for(self, name: str) -> str:
        return waits_for(self.waiting[name]) if name in self.waiting else ""

    @property
    def hold_reason(self) -> Fact | None:
        hold = parse((self.directory / "dispatch/hold").read_text())
        return hold["reason"]

    def attempt(self, name: str, number: int = 1) -> Path:
        return self.directory / "sessions" / name / f"attempt-{number}"

    def begin(self, name: str, number: int = 1) -> Begin | None:
        file = self.attempt(name, number) / "begin"
        return Begin.parse(file.read_text()) if file.exists() else None

    def end(self, name: str, number: int = 1) -> End | None:
        file = self.attempt(name, number) / "end"
        return End.parse(file.read_text()) if file.exists() else None

    def begun(self, name: str, number: int = 1) -> Begin:
        """The begin record, once it is there."""
        until(lambda: self.begin(name, number), lambda: f"{name} has begun; this happened:\n{self.happened}")
        record = self.begin(name, number)
        assert record
        return record

    def orphan(self, name: str) -> Begin:
        """Kill the supervisor of a session, once its command leads a process session of its own."""
        begin = self.begun(name)
        until(lambda: os.getsid(begin.pid) == begin.pid, f"the command of {name} is on its own")
        kill(begin.supervisor, signal.SIGKILL)
        return begin

    def ended(self, name: str, number: int = 1) -> End:
        """The end record, once it is there."""
        until(lambda: self.end(name, number), lambda: f"{name} has ended; this happened:\n{self.happened}")
        record = self.end(name, number)
        assert record
        return record

    def log(self, name: str, number: int = 1) -> str:
        file = self.attempt(name, number) / "log"
        return file.read_text(errors="replace") if file.exists() else ""

    def outputs(self, name: str) -> list[Path]:
        """Files that the attempts of a session left, oldest attempt first."""
        return sorted((self.directory / "sessions" / name).glob("attempt-*/out/*"))

    @property
    def dispatcher(self) -> int:
        return int(self.fields("dispatch/dispatcher")["pid"])

    @property
    def dispatcher_lives(self) -> bool:
        return alive(self.dispatcher)

    def kill_dispatcher(self) -> None:
        kill(self.dispatcher, signal.SIGKILL)
        until(lambda: not self.dispatcher_lives, "the dispatcher is dead")

    def marked(self, session: str = "") -> list[int]:
        """The processes that carry the marker of this run, or of one of its sessions."""
        return carrying(f"COMBORUN_SESSION={self.id}/{session}/" if session else f"COMBORUN_SESSION={self.id}/")

    def fill_disk(self) -> Path:
        """Leave no byte on the disk; returns the file to delete again."""
        filler = self.directory / "filler"
        subprocess.run(["dd", "if=/dev/zero", f"of={filler}", "bs=4096"], stderr=subprocess.DEVNULL, check=False)
        return filler

    def tmux(self, *args: str) -> subprocess.CompletedProcess[str]:
        return TmuxWindows(self.environment).tmux(*args)

    @property
    def shown(self) -> Windows:
        return WINDOWS[self.multiplexer](self.environment)

    def windows(self) -> list[str]:
        """The names of those that are there."""
        return self.shown.names()

    def servers(self) -> list[int]:
        """The processes of the multiplexer that keep the windows."""
        return self.shown.servers()


def alive(pid: int) -> bool:
    """Whether a process lives; a zombie does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()[0] not in "ZX"
    except (OSError, IndexError):
        return False


def kill(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, number)


def carrying(beginning: str) -> list[int]:
    """The processes whose environment has an entry that begins so."""
    wanted = beginning.encode()
    found = []
    for file in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            if any(entry.startswith(wanted) for entry in file.read_bytes().split(b"\0")):
                found.append(int(file.parent.name))
    return found


@contextlib.contextmanager
def frozen(pid: int) -> Iterator[None]:
    """Hold a process still, against CONT and even KILL, with the freezer of cgroup v1."""
    freezer = Path("/sys/fs/cgroup/freezer")
    if os.geteuid() != 0 or not freezer.is_dir():
        pytest.skip("only root can freeze a process, and only where there is a freezer cgroup")
    group = freezer / f"combo-{pid}-{secrets.token_hex(4)}"
    group.mkdir()
    try:
        (group / "tasks").write_text(str(pid))
        (group / "freezer.state").write_text("FROZEN")
        yield
    finally:
        (group / "freezer.state").write_text("THAWED")
        for task in (group / "tasks").read_text().split():
            with contextlib.suppress(ProcessLookupError):  # thawed, it may end at once
                (freezer / "tasks").write_text(task)
        until(lambda: not (group / "tasks").read_text(), "nothing is in the freezer")
        group.rmdir()


@contextlib.contextmanager
def make_box(parent: Path, multiplexer: str) -> Iterator[Box]:
    """A box below `parent`; nothing that it started outlives the block."""
    token = secrets.token_hex(4)
    directory = parent / f"grid-20260101T000000Z-{token}"
    (directory / "sessions").mkdir(parents=True)
    (directory / "id").write_text(f"{directory.name}\n")
    put_library(directory, link=True)
    sockets = Path(tempfile.mkdtemp(prefix="cb"))  # short, and 0700 as screen wants it
    knobs = {"COMBORUN_GRACE_S": "1", "COMBORUN_LAUNCH_S": "2", "COMBORUN_STOP_INT_S": "3", "COMBORUN_STOP_TERM_S": "2"}
    knobs["COMBORUN_LEFT_S"] = "2"
    knobs["COMBORUN_VMSTAT"] = "/dev/null"  # whom the kernel kills for memory in another test is no evidence here
    inherited = {
        key: value for key, value in os.environ.items() if not key.startswith(("COMBORUN_", "TMUX", "CUDA_", "PYTHON"))
    }
    private = {"COMBORUN_LEASES": str(sockets / "leases")}
    for windows in WINDOWS.values():
        private |= windows.own(token, str(sockets))
    box = Box(directory, multiplexer, {**inherited, **knobs, **private})
    try:
        yield box
    finally:
        clear(box)
        shutil.rmtree(sockets, ignore_errors=True)


def clear(box: Box) -> None:
    """End all that a box started, by the pids that it knows; never raises."""
    with contextlib.suppress(Exception):
        kill(box.dispatcher, signal.SIGKILL)
    with contextlib.suppress(Exception):
        for _ in range(3):
            if not (left := box.marked()):
                break
            for pid in left:
                kill(pid, signal.SIGKILL)
    for claim in box.directory.glob("sessions/*/attempt-*/claim"):
        with contextlib.suppress(Exception):
            supervisor = int(parse(claim.read_text())["supervisor"])
            command = Path(f"/proc/{supervisor}/cmdline").read_bytes()
            if str(box.directory).encode() in command:
                kill(supervisor, signal.SIGKILL)
    for windows in WINDOWS.values():
        with contextlib.suppress(Exception):
            windows(box.environment).clear()


@pytest.fixture
def box(tmp_path: Path) -> Iterator[Box]:
    with make_box(tmp_path, "tmux") as made:
        yield made


@pytest.fixture
def screen_box(tmp_path: Path) -> Iterator[Box]:
    with make_box(tmp_path, "screen") as made:
        yield made


@pytest.fixture
def small_disk_box(tmp_path: Path) -> Iterator[Box]:
    """A box on a file system of its own, with four megabytes."""
    if os.geteuid() != 0:
        pytest.skip("only root can mount a file system to fill")
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=6m", "tmpfs", str(tmp_path)], capture_output=True, text=True, check=False
    )
    if mounted.returncode != 0:
        pytest.skip(f"no tmpfs can be mounted here: {mounted.stderr.strip()}")
    try:
        with make_box(tmp_path, "tmux") as made:
            yield made
    finally:
        subprocess.run(["umount", "-l", str(tmp_path)], check=False)


@pytest.fixture(params=MULTIPLEXER_NAMES if os.environ.get("COMBORUN_SLOW") else MULTIPLEXER_NAMES[:1])
def usual_box(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Box]:
    with make_box(tmp_path, request.param) as made:
        yield made


@pytest.fixture(params=MULTIPLEXER_NAMES)
def any_box(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Box]:
    with make_box(tmp_path, request.param) as made:
        yield made
