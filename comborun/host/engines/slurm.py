"""The states of a run's sessions in Slurm, from one squeue that is kept in slurm/states with its time; and orders.

While Slurm does not answer, its last answer stays. Pids of other nodes mean nothing here, and locks are not trusted
across nodes. An attempt counts as alive while Slurm runs its task, while Slurm does not answer, and
while its heartbeat is fresh, whatever Slurm says: a restarted controller may have forgotten what its nodes do.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping

from comborun.host.record import judging
from comborun.host.record.backend import Backend
from comborun.host.system import files, process
from comborun.host.system.process import setting
from comborun.rules import globs, records, slurm, slurm_variables
from comborun.rules.endings.evidence import Evidence, fact
from comborun.rules.facts import Fact
from comborun.rules.host import Silence
from comborun.rules.names import AttemptLayout, RunLayout, batch_number
from comborun.rules.slurm import PENDING, SETTLE, WAITING, Task
from comborun.rules.vocabulary import Life

_MOST = 1 << 26
"""bytes of a list of tasks"""
_OUTPUT = 1 << 16
_SILENT = "Slurm does not answer"
_NO_ANSWER = 124


class Slurm(Backend):
    """The tasks of a run, as far as known; `tasks` is from the last answer, without settle jobs."""

    elsewhere = True

    def __init__(self, layout: RunLayout) -> None:
        super().__init__(layout)
        self.run_id = files.read_line(layout.id)
        self.patience_s = setting("COMBORUN_SLURM_S", 10)
        self.young_s = setting("COMBORUN_ASK_S", 2)
        self.tasks: dict[str, Task] = {}
        self.settlers: list[Task] = []
        self.at: float | None = None
        """the time of the last answer"""
        self.silence: Fact | None = None
        """why Slurm does not answer; None while it does"""
        self.gave_up = False
        """whether this process got no answer; each further order would wait for one again"""
        self._clock: float | None = None
        self.load()

    def load(self) -> None:
        first, *lines = files.read_text(self.layout.states, _MOST).split("\n")
        self.at = records.seconds({"at": first}, "at")
        batches = {number: self.batch(number) for number in self.batches()}
        found = list(slurm.tasks_of(lines, self.run_id, batches))
        self.tasks = {task.id: task for task in found if task.session}
        self.settlers = [task for task in found if task.batch == SETTLE]
        self.silence = next(iter(records.facts(files.read(self.layout.silent))), None)

    def batches(self) -> list[str]:
        """The numbers of all batches, including those of submissions that were killed."""
        return [str(number) for number in map(batch_number, files.entries(self.layout.slurm)) if number]

    def batch(self, number: str) -> dict[str, tuple[str, int]]:
        return slurm.rows(files.read_text(self.layout.batch(int(number)), _MOST))

    # --- questions

    def ask(self) -> bool:
        """Ask Slurm for the tasks; False if it does not answer, or if the answer can't be recorded."""
        if not os.path.exists(self.layout.jobs):
            return True  # nothing was ever submitted
        at = time.time()
        whose = f"--user={','.join(self._users())}"
        code, answer, complaint = self.command("squeue", "-h", "-r", whose, "-o", slurm.FORMAT)
        if code:
            self.silence, self.gave_up = self._why_silent(code, complaint), True
            since = files.read(self.layout.silent).get("since") or f"{at:.6f}"
            files.write(self.layout.silent, [("since", since), ("asked", int(at)), (records.REASON, self.silence)])
            return False
        self.gave_up = False
        own = "".join(f"{line}\n" for line in answer.splitlines() if self.run_id in line)
        if not files.write_text(self.layout.states, f"{at:.6f}\n{own}"):
            return False
        files.remove(self.layout.silent)
        self.load()
        return True

    def _users(self) -> Iterator[str]:
        """Whose tasks these may be. squeue refuses a list with a user that it does not know."""
        yield str(os.getuid())
        owner = process.owner(self.layout.directory)
        if owner != "?" and not owner.isdecimal():
            yield owner

    def refresh(self) -> bool:
        """Ask, unless the last answer is recent, or Slurm was silent just now (each question would wait again).

        An answer from before the last submission is never recent.
        """
        now = time.time()
        if (
            self.at is not None
            and 0 <= now - self.at < self.young_s
            and not _newer(self.layout.jobs, self.layout.states)
        ):
            return True
        asked = records.integer(files.read(self.layout.silent), "asked")
        if self.young_s and asked is not None and 0 <= now - asked < self.patience_s:
            self.gave_up = True
            return False
        return self.ask()

    def command(
        self, *words: str, patience_s: float = 0, environment: Mapping[str, str] | None = None
    ) -> tuple[int, str, str]:
        """Exit code, output and error text of a command of Slurm, which may hang for long."""
        try:
            done = subprocess.run(
                words,
                stdin=subprocess.DEVNULL,
                capture_output=True,
                timeout=patience_s or self.patience_s,
                env=slurm_variables.harmless(os.environ if environment is None else environment),
                check=False,
            )
        except subprocess.TimeoutExpired:
            return _NO_ANSWER, "", ""
        except OSError as error:
            return 127, "", f"{words[0]}: {error.strerror}"
        return done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")

    def _why_silent(self, code: int, complaint: str) -> Fact:
        if code == _NO_ANSWER:
            return Fact(Silence.NO_ANSWER, seconds=self.patience_s)
        said = records.clean(complaint.strip().partition("\n")[0])
        return Fact(Silence.ANSWERED_WITH, said=said) if said else Fact(Silence.FAILED, program="squeue", exit=code)

    # --- the state of an attempt, for RunDirectory

    def life(self, at: AttemptLayout, record: Mapping[str, str]) -> Life:
        return Life.LOST if self.forgot(at, record) and self._silent_heart(at) else Life.RUNNING

    def forgot(self, at: AttemptLayout, record: Mapping[str, str]) -> bool:
        """Whether Slurm has no task that runs this attempt: it is gone, or waits to start again."""
        task = self.tasks.get(task_of(record))
        if not task_of(record):
            return True  # it was made without a task
        if _newer(at.claim, self.layout.states):
            return False  # the answer is older than its start
        return task.state in WAITING if task else self.at is not None and not self.silence

    def why(self, claim: Mapping[str, str], begin: Mapping[str, str]) -> tuple[str, list[Fact]]:  # noqa: ARG002 - of pids
        cause, reason = self.words(claim) or ("lost", fact(Evidence.TASK_GONE))
        return cause, [reason]

    def words(self, claim: Mapping[str, str]) -> tuple[str, Fact] | None:
        """Slurm's message about its end in the task's own output; not one about an earlier start."""
        output, before = self.output(task_of(claim)), records.integer(claim, "said") or 0
        end, _ = files.tail(output, min(_OUTPUT, max(0, files.size(output) - before)))
        return slurm.why(end.replace(b"\0", b"").decode("utf-8", "replace").splitlines()[-50:])

    def output(self, task: str) -> str:
        return f"{self.layout.task_outputs}/{task}"

    def _silent_heart(self, at: AttemptLayout) -> bool:
        """Whether its heartbeat is old, by the file server's clock. A heartbeat that cannot be read does not count as
        missing.
        """
        beat = at.heartbeat if os.path.exists(at.heartbeat) else at.claim
        files.read_line(beat)  # opening the file updates the node's cache
        try:
            return time.time() + self._ahead() - os.stat(beat).st_mtime >= setting("COMBORUN_HEART_S", 30)
        except OSError:
            return False

    def _ahead(self) -> float:
        """Seconds by which the file server's clock is ahead of this one; 0 if no file can be made."""
        if self._clock is None:
            clock = files.draft(f"{self.layout.slurm}/clock")
            before = time.time()
            self._clock = os.stat(clock).st_mtime - before if files.write_text(clock, "") else 0.0
            files.remove(clock)
        return self._clock

    def freeze(self, at: AttemptLayout) -> None:
        """Let readers see an attempt's output so far, and nothing that its process still writes.

        Each start writes into its own folder, `out-<nonce>`, to which `out` leads. Large files are linked. Files that
        are written line by line, by which it is judged, are copied, since a linked file would grow.
        """
        if os.path.islink(at.output) and os.readlink(at.output) != os.path.basename(at.frozen_output):
            _freeze(at)

    # --- for people and programs

    def document(self, latest: Callable[[str], int]) -> dict[str, object]:
        """With the tasks that are not done, each with the attempt that it makes or will make."""
        tasks = [
            {
                "session": task.session,
                "attempt": attempt,
                "job": task.id,
                "id": task.job,
                "state": task.state,
                "node": task.node,
                "start": _seconds(task.start),
                "reason": "" if task.reason == "None" else task.reason,
            }
            for task in self.tasks.values()
            for attempt in [self._attempt(task, latest(task.session))]
            if attempt
        ]
        scheduler = {"at": self.at, "answered": not self.gave_up, "reason": self.silence}
        return {"dispatcher": 0 if self.tasks or self.settlers else None, "scheduler": scheduler, "tasks": tasks}

    def _attempt(self, task: Task, latest: int) -> int:
        """The attempt that a task makes or will make; 0 if it has nothing left to do."""
        if latest < task.attempt:
            return task.attempt
        at = self.layout.attempt(task.session, latest)
        if task_of(files.read(at.claim)) != task.id:
            return 0
        if task.state in WAITING and not _newer(at.claim, self.layout.states):
            return latest + 1  # Slurm starts it again
        return 0 if os.path.exists(at.end) else latest

    def survivor(self, at: AttemptLayout) -> str:
        """With the command to end it: `task 12_7 on n1: scancel 12_7`."""
        claim = files.read(at.claim)
        task = task_of(claim)
        return f"task {task} on {claim.get('node') or 'a node'}: scancel {task}" if task else ""

    # --- orders

    def name_task(self, task: str, batch: str, session: str) -> None:
        """Show users a task under its session: until it starts, it has the name of its batch."""
        self.command("scontrol", "update", f"jobid={task}", f"name={slurm.job_name(self.run_id, batch, session)}")

    def order(self, *words: str) -> str:
        """Change tasks. Returns why it failed, or empty. A task that has already ended is not a failure."""
        if self.gave_up:
            return _SILENT
        code, _, said = self.command(*words)
        why = slurm.refusal(said) if code else ""
        if code == _NO_ANSWER or slurm.is_silence(why):
            self.gave_up, why = True, why or _SILENT
        return why

    def cancel(self, tasks: Iterable[str], *options: str) -> str:
        found = list(tasks)
        return self.order("scancel", *options, *found) if found else ""

    def waiting(self) -> list[Task]:
        return [task for task in self.tasks.values() if task.state == PENDING]

    def hold(self) -> str:
        """Hold waiting tasks. A task that Slurm starts nevertheless finds the run held and leaves."""
        arrays = sorted({task.array for task in self.waiting()})
        return self.order("scontrol", "hold", ",".join(arrays)) if arrays else ""

    def release(self) -> str:
        """Release held tasks, and settle jobs too: the end of the run may wait for one."""
        held = sorted(task.id for task in [*self.tasks.values(), *self.settlers] if task.held)
        return self.order("scontrol", "release", ",".join(held)) if held else ""

    def cancel_waiting(self, names: Iterable[str] | None) -> str:
        """Cancel waiting tasks of these sessions; with None all waiting tasks and the settle jobs."""
        wanted = None if names is None else set(names)
        found = [task.id for task in self.waiting() if wanted is None or task.session in wanted]
        return self.cancel([*found, *(task.id for task in self.settlers if wanted is None)])

    def call_off(self, names: Iterable[str] | None) -> str:
        if self.silence:
            return _SILENT
        self.cancel_waiting(names)
        return ""

    def signal(self, word: str, attempts: Iterable[AttemptLayout]) -> str:
        """To their supervisors, which also find attempt-N/stop by themselves."""
        claims = [files.read(at.claim) for at in attempts]
        options = () if word == "KILL" else ("--batch", f"--signal={word}")
        flaw = self.cancel(filter(None, map(task_of, claims)), *options)
        return f"Slurm does not pass it on ({flaw})" if flaw else ""

    def kill_supervisors(self, attempts: Iterable[AttemptLayout]) -> None:
        """KILL has ended whole tasks."""


def _freeze(at: AttemptLayout) -> None:
    """Point `out` to a folder that no process writes into; a second caller finds it made. Raises OSError."""
    out, copy = os.path.realpath(at.output), files.draft(at.frozen_output)
    shutil.rmtree(copy, ignore_errors=True)
    with contextlib.suppress(shutil.Error):  # for files that vanished meanwhile
        shutil.copytree(out, copy, symlinks=True, copy_function=_link)
    rules = judging.rules_of(at)
    for path in globs.found(out, [*rules.results.files, *rules.evidence_files]):
        if os.path.isfile(f"{out}/{path}") and os.path.realpath(f"{out}/{path}").startswith(f"{out}/"):
            files.remove(f"{copy}/{path}")
            shutil.copy2(f"{out}/{path}", f"{copy}/{path}")
    try:
        os.rename(copy, at.frozen_output)
    except OSError:
        shutil.rmtree(copy, ignore_errors=True)
    os.symlink(os.path.basename(at.frozen_output), f"{copy}.link")
    os.replace(f"{copy}.link", at.output)
    if os.path.exists(at.log):
        shutil.copy2(at.log, f"{copy}.log")
        os.replace(f"{copy}.log", at.log)


def _link(path: str, copy: str) -> str:
    try:
        os.link(path, copy, follow_symlinks=False)
    except OSError:
        shutil.copy2(path, copy, follow_symlinks=False)
    return copy


def task_of(record: Mapping[str, str]) -> str:
    """The task that makes an attempt, from its claim, its begin or its end."""
    found = record.get("job") or record.get("address", "")
    return found if found.replace("_", "", 1).isdigit() else ""


def _seconds(start: str) -> float | None:
    """A time as squeue writes it, in this host's time zone."""
    try:
        return time.mktime(time.strptime(start, "%Y-%m-%dT%H:%M:%S"))
    except (ValueError, OverflowError):
        return None


def _newer(path: str, other: str) -> bool:
    return files.changed(path) > files.changed(other)
