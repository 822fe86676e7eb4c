"""The machine itself: bash and programs, disks, memory, processors, limits, the clock. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from comborun.remote.doctor.finding import (
    Facts,
    Finding,
    Level,
    error,
    fine,
    graded,
    integer,
    note,
    real,
    size,
    version,
    warning,
)
from comborun.text import GIB, KIB, several

XVFB = "Xvfb"
_GIB = GIB // KIB
"""KiB, as the kernel and df count"""
_REMOTE = ("nfs", "cifs", "smb", "fuse.sshfs", "afs", "ceph", "lustre", "gpfs", "beegfs", "9p")
"""file systems whose other users see a change late, or whose locks depend on a server"""
_TIMED_OUT = {124, 137}


def hangs(code: int | None) -> bool:
    """Whether a program was ended because it did not answer."""
    return code in _TIMED_OUT


def bash(facts: Facts) -> Iterator[Finding]:
    found = facts.one("bash")
    if version(found) >= (4, 4):
        yield fine("bash", found)
        return
    cost = "no session can start, and nothing else was looked at"
    yield error("bash", f"bash is {found}; 4.4 is the oldest that works", cost, "sudo apt-get install bash")


def programs(facts: Facts) -> Iterator[Finding]:
    missing = ", ".join(name for name in facts.all("missing") if name != XVFB)
    poor = ", ".join(facts.all("poor"))
    if missing:
        fix = "sudo apt-get install bash coreutils util-linux grep"
        yield error("programs", f"not on the PATH: {missing}", "sessions can't be started or supervised", fix)
    if poor:
        found = f"{poor} can't do what GNU's can (BusyBox?)"
        yield error("programs", found, "sessions can't be supervised", "sudo apt-get install coreutils")
    if not missing and not poor:
        yield fine("programs", "all that sessions need is there")


def displays(facts: Facts) -> Iterator[Finding]:
    """Xvfb, where the grid asks for it."""
    if XVFB in facts.all("missing"):
        found = "there is no Xvfb, and the grid says `display: xvfb`"
        yield error("display", found, "its sessions fail before their command starts", "sudo apt-get install xvfb")


def disks(facts: Facts) -> Iterator[Finding]:
    """Free room and inodes, at the root and where temporary files go; once when that is the same disk."""
    seen = set()
    for label, folder in (("root", facts.one("root")), ("tmp", facts.one("tmpdir"))):
        fields = facts.one(f"disk_{label}").split(maxsplit=5)
        if len(fields) == 6 and fields[5] not in seen:
            seen.add(fields[5])
            yield from _disk(folder, fields)


def _disk(folder: str, fields: list[str]) -> Iterator[Finding]:
    total, free, inodes, free_inodes = map(real, fields[:4])
    if free is None:
        return
    fix = f"du -xh --max-depth=2 {shlex.quote(fields[5])} | sort -h | tail -20"
    little = free < 10 * _GIB or free < 0.02 * (total or 0)
    level = Level.ERROR if free < _GIB else Level.WARNING if little else Level.OK
    cost = "logs, records and videos are cut off when it is full, and no session can start"
    yield graded("disk", level, f"{size(free)} of {size(total or 0)} free at {folder}", cost, fix)
    if inodes and free_inodes is not None and free_inodes < max(2000, min(100_000, 0.05 * inodes)):
        level = Level.ERROR if free_inodes < 2000 else Level.WARNING
        found = f"{free_inodes:.0f} of {inodes:.0f} inodes free at {folder}"
        yield Finding("inodes", level, found, "a disk without inodes is as full as one without room", fix)


def folders(facts: Facts) -> Iterator[Finding]:
    root, tmp, cost = facts.one("root"), facts.one("tmpdir"), "no run can be put there"
    if facts.late("paths"):
        found = f"the file system of {root} or of {tmp} does not answer"
        yield error("root", found, "everything that touches it hangs with it", f"df -h {shlex.quote(root)}")
        return
    if not facts.one("root_writable"):
        there = bool(facts.one("root_exists"))
        found = f"nothing can be written in {root}" if there else f"nothing can be written where {root} would be made"
        yield error("root", found, cost, "combo doctor --root DIR  # and root: DIR in the grid")
    if not facts.one("tmp_writable"):
        fix = "export TMPDIR=~/tmp; mkdir -p ~/tmp"
        yield error("tmp", f"nothing can be written in {tmp} (TMPDIR)", cost, fix)


def file_system(facts: Facts) -> Iterator[Finding]:
    """Whether runs can live on the root's file system."""
    root, fields, lock = facts.one("root"), facts.one("disk_root").split(maxsplit=5), facts.one("flock")
    kind = fields[4] if len(fields) == 6 else "unknown"
    elsewhere = "root: DIR in the grid, with a folder on a local disk"
    if lock in {"refused", "ignored"}:
        cost = "two dispatchers could run at once, and sessions be started twice"
        yield error("locks", f"flock is {lock} on {root} ({kind})", cost, elsewhere)
    elif lock:
        yield fine("locks", f"flock works on {root} ({kind})")
    for cannot in facts.all("cannot"):
        yield error("filesystem", f"{root} ({kind}) can't {cannot}", "a run needs that", elsewhere)
    if kind.startswith(_REMOTE):
        cost = "other machines see records late, locks depend on its server, and every log line travels"
        yield warning("filesystem", f"{root} is on {kind}", cost, elsewhere)
    elif kind in {"tmpfs", "ramfs"}:
        cost = "runs and results are gone after a restart, and take main memory until then"
        yield warning("filesystem", f"{root} is on {kind}", cost, elsewhere)


def memory(facts: Facts) -> Iterator[Finding]:
    total, free = facts.number("MemTotal"), facts.number("MemAvailable")
    if not total or free is None:
        return
    limits = [limit // 1024 for limit in facts.numbers("cgroup_memory") if limit // 1024 < total]
    text = f"{size(free)} of {size(total)} available"
    if limits:
        text += f"; a control group allows this user {size(min(limits))}"
        free = min(free, *limits)
    fix = "ps -eo user,pid,rss,args --sort=-rss | head"
    little = free < 4 * _GIB or free < 0.05 * total
    level = Level.ERROR if free < _GIB else Level.WARNING if little else Level.OK
    yield graded("memory", level, text, "the kernel ends processes when it runs out: simulators first", fix)
    swap, unused = facts.number("SwapTotal") or 0, facts.number("SwapFree") or 0
    if swap and unused < swap // 10:
        found = f"{size(swap - unused)} of {size(swap)} swap in use"
        yield warning("swap", found, "everything is slow while memory is swapped", fix)


def processors(facts: Facts) -> Iterator[Finding]:
    cpus, load = facts.number("cpus"), real(facts.one("load"))
    if not cpus or load is None:
        return
    text = f"load {load:g} on {several(cpus, 'CPU')}"
    if load > 1.5 * cpus:
        fix = "ps -eo user,pid,pcpu,args --sort=-pcpu | head"
        yield warning("load", text, "simulators share the CPUs with it: fewer episodes per hour", fix)
    else:
        level = Level.NOTE if load > 0.7 * cpus else Level.OK
        yield graded("load", level, text, "little is left for simulators", "")


def open_files(facts: Facts) -> Iterator[Finding]:
    soft, hard = facts.one("files_soft"), facts.one("files_hard")
    fewest = integer(soft)
    if fewest is not None and fewest < 1024:
        level = Level.ERROR if fewest < 128 else Level.WARNING
        found, cost = f"{fewest} at most, hard limit {hard}", 'simulators end with "too many open files"'
        yield Finding("open files", level, found, cost, f"ulimit -n {hard}")
    elif soft:
        yield fine("open files", f"{soft} at most")


def processes(facts: Facts) -> Iterator[Finding]:
    used = facts.number("threads") or 0
    allowed = min((*facts.numbers("processes_soft"), *facts.numbers("cgroup_pids")), default=None)
    if allowed is None:
        yield fine("processes", f"{used} of any number")
        return
    left = allowed - used
    level = Level.ERROR if left < 200 else Level.WARNING if left < 2000 else Level.OK
    cost = 'sessions die with "can\'t fork": a simulator has hundreds of threads'
    fix = "ulimit -u unlimited  # or raise nproc in /etc/security/limits.conf"
    yield graded("processes", level, f"{used} of {allowed} in use", cost, fix)


def proc(facts: Facts) -> Iterator[Finding]:
    hidden, fix = facts.one("hidepid"), "sudo mount -o remount,hidepid=0 /proc"
    if facts.one("environ") != "readable":
        cost = "combo stop can't find what has left its session: GPU memory stays taken"
        found = f"/proc/PID/environ can't be read{f' (hidepid={hidden})' if hidden else ''}"
        yield error("proc", found, cost, fix)
    elif hidden in {"4", "ptraceable"}:
        cost = "processes that may not be traced can't be found by combo stop"
        yield warning("proc", f"/proc hides processes (hidepid={hidden})", cost, fix)
    elif hidden not in {"", "0", "off"}:
        cost = "the owners of other people's GPU processes can't be named"
        yield note("proc", f"/proc shows only your own processes (hidepid={hidden})", cost)
    else:
        yield fine("proc", "processes can be found by their environment")


def clock(facts: Facts) -> Iterator[Finding]:
    """How far the host's clock is off, as NTP computes it; the way there and back can't be told apart."""
    asked, begin, end, answered = (real(facts.one(key)) for key in ("asked", "now_start", "now_end", "answered"))
    if asked is None or begin is None or end is None or answered is None:
        return
    off = ((begin - asked) + (end - answered)) / 2
    doubt = max(0.0, (answered - asked) - (end - begin)) / 2
    beyond = abs(off) - doubt
    level = Level.WARNING if beyond > 300 else Level.NOTE if beyond > 2 else Level.OK
    cost = "times in tables are off by that"
    cost += "; certificates and make may fail" if level is Level.WARNING else ""
    text = f"{off:+.2f} s against this machine, ± {doubt:.2f} s"
    yield graded("clock", level, text, cost, "sudo timedatectl set-ntp true")
