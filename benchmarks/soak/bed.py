"""A home of its own for a round: the program `combo`, the run, and the processes that belong to it."""

from __future__ import annotations

import contextlib
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import comborun.__main__
from comborun.rules.records import parse

CHECKOUT = Path(__file__).parents[2]
KNOBS = {
    "COMBORUN_GRACE_S": "1",
    "COMBORUN_LAUNCH_S": "5",
    "COMBORUN_STOP_INT_S": "1",
    "COMBORUN_STOP_TERM_S": "1",
    "COMBORUN_WATCH_S": "1",
}
"""shorter than a user has them, so that a round takes seconds"""
SIZE = 48 << 20
"""of a run's own file system, where there can be one"""


@dataclass
class Bed:
    folder: Path
    multiplexer: str
    environment: dict[str, str]
    bystander: subprocess.Popen[bytes]
    """a process of somebody else, whose pid may come to stand in a record"""
    disk: Disk | None = None
    children: list[int] = field(default_factory=list)
    """calls of `combo` that have not been waited for"""

    @property
    def home(self) -> Path:
        return self.folder / "home"

    @property
    def grid(self) -> Path:
        return self.folder / "grid.yaml"

    @property
    def ledger(self) -> Path:
        return self.folder / "ledger"

    @property
    def said(self) -> Path:
        """All that `combo` has printed."""
        return self.folder / "said"

    @property
    def runs(self) -> list[Path]:
        return sorted((self.home / "comborun").glob("soak-*"))

    @property
    def run(self) -> Path | None:
        return next(iter(self.runs), None)

    # What a user does.

    def begin(self, *words: str) -> int:
        """Start `combo` in a child that need not import it again; its pid."""
        sys.stdout.flush()
        child = os.fork()
        if not child:
            self._become(words)
        self.children.append(child)
        return child

    def wait(self, child: int, seconds: float = 60.0) -> int:
        """The exit code of a call, -9 when it was killed; raises TimeoutError."""
        deadline = time.monotonic() + seconds
        while True:
            pid, status = os.waitpid(child, os.WNOHANG)
            if pid:
                self.children.remove(child)
                return os.waitstatus_to_exitcode(status)
            if time.monotonic() > deadline:
                raise TimeoutError(f"combo took more than {seconds:g} s")
            time.sleep(0.005)

    def combo(self, *words: str) -> int:
        return self.wait(self.begin(*words))

    def launch(self) -> list[str]:
        return ["launch", str(self.grid), "--multiplexer", self.multiplexer]

    def _become(self, words: tuple[str, ...]) -> None:
        """Never returns."""
        try:
            os.setsid()
            signal.signal(signal.SIGINT, signal.default_int_handler)
            signal.signal(signal.SIGTERM, signal.SIG_DFL)
            nothing, said = os.open(os.devnull, os.O_RDONLY), os.open(self.said, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
            for descriptor, end in ((nothing, 0), (said, 1), (said, 2)):
                os.dup2(descriptor, end)
            os.write(1, f"$ combo {' '.join(words)}\n".encode())
            os.environ.clear()
            os.environ.update(self.environment)
            os.chdir(self.folder)
            sys.argv = ["combo", *words]
            comborun.__main__.main()
        except SystemExit as left:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(left.code if isinstance(left.code, int) else 1)
        finally:
            os._exit(70)

    # What belongs to the run.

    def record(self, path: str | Path) -> dict[str, str]:
        """A record of the run, by its path in it; empty when there is none."""
        try:
            return parse((self.run / path).read_text(errors="replace")) if self.run else {}
        except OSError:
            return {}

    @property
    def dispatcher(self) -> Process:
        return process_of(self.record("dispatch/dispatcher"), "pid", "start")

    @property
    def live_attempts(self) -> list[Path]:
        """Attempts that have begun and have no end."""
        found = sorted(self.run.glob("sessions/*/attempt-*/begin")) if self.run else []
        return [path.parent for path in found if not (path.parent / "end").exists()]

    def living(self, role: str) -> list[Process]:
        """The live processes that begin records name as `supervisor` or, the command, as `pid`."""
        return [self.named(at, role) for at in self.live_attempts if self._lives(at, role)]

    def named(self, at: Path, role: str) -> Process:
        """A process by the begin record of an attempt."""
        return process_of(self.record(at / "begin"), role, f"{role}_start")

    def _lives(self, at: Path, role: str) -> bool:
        return self.named(at, role).lives

    @property
    def servers(self) -> list[Process]:
        """What keeps the windows."""
        if self.multiplexer == "tmux":
            told = self.tmux("display-message", "-p", "#{pid}").split()
        else:
            told = [file.name.partition(".")[0] for file in Path(self.environment["SCREENDIR"]).iterdir()]
        return [Process(int(pid), fields(int(pid))[1]) for pid in told if pid.isdecimal()]

    def tmux(self, *words: str) -> str:
        command = ["tmux", "-L", self.environment["COMBORUN_TMUX_SOCKET"], *words]
        return subprocess.run(
            command, env=self.environment, capture_output=True, text=True, timeout=20, check=False
        ).stdout

    def everything(self) -> list[Process]:
        """All that lives because of this bed: the processes with its home in their environment."""
        return carrying(f"HOME={self.home}")

    def marked(self) -> list[Process]:
        """All that carries the marker of a session."""
        return [one for run in self.runs for one in carrying(f"COMBORUN_SESSION={run.name}/", whole=False)]

    def close(self) -> None:
        """End all of it; never raises."""
        for child in tuple(self.children):
            send(child, signal.SIGKILL)
            with contextlib.suppress(Exception):
                self.wait(child, 10.0)
        with contextlib.suppress(Exception):
            kill_all(self.everything)
        self.bystander.kill()
        self.bystander.wait()
        shutil.rmtree(self.environment["SCREENDIR"], ignore_errors=True)
        with contextlib.suppress(OSError):
            Path(f"/tmp/tmux-{os.getuid()}", self.environment["COMBORUN_TMUX_SOCKET"]).unlink()


def can_mount() -> bool:
    return os.geteuid() == 0 and all(map(shutil.which, ("mount", "mkfs.ext4", "losetup")))


class Disk:
    """A file system of a run's own, in a file: it can be full, and lose its power."""

    def __init__(self, image: Path, place: Path) -> None:
        self._image, self._place = image, place
        with image.open("wb") as file:
            file.truncate(SIZE)
        subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
        self.mount()

    def mount(self) -> None:
        subprocess.run(["mount", "-o", "loop", str(self._image), str(self._place)], check=True)

    def close(self) -> None:
        """A process that was just killed may still have a file open."""
        deadline = time.monotonic() + 10
        while subprocess.run(["umount", str(self._place)], stderr=subprocess.DEVNULL, check=False).returncode:
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self._place} can't be unmounted: {holding(self._place)}")
            time.sleep(0.05)

    def snapshot(self) -> bytes:
        """What has reached the disk, and not what the kernel still has in memory: twice the same, so of one moment."""
        seen = self._image.read_bytes()
        for _ in range(20):
            before, seen = seen, self._image.read_bytes()
            if before == seen:
                break
        return seen

    def restore(self, seen: bytes) -> None:
        """Go on with the disk as it was then; nobody may use it now."""
        self.close()
        self._image.write_bytes(seen)
        self.mount()


@contextlib.contextmanager
def bed(multiplexer: str, *, own_disk: bool = False) -> Iterator[Bed]:
    """Gone afterwards, and all its processes; with a file system of its own when its disk is to fail."""
    folder, screens = Path(tempfile.mkdtemp(prefix="soak-")), tempfile.mkdtemp(prefix="cs", dir="/tmp")
    home = folder / "home"
    (home / "comborun").mkdir(parents=True)
    disk = Disk(folder / "disk", home / "comborun") if own_disk else None
    private = {"COMBORUN_TMUX_SOCKET": f"soak{secrets.token_hex(4)}", "SCREENDIR": screens, "HOME": str(home)}
    environment = {"PATH": os.environ["PATH"], "LANG": "C.UTF-8", "TERM": "dumb", "PYTHONPATH": str(CHECKOUT)}
    bystander = subprocess.Popen(["sleep", "3600"], start_new_session=True)
    made = Bed(folder, multiplexer, {**environment, **KNOBS, **private}, bystander, disk)
    try:
        yield made
    finally:
        made.close()
        if disk:
            disk.close()
        shutil.rmtree(folder, ignore_errors=True)


# Processes, as comborun's records name them: a pid alone comes again


@dataclass(frozen=True)
class Process:
    pid: int
    """0 when a record names none"""
    start: str
    """start time in ticks since boot"""

    @property
    def lives(self) -> bool:
        state, start = fields(self.pid)
        return start == self.start and state not in "ZX"

    def signal(self, number: int) -> None:
        if self.lives:
            send(self.pid, number)


def process_of(record: Mapping[str, str], pid: str, start: str) -> Process:
    """The process that two fields of a record name."""
    return Process(int(record[pid]) if record.get(pid, "").isdecimal() else 0, record.get(start, ""))


def fields(pid: int) -> tuple[str, str]:
    """State and start time of a process; X and nothing when there is none."""
    try:
        told = Path(f"/proc/{pid}/stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return "X", ""
    return told[0], told[19]


def command_line(pid: int) -> str:
    """Its words, each with a zero byte behind it."""
    return _text(Path(f"/proc/{pid}/cmdline"))


def send(pid: int, number: int) -> None:
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.kill(pid, number)


def carrying(entry: str, *, whole: bool = True) -> list[Process]:
    """Live processes whose environment holds an entry, or one that begins with it."""
    wanted, found = entry.encode(), []
    for file in Path("/proc").glob("[0-9]*/environ"):
        with contextlib.suppress(OSError):
            entries = file.read_bytes().split(b"\0")
            if wanted in entries or (not whole and any(each.startswith(wanted) for each in entries)):
                found.append(Process(int(file.parent.name), fields(int(file.parent.name))[1]))
    return [process for process in found if process.lives]


def holding(folder: Path) -> list[str]:
    """Who has a file below a folder open: pid, program, and the file."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        for file in _open_files(process):
            if file.is_relative_to(folder):
                program = _text(process / "cmdline").replace("\0", " ")
                found.append(f"{process.name} {program}: {file.relative_to(folder)}")
    return sorted(found)


def _open_files(process: Path) -> list[Path]:
    """What it has open; nothing once it has ended: one pattern over /proc would raise where a process ends under it."""
    files = []
    with contextlib.suppress(OSError):
        for link in (process / "fd").iterdir():
            with contextlib.suppress(OSError):
                files.append(link.readlink())
    return files


def _text(file: Path) -> str:
    try:
        return file.read_text(errors="replace")
    except OSError:
        return "(ended)"


def kill_all(which: Callable[[], list[Process]], rounds: int = 20) -> None:
    """KILL to all of them at once, and to what they had started just then."""
    for _ in range(rounds):
        found = which()
        if not found:
            return
        for number in (signal.SIGSTOP, signal.SIGKILL):
            for process in found:
                process.signal(number)
        time.sleep(0.01)
