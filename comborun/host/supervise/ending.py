"""What follows when a command has ended: end remaining processes, find the cause, judge, write the end.

Why an incomplete attempt failed is asked of the supervisor, then of the host, then of the log.
"""

from __future__ import annotations

import os
import re
import resource
import signal
import time

from comborun.host.record import clients, end_record, judging, recounts, together
from comborun.host.record.end_record import Ending
from comborun.host.record.run_directory import stopping
from comborun.host.supervise.attempt import Attempt, Place, Verdict
from comborun.host.system import files, machine, process
from comborun.host.system.descendants import Leftovers
from comborun.host.system.events import Events
from comborun.rules import counting, patterns, records
from comborun.rules.endings import evidence, failures, signatures
from comborun.rules.endings.evidence import Evidence, fact
from comborun.rules.facts import Fact
from comborun.rules.vocabulary import Completeness

_NO_BLAME = {"stopped", "launch_failed", "preempted"}
"""causes that the log can't explain further"""
_TROUBLE = re.compile("error|not ?found|no such|can.?not|can't|could not|unable|unknown|denied|fail", re.IGNORECASE)
_ENDED_BY_ITSELF = {"exited", "signal"}
_SEARCH_S = 2.0
"""seconds of CPU time: a pattern of the grid may take for ever"""
_LEAST_FREE_KIB = 64
_OF_RUNTIME = {
    *((runtime, code) for runtime in ("docker", "podman") for code in (125, 126, 127)),
    ("apptainer", 255),
}
_SAYS = {"docker": "docker: ", "podman": "Error: ", "apptainer": "FATAL: "}
"""how the message of a runtime begins"""
"""exit codes of the runtime of a container itself"""


class Finishing:
    """`code`: the command's exit code. `at_once`: it was told to end, so nothing waits for its remaining processes."""

    def __init__(self, attempt: Attempt, events: Events, code: int, *, at_once: bool) -> None:
        self._attempt = attempt
        self._at = attempt.at
        self._events = events
        self._leftovers = Leftovers(attempt.marker, events.until, attempt.roots)
        self._stopped = stopping(self._at)
        self._end = end_record.Ending("exited", None, code, attempt.started, time.time())
        self._end.cause = "exited" if self._end.signal is None else "signal"
        self._grace = attempt.timing.grace_s
        self._behind = self._end_group(0.0 if at_once or self._stopped else self._grace)

    def _end_group(self, grace: float) -> int:
        """The number of processes of the command's group that had to be killed. A child may still write results, or the
        end of a video.
        """
        group, left = self._attempt.pid, 0
        if grace:
            over = lambda: not self._leftovers.of_group(group) or stopping(self._at)  # noqa: E731
            if not self._events.until(grace, over) or stopping(self._at):
                left = self._leftovers.of_group(group)
        process.send_group(group, signal.SIGKILL)
        return left

    def see(self, place: Place, missing: Fact | None, interrupted: Fact | None, verdict: Verdict | None) -> None:
        """Find the cause as far as the supervisor can see it; a later rule overrules an earlier one.

        `missing`: why the command could not be started.
        """
        end, container = self._end, self._attempt.data.get("container", "")
        seen: Verdict = end.cause, None
        why = missing or why_not_started(self._at.failure, self._at.log)
        if why:
            from comborun.words import say

            self._attempt.add_to_log(say(why))
        if why := why or why_no_container(self._at.log, container, end.code or 0):
            seen = "launch_failed", why
        if interrupted:
            seen = "stopped", interrupted
        at_once = place.why() if interrupted or end.cause == "signal" else None
        at_once = verdict or at_once
        if self._stopped or stopping(self._at):
            at_once = "stopped", None
        end.cause, reason = at_once or seen
        end.add(reason)
        if at_once:
            self._grace = 0.0

    def sweep(self) -> None:
        """End processes that left the group, after their grace period."""
        behind, survivors = self._leftovers.end(self._grace, 5.0)
        self._behind += behind
        if survivors:
            self._end.add(fact(Evidence.SURVIVORS, pids=survivors))

    def judge(self, peak_memory_kib: int) -> None:
        attempt, end = self._attempt, self._end
        proven = end.code if end.cause == "exited" else None  # told to end, it may exit with 0 before its work is done
        judged = recounts.judged(self._at, proven)
        if judged.now.value != "complete" and end.cause not in _NO_BLAME:
            if self._behind and self._grace:
                end.add(fact(Evidence.LEFT_BEHIND, count=self._behind, grace_s=self._grace))
            try:
                explain(attempt, end, judged.counts.records)
            except (OSError, MemoryError):
                raise
            except Exception as error:  # noqa: BLE001
                end.add(fact(Evidence.NOT_JUDGED, said=repr(error)))
        for found in records.ending(files.read(self._at.wrong_gpu)):
            end.add(found)
        end.peak_memory_kib = peak_memory_kib
        if together.write_end(self._at, end, judged):
            files.remove(self._at.verdict, self._at.stalled, self._at.signalled)

    def give_up(self, fault: Exception) -> None:
        """Write an end without counts: better than none."""
        self._end.add(fact(Evidence.NOT_JUDGED, said=repr(fault)))
        end_record.write_end(self._at, self._end, judging.Judged(judging.uncounted(fault), Completeness.NONE))


def why_not_started(failure: str, log: str) -> Fact | None:
    """What a script wrote when it gave up, with the line of its output that explains it best. None if it did not."""
    found = evidence.of_script(files.read_text(failure))
    if found is None:
        return None
    if found.code == Evidence.COULD_NOT_RUN:
        return fact(Evidence.COULD_NOT_RUN, **found.fields, **_why_not_run(found, log))
    lines = _said(log)
    if found.code == Evidence.SETUP_FAILED and lines:
        telling = [line for line in lines if _TROUBLE.search(line)]
        return fact(Evidence.SETUP_FAILED, **found.fields, said=(telling or lines)[-1])
    return found


def _said(log: str) -> list[str]:
    """The last lines of a log, without the prefixes of bash."""
    lines = (line.strip() for line in files.log_lines(log))
    return [re.sub(r"^(/.*?)?session\.sh: (line [0-9]+: )?(exec: )?", "", line) for line in lines if line]


def _why_not_run(found: Fact, log: str) -> dict[str, str]:
    """The message of bash, unless the missing file is the interpreter that a script names."""
    program, folder = found.text("program"), found.text("folder")
    try:
        with open(os.path.join(folder, program), "rb") as file:
            first = file.readline(256).decode("utf-8", "replace")
    except OSError:
        first = ""
    interpreter = first[2:].rstrip("\n").lstrip().split(" ")[0] if first.startswith("#!") else ""
    if interpreter and not os.access(interpreter, os.X_OK):
        return {"interpreter": interpreter}
    lines = [line for line in _said(log) if line.startswith((program, os.path.normpath(os.path.join(folder, program))))]
    return {"said": lines[-1].rpartition(": ")[2]} if lines else {}


def why_no_container(log: str, runtime: str, code: int) -> Fact | None:
    """Explains an exit code of the runtime itself, with its message; None for a code of the program."""
    if (runtime, code) not in _OF_RUNTIME:
        return None
    lines = files.log_lines(log)
    said = [line for line in lines if line.startswith(_SAYS[runtime])]
    if runtime == "apptainer" and not said:
        return None
    said = said or [line for line in lines if line.strip()]
    return fact(Evidence.CONTAINER_FAILED, runtime=runtime, exit=code, said=said[-1] if said else None)


# Why it failed


def explain(attempt: Attempt, ending: Ending, records_made: int = 0) -> None:
    """Write into an ending why the attempt failed: cause, class from its log, facts."""
    served = bool(attempt.grant.get("served_by") or attempt.data.get("servers"))
    ended = signatures.Ended(records=records_made, killed=ending.cause == "signal", served=served)
    failure, line, slow = failure_in_log(attempt, ended)
    host_knows = True
    if ending.cause in _ENDED_BY_ITSELF:
        host_knows = _killed_for_memory(attempt, ending) or _disk_full(attempt, ending)
    if not host_knows:
        ending.signature = failure
        known = failures.named(failure)
        ending.cause = known.cause.value if known and known.cause else ending.cause
    if attempt.grant.get("served_by"):
        _blame_server(attempt, ending)
    ours = line.startswith("KeyboardInterrupt") and ending.cause not in _ENDED_BY_ITSELF  # the answer to our signal
    ending.add(fact(Evidence.LOG_SAYS, said=line) if line and not ours else None)
    ending.add(_limits(failure))
    ending.add(fact(Evidence.PATTERNS_SLOW) if slow else None)


def _limits(failure: str) -> Fact | None:
    """What this host allows, where the log says that this was not enough."""
    if failure == failures.Failure.SHARED_MEMORY:
        size, free = machine.disk_kib("/dev/shm")  # noqa: S108 - nothing is written
        room = {} if size is None or free is None else {"mib": size >> 10, "free_mib": free >> 10}
        return fact(Evidence.SHARED_MEMORY_SMALL, **room)
    if failure == failures.Failure.HOST_LIMIT:
        kinds = {"files": resource.RLIMIT_NOFILE, "processes": resource.RLIMIT_NPROC}
        limits = {name: resource.getrlimit(kind)[0] for name, kind in kinds.items()}
        return fact(
            Evidence.HOST_LIMITS, **{name: one for name, one in limits.items() if one != resource.RLIM_INFINITY}
        )
    return None


def failure_in_log(attempt: Attempt, ended: signatures.Ended) -> tuple[str, str, bool]:
    """The class that the end of its log shows, with the line; and whether the grid's patterns take too long."""
    own = [(failure, pattern) for failure, pattern in attempt.data.get("signatures", ())]
    lines = files.log_lines(attempt.at.log, patterns.LONGEST_LINE)
    try:
        with CpuLimit(_SEARCH_S):
            counted = counting.Counted(attempt.data.get("progress", ""), attempt.count)
            lines = lines[counted.advanced([line[: counting.LONGEST_LINE] for line in lines]) :]
            return *signatures.find(lines, own, ended), False
    except TimeoutError:
        return *signatures.find(lines, (), ended), True


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
    def _late(*_: object) -> None:
        raise TimeoutError


def _killed_for_memory(attempt: Attempt, ending: Ending) -> bool:
    """Whether the kernel killed it for memory: its count has grown, and the exit code is that of KILL."""
    killed, where = machine.kills_since(attempt.kills)
    if not killed:
        return False
    available = machine.memory_kib()[1]
    ending.add(fact(Evidence.KILLED_FOR_MEMORY, where=where, count=killed, available_kib=available))
    if ending.signal == signal.SIGKILL:
        ending.cause = "host_memory"
    return ending.cause == "host_memory"


def _disk_full(attempt: Attempt, ending: Ending) -> bool:
    """Whether less than a buffer is free where it writes."""
    free = machine.disk_kib(attempt.at.output)[1]
    if free is None or free >= _LEAST_FREE_KIB:
        return False
    ending.cause = "disk_full"
    ending.add(fact(Evidence.OUTPUT_DISK_FULL, free_kib=free))
    return True


def _blame_server(attempt: Attempt, ending: Ending) -> None:
    """A lost model server explains any failure."""
    run, served_by = attempt.run_layout.directory, attempt.grant["served_by"]
    if ending.cause not in {*_ENDED_BY_ITSELF, "server_lost", "stalled", "hung"}:
        return
    lost = clients.lost(run, served_by)
    if not lost and ending.cause not in {"stalled", "hung"} and ending.signature in {"", "server_lost"}:
        lost = clients.silent(run, served_by, attempt.timing.answer_s)
    if lost:
        ending.cause = ending.signature = "server_lost"
        ending.add(lost)
    elif ending.signature == "server_lost" and clients.are_ready(run, served_by):  # its log says so, perhaps of a proxy
        ending.cause, ending.signature = "exited" if ending.signal is None else "signal", ""
        ending.add(fact(Evidence.SERVER_ANSWERS, servers=served_by.split()))
