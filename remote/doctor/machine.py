"""The doctor on the machine itself: bash and programs, disks, memory, processors, limits, the clock. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from dataclasses import dataclass

from comborun.amounts import GIB, KIB, several
from comborun.remote.doctor.finding import Facts, Finding, Level, real, size, version
from comborun.remote.doctor.rendering import XVFB

_GIB = GIB // KIB
"""KiB, as the kernel and df count"""
OLDEST_BASH = (4, 4)
ATTRIBUTES_CACHED = ("nfs", "cifs", "smb", "fuse.sshfs", "afs", "ceph", "lustre", "gpfs", "beegfs", "9p")
"""file systems whose other users see a change late, or whose locks depend on a server"""


@dataclass(frozen=True)
class Clock:
    """This machine's clock around the question, in seconds since 1970."""

    asked: float
    answered: float


def bash(facts: Facts) -> Iterator[Finding]:
    found = facts.one("bash")
    if version(found) < OLDEST_BASH:
        yield Finding(
            "bash",
            Level.ERROR,
            f"bash is {found}; 4.4 is the oldest that works",
            "no session can start, and nothing else was looked at",
            "sudo apt-get install bash",
        )
    else:
        yield Finding("bash", Level.OK, found)


def programs(facts: Facts) -> Iterator[Finding]:
    missing = tuple(name for name in facts.all("missing") if name != XVFB)
    if missing:
        yield Finding(
            "programs",
            Level.ERROR,
            f"not on the PATH: {', '.join(missing)}",
            "sessions can't be started or supervised",
            "sudo apt-get install bash coreutils util-linux grep",
        )
    if poor := facts.all("poor"):
        yield Finding(
            "programs",
            Level.ERROR,
            f"{', '.join(poor)} can't do what GNU's can (BusyBox?)",
            "sessions can't be supervised",
            "sudo apt-get install coreutils",
        )
    if not missing and not poor:
        yield Finding("programs", Level.OK, "all that sessions need is there")


def disks(facts: Facts) -> Iterator[Finding]:
    """Free room and inodes, at the root and where temporary files go; once when that is the same disk."""
    seen = set()
    for label, folder in (("root", facts.one("root")), ("tmp", facts.one("tmpdir"))):
        fields = facts.one(f"disk_{label}").split(maxsplit=5)
        if len(fields) == 6 and fields[5] not in seen:
            seen.add(fields[5])
            yield from _disk(folder, fields)


def _disk(folder: str, fields: list[str]) -> Iterator[Finding]:
    total, free = real(fields[0]) or 0.0, real(fields[1])
    inodes, free_inodes = real(fields[2]) or 0.0, real(fields[3])
    if free is None:
        return
    text = f"{size(free)} of {size(total)} free at {folder}"
    cost = "logs, records and videos are cut off when it is full, and no session can start"
    fix = f"du -xh --max-depth=2 {shlex.quote(fields[5])} | sort -h | tail -20"
    if free < _GIB:
        yield Finding("disk", Level.ERROR, text, cost, fix)
    elif free < 10 * _GIB or free < 0.02 * total:
        yield Finding("disk", Level.WARNING, text, cost, fix)
    else:
        yield Finding("disk", Level.OK, text)
    if inodes and free_inodes is not None and free_inodes < max(2000, min(100_000, 0.05 * inodes)):
        level = Level.ERROR if free_inodes < 2000 else Level.WARNING
        found = f"{free_inodes:.0f} of {inodes:.0f} inodes free at {folder}"
        yield Finding("inodes", level, found, "a disk without inodes is as full as one without room", fix)


def folders(facts: Facts) -> Iterator[Finding]:
    root, tmp = facts.one("root"), facts.one("tmpdir")
    if facts.late("paths"):
        yield Finding(
            "root",
            Level.ERROR,
            f"the file system of {root} or of {tmp} does not answer",
            "everything that touches it hangs with it",
            f"df -h {shlex.quote(root)}",
        )
        return
    if not facts.one("root_writable"):
        found = f"nothing can be written {'in' if facts.one('root_exists') else 'where'} {root}"
        fix = "combo doctor --root DIR  # and root: DIR in the grid"
        yield Finding(
            "root",
            Level.ERROR,
            found + ("" if facts.one("root_exists") else " would be made"),
            "no run can be put there",
            fix,
        )
    if not facts.one("tmp_writable"):
        fix = "export TMPDIR=~/tmp; mkdir -p ~/tmp"
        yield Finding("tmp", Level.ERROR, f"nothing can be written in {tmp} (TMPDIR)", "no run can be put there", fix)


def file_system(facts: Facts) -> Iterator[Finding]:
    """Whether runs can live on the root's file system."""
    root, fields = facts.one("root"), facts.one("disk_root").split(maxsplit=5)
    kind = fields[4] if len(fields) == 6 else "unknown"
    elsewhere = "root: DIR in the grid, with a folder on a local disk"
    lock = facts.one("flock")
    if lock in {"refused", "ignored"}:
        cost = "two dispatchers could run at once, and sessions be started twice"
        yield Finding("locks", Level.ERROR, f"flock is {lock} on {root} ({kind})", cost, elsewhere)
    elif lock:
        yield Finding("locks", Level.OK, f"flock works on {root} ({kind})")
    for cannot in facts.all("cannot"):
        found = f"{root} ({kind}) can't {cannot}"
        yield Finding("filesystem", Level.ERROR, found, "a run needs that", elsewhere)
    if kind.startswith(ATTRIBUTES_CACHED):
        cost = "other machines see records late, locks depend on its server, and every log line travels"
        yield Finding("filesystem", Level.WARNING, f"{root} is on {kind}", cost, elsewhere)
    elif kind in {"tmpfs", "ramfs"}:
        cost = "runs and results are gone after a restart, and take main memory until then"
        yield Finding("filesystem", Level.WARNING, f"{root} is on {kind}", cost, elsewhere)


def memory(facts: Facts) -> Iterator[Finding]:
    total, free = facts.number("MemTotal"), facts.number("MemAvailable")
    if not total or free is None:
        return
    limits = [limit // 1024 for limit in facts.numbers("cgroup_memory") if limit // 1024 < total]
    fix = "ps -eo user,pid,rss,args --sort=-rss | head"
    text = f"{size(free)} of {size(total)} available"
    if limits:
        text += f"; a control group allows this user {size(min(limits))}"
        free = min(free, *limits)
    cost = "the kernel ends processes when it runs out: simulators first"
    if free < _GIB:
        yield Finding("memory", Level.ERROR, text, cost, fix)
    elif free < 4 * _GIB or free < 0.05 * total:
        yield Finding("memory", Level.WARNING, text, cost, fix)
    else:
        yield Finding("memory", Level.OK, text)
    swap, unused = facts.number("SwapTotal") or 0, facts.number("SwapFree") or 0
    if swap and unused < swap // 10:
        found = f"{size(swap - unused)} of {size(swap)} swap in use"
        yield Finding("swap", Level.WARNING, found, "everything is slow while memory is swapped", fix)


def processors(facts: Facts) -> Iterator[Finding]:
    cpus, load = facts.number("cpus"), real(facts.one("load"))
    if not cpus or load is None:
        return
    text = f"load {load:g} on {several(cpus, 'CPU')}"
    if load > 1.5 * cpus:
        fix = "ps -eo user,pid,pcpu,args --sort=-pcpu | head"
        yield Finding("load", Level.WARNING, text, "simulators share the CPUs with it: fewer episodes per hour", fix)
    elif load > 0.7 * cpus:
        yield Finding("load", Level.NOTE, text, "little is left for simulators")
    else:
        yield Finding("load", Level.OK, text)


def limits(facts: Facts) -> Iterator[Finding]:
    fewest, most = facts.number("files_soft"), facts.one("files_hard")
    if fewest is not None and fewest < 1024:
        level = Level.ERROR if fewest < 128 else Level.WARNING
        cost = 'simulators end with "too many open files"'
        yield Finding("open files", level, f"{fewest} at most, hard limit {most}", cost, f"ulimit -n {most}")
    elif fewest or facts.one("files_soft"):
        yield Finding("open files", Level.OK, f"{facts.one('files_soft')} at most")
    allowed, used = _processes(facts), facts.number("threads") or 0
    if allowed is None:
        yield Finding("processes", Level.OK, f"{used} of any number")
    elif allowed - used < 2000:
        level = Level.ERROR if allowed - used < 200 else Level.WARNING
        cost = 'sessions die with "can\'t fork": a simulator has hundreds of threads'
        found = f"{used} of {allowed} processes and threads are in use"
        yield Finding(
            "processes", level, found, cost, "ulimit -u unlimited  # or raise nproc in /etc/security/limits.conf"
        )
    else:
        yield Finding("processes", Level.OK, f"{used} of {allowed} in use")


def _processes(facts: Facts) -> int | None:
    return min((*facts.numbers("processes_soft"), *facts.numbers("cgroup_pids")), default=None)


def proc(facts: Facts) -> Iterator[Finding]:
    hidden = facts.one("hidepid")
    if facts.one("environ") != "readable":
        yield Finding(
            "proc",
            Level.ERROR,
            f"/proc/PID/environ can't be read{f' (hidepid={hidden})' if hidden else ''}",
            "combo stop can't find what has left its session: GPU memory stays taken",
            "sudo mount -o remount,hidepid=0 /proc",
        )
    elif hidden in {"4", "ptraceable"}:
        cost = "processes that may not be traced can't be found by combo stop"
        yield Finding(
            "proc",
            Level.WARNING,
            f"/proc hides processes (hidepid={hidden})",
            cost,
            "sudo mount -o remount,hidepid=0 /proc",
        )
    elif hidden not in {"", "0", "off"}:
        cost = "the owners of other people's GPU processes can't be named"
        yield Finding("proc", Level.NOTE, f"/proc shows only your own processes (hidepid={hidden})", cost)
    else:
        yield Finding("proc", Level.OK, "processes can be found by their environment")


def skew(facts: Facts, clock: Clock) -> Iterator[Finding]:
    """How far the host's clock is off, as NTP computes it; the way there and back can't be told apart."""
    begin, end = real(facts.one("now_start")), real(facts.one("now_end"))
    if begin is None or end is None:
        return
    off = ((begin - clock.asked) + (end - clock.answered)) / 2
    doubt = max(0.0, (clock.answered - clock.asked) - (end - begin)) / 2
    text = f"{off:+.2f} s against this machine, ± {doubt:.2f} s"
    cost = "times in tables and reports are off by that; certificates and make may fail"
    if abs(off) - doubt > 300:
        yield Finding("clock", Level.WARNING, text, cost, "sudo timedatectl set-ntp true")
    elif abs(off) - doubt > 2:
        yield Finding("clock", Level.NOTE, text, "times in tables are off by that", "sudo timedatectl set-ntp true")
    else:
        yield Finding("clock", Level.OK, text)
