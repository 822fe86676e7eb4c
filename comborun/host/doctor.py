"""Facts about this machine as `key=value` lines, to be judged elsewhere: `doctor ROOT PROGRAMS [FILE]...`.

Changes nothing: what is tried out is tried in a temporary folder, which goes again. Each probe has a thread; what hangs
is told of at the deadline and left behind, since nothing ends a process in the kernel.
"""

from __future__ import annotations

import glob
import os
import re
import resource
import signal
import subprocess
import sys
import tempfile
import threading
import time

from comborun.host import doctor_probes as probes
from comborun.host import facts as about
from comborun.host import files, process
from comborun.host.incoming import home

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable


class Examination:
    """What was found so far, and where it is looked for."""

    def __init__(self, root: str, named: list[str]) -> None:
        self.root = home(root)
        self.named = named
        self.temporary = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 - what is to be examined
        self.system = os.environ.get("COMBORUN_SYSTEM_ROOT", "")
        """where /etc, /proc/driver and the like are looked for"""
        self.slow_s = float(os.environ.get("COMBORUN_DOCTOR_S") or 9)
        """what the driver may take, which wakes up slowly"""
        self.brief_s = min(self.slow_s, 5.0)
        self._lines: list[str] = []

    def fact(self, key: str, value: object = 1) -> None:
        """Add one; a key may have several."""
        text = "".join(char if char.isprintable() else " " for char in str(value))
        self._lines.append(f"{key}={text}\n")

    def ask(self, seconds: float, *command: str) -> tuple[int, str]:
        """Exit code and the end of what a program says on both streams; 124 when it does not answer in time."""
        return ask(seconds, command)

    def text(self) -> str:
        """All lines."""
        return "".join(self._lines)


def main(arguments: list[str]) -> int:
    """The program's verb. It leaves without waiting for probes that hang."""
    seen = Examination(arguments[0], arguments[2:])
    seen.fact("now_start", time.time())
    threads = {name: _begin(seen, getattr(probes, name)) for name in probes.NAMES}
    machine(seen)
    programs(seen, arguments[1].split(","))
    limits(seen)
    processes(seen)
    deadline = time.monotonic() + seen.slow_s + 3
    for name, thread in threads.items():
        thread.join(max(0.1, deadline - time.monotonic()))
        if thread.is_alive():
            seen.fact("late", name)
    seen.fact("now_end", time.time())
    seen.fact("end")
    sys.stdout.buffer.write(seen.text().encode("utf-8", "replace"))
    sys.stdout.flush()
    os._exit(0)


def _begin(seen: Examination, probe: Callable[[Examination], None]) -> threading.Thread:
    thread = threading.Thread(target=probe, args=(seen,), daemon=True)
    thread.start()
    return thread


def ask(seconds: float, command: tuple[str, ...]) -> tuple[int, str]:
    """As Examination.ask. Output goes to a file: what outlives the program could hold a pipe open for ever."""
    with tempfile.TemporaryFile(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as said:  # noqa: S108
        try:
            child = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=said, stderr=subprocess.STDOUT, start_new_session=True
            )
        except OSError as error:
            return 127, str(error)
        try:
            code = child.wait(seconds)
        except subprocess.TimeoutExpired:
            code = 124
            process.send_group(child.pid, signal.SIGKILL)
        size = said.seek(0, os.SEEK_END)
        said.seek(max(0, size - 4000))
        return code, said.read().decode("utf-8", "replace").strip()


def machine(seen: Examination) -> None:
    uid = os.getuid()
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    seen.fact("bash", about.said("bash", "--noprofile", "--norc", "-c", 'printf %s "$BASH_VERSION"'))
    seen.fact("python", f"{sys.version.split()[0]} {os.path.realpath(sys.executable)}")
    seen.fact("hostname", os.uname().nodename)
    seen.fact("uid", uid)
    seen.fact("user", os.environ.get("USER", uid))
    seen.fact("home", os.environ.get("HOME", ""))
    seen.fact("root", seen.root)
    seen.fact("tmpdir", seen.temporary)
    seen.fact("runtime_dir", runtime)
    if runtime and os.path.isdir(runtime) and os.access(runtime, os.W_OK):
        seen.fact("runtime_usable")
    release = re.search(r'^PRETTY_NAME="?(.*?)"?$', files.read_text(f"{seen.system}/etc/os-release"), re.MULTILINE)
    if release:
        seen.fact("os", release[1])
    seen.fact("cpus", len(os.sched_getaffinity(0)))
    seen.fact("load", f"{os.getloadavg()[0]:.2f}")
    kib = about.memory()
    for key in ("MemTotal", "MemAvailable", "SwapTotal", "SwapFree"):
        if key in kib:
            seen.fact(key, kib[key])


def programs(seen: Examination, names: list[str]) -> None:
    for name in names:
        flaw = about.lack(name)
        if flaw:
            seen.fact("missing" if flaw == name else "poor", name)


def limits(seen: Examination) -> None:
    """Of this process, and of the control groups around it."""
    for key, value in zip(("files_soft", "files_hard"), resource.getrlimit(resource.RLIMIT_NOFILE)):
        seen.fact(key, _limit(value))
    seen.fact("processes_soft", _limit(resource.getrlimit(resource.RLIMIT_NPROC)[0]))
    seen.fact("threads", sum(_threads(task) for task in glob.glob("/proc/[0-9]*/task")))
    path = ""
    for line in files.read_text("/proc/self/cgroup").splitlines():
        if line.startswith("0::") or ":memory:" in line:
            path = line.split(":", 2)[2]
        if line.startswith("0::"):
            seen.fact("cgroup", path)
    for at in (f"/sys/fs/cgroup{path}", "/sys/fs/cgroup", f"/sys/fs/cgroup/memory{path}", "/sys/fs/cgroup/memory"):
        for name in ("memory.max", "memory.limit_in_bytes", "pids.max"):
            allowed = files.read_line(f"{at}/{name}")
            if re.fullmatch("[0-9]{1,17}", allowed):
                seen.fact(f"cgroup_{name.partition('.')[0]}", allowed)


def _limit(value: int) -> str:
    return "unlimited" if value == resource.RLIM_INFINITY else str(value)


def _threads(folder: str) -> int:
    try:
        status = os.stat(folder)
    except OSError:
        return 0
    return status.st_nlink - 2 if status.st_uid == os.getuid() else 0


def processes(seen: Examination) -> None:
    """Can what runs be found again? The sweep needs the environment of our own processes."""
    mounts = re.search(r"^\S+ /proc \S+ \S*hidepid=([a-z0-9]+)", files.read_text("/proc/mounts"), re.MULTILINE)
    if mounts:
        seen.fact("hidepid", mounts[1])
    seen.fact("pid1", files.read_line("/proc/1/comm"))
    marker = f"comborun-doctor/{os.getpid()}"
    child = subprocess.Popen(["sleep", "5"], env={**os.environ, "COMBORUN_SESSION": marker}, stdin=subprocess.DEVNULL)
    for _ in range(10):
        if process.carries(child.pid, marker):
            seen.fact("environ", "readable")
            break
        time.sleep(0.02)
    child.kill()
    child.wait()
