"""What a supervisor does after its command: free the slot, end remaining processes, judge, write the end.

Why an incomplete attempt failed is asked of the supervisor, then of the host, then of the log.
"""

from __future__ import annotations

import os
import re
import signal
import time

from comborun.host.record import clients, judging
from comborun.host.record.attempts import stopping
from comborun.host.system import descendants, files, machine, process
from comborun.host.system.process import setting
from comborun.rules import counting, patterns, records
from comborun.rules.endings import failures, signatures
from comborun.rules.vocabulary import LOG_SAYS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

    from comborun.host.record.judging import Ending
    from comborun.host.supervise.attempt import Attempt
    from comborun.host.supervise.supervisor import Supervisor

_START_S = 0.02
"""seconds in which the next session starts: writing an end meanwhile would take cores from it"""
_NO_BLAME = {"stopped", "launch_failed", "preempted"}
"""causes that the log can't explain further"""
_TROUBLE = re.compile("error|not ?found|no such|can.?not|can't|could not|unable|unknown|denied|fail", re.IGNORECASE)
_ENDED_BY_ITSELF = {"exited", "signal"}
_SEARCH_S = 2.0
"""seconds of CPU time: a pattern of the grid may take for ever"""
_LEAST_FREE_KIB = 64
_NOTE_MOST = 160
_OF_RUNTIME = {
    ("docker", 125): "docker could not start the container",
    ("docker", 126): "docker could not run the program in the image",
    ("docker", 127): "docker found no such program in the image",
    ("apptainer", 255): "apptainer could not start the container",
}


def finish(of: Supervisor, code: int) -> None:
    """Report the free slot first, because another session may wait for it."""
    finishing = _Finishing(of, code)
    descendants.end_container(of.data.get("container", ""), of.marker)
    of.tell("free")
    of.events.wait(time.monotonic() + _START_S)
    if of.watch:
        of.watch.close()
    if of.display:
        of.display.close()
    of.window.show()
    finishing.see()
    of.patiently(finishing.sweep)
    of.patiently(finishing.judge)
    of.tell("ended")


class _Finishing:
    def __init__(self, of: Supervisor, code: int) -> None:
        self._of = of
        self._at = of.at
        self._stopped = stopping(of.at)
        self._end = judging.Ending("exited", "", code, of.started, time.time())
        self._end.cause = "exited" if self._end.signal is None else "signal"
        at_once = of.interrupted or of.verdict or self._stopped
        self._grace = setting("COMBORUN_GRACE_S", 5.0)
        self._behind = self._end_group(0.0 if at_once else self._grace)

    def _end_group(self, grace: float) -> int:
        """The number of processes of the command's group that had to be killed. A child may still write results, or the
        end of a video.
        """
        of, left = self._of, 0
        if grace:
            over = lambda: not of.remains.of_group(of.pid) or stopping(self._at)  # noqa: E731
            if not of.events.until(grace, over) or stopping(self._at):
                left = of.remains.of_group(of.pid)
        process.send_group(of.pid, signal.SIGKILL)
        return left

    def see(self) -> None:
        """Find the cause as far as the supervisor can see it; a later rule overrules an earlier one."""
        of, end = self._of, self._end
        failure = files.read_text(self._at.failure).strip()
        why = with_output(failure, self._at.log) if failure else ""
        if why := why or why_no_container(self._at.log, of.data.get("container", ""), end.code or 0):
            end.cause, end.note = "launch_failed", why
        if of.interrupted:
            end.cause, end.note = "stopped", of.interrupted
        at_once = of.place.why() if of.interrupted or end.cause == "signal" else None
        at_once = of.verdict or at_once
        if self._stopped or stopping(self._at):
            at_once = "stopped", ""
        if at_once:
            end.cause, end.note = at_once
            self._grace = 0.0

    def sweep(self) -> None:
        """End processes that left the group, after their grace period."""
        behind, survivors = self._of.remains.end(self._grace, 5.0)
        self._behind += behind
        if survivors:
            self._end.add(f"processes survive: {' '.join(map(str, survivors))}")

    def judge(self) -> None:
        of, end = self._of, self._end
        proven = end.code if end.cause == "exited" else None  # told to end, it may exit with 0 and nothing done
        judged = judging.judge(self._at, proven)
        if judged.completeness.value != "complete" and end.cause not in _NO_BLAME:
            if self._behind and self._grace:
                end.add(f"processes that it left behind were ended after {self._grace:g} s: {self._behind}")
            explain(of, end, judged.counts.records)
        end.add(files.read(self._at.wrong_gpu).get("why", ""))
        end.peak_memory_kib = of.watch.peak_kib if of.watch else 0
        if judging.write_end(self._at, end, judged):
            files.remove(self._at.verdict, self._at.stalled)


def with_output(failure: str, log: str) -> str:
    """Why a command was not started, with the line of its output that explains it best."""
    failure = " ".join(failure.split())
    if "could not be run in" in failure:
        return f"{failure}: {_why_not(failure, log)}"
    lines = [line for line in _said(log) if failure not in " ".join(line.split())]
    if not lines or not failure.startswith("setup line"):
        return failure
    telling = [line for line in lines if _TROUBLE.search(line)]
    return f"{failure}: {(telling or lines)[-1]}"


def _said(log: str) -> list[str]:
    """The last lines of a log, without the prefixes of bash."""
    lines = (line.strip() for line in files.log_lines(log))
    return [re.sub(r"^(/.*?)?session\.sh: (line [0-9]+: )?(exec: )?", "", line) for line in lines if line]


def _why_not(failure: str, log: str) -> str:
    """The message of bash, unless the missing file is the interpreter that a script names."""
    program, _, folder = failure.partition(" could not be run in ")
    try:
        with open(os.path.join(folder, program), "rb") as file:
            first = file.readline(256).decode("utf-8", "replace")
    except OSError:
        first = ""
    interpreter = first[2:].rstrip("\n").lstrip().split(" ")[0] if first.startswith("#!") else ""
    if interpreter and not os.access(interpreter, os.X_OK):
        return f"its interpreter {interpreter!r} does not exist or is not executable"
    lines = [line for line in _said(log) if line.startswith((program, os.path.normpath(os.path.join(folder, program))))]
    return lines[-1].rpartition(": ")[2] if lines else "bash printed no reason"


def why_no_container(log: str, runtime: str, code: int) -> str:
    """Explains an exit code of the runtime itself, with its message; empty for a code of the program."""
    note = _OF_RUNTIME.get((runtime, code), "")
    if not note:
        return ""
    lines = files.log_lines(log)
    said = [line for line in lines if line.startswith("docker: " if runtime == "docker" else "FATAL: ")]
    if runtime == "apptainer" and not said:
        return ""
    said = said or [line for line in lines if line.strip()]
    return f"{note}: {said[-1][:200]}" if said else note


# Why it failed


def explain(of: Attempt, ending: Ending, records_made: int = 0) -> None:
    """Write into an ending why the attempt failed: cause, class from its log, note."""
    failure, line, flaw = failure_in_log(of, records_made)
    host_knows = _killed_for_memory(of, ending) or _disk_full(of, ending) if ending.cause in _ENDED_BY_ITSELF else True
    if not host_knows:
        ending.signature = failure
        known = failures.named(failure)
        ending.cause = known.cause.value if known and known.cause else ending.cause
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
