"""Why an attempt that is not complete failed: what was seen, then what the host knows, last what its log says.

Imported only then: most sessions never need it. It may wait some seconds for dmesg, nvidia-smi and a model server.
"""

from __future__ import annotations

import re
import signal

from comborun.host import activity, machine, pressure, served
from comborun.host.watch import setting
from comborun.rules import counting, patterns, records, signatures

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

    from comborun.host.watch import Job

_IN_A_LOG = {"gpu_memory", "gpu_fault", "host_memory", "disk_full", "server_lost", "launch_failed"}
"""classes that a log tells which are causes, too"""
_ENDED_BY_ITSELF = {"exited", "signal"}
_SEARCH_S = 2.0
"""of CPU time: a pattern of the grid's may take for ever"""
_LEAST_FREE_KIB = 64
_CLEANED_UP = 45
"""the Xid of a process that was killed"""


class Failed:
    """An attempt that is not complete, and what its supervisor saw."""

    def __init__(self, job: Job, cause: str, code: int | None, note: str = "") -> None:
        self.job = job
        self.cause = cause
        self.code = code
        self.note = note
        self.records = 0
        self.began = 0.0
        """seconds since the machine started, as the kernel's log counts them"""
        self.kills = ","
        """as the claim has it"""
        self.signatures: Sequence[tuple[str, str]] = ()
        """the grid's own"""


class Why:
    """What is written into the end: cause, class that the log told (or nothing), note."""

    __slots__ = ("cause", "note", "signature")

    def __init__(self, cause: str, note: str) -> None:
        self.cause = cause
        self.signature = ""
        self.note = note

    def add(self, text: str) -> None:
        if text:
            self.note = f"{self.note}; {text}" if self.note else text


def explain(failed: Failed) -> Why:
    """Why it failed, as far as anybody can tell."""
    why = Why(failed.cause, failed.note)
    found, flaws = told_by_log(failed)
    if failed.cause in _ENDED_BY_ITSELF and not _host_knows(failed, why):
        why.signature = found.failure
        why.cause = found.failure if found.failure in _IN_A_LOG else failed.cause
    if failed.job.served_by:
        _server(failed.job, why)
    why.add(f"its log says: {found.line[:160]}" if found.line else "")
    for flaw in flaws:
        why.add(flaw)
    why.note = records.clean(why.note)
    return why


def told_by_log(failed: Failed) -> tuple[signatures.Found, list[str]]:
    """What the end of its log tells, and what is wrong with the grid's patterns."""
    flaws = signatures.flaws(failed.signatures)
    end, cut = activity.tail(failed.job.at.log, int(setting("COMBORUN_LOG_TAIL", counting.TAIL)))
    lines = list(counting.lines(end, cut=cut, longest=patterns.LONGEST_LINE))
    try:
        with CpuLimit(_SEARCH_S):
            counted = counting.Counted(failed.job.pattern, failed.job.count)
            lines = lines[counted.advanced([line[: counting.LONGEST_LINE] for line in lines]) :]
            return signatures.find(lines, failed.signatures, records=failed.records), flaws
    except TimeoutError:
        flaws.append("the grid's patterns take too long: its log was searched without them")
        return signatures.find(lines, (), records=failed.records), flaws


class CpuLimit:
    """Ends what takes more CPU time than so many seconds, with TimeoutError; for the main thread."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds

    def __enter__(self) -> None:
        self._before = signal.signal(signal.SIGVTALRM, self._late)
        signal.setitimer(signal.ITIMER_VIRTUAL, self._seconds)

    def __exit__(self, *_: object) -> None:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, self._before)

    @staticmethod
    def _late(*_: object) -> NoReturn:
        raise TimeoutError


def _host_knows(failed: Failed, why: Why) -> bool:
    """Whether the host knows what explains it."""
    return _killed_for_memory(failed, why) or _disk_full(failed.job, why) or _gpu_fault(failed, why)


def _killed_for_memory(failed: Failed, why: Why) -> bool:
    """The kernel counts whom it kills; that it was this one shows in the signal."""
    killed, where = pressure.since(failed.kills)
    if not killed:
        return False
    available = machine.memory_kib()[1]
    why.add(f"processes killed for memory {where} since it began: {killed}; KiB of memory available now: {available}")
    if failed.code == 128 + signal.SIGKILL:
        why.cause = "host_memory"
    return why.cause == "host_memory"


def _disk_full(job: Job, why: Why) -> bool:
    """Less than a buffer is free where it writes."""
    free = machine.disk_kib(job.out)[1]
    if free is None or free >= _LEAST_FREE_KIB:
        return False
    why.cause = "disk_full"
    why.add(f"{free} KiB are free on the file system of its output")
    return True


def _gpu_fault(failed: Failed, why: Why) -> bool:
    """An Xid of a GPU of its own, where the kernel log can be read."""
    if not failed.job.gpus:
        return False
    stamp = r"\[ *([0-9]+)\.[0-9]+\] (.*NVRM: Xid \(PCI:([0-9A-Fa-f:]+)[^)]*\): ([0-9]+).*)"
    for line in _kernel_log():
        match = re.match(stamp, line)
        if not match or int(match[1]) < int(failed.began) or int(match[4]) == _CLEANED_UP:
            continue
        if _its_bus(failed.job.gpus, match[3].lower()):
            why.cause = "gpu_fault"
            why.add(match[2][:160])
            return True
    return False


def _kernel_log() -> list[str]:
    import subprocess

    try:
        done = subprocess.run(["dmesg"], stdin=subprocess.DEVNULL, capture_output=True, timeout=3, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return []
    lines = done.stdout.decode("utf-8", "replace").splitlines()
    return [line for line in lines if "NVRM: Xid" in line][-50:]


def _its_bus(gpus: Sequence[str], bus: str) -> bool:
    """Whether a bus address, as the kernel writes it, is of a granted GPU; a GPU that is lost may not answer."""
    from comborun.host.driver import Question, hear

    rows = [line.split(",") for line in hear(Question(["--format=csv,noheader", "--query-gpu=index,pci.bus_id"]))]
    own = [row[1].lower() for row in rows if len(row) == 2 and row[0].strip() in gpus]
    return not own or any(bus.partition(":")[2] in one for one in own)


def _server(job: Job, why: Why) -> None:
    """Whatever its log says: without its model server it could not work."""
    if why.cause not in {*_ENDED_BY_ITSELF, "server_lost", "stalled", "hung"}:
        return
    lost = served.lost(job.run, job.served_by)
    if not lost and why.cause not in {"stalled", "hung"} and why.signature in {"", "server_lost"}:
        lost = served.silent(job.run, job.served_by, setting("COMBORUN_ANSWER_S", 5.0))
    if lost:
        why.cause = why.signature = "server_lost"
        why.add("" if lost in why.note else lost)
