"""What a supervisor does after its command: free the slot, end remaining processes, judge, write the end."""

from __future__ import annotations

import os
import re
import signal
import time

from comborun.host import container, files, judging, process
from comborun.host.attempts import stopping
from comborun.host.process import setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from comborun.host.session import Supervisor

_START_S = 0.02
"""seconds in which the next session starts: writing an end meanwhile would take cores from it"""
_NO_BLAME = {"stopped", "launch_failed", "preempted"}
"""causes that the log can't explain further"""
_TROUBLE = re.compile("error|not ?found|no such|can.?not|can't|could not|unable|unknown|denied|fail", re.IGNORECASE)


def finish(of: Supervisor, code: int) -> None:
    """Report the free slot first, because another session may wait for it."""
    finishing = _Finishing(of, code)
    container.end(of.data.get("container", ""), of.marker)
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
    """The facts about one end."""

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
        if why := why or container.why(self._at.log, of.data.get("container", ""), end.code or 0):
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
            from comborun.host import causes

            if self._behind and self._grace:
                end.add(f"processes that it left behind were ended after {self._grace:g} s: {self._behind}")
            causes.explain(of, end, judged.counts.records)
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
    lines = [line for line in _said(log) if line.startswith(program)]
    return lines[-1].rpartition(": ")[2] if lines else "bash printed no reason"
