"""`task RUN BATCH`: a task of an array: runs the session in the line of its index of slurm/batch-<BATCH>.tsv.

Slurm may start a task again while its earlier processes still live on a node that Slurm does not reach. So every start
makes a new attempt, and first closes an earlier one that is open.

    0: the end is on record, or the session need not run     64: no task of Slurm
    66: no run directory, or no such line    73: can't write there
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import sys
import time
from collections.abc import Sequence

from comborun.host.engines.slurm import Slurm
from comborun.host.record import attempt_lineage, end_record, judging
from comborun.host.record.holds import Holds
from comborun.host.record.queue import DROPPED, rows
from comborun.host.record.run_directory import RunDirectory
from comborun.host.supervise.attempt import Attempt, Place
from comborun.host.system import files
from comborun.host.system.children import host_program
from comborun.host.system.process import setting
from comborun.host.verb_errors import NO_RUN, USAGE, Refusal, answer, run_directory
from comborun.rules import records
from comborun.rules.endings.evidence import Evidence, fact
from comborun.rules.facts import Fact
from comborun.rules.holds import TaskLeft
from comborun.rules.host import Denial
from comborun.rules.names import RUN, RunLayout
from comborun.rules.vocabulary import Life, outcome_of

_OVER = ("succeeded", "cancelled", "not_needed")


class SlurmPlace(Place):
    """One start of a Slurm task. Raises LookupError outside a Slurm task."""

    def __init__(self, attempt: Attempt) -> None:
        self.attempts = RunDirectory(attempt.run_layout.directory)
        super().__init__(attempt, "slurm")
        self.node = os.environ.get("SLURMD_NODENAME") or self.node
        self.name = attempt.name
        self.number = attempt.number
        self.job = task_here()
        self.nonce = os.urandom(16).hex()
        self.output = f"{self.at.directory}/out-{self.nonce}"
        """the folder of this start; `out` leads to it"""
        self.shown = os.devnull
        self._cluster = Slurm(self.attempts.layout)
        self._said = files.size(self._cluster.output(self.job))
        self._heard = False

    def open(self) -> None:
        os.makedirs(self.at.directory, exist_ok=True)

    def grant(self) -> dict[str, str]:
        """The GPUs of the allocation, and the tail of episodes that earlier attempts have left."""
        given = os.environ.get("SLURM_JOB_GPUS", "")
        visible = os.environ.get("CUDA_VISIBLE_DEVICES", "") if given else ""
        gpus = visible if re.fullmatch("[0-9]+(,[0-9]+)*", visible) else ""  # names stay as Slurm has set them
        grant = {"gpus": gpus, "slurm_gpus": given, "node": self.node}
        tail = attempt_lineage.tail(self.attempts, self.name)
        return {**grant, "first": str(tail[0]), "count": str(tail[1])} if tail else grant

    def claim(self, fields: Sequence[tuple[str, object]]) -> bool:
        """If there is no room, the attempt has ended; so it has if the run was stopped after this task had looked: that
        stop saw no claim, and signals nobody.
        """
        facts = [("job", self.job), ("restart", restarts()), ("node", self.node), ("nonce", self.nonce)]
        facts.append(("said", self._said))  # bytes of Slurm's output about earlier starts
        if not files.create_whole(self.at.claim, records.render([*fields, *facts])):
            return False
        layout = self.attempts.layout
        if os.path.basename(layout.stopped) in files.entries(layout.dispatch):  # listing updates the node's cache
            self._close("stopped", fact(Evidence.CANCELLED, before="beginning"))
            return False
        if self._make_room():
            return True
        self._close("disk_full", fact(Evidence.CANNOT_WRITE, path=self.at.directory))
        raise OSError(f"can't write in {self.at.directory}")

    def _make_room(self) -> bool:
        try:
            os.mkdir(self.output)
            os.symlink(os.path.basename(self.output), self.at.output)
        except OSError:
            return False
        written = files.write(self.at.grant, self.grant().items()) and files.append(self.at.log, "")
        return written and end_record.reserve(self.at)

    def withdraw(self) -> None:
        self._close("launch_failed", fact(Evidence.NO_PROCESS))

    def _close(self, cause: str, reason: Fact) -> None:
        judged = judging.judge(self.at, None)
        ending = end_record.Ending(cause, reason)
        end_record.write_end(self.at, ending, judged, reserved=False)

    def address(self) -> str:
        return self.job

    def heartbeat(self) -> str:
        """Write the heartbeat. A stop normally sends a signal, so its mark counts only from the second look on."""
        with contextlib.suppress(OSError), open(self.at.heartbeat, "w") as file:
            file.write(f"{time.time():.6f}\n")
        names = files.entries(self.at.directory)  # listing updates the node's cache
        if "end" in names and files.read(self.at.end).get("nonce") == self.nonce:
            return "closed"
        if "stop" not in names:
            return ""
        mark = files.read(self.at.stop)
        if "signalled" not in mark:  # the stopping process is on another machine and can't be checked here
            files.write(self.at.stop, {**mark, "signalled": "1"}.items())
        before, self._heard = self._heard, True
        return "stop" if before else ""

    def why(self) -> tuple[str, Fact | None] | None:
        """Slurm's own message about this start, unless a user stops it."""
        if os.path.exists(self.at.stop):
            return "stopped", None
        return self._cluster.words({"job": self.job, "said": str(self._said)})

    def leave(self) -> None:
        """Settle at once if its end calls for another attempt, or if it is the last."""
        end = self.attempts.end(self.name, self.number)
        if end and (outcome_of(end) not in _OVER or self._is_last()):
            become(self.attempts.layout, "settle")

    def _is_last(self) -> bool:
        """Whether all other sessions have an end: the settle job may wait for a task that never starts again."""
        if "SLURM_ARRAY_JOB_ID" not in os.environ:
            return False
        names = [row.name for row in rows(self.attempts.layout.queue)]  # the last ones most likely have no end
        return all(self.attempts.end(name, self.attempts.latest(name)) for name in reversed(names))


def task_here() -> str:
    """The id of this task: `12_7`, or the number of a job without an array. Raises Refusal outside a job."""
    array, index = os.environ.get("SLURM_ARRAY_JOB_ID", ""), os.environ.get("SLURM_ARRAY_TASK_ID", "")
    found = f"{array}_{index}" if array else os.environ.get("SLURM_JOB_ID", "")
    if not re.fullmatch("[0-9]+(_[0-9]+)?", found):
        raise Refusal(USAGE, Denial.NO_TASK)
    return found


def restarts() -> int:
    """The number of earlier starts of this task."""
    return records.integer({"count": os.environ.get("SLURM_RESTART_COUNT", "")}, "count") or 0


def become(run: RunLayout, verb: str, *words: object) -> int:
    """Become another verb of the run's host program."""
    os.execv(sys.executable, host_program(run, verb, *words))


def main(arguments: list[str]) -> int:
    return answer("task", _task, arguments)


def _task(arguments: list[str]) -> int:
    for name in ("COMBORUN_SESSION", "TMUX", "TMUX_PANE", "STY"):
        os.environ.pop(name, None)
    if len(arguments) != 2 or not re.fullmatch("[1-9][0-9]{0,8}", arguments[1]):
        raise Refusal(USAGE, Denial.USAGE, usage="RUN BATCH")
    attempts = RunDirectory(run_directory(arguments))
    task = task_here()
    os.chdir(attempts.path)
    attempts.backend = cluster = Slurm(attempts.layout)
    index = task.partition("_")[2]
    row = _row(cluster, arguments[1], index)
    if not row:
        raise Refusal(NO_RUN, Denial.NO_LINE, path=RUN.batch(int(arguments[1])), line=index)
    name, planned = row
    attempt, why = 0, ""
    if fact := _kept_back(attempts, name):
        from comborun.words import say

        why = say(fact)
        sys.stdout.write(json.dumps(fact.as_data()) + "\n")  # settle reads it
    else:
        attempt, why = _attempt(attempts, name, planned, task)
    if why:
        sys.stdout.write(f"task: {name}: {why}\n")
        return 0
    cluster.name_task(task, arguments[1], name)
    return become(attempts.layout, "session", name, attempt, "slurm")


def _row(cluster: Slurm, number: str, index: str) -> tuple[str, int] | None:
    """The session and attempt of this task. Waits for a file that this node may not see yet."""
    deadline = time.monotonic() + settle_s()
    while True:
        cluster.batches()  # listing the folder updates the node's cache
        row = cluster.batch(number).get(index)
        if row and os.path.exists(cluster.layout.session(row[0])):
            return row
        if time.monotonic() >= deadline:
            return None
        time.sleep(1)


def settle_s() -> float:
    """Seconds after which a node's cache of a shared file system is out of date."""
    return setting("COMBORUN_SETTLE_S", 65.0)


def _kept_back(attempts: RunDirectory, name: str) -> Fact | None:
    """Why its session must not run any more, or not now; None if it may."""
    if os.path.exists(attempts.layout.stopped):
        return Fact(TaskLeft.STOPPED)
    held = Holds(attempts.layout).look()
    if held.kind:
        return Fact(TaskLeft.HELD, hold=held.kind, reason=held.reason.as_data() if held.reason else held.why)
    dropped = any(row.name == name and row.flag == DROPPED for row in rows(attempts.layout.queue))
    return Fact(TaskLeft.DROPPED) if dropped else None


def _attempt(attempts: RunDirectory, name: str, planned: int, task: str) -> tuple[int, str]:
    """The attempt to make, or why there is none; closes the attempt of an earlier start."""
    latest = attempts.latest(name)
    if latest < planned:
        return planned, ""
    claim = files.read(attempts.at(name, latest).claim)
    if claim.get("job") != task:
        return 0, f"attempt {latest} was made by {claim.get('job') or 'another'}"
    if (records.integer(claim, "restart") or 0) >= restarts():
        return 0, f"attempt {latest} was made by this start, or a later one"
    if attempts.glance(name, latest).life != Life.ENDED:
        attempts.finalize_lost(name, latest)
    if not _goes_on(attempts, name, latest):
        return 0, f"attempt {latest} has ended for good"
    return latest + 1, ""


def _goes_on(attempts: RunDirectory, name: str, latest: int) -> bool:
    """Whether a new start of the task must make another attempt."""
    end = attempts.end(name, latest)
    if not end or os.path.exists(attempts.at(name, latest).stop) or outcome_of(end) in _OVER:
        return False
    return end.get("cause") in ("preempted", "lost") or attempts.follows(name, latest) is not None
