"""`settle RUN`: one pass over a run on Slurm: ends lost attempts, decides as the dispatcher does, submits due sessions.

When all sessions have ended, it runs `after` and records that the run is done. No process lives as long as the run. So
this one runs as a small job after an array, in a task whose session failed or was the last, and within `start` for a
launch or a resume. It is safe to repeat, anywhere, at any time.

    0: nothing is left to do for now    64: usage    66: no run directory    69: no sbatch here    73: can't write there
    75: Slurm does not answer, or another pass is under way    78: a secret is missing, or Slurm refuses
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping

from comborun.host.dispatch.run_policy import RunPolicy
from comborun.host.dispatch.run_state import RunState
from comborun.host.dispatch.sessions import Known
from comborun.host.engines.arrays import Arrays, Lock
from comborun.host.engines.slurm import Slurm, task_of
from comborun.host.record import recounts, secrets
from comborun.host.record.queue import DROPPED, rows
from comborun.host.record.run_directory import RunDirectory
from comborun.host.supervise.task import settle_s
from comborun.host.system import files
from comborun.host.system.children import host_program
from comborun.host.system.files import TABLE_MOST, Json
from comborun.host.system.process import setting
from comborun.host.verb_errors import BUSY, CONFIG, LACKING, Refusal, answer, must_write, run_directory
from comborun.rules import slurm
from comborun.rules.endings.evidence import Evidence, MissingResource, fact
from comborun.rules.events import Kind
from comborun.rules.facts import fact_in
from comborun.rules.findings import Found
from comborun.rules.holds import TaskLeft
from comborun.rules.host import Denial
from comborun.rules.names import AFTER
from comborun.rules.slurm import PENDING
from comborun.rules.vocabulary import Life

_AGAIN_S = 300
"""seconds after which another settle job looks at sessions that run though Slurm has forgotten them"""


class Session(Known):
    """A session of a run on Slurm; `life` is a word of rules/slurm.py."""

    def __init__(self, name: str, flag: str) -> None:
        super().__init__(name, flag)
        self.life = Life.QUEUED
        self.record: Json = {}
        """the end of its latest attempt"""
        self.task = ""
        """the task of its next attempt, if one was submitted; of its latest one if that is lost"""
        self.due = False
        """whether it must be submitted"""
        self.wait_s = 0

    @property
    def over(self) -> bool:
        return self.life == Life.ENDED and not self.due

    @property
    def end(self) -> Json:
        return self.record


class Settling:
    """One pass over a whole run, under its lock."""

    def __init__(self, run: str, person: bool) -> None:
        self.run = RunState(RunDirectory(run))
        self.policy = RunPolicy(self.run)
        self.layout, self.attempts = self.run.layout, self.run.attempts
        self.attempts.backend = self.cluster = Slurm(self.layout)
        self.lock = Lock(f"{self.layout.dispatch}/slurm.lock")
        self.arrays = Arrays(self.cluster, self.lock)
        self.person = person
        self.sessions: dict[str, Session] = {}

    def work(self) -> None:
        """Raises Refusal."""
        self.run.read()
        self.policy.read()
        if not self.look() and (self.person or self.left):
            raise self._silent()
        self._cancel_spent()
        hold = self.run.look_at_hold()
        if self.person and hold.kind:
            print(hold.told(self.layout))
            return
        if self.person:
            self._release()
        if not in_array():  # a task would hold its GPUs during that time
            self._finalize_missing()
        self._tell()
        self._decide()
        self._submit()
        if not self.left:
            self._end()
        strays = any(session.life == Life.STRAY for session in self.sessions.values())
        if strays and len(self.cluster.settlers) <= in_settle_job():
            self.arrays.settle(f"--begin=now+{_AGAIN_S}")  # no other process looks after them

    # Looking

    def look(self) -> bool:
        """Find the state of all sessions; False if Slurm does not answer."""
        answered = self.cluster.ask()
        self.sessions = {row.name: Session(row.name, row.flag) for row in rows(self.layout.queue)}
        sent: dict[str, int] = {}
        for task in self.cluster.tasks.values():
            sent[task.session] = max(task.attempt, sent.get(task.session, 0))
        submitted = self._submitted()
        for session in self.sessions.values():
            self._place(session, sent.get(session.name, 0), submitted)
        self._decide()
        return answered

    def _place(self, session: Session, sent: int, submitted: Mapping[tuple[str, int], str]) -> None:
        number = session.attempt = self.attempts.latest(session.name)
        life, record = Life.QUEUED, {}
        if number:
            seen = self.attempts.look(session.name, number)
            life, record = seen.life, seen.record
        session.record = record if life == Life.ENDED else {}
        made_by = task_of(record)
        next_task = submitted.get((session.name, number + 1), "")
        at = self.attempts.at(session.name, number)
        facts = {
            "forgot": number > 0 and life != Life.ENDED and self.cluster.forgot(at, record),
            "restarts": made_by in self.cluster.tasks,
            "sent": sent > number,
            "submitted": bool(next_task),
        }
        session.life = slurm.life(life, session.end.get("cause", ""), {fact for fact, so in facts.items() if so})
        if session.life == Life.GONE and session.flag == DROPPED:  # it will leave
            session.life = Life.ENDED if session.end else Life.QUEUED
        session.task = made_by if session.life == Life.LOST else next_task

    def _submitted(self) -> dict[tuple[str, int], str]:
        """The last task that was submitted for each attempt of each session."""
        found = {}
        for line in files.read_text(self.layout.jobs, TABLE_MOST).splitlines():
            job, batch = line.split("\t")[:2]
            if job.isdigit() and batch != "0":
                found.update({row: f"{job}_{index}" for index, row in self.cluster.batch(batch).items()})
        return found

    @property
    def left(self) -> int:
        """The number of sessions that have not ended for good."""
        return sum(not session.over for session in self.sessions.values() if session.flag != DROPPED)

    # Repairs

    def _cancel_spent(self) -> None:
        """Cancel tasks that wait although their attempt has ended for good.

        A controller that was killed may requeue and hold them, and a settle job that waits for them would wait for
        ever.
        """
        waiting = [(task, self.sessions.get(task.session)) for task in self.cluster.waiting()]
        spent = [task.id for task, one in waiting if one and one.life == Life.ENDED and task.attempt <= one.attempt]
        self.cluster.cancel(spent, f"--state={PENDING}")  # only tasks that still wait

    def _release(self) -> None:
        """Release tasks that Slurm holds, since a user wants the run to go on."""
        if not any(task.held for task in [*self.cluster.tasks.values(), *self.cluster.settlers]):
            return
        if refusal := self.cluster.release():
            raise Refusal(BUSY, Denial.SLURM_HOLDS, said=refusal)
        print("Slurm holds no task any more")

    def _finalize_missing(self) -> None:
        """Write the end of attempts without a task and without an end, when no node's cache can hide their files any
        more.
        """
        lives = [Life.LOST] if self.person else [Life.LOST, Life.STRAY, Life.GONE]  # a person's order submits GONE ones
        missing = [session.name for session in self.sessions.values() if session.life in lives]
        if not missing:
            return
        print(f"no task and no end: {' '.join(missing)}; looking again in {settle_s():g} s", flush=True)
        time.sleep(settle_s())
        if not self.look():
            raise self._silent()
        reading = recounts.Deadline(recounts.LOST_S)
        for session in [session for session in self.sessions.values() if session.life == Life.LOST]:
            self.run.events.write(Kind.LOST, session.name, session.attempt)
            self.attempts.finalize_lost(session.name, session.attempt, reading.left)
            self._ended(session)
        if not self.person and not self.run.holds.look().kind:
            for session in self.sessions.values():
                if session.life == Life.GONE:
                    self._end_gone(session)
        self._decide()

    def _end_gone(self, session: Session) -> None:
        """End a session whose task is over and claimed nothing."""
        number = session.attempt + 1
        output = self.cluster.output(session.task)
        said = files.read_text(output, TABLE_MOST).replace("\0", "").rstrip().split("\n")
        if not os.path.exists(output):
            cause, reason = "stopped", fact(Evidence.TASK_CANCELLED)
        elif any(left.code in (TaskLeft.HELD, TaskLeft.STOPPED) for left in map(fact_in, said) if left):
            session.life = Life.QUEUED  # it left because of a hold that is over
            return
        else:
            cause, reason = "launch_failed", fact(Evidence.TASK_ENDED_EARLY, said=said[-1])
        if self.attempts.cancel_unstarted(session.name, number, cause, reason):
            session.attempt = number
            self._ended(session)

    def _ended(self, session: Session) -> None:
        session.record = self.attempts.end(session.name, session.attempt)
        session.life = Life.ENDED if session.end else session.life

    # Deciding

    def _decide(self) -> None:
        for session in self.sessions.values():
            due = session.life == Life.QUEUED or (session.life == Life.GONE and self.person)
            follows = self.policy.follows(session, self.person) if session.life == Life.ENDED else None
            session.due = (due or follows is not None) and session.flag != DROPPED
            session.wait_s = int(-(-follows.wait_s // 1)) if follows else 0

    def _tell(self) -> None:
        """Report ends that no earlier pass has reported; then fail-fast."""
        self.policy.report_new_ends(self.sessions.values())
        if why := self.policy.too_many_failed(self.sessions.values()):
            self.run.halt(why)
        self.run.notices.flush()

    # Doing

    def _submit(self) -> None:
        self.policy.judge_smoke(self.sessions.values())
        due = [session for session in self.sessions.values() if session.due and not self.policy.smoke_first(session)]
        if self.run.holds.look().kind:
            due = []
        if due:
            files.remove(self.layout.done)
            self.arrays.submit((session.name, session.attempt + 1, session.wait_s) for session in due)
            self.run.events.write(Kind.SUBMITTED, sessions=self.arrays.sent, jobs=self.arrays.jobs)
            print(f"submitted {self.arrays.sent} of {len(due)} sessions: job {' '.join(self.arrays.jobs) or 'none'}")
            self._must_take()
        elif self.person and self.left:
            print(f"{self.left} sessions are on their way; nothing else is due")
        self.arrays.share()

    def _must_take(self) -> None:
        if self.arrays.complaint:
            raise Refusal(CONFIG, Denial.SLURM_REFUSES, said=self.arrays.complaint)

    def _end(self) -> None:
        """Finish the run: all sessions have ended for good."""
        sessions = self.sessions.values()
        self.policy.link_results(sessions)
        if self.policy.wants_after(sessions):
            files.remove(self.layout.done)  # it is written again after another `after`
            if not self._after():
                return
        secrets.forget(self.layout)
        if os.path.exists(self.layout.done):
            if self.person:
                print("nothing is left to do")
            return
        must_write(self.policy.record_done(sessions), self.layout.done)
        self.policy.report_done(sessions)

    def _after(self) -> bool:
        """Run `after` in its own job; False if it is not over yet."""
        number = self.attempts.latest(AFTER)
        life = self.attempts.look(AFTER, number).life if number else Life.QUEUED
        if life not in (Life.QUEUED, Life.ENDED, Life.LOST):
            return False  # another settle job does it
        if life == Life.LOST:
            self.attempts.finalize_lost(AFTER, number, recounts.LOST_S)
        if not in_settle_job():
            job = "" if self.cluster.settlers else self.arrays.settle()
            self._must_take()
            if self.person:
                print(f"all sessions have ended; {f'job {job}' if job else 'a job that is there'} ends the run")
            return False
        self.lock.give()
        words = host_program(self.layout, "session", AFTER, number + 1, "slurm")
        subprocess.run(words, stdin=subprocess.DEVNULL, check=False)
        self.lock.take(120)
        return True

    def _silent(self) -> Refusal:
        return Refusal(BUSY, Denial.SLURM_SILENT, said=self.cluster.silence and self.cluster.silence.as_data())


def in_array() -> bool:
    """Whether this runs in a task of an array, which holds its session's resources."""
    return "SLURM_ARRAY_JOB_ID" in os.environ


def in_settle_job() -> bool:
    return "SLURM_JOB_ID" in os.environ and not in_array()


def _prepare(settling: Settling, given: Mapping[str, str]) -> None:
    """Apply the options and secrets of a launch or a resume. Raises Refusal."""
    layout = settling.layout
    if not shutil.which("sbatch"):
        raise Refusal(LACKING, Found.PROGRAMS_MISSING, programs=["sbatch"])
    try:
        secrets.gather(layout, sys.stdin.buffer.read() if "--secrets" in given else None)
    except MissingResource as missing:
        raise Refusal(CONFIG, missing.reason) from None
    os.makedirs(layout.task_outputs, exist_ok=True)
    if "--parallel" in given:
        must_write(files.write_text(layout.slots, given["--parallel"] + "\n"), layout.dispatch)


def settle(run: str, given: Mapping[str, str] | None = None) -> int:
    """Run one pass; `given`: the options of a user's launch or resume. Raises Refusal."""
    os.environ.pop("COMBORUN_SESSION", None)
    os.chdir(run)
    settling = Settling(run, person=given is not None)
    if given is not None:
        _prepare(settling, given)
    if not settling.lock.take(setting("COMBORUN_LOCK_S", 60.0)):
        raise Refusal(BUSY, Denial.LOCK_HELD, lock=settling.lock.path)
    try:
        if settling.person:
            files.remove(settling.layout.stopped)
        elif os.path.exists(settling.layout.stopped):
            return 0
        settling.work()
    finally:
        settling.lock.give()
        for child in settling.run.notices.children:  # they would end with this job
            while child.poll() is None:
                time.sleep(0.1)
    return 0


def main(arguments: list[str]) -> int:
    return answer("settle", lambda words: settle(run_directory(words)), arguments)
