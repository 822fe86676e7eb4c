"""The machine itself: bash and programs, folders and disks, memory, processors, limits, variables of the shell.

Tests can replace the programs and files that a check sees.
"""

from __future__ import annotations

import fcntl
import glob
import math
import os
import re
import resource
import shutil
import sys
import tempfile
from collections.abc import Iterator, Sequence

from comborun.host.system import commands, files, process
from comborun.host.system import machine as measured
from comborun.host.verbs import facts
from comborun.rules.facts import Fact
from comborun.rules.findings import Finding, Found, Level, error, fine, note, warning
from comborun.rules.names import LOOPBACK, NO_PROXY

_XVFB = "Xvfb"
_LEAST_BASH = (4, 4)
_PROXIES = ("http_proxy", "HTTP_PROXY", "all_proxy", "ALL_PROXY")
_GIB = 1 << 20
"""KiB, as the kernel and df count"""
_REMOTE = ("nfs", "cifs", "smb", "fuse.sshfs", "afs", "ceph", "lustre", "gpfs", "beegfs", "9p")
"""file systems where others see changes late, or where locks depend on a server"""


class Box:
    def __init__(self, root: str, named: Sequence[str] = (), programs: Sequence[str] = (), grid: str = "") -> None:
        self.root = files.home(root)
        self.named, self.programs = named, programs
        """files and programs that the grid needs"""
        self.grid = grid
        """the grid's needs for preflight.py; empty without a grid"""
        self.temporary = os.environ.get("TMPDIR") or "/tmp"  # noqa: S108 - what is to be examined
        self.slow_s = float(os.environ.get("COMBORUN_DOCTOR_S") or 9)
        """seconds for the driver, which wakes up slowly"""
        self.uid = os.getuid()
        self.user = os.environ.get("USER") or str(self.uid)
        self._system = os.environ.get("COMBORUN_SYSTEM_ROOT", "")

    def ask(self, *command: str, slow: bool = False) -> tuple[int, str]:
        """Run a program that should answer at once, unless it is `slow`; see commands.run."""
        return commands.run(self.slow_s if slow else min(self.slow_s, 5.0), *command, errors=True)

    def has(self, program: str) -> bool:
        return not commands.lack(program)

    def read(self, path: str) -> str:
        return files.read_text(f"{self._system}{path}", 1 << 24)

    def find(self, pattern: str) -> list[str]:
        return sorted(path[len(self._system) :] for path in glob.glob(f"{glob.escape(self._system)}{pattern}"))

    def about(self) -> dict[str, object]:
        release = re.search(r'^PRETTY_NAME="?(.*?)"?$', self.read("/etc/os-release"), re.MULTILINE)
        return {
            "hostname": os.uname().nodename,
            "os": release[1] if release else "",
            "cpus": len(measured.cores()),
            "memory_kib": measured.memory_kib()[0],
            "python": f"{sys.version.split()[0]} {os.path.realpath(sys.executable)}",
            "root": self.root,
        }


def hangs(code: int) -> bool:
    """Whether a program was ended because it did not answer."""
    return code in (124, 137)


def integer(text: str) -> int | None:
    return int(text) if re.fullmatch(r"-?[0-9]{1,18}", text.strip()) else None


def version(text: str) -> tuple[int, ...]:
    """The first dotted number in a text: `tmux 3.3a` is (3, 3)."""
    match = re.search(r"[0-9]{1,9}(\.[0-9]{1,9})*", text)
    return tuple(map(int, match[0].split("."))) if match else ()


def bash(_: Box) -> Iterator[Finding]:
    found = commands.bash_version()
    if version(found) >= _LEAST_BASH:
        yield fine("bash", Found.BASH, version=found)
    else:
        yield error("bash", Found.BASH_TOO_OLD, version=found, least=".".join(map(str, _LEAST_BASH)))


def programs(box: Box) -> Iterator[Finding]:
    flaws = {name: commands.lack(name) for name in (*facts.NEEDED, *box.programs)}
    missing = [name for name, flaw in flaws.items() if flaw == commands.ABSENT]
    poor = [name for name, flaw in flaws.items() if flaw not in ("", commands.ABSENT)]
    if _XVFB in missing:
        missing.remove(_XVFB)
        yield error("display", Found.NO_XVFB_HERE)
    if missing:
        yield error("programs", Found.PROGRAMS_MISSING, programs=missing)
    if poor:
        yield error("programs", Found.PROGRAMS_POOR, programs=poor)
    if not missing and not poor:
        yield fine("programs", Found.PROGRAMS)


def folders(box: Box) -> Iterator[Finding]:
    """Room on the disks, and whether the root's file system can hold runs."""
    at = box.root
    while at and not os.path.isdir(at):
        at = os.path.dirname(at.rstrip("/")) if at != "/" else ""
    disk, tmp = _disk(box, at or "/"), _disk(box, box.temporary)
    yield from room(box.root, disk)
    if tmp[-1] != disk[-1]:
        yield from room(box.temporary, tmp)
    yield from _root(box.root, at or "/", disk[4])
    try:
        with tempfile.TemporaryFile(dir=box.temporary):
            pass
    except OSError:
        yield error("tmp", Found.TMP_UNWRITABLE, folder=box.temporary)
    for which in (files.LEASES, files.PORTS):
        yield from _shared(which)


def _shared(which: tuple[str, str]) -> Iterator[Finding]:
    """Whether another user has the folder in which our runs would agree on resources or ports."""
    path = files.usual_folder(which)
    if os.path.lexists(path) and os.lstat(path).st_uid != os.getuid():
        yield note("tmp", Found.SHARED_TAKEN, path=path, owner=process.owner(path), instead=files.instead_of(which))


def _disk(box: Box, folder: str) -> Sequence[str]:
    """Size, free, inodes, free inodes, type and mount point of a folder's file system, in KiB."""
    code, said = box.ask("df", "-k", "--output=size,avail,itotal,iavail,fstype,target", "--", folder)
    fields = said.splitlines()[-1].split(maxsplit=5) if code == 0 else []
    return fields if len(fields) == 6 else ("", "", "", "", "unknown", "")


def room(folder: str, disk: Sequence[str]) -> Iterator[Finding]:
    total, free, inodes, free_inodes = map(integer, disk[:4])
    if free is None:
        return
    where = {"folder": folder, "mount": disk[5]}
    little = free < 10 * _GIB or free < 0.02 * (total or 0)
    level = Level.ERROR if free < _GIB else Level.WARNING if little else Level.OK
    yield Finding("disk", level, Fact(Found.ROOM, free_bytes=free << 10, total_bytes=(total or 0) << 10, **where))
    if inodes and free_inodes is not None and free_inodes < max(2000, min(100_000, 0.05 * inodes)):
        level = Level.ERROR if free_inodes < 2000 else Level.WARNING
        yield Finding("inodes", level, Fact(Found.INODES, free=free_inodes, total=inodes, **where))


def _root(root: str, at: str, kind: str) -> Iterator[Finding]:
    """Tests the root with real files in a temporary folder. `at`: the existing part of the root's path."""
    try:
        folder = tempfile.mkdtemp(prefix=".comborun-doctor-", dir=at)
    except OSError:
        yield error("root", Found.ROOT_UNWRITABLE if at == root else Found.ROOT_NOT_MADE, root=root)
        return
    try:
        locks = _locking(f"{folder}/lock")
        yield Finding("locks", Level.OK if locks == Found.LOCKS else Level.ERROR, Fact(locks, root=root, kind=kind))
        yield from _fifos(f"{folder}/pipe", root, kind)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    yield from file_system(root, kind)


def _fifos(path: str, root: str, kind: str) -> Iterator[Finding]:
    try:
        place = files.make_fifo(path)
    except OSError as refused:
        yield error("fifos", Found.FIFOS_REFUSED, root=root, kind=kind, error=refused.strerror)
        return
    if place != path:
        yield note("fifos", Found.FIFOS_ELSEWHERE, root=root, kind=kind)
    files.remove_fifos(path)


def _locking(path: str) -> Found:
    """Whether a lock works: opening a file twice is like two processes."""
    with open(path, "w") as one, open(path, "w") as other:
        try:
            fcntl.flock(one, fcntl.LOCK_EX | fcntl.LOCK_NB)
            try:
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return Found.LOCKS
        except OSError:
            return Found.LOCKS_REFUSED
    return Found.LOCKS_IGNORED


def file_system(root: str, kind: str) -> Iterator[Finding]:
    if kind.startswith(_REMOTE):
        yield warning("filesystem", Found.FAR_DISK, root=root, kind=kind)
    elif kind in ("tmpfs", "ramfs"):
        yield warning("filesystem", Found.DISK_IN_MEMORY, root=root, kind=kind)


def memory(box: Box) -> Iterator[Finding]:
    kib = {key: int(value) for key, value in re.findall(r"(?m)^(\w+): +([0-9]{1,18})", box.read("/proc/meminfo"))}
    total, free = kib.get("MemTotal"), kib.get("MemAvailable")
    if not total or free is None:
        return
    allowed = [limit >> 10 for limit in _group_limits(box, "memory") if limit >> 10 < total]
    fact = Fact(Found.MEMORY, free_bytes=free << 10, total_bytes=total << 10)
    if allowed:
        fact.fields["allowed_bytes"] = min(allowed) << 10
        free = min(free, *allowed)
    little = free < 4 * _GIB or free < 0.05 * total
    yield Finding("memory", Level.ERROR if free < _GIB else Level.WARNING if little else Level.OK, fact)


def _group_limits(box: Box, what: str) -> list[int]:
    """Limits of `memory` (bytes) or `pids` in the control groups around this process."""
    path = ""
    for line in box.read("/proc/self/cgroup").splitlines():
        if line.startswith("0::") or ":memory:" in line:
            path = line.split(":", 2)[2]
    folders_ = (f"/sys/fs/cgroup{path}", "/sys/fs/cgroup", f"/sys/fs/cgroup/memory{path}", "/sys/fs/cgroup/memory")
    names = {"memory": ("memory.max", "memory.limit_in_bytes"), "pids": ("pids.max",)}[what]
    found = (integer(box.read(f"{folder}/{name}")) for folder in folders_ for name in names)
    return [limit for limit in found if limit is not None]


def load(box: Box) -> Iterator[Finding]:
    now = re.match(r"[0-9.]+", box.read("/proc/loadavg"))
    cpus = len(measured.cores())
    if now:
        level = Level.WARNING if float(now[0]) > 1.5 * cpus else Level.OK
        yield Finding("load", level, Fact(Found.LOAD, load=float(now[0]), cpus=cpus))


def limits(box: Box) -> Iterator[Finding]:
    """The limits of this process, and of the control groups around it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield open_files(soft, hard)
    most = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    allowed = [*([] if most == resource.RLIM_INFINITY else [most]), *_group_limits(box, "pids")]
    yield processes(measured.threads(), min(allowed, default=None))


def open_files(soft: int, hard: int) -> Finding:
    most, at_last = (None if one == resource.RLIM_INFINITY else one for one in (soft, hard))
    level = Level.OK if most is None or most >= 1024 else Level.ERROR if most < 128 else Level.WARNING
    return Finding("open files", level, Fact(Found.OPEN_FILES, most=most, hard=at_last))


def processes(used: int, allowed: int | None) -> Finding:
    left = math.inf if allowed is None else allowed - used
    level = Level.ERROR if left < 200 else Level.WARNING if left < 2000 else Level.OK
    return Finding("processes", level, Fact(Found.PROCESSES, used=used, allowed=allowed))


def variables(_: Box) -> Iterator[Finding]:
    proxies = [name for name in _PROXIES if os.environ.get(name)]
    spared = {one.strip() for name in NO_PROXY for one in os.environ.get(name, "").split(",")}
    if proxies and not spared & {*LOOPBACK, "*"}:
        yield note("variables", Found.PROXY, variables=proxies)
    if ours := sorted(name for name in os.environ if name.startswith("SBATCH_")):
        yield note("variables", Found.SLURM_VARIABLES, variables=ours)
