"""Submits sessions to Slurm as arrays with one session per task, and the small settle job that follows.

Before each sbatch its batch is written and an intent is in slurm/jobs. The name of the job ends with the batch, so
that the job of a submission that was killed is found. slurm/jobs has a line for each: JOB BATCH KIND TASKS TIME,
between TABs; JOB is - for an intent, KIND is settle for a settle job.
"""

from __future__ import annotations

import contextlib
import os
import re
import time
from collections.abc import Iterable, Sequence

from comborun.host.engines.slurm import Slurm
from comborun.host.system import files, process
from comborun.rules import records, slurm, slurm_variables
from comborun.rules.facts import Fact
from comborun.rules.machines import elsewhere
from comborun.rules.names import RunLayout
from comborun.rules.slurm import PENDING, SETTLE, Task

STALE_S = 300.0
"""seconds; a lock that was not renewed for so long has no holder"""
_PAUSE_S = 0.2
_PATIENCE_S = 120.0
_MOST_TASKS = 5000
_USUAL_TASKS = 1000
_OURS = ("CUDA_VISIBLE_DEVICES", "GPU_DEVICE_ORDINAL", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK")


class Lock:
    """A lock that works across nodes, unlike flock: one submission or settling of a run at a time.

    It saves work and keeps the events in order. The claims, not this lock, prevent that something runs twice. So the
    lock of a dead holder may be removed.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._own: dict[str, str] = {}

    def take(self, wait_s: float) -> bool:
        """Take the lock; False if another process holds it for `wait_s`. Raises OSError if nothing can be written."""
        own = process.identity()
        deadline = time.monotonic() + wait_s
        while not files.create(self.path, records.render(own.items())):
            if self._stale():
                files.remove(self.path)
            elif time.monotonic() >= deadline:
                return False
            else:
                time.sleep(_PAUSE_S)
        self._own = own
        return True

    def renew(self) -> None:
        """Show that the holder lives, before work that may take minutes."""
        if self._own:
            with contextlib.suppress(OSError):
                os.utime(self.path)

    def give(self) -> None:
        if self._own and files.read(self.path) == self._own:
            files.remove(self.path)
        self._own = {}

    def _stale(self) -> bool:
        """Whether the holder is dead, or is on another machine and has not renewed the lock for too long."""
        holder = files.read(self.path)
        if holder.get("boot") == process.boot_id() and not elsewhere(holder, process.machine()):
            return not process.named(holder)
        clock = files.draft(self.path)  # only the file server's clock tells its age
        files.write_text(clock, "")
        age_s = (files.changed(clock) - files.changed(self.path)) / 1e9
        files.remove(clock)
        return age_s > STALE_S and files.read(self.path) == holder


class Arrays:
    """The arrays of a run. `jobs`, `sent` and `complaint` are the outcome of the last submission."""

    def __init__(self, cluster: Slurm, lock: Lock | None = None) -> None:
        self.cluster = cluster
        self.layout = cluster.layout
        self.jobs: list[str] = []
        self.sent = 0
        self.complaint = ""
        self._lock = lock
        self._policy = files.read(self.layout.policy)

    @property
    def places(self) -> int:
        """Tasks that may run at once; 0: no limit of ours."""
        return _number(files.read_line(self.layout.slots)) or _number(self._policy.get("slurm_parallel", ""))

    def submit(self, starts: Iterable[tuple[str, int, int]]) -> None:
        """Submit one array for all sessions with the same request and the same earliest start. `starts`: session,
        attempt, and the seconds before which it must not start.
        """
        kinds = files.read(self.layout.slurm_sessions)
        groups: dict[tuple[str, int], list[tuple[str, int]]] = {}
        for name, attempt, wait_s in starts:
            groups.setdefault((kinds.get(name, "1"), wait_s), []).append((name, attempt))
        most = _number(self._policy.get("slurm_array", "")) or self._array_size()
        for (kind, wait_s), group in groups.items():
            for first in range(0, len(group), most):
                self._array(kind, wait_s, group[first : first + most])
        for job in self.jobs:  # each leaves room for others when it ends; settling shares it
            self.settle(f"--dependency=afterany:{job}")

    def settle(self, *options: str) -> str:
        """Submit a settle job, to start at once unless the options say otherwise. Returns its number; empty if Slurm
        refuses.
        """
        named = f"--job-name={slurm.job_name(self.cluster.run_id, SETTLE)}"
        output = f"--output={self.cluster.output('%j')}"
        job = self._sbatch([*options, named, output], self.layout.settle)
        if job:
            self._note(job, "0", SETTLE, "1")
        return job

    def share(self) -> str:
        """Share the places out again, since ended tasks leave room. Returns why Slurm did not do it, or empty."""
        if not self.places:
            return ""
        arrays = self._live()
        return self._tell(dict(zip(arrays, slurm.shares(self.places, list(arrays.values())))))

    def _array(self, kind: str, wait_s: int, group: Sequence[tuple[str, int]]) -> None:
        number = 1 + max(map(int, self.cluster.batches()), default=0)  # never a number of an interrupted submission
        rows = {str(index): row for index, row in enumerate(group)}
        text = "".join(f"{index}\t{name}\t{attempt}\n" for index, (name, attempt) in rows.items())
        if not files.write_text(self.layout.batch(number), text):
            self.complaint = f"can't write {self.layout.batch(number)}"
            return
        self._note("-", str(number), kind, str(len(group)))
        throttle, options = self._room(len(group))
        options += [f"--begin=now+{wait_s}"] if wait_s else []
        name = slurm.job_name(self.cluster.run_id, str(number), group[0][0] if len(group) == 1 else "")
        named = (
            f"--array=0-{len(group) - 1}{throttle}",
            f"--job-name={name}",
            f"--output={self.cluster.output('%A_%a')}",
        )
        job = self._sbatch([*options, *named], self.layout.array(int(kind)), str(number))
        if not job:
            return
        self._note(job, str(number), kind, str(len(group)))
        self.jobs.append(job)
        self.sent += len(group)
        if throttle:
            files.append(self.layout.shares, f"{job} {throttle[1:]}\n")
        for index, row in rows.items():
            task = Task(f"{job}_{index}", PENDING, "", job, "", "", str(number), *row)
            self.cluster.tasks[task.id] = task

    def _room(self, tasks: int) -> tuple[str, list[str]]:
        """The throttle of a new array and its dependency, if places are limited; other arrays get smaller shares."""
        if not self.places:
            return "", []
        arrays = self._live()
        *others, share = slurm.shares(self.places, [*arrays.values(), tasks])
        self._tell(dict(zip(arrays, others)))
        running = [task.id for task in self.cluster.tasks.values() if task.state not in (PENDING, "COMPLETING")]
        turn = slurm.turn(self.places, list(arrays), running, share)
        return f"%{share}", [f"--dependency={turn}"] if turn else []

    def _live(self) -> dict[str, int]:
        """The arrays in Slurm, oldest first, with the number of tasks that each has left."""
        arrays = [task.array for task in self.cluster.tasks.values()]
        return {array: arrays.count(array) for array in sorted(set(arrays), key=int)}

    def _tell(self, shares: dict[str, int]) -> str:
        """Send changed shares to Slurm. Returns why it failed, or empty."""
        lines = [line.split() for line in files.read_text(self.layout.shares, 1 << 24).splitlines()]
        told = {words[0]: words[1] for words in lines if len(words) > 1}  # the last line of an array counts
        refusals = []
        for array, share in shares.items():
            if told.get(array) != str(share):
                refusal = self.cluster.order("scontrol", "update", f"jobid={array}", f"ArrayTaskThrottle={share}")
                if refusal:
                    refusals.append(refusal)
                else:
                    files.append(self.layout.shares, f"{array} {share}\n")
        return refusals[0] if refusals else ""

    def _sbatch(self, options: Sequence[str], script: str, *words: str) -> str:
        """Submit a job script; returns the number of the job. Empty if Slurm refuses: then `complaint` says why."""
        if self._lock:
            self._lock.renew()
        given = slurm_variables.options_of(files.read_text(script))
        variables, settle = files.read(self.layout.slurm_variables), script == self.layout.settle
        added = slurm_variables.standing(variables, given, settle=settle)
        common = ("--parsable", f"--chdir={self._run}", "--open-mode=append", "--requeue", *given, *added)
        command = ("sbatch", *common, *options, script, self._run, *words)
        code, answer, said = self.cluster.command(*command, patience_s=_PATIENCE_S, environment=_environment())
        job = answer.partition(";")[0].strip()  # the name of the cluster may follow
        if code == 0 and re.fullmatch("[1-9][0-9]*", job):
            return job
        self.complaint = records.clean(" ".join(said.strip().splitlines()[-3:])) or "sbatch gave no answer"
        return ""

    def _note(self, *words: str) -> None:
        files.append(self.layout.jobs, "\t".join([*words, f"{time.time():.6f}"]) + "\n")

    @property
    def _run(self) -> str:
        return self.layout.directory

    def _array_size(self) -> int:
        _, config, _ = self.cluster.command("scontrol", "show", "config")
        found = re.search(r"^MaxArraySize\s*=\s*([0-9]{1,9})", config, re.MULTILINE)
        size = int(found.group(1)) - 1 if found else 0
        return size if 0 < size < _MOST_TASKS else _USUAL_TASKS


def take_variables(layout: RunLayout) -> list[Fact]:
    """Record the variables of a person's shell that count for the tasks of a run; returns what becomes of each."""
    ours = {name: value for name, value in os.environ.items() if name.startswith("SBATCH_")}
    before = files.read(layout.slurm_variables)
    if ours != before and not files.write(layout.slurm_variables, ours.items()):
        return []
    kinds = [files.read_text(layout.array(int(kind))) for kind in set(files.read(layout.slurm_sessions).values())]
    found = [fact for text in kinds for fact in slurm_variables.facts(ours, slurm_variables.options_of(text))]
    return [fact for place, fact in enumerate(found) if fact not in found[:place]]


def follow_command(cluster: Slurm, verb: str, names: Iterable[str]) -> str:
    """Apply a user's command to tasks that wait in Slurm. Returns a sentence if Slurm does not do it.

    The command is on record already, and a task that starts reads it.
    """
    refusal = ""
    if verb in ("pause", "drain"):
        refusal = cluster.hold()
    elif verb == "resume":
        refusal = cluster.release()
    elif verb == "slots":
        refusal = Arrays(cluster).share()
    elif verb == "decided":
        refusal = cluster.cancel_waiting(names)
    if cluster.gave_up:
        return "Slurm does not answer; tasks that come to their turn find this by themselves"
    return f"Slurm refuses: {refusal}" if refusal else ""


def _environment() -> dict[str, str]:
    """The environment without the GPUs of the present job, which would mislead the new one."""
    inside = "SLURM_JOB_ID" in os.environ
    return {name: value for name, value in os.environ.items() if not (inside and name in _OURS)}


def _number(text: str) -> int:
    return int(text) if re.fullmatch("[1-9][0-9]{0,5}", text) else 0
