"""The states of a run's Slurm tasks, what they mean, and how slots are shared among arrays."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from comborun.rules.endings.evidence import Evidence, fact
from comborun.rules.facts import Fact
from comborun.rules.names import NAME
from comborun.rules.vocabulary import Life

FORMAT = "%i|%T|%N|%A|%S|%j|%r"
"""output format of squeue; a line becomes a Task"""
SETTLE = "settle"
"""name of the batch of settle jobs"""
PENDING = "PENDING"
WAITING = frozenset([PENDING, "REQUEUED", "REQUEUE_HOLD", "REQUEUE_FED", "SPECIAL_EXIT"])
"""states of a task that Slurm will start, or start again"""
REFUSED_START = ("launch failed requeued held", "job requeued in held state")
"""reasons that are sentences, with blanks or underscores depending on the version of Slurm"""
_HELD = frozenset(["JobHeldUser", "JobHeldAdmin", "JobHoldMaxRequeue", *REFUSED_START])

_TASK = re.compile(r"[0-9]+(_[0-9]+)?")
_BATCH = re.compile(r"settle|[1-9][0-9]{0,8}")
_MOST_TURNS = 50
"""most tasks that one dependency names"""


@dataclass
class Task:
    """A task of an array, or a settle job, from a line of squeue."""

    id: str
    state: str
    node: str
    job: str
    start: str
    reason: str
    batch: str
    session: str = ""
    """empty for a settle job, and for a task of no batch of this run"""
    attempt: int = 0

    @property
    def array(self) -> str:
        return self.id.partition("_")[0]

    @property
    def held(self) -> bool:
        return self.state == PENDING and is_held(self.reason)


def plain(reason: str) -> str:
    """A reason without brackets, and with blanks."""
    said = reason.strip("()")
    spaced = said.replace("_", " ")
    return spaced if spaced in REFUSED_START else said


def is_held(reason: str) -> bool:
    """Whether a task with this reason waits until a user releases it."""
    return plain(reason) in _HELD


def tasks_of(lines: Iterable[str], run_id: str, rows_of: Mapping[str, Mapping[str, tuple[str, int]]]) -> Iterator[Task]:
    """The tasks and settle jobs of a run; `rows_of` has the rows of each batch."""
    for line in lines:
        words = line.split("|", 6)
        if len(words) < 7 or not _TASK.fullmatch(words[0]) or not words[3].isdigit():
            continue
        name, _, batch = words[5].rpartition(".")
        if name.rpartition(".")[2] == run_id and _BATCH.fullmatch(batch) and re.fullmatch(r"[A-Z_]+", words[1]):
            index = words[0].partition("_")[2]
            session, attempt = rows_of.get(batch, {}).get(index, ("", 0))
            ident, state, node, job, start = words[:5]
            yield Task(ident, state, node, job, start, words[6], batch, session, attempt)


def job_name(run_id: str, batch: str, session: str = "") -> str:
    """The name of a batch in Slurm; that of a task once its session is known. Neither part has a dot."""
    return ".".join(filter(None, (session, run_id, batch)))


def rows(text: str) -> dict[str, tuple[str, int]]:
    """The rows of a batch: index -> session and attempt."""
    found = re.findall(f"^([0-9]{{1,9}})\t({NAME})\t([1-9][0-9]{{0,8}})$", text, re.MULTILINE)
    return {index: (name, int(attempt)) for index, name, attempt in found}


def life(attempt: Life, cause: str, facts: Collection[str]) -> Life:
    """The state of a session (QUEUED, SENT, GONE, RUNNING, STRAY, LOST or ENDED), by its latest attempt and Slurm's
    tasks.

    `attempt` is the state of that attempt by its files and its heartbeat (`queued` without one), `cause` the cause of
    its end. `facts` may hold `forgot`: Slurm has no task that runs it; `restarts`: Slurm will start its task again;
    `sent`: a task for the next attempt waits, or is about to begin; `submitted`: one was submitted before.
    """
    forgot = "forgot" in facts
    over = attempt == Life.LOST or (forgot and attempt != Life.ENDED) or cause in ("preempted", "lost")
    if over and "restarts" in facts:
        return Life.SENT
    if attempt in (Life.QUEUED, Life.ENDED):
        return Life.SENT if "sent" in facts else Life.GONE if "submitted" in facts else attempt
    return attempt if attempt == Life.LOST else Life.STRAY if forgot else Life.RUNNING


def why(output: Sequence[str]) -> tuple[str, Fact] | None:
    """Cause and fact of a task that Slurm ended, from the last lines of its output; None if they don't show it.

    slurmstepd writes them before it signals, so the controller need not be asked even if a thousand tasks end together.
    """
    for number in range(len(output) - 1, -1, -1):
        line = output[number]
        cause = _meaning(line) if "slurmstepd" in line else None
        before = output[number - 1] if number else ""
        if cause == "stopped" and "memory limit" in before.lower():  # the reason is in the line before
            cause, line = "host_memory", before
        if cause:
            said = (line.partition("error: ")[2] or line).strip("* ")
            return cause, fact(Evidence.SLURM_SAYS, said=said)
    return None


def _meaning(line: str) -> str | None:
    said = line.lower()
    for cause, marks in (
        ("host_memory", ("oom-kill", "oom_kill", "memory limit")),
        ("timed_out", ("due to time limit",)),
        ("preempted", ("due to preemption", "due to job requeue")),
        ("lost", ("due to node failure",)),
        ("stopped", ("cancelled at",)),
    ):
        if any(mark in said for mark in marks):
            return cause
    return None


_NO_REFUSAL = ("already finished", "already completing", "transitional state", "No error", "Invalid job id")


def refusal(said: str) -> str:
    """Why scontrol or scancel failed; empty if the tasks had already ended."""
    lines = (line.strip() for line in said.splitlines())
    return next((line for line in lines if line and not any(mark in line for mark in _NO_REFUSAL)), "")


def is_silence(complaint: str) -> bool:
    """Whether a message says that Slurm did not answer."""
    return any(mark in complaint for mark in ("Unable to contact", "timed out"))


def shares(places: int, live: Sequence[int]) -> list[int]:
    """How many tasks of each array may run at once; `live` has the tasks of each array, oldest first.

    The oldest arrays take as many as they can use, and each later one at least one. Slurm limits single arrays only,
    and each retry is an array of its own.
    """
    found, left = [], places
    for number, tasks in enumerate(live):
        after = len(live) - number - 1
        most = max(left - after, 1)
        found.append(most if after == 0 else min(most, max(tasks, 1)))
        left -= found[-1]
    return found


def turn(places: int, arrays: Sequence[str], running: Sequence[str], share: int) -> str:
    """The dependency of a new array; empty if it may start at once.

    No running task is ended for it. If there are as many arrays as places, it waits for the array that leaves it a
    place; else, while its share is not free, for any running task.
    """
    if len(arrays) >= places:
        return f"afterany:{arrays[len(arrays) - places]}"
    if running and places - len(running) < share:
        return "?".join(f"afterany:{task}" for task in running[:_MOST_TURNS])
    return ""
