"""The machine itself: bash and programs, folders and disks, memory, processors, limits.

Tests can replace the programs and files that a check sees.
"""

from __future__ import annotations

import fcntl
import glob
import os
import re
import resource
import shlex
import shutil
import sys
import tempfile

from comborun.host.system import commands, files, process
from comborun.host.system import machine as measured
from comborun.host.verbs import facts
from comborun.rules.findings import Finding, Level, error, fine, graded, note, warning
from comborun.rules.vocabulary import amount, several

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Iterator, Sequence

_XVFB = "Xvfb"
_GIB = 1 << 20
"""KiB, as the kernel and df count"""
_REMOTE = ("nfs", "cifs", "smb", "fuse.sshfs", "afs", "ceph", "lustre", "gpfs", "beegfs", "9p")
"""file systems where others see changes late, or where locks depend on a server"""
_ELSEWHERE = "root: DIR in the grid, with a folder on a local disk"
DISK_HANGS = ("a file system does not answer: the root's or that of TMPDIR", "what touches it hangs with it", "df -h")


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
    if version(found) >= (4, 4):
        yield fine("bash", found)
        return
    cost = "no session can start, and nothing else was looked at"
    yield error("bash", f"bash is {found}; 4.4 is the oldest that works", cost, "sudo apt-get install bash")


def programs(box: Box) -> Iterator[Finding]:
    flaws = {name: commands.lack(name) for name in (*facts.NEEDED, *box.programs)}
    missing = [name for name, flaw in flaws.items() if flaw == name]
    poor = [name for name, flaw in flaws.items() if flaw and flaw != name]
    if _XVFB in missing:
        missing.remove(_XVFB)
        found = "there is no Xvfb, and the grid says `display: xvfb`"
        yield error("display", found, "its sessions fail before their command starts", "sudo apt-get install xvfb")
    if missing:
        fix = "sudo apt-get install bash coreutils util-linux"
        cost = "sessions can't be started or supervised"
        yield error("programs", f"not on the PATH: {', '.join(missing)}", cost, fix)
    if poor:
        found = f"{', '.join(poor)} can't do what GNU's can (BusyBox?)"
        yield error("programs", found, "sessions can't be supervised", "sudo apt-get install coreutils")
    if not missing and not poor:
        yield fine("programs", "all that sessions need is there")


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
        found, fix = f"nothing can be written in {box.temporary} (TMPDIR)", "export TMPDIR=~/tmp; mkdir -p ~/tmp"
        yield error("tmp", found, "no run can be put there", fix)
    for which in (files.LEASES, files.PORTS):
        yield from _shared(which)


def _shared(which: tuple[str, str]) -> Iterator[Finding]:
    """Whether another user has the folder in which our runs would agree on resources or ports."""
    path, instead = files.usual_folder(which), files.instead_of(which)
    if os.path.lexists(path) and os.lstat(path).st_uid != os.getuid():
        found = f"{path} belongs to {process.owner(path)}, so your runs use {instead}"
        cost = "a run that an earlier version started can't see what they hold"
        yield note("tmp", found, cost, f"sudo rm -r {shlex.quote(path)}")


def _disk(box: Box, folder: str) -> Sequence[str]:
    """Size, free, inodes, free inodes, type and mount point of a folder's file system, in KiB."""
    code, said = box.ask("df", "-k", "--output=size,avail,itotal,iavail,fstype,target", "--", folder)
    fields = said.splitlines()[-1].split(maxsplit=5) if code == 0 else []
    return fields if len(fields) == 6 else ("", "", "", "", "unknown", "")


def room(folder: str, disk: Sequence[str]) -> Iterator[Finding]:
    total, free, inodes, free_inodes = map(integer, disk[:4])
    if free is None:
        return
    fix = f"du -xh --max-depth=2 {shlex.quote(disk[5])} | sort -h | tail -20"
    little = free < 10 * _GIB or free < 0.02 * (total or 0)
    level = Level.ERROR if free < _GIB else Level.WARNING if little else Level.OK
    cost = "logs, records and videos are cut off when it is full, and no session can start"
    yield graded("disk", level, f"{amount(free << 10)} of {amount((total or 0) << 10)} free at {folder}", cost, fix)
    if inodes and free_inodes is not None and free_inodes < max(2000, min(100_000, 0.05 * inodes)):
        level = Level.ERROR if free_inodes < 2000 else Level.WARNING
        found = f"{free_inodes} of {inodes} inodes free at {folder}"
        yield Finding("inodes", level, found, "a disk without inodes is as full as one without room", fix)


def _root(root: str, at: str, kind: str) -> Iterator[Finding]:
    """Tests the root with real files in a temporary folder. `at`: the existing part of the root's path."""
    try:
        folder = tempfile.mkdtemp(prefix=".comborun-doctor-", dir=at)
    except OSError:
        found = f"nothing can be written {f'in {root}' if at == root else f'where {root} would be made'}"
        yield error("root", found, "no run can be put there", "combo doctor --root DIR  # and root: DIR in the grid")
        return
    try:
        yield _locking(f"{root} ({kind})", f"{folder}/lock")
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    yield from file_system(root, kind)


def _locking(root: str, path: str) -> Finding:
    """Whether a lock works: opening a file twice is like two processes."""
    state = "ignored"
    with open(path, "w") as one, open(path, "w") as other:
        try:
            fcntl.flock(one, fcntl.LOCK_EX | fcntl.LOCK_NB)
            try:
                fcntl.flock(other, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                return fine("locks", f"flock works on {root}")
        except OSError:
            state = "refused"
    cost = "two dispatchers could run at once, and sessions be started twice"
    return error("locks", f"flock is {state} on {root}", cost, _ELSEWHERE)


def file_system(root: str, kind: str) -> Iterator[Finding]:
    if kind.startswith(_REMOTE):
        cost = "other machines see records late, locks depend on its server, and every log line travels"
        yield warning("filesystem", f"{root} is on {kind}", cost, _ELSEWHERE)
    elif kind in ("tmpfs", "ramfs"):
        cost = "runs and results are gone after a restart, and take main memory until then"
        yield warning("filesystem", f"{root} is on {kind}", cost, _ELSEWHERE)


def memory(box: Box) -> Iterator[Finding]:
    kib = {key: int(value) for key, value in re.findall(r"(?m)^(\w+): +([0-9]{1,18})", box.read("/proc/meminfo"))}
    total, free = kib.get("MemTotal"), kib.get("MemAvailable")
    if not total or free is None:
        return
    allowed = [limit >> 10 for limit in _group_limits(box, "memory") if limit >> 10 < total]
    text = f"{amount(free << 10)} of {amount(total << 10)} available"
    if allowed:
        text += f"; a control group allows this user {amount(min(allowed) << 10)}"
        free = min(free, *allowed)
    fix = "ps -eo user,pid,rss,args --sort=-rss | head"
    little = free < 4 * _GIB or free < 0.05 * total
    level = Level.ERROR if free < _GIB else Level.WARNING if little else Level.OK
    yield graded("memory", level, text, "the kernel ends processes when it runs out: simulators first", fix)


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
        cost = "simulators share the CPUs with it: fewer episodes per hour"
        fix = "ps -eo user,pid,pcpu,args --sort=-pcpu | head"
        yield graded("load", level, f"load {now[0]} on {several(cpus, 'CPU')}", cost, fix)


def limits(box: Box) -> Iterator[Finding]:
    """The limits of this process, and of the control groups around it."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    yield open_files(soft, hard)
    most = resource.getrlimit(resource.RLIMIT_NPROC)[0]
    allowed = [*([] if most == resource.RLIM_INFINITY else [most]), *_group_limits(box, "pids")]
    yield processes(measured.threads(), min(allowed, default=None))


def open_files(soft: int, hard: int) -> Finding:
    at_most, most = ("unlimited" if one == resource.RLIM_INFINITY else str(one) for one in (soft, hard))
    if at_most == "unlimited" or soft >= 1024:
        return fine("open files", f"{at_most} at most")
    level, cost = Level.ERROR if soft < 128 else Level.WARNING, 'simulators end with "too many open files"'
    return Finding("open files", level, f"{soft} at most, hard limit {most}", cost, f"ulimit -n {most}")


def processes(used: int, allowed: int | None) -> Finding:
    if allowed is None:
        return fine("processes", f"{used} of any number")
    left = allowed - used
    level = Level.ERROR if left < 200 else Level.WARNING if left < 2000 else Level.OK
    cost = 'sessions die with "can\'t fork": a simulator has hundreds of threads'
    fix = "ulimit -u unlimited  # or raise nproc in /etc/security/limits.conf"
    return graded("processes", level, f"{used} of {allowed} in use", cost, fix)
