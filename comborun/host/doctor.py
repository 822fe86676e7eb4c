"""Facts about this machine as `key=value` lines, to be judged elsewhere: `doctor ROOT MORE_PROGRAMS [FILE]...`.

Changes nothing: what is tried out is tried in a temporary folder, which goes again. Each probe has a thread; what hangs
is told of at the deadline and left behind, since nothing ends a process in the kernel.
"""

from __future__ import annotations

import glob
import os
import re
import resource
import subprocess
import sys
import threading
import time

from comborun.host import doctor_probes as probes
from comborun.host import facts as about
from comborun.host import files, machine, process
from comborun.host.incoming import home

PROGRAMS = (
    *about.NEEDED,
    *("cat", "chmod", "dd", "df", "head", "ln", "mkdir", "nproc", "realpath", "rm", "sort", "tr", "wc"),
)
"""what scripts on a host call, without which something of them fails"""


class Examination:
    """What was found so far, and where it is looked for."""

    def __init__(self, root: str, named: list[str]) -> None:
        self.root = home(root)
        self.named = named
        self.grid = sys.stdin.read()
        """what a grid names, for preflight.py; empty: no grid is asked about"""
        self.temporary = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 - what is to be examined
        self.system = os.environ.get("COMBORUN_SYSTEM_ROOT", "")
        """where /etc, /proc/driver and the like are looked for"""
        self.slow_s = float(os.environ.get("COMBORUN_DOCTOR_S") or 9)
        """what the driver may take, which wakes up slowly"""
        self._lines: list[str] = []

    def fact(self, key: str, value: object = 1) -> None:
        """Add one; a key may have several."""
        text = "".join(char if char.isprintable() else " " for char in str(value))
        self._lines.append(f"{key}={text}\n")

    def ask(self, *command: str) -> tuple[int, str]:
        """As facts.ask, of a program that should answer at once."""
        return about.ask(min(self.slow_s, 5.0), *command, errors=True)

    def ask_driver(self, *command: str) -> tuple[int, str]:
        return about.ask(self.slow_s, *command, errors=True)

    def text(self) -> str:
        """All lines."""
        return "".join(self._lines)


def main(arguments: list[str]) -> int:
    """The program's verb. It leaves without waiting for probes that hang."""
    seen = Examination(arguments[0], arguments[2:])
    seen.fact("now_start", time.time())
    threads = [threading.Thread(target=probe, args=(seen,), daemon=True) for probe in probes.ALL]
    for thread in threads:
        thread.start()
    here(seen)
    for name in (*PROGRAMS, *filter(None, arguments[1].split(","))):
        flaw = about.lack(name)
        if flaw:
            seen.fact("missing" if flaw == name else "poor", name)
    limits(seen)
    processes(seen)
    deadline = time.monotonic() + seen.slow_s + 3
    for probe, thread in zip(probes.ALL, threads):
        thread.join(max(0.1, deadline - time.monotonic()))
        if thread.is_alive():
            seen.fact("late", probe.__name__)
    seen.fact("now_end", time.time())
    seen.fact("end")
    sys.stdout.buffer.write(seen.text().encode("utf-8", "replace"))
    sys.stdout.flush()
    about.end_asked()
    os._exit(0)


def here(seen: Examination) -> None:
    uid = os.getuid()
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    release = re.search(r'^PRETTY_NAME="?(.*?)"?$', files.read_text(f"{seen.system}/etc/os-release"), re.MULTILINE)
    told = {
        "bash": about.bash(),
        "python": f"{sys.version.split()[0]} {os.path.realpath(sys.executable)}",
        "hostname": os.uname().nodename,
        "uid": uid,
        "user": os.environ.get("USER", uid),
        "home": os.environ.get("HOME", ""),
        "root": seen.root,
        "tmpdir": seen.temporary,
        "runtime_dir": runtime,
        "runtime_usable": int(bool(runtime) and os.path.isdir(runtime) and os.access(runtime, os.W_OK)) or "",
        "os": release[1] if release else "",
        "cpus": len(machine.cores()),
        "load": machine.load(),
    }
    for key, value in told.items():
        seen.fact(key, value)
    meminfo = process.read("meminfo").decode()
    for key, kib in re.findall(r"^(MemTotal|MemAvailable|SwapTotal|SwapFree): +([0-9]+)", meminfo, re.MULTILINE):
        seen.fact(key, kib)


def limits(seen: Examination) -> None:
    """Of this process, and of the control groups around it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    for key, value in (("files_soft", soft), ("files_hard", hard), ("processes_soft", most)):
        seen.fact(key, "unlimited" if value == resource.RLIM_INFINITY else value)
    seen.fact("threads", sum(map(_threads, glob.glob("/proc/[0-9]*/task"))))
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
