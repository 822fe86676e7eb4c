"""Why an incomplete attempt failed: by what its supervisor saw, then by the host, then by its log.

It is imported only after a failure. It may wait some seconds for a model server.
"""

from __future__ import annotations

import signal

from comborun.host import clients, files, machine
from comborun.host.process import setting
from comborun.rules import counting, patterns, records, signatures
from comborun.rules.words import LOG_SAYS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from comborun.host.attempt import Attempt
    from comborun.host.judging import Ending

_IN_A_LOG = {"gpu_memory", "gpu_fault", "host_memory", "disk_full", "server_lost", "launch_failed"}
"""classes from a log that are also causes"""
_ENDED_BY_ITSELF = {"exited", "signal"}
_SEARCH_S = 2.0
"""seconds of CPU time: a pattern of the grid may take for ever"""
_LEAST_FREE_KIB = 64
_NOTE_MOST = 160


def explain(of: Attempt, ending: Ending, records_made: int = 0) -> None:
    """Write into an ending why the attempt failed: cause, class from its log, note."""
    failure, line, flaw = failure_in_log(of, records_made)
    if ending.cause in _ENDED_BY_ITSELF and not _host_knows(of, ending):
        ending.signature = failure
        ending.cause = failure if failure in _IN_A_LOG else ending.cause
    if of.grant.get("served_by"):
        _server(of, ending)
    ending.add(f"{LOG_SAYS}: {line if len(line) <= _NOTE_MOST else f'{line[: _NOTE_MOST - 1]}…'}" if line else "")
    ending.add(flaw)
    ending.note = records.clean(ending.note)


def failure_in_log(of: Attempt, records_made: int) -> tuple[str, str, str]:
    """The class that the end of its log shows, with the line; and faults of the grid's patterns."""
    own = [(failure, pattern) for failure, pattern in of.data.get("signatures", ())]
    lines = files.log_lines(of.at.log, patterns.LONGEST_LINE)
    try:
        with CpuLimit(_SEARCH_S):
            counted = counting.Counted(of.data.get("progress", ""), of.count)
            lines = lines[counted.advanced([line[: counting.LONGEST_LINE] for line in lines]) :]
            return *signatures.find(lines, own, records=records_made), ""
    except TimeoutError:
        slow = "the grid's patterns take too long: its log was searched without them"
        return *signatures.find(lines, (), records=records_made), slow


class CpuLimit:
    """Raises TimeoutError in the main thread after some seconds of CPU time."""

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


def _host_knows(of: Attempt, ending: Ending) -> bool:
    """Whether the host explains the failure."""
    return _killed_for_memory(of, ending) or _disk_full(of, ending)


def _killed_for_memory(of: Attempt, ending: Ending) -> bool:
    """Whether the kernel killed it for memory: its count has grown, and the exit code is that of KILL."""
    killed, where = machine.kills_since(of.kills)
    if not killed:
        return False
    available = machine.memory_kib()[1]
    ending.add(f"processes killed for memory {where} since it began: {killed}; memory available now: {available} KiB")
    if ending.signal == signal.SIGKILL:
        ending.cause = "host_memory"
    return ending.cause == "host_memory"


def _disk_full(of: Attempt, ending: Ending) -> bool:
    """Whether less than a buffer is free where it writes."""
    free = machine.disk_kib(of.at.output)[1]
    if free is None or free >= _LEAST_FREE_KIB:
        return False
    ending.cause = "disk_full"
    ending.add(f"{free} KiB are free on the file system of its output")
    return True


def _server(of: Attempt, ending: Ending) -> None:
    """A lost model server explains any failure."""
    run, served_by = of.run_layout.directory, of.grant["served_by"]
    if ending.cause not in {*_ENDED_BY_ITSELF, "server_lost", "stalled", "hung"}:
        return
    lost = clients.lost(run, served_by)
    if not lost and ending.cause not in {"stalled", "hung"} and ending.signature in {"", "server_lost"}:
        lost = clients.silent(run, served_by, setting("COMBORUN_ANSWER_S", 5.0))
    if lost:
        ending.cause = ending.signature = "server_lost"
        ending.add("" if lost in ending.note else lost)
