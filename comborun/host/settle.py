"""`settle RUN [--person] [--parallel N] [--secrets -]`: what the ends of tasks leave to do, in a run on Slurm.

Look at the files and at what Slurm has; end what nobody will end; decide by the rules of the dispatcher; submit what
is due; when all have ended, run `after` and record that the run is done. No process lives as long as the run. This one
runs as a small job when an array is over, in a task whose session failed or was the last, after a person's word, and
with --person for a launch or a resume. Safe to repeat, anywhere, at any time.

    0: nothing is left to do for now    64: usage    66: no run directory    69: no sbatch here    73: can't write there
    75: Slurm does not answer, or somebody else does it just now    78: a secret is missing, or Slurm refuses
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time

from comborun.host import files, secrets
from comborun.host.attempts import RunDirectory, outcome_of
from comborun.host.engines.arrays import Arrays, Due
from comborun.host.engines.slurm import Slurm, task_of
from comborun.host.holds import Holds
from comborun.host.link import Lock
from comborun.host.notices import Notices
from comborun.host.queue import DROPPED, SMOKE, rows
from comborun.host.refusal import BUSY, CANT_WRITE, CONFIG, LACKING, USAGE, Refusal, answer, run_directory
from comborun.host.task import HELD, settle_s
from comborun.rules import fail_fast, notices
from comborun.rules.breaker import Breaker
from comborun.rules.names import AFTER
from comborun.rules.slurm import ENDED, GONE, LOST, PENDING, QUEUED, STRAY, Standing

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_MOST = 1 << 26
_AGAIN_S = 300
"""after so long another settle job looks after what lives though Slurm has forgotten it"""
_COUNTED = ("succeeded", "partial", "failed", "cancelled", "lost", "not_needed")


class Session:
    """A row of queue.tsv, and where its latest attempt is in its life (rules/slurm.py has the words)."""

    __slots__ = ("attempt", "due", "end", "flag", "life", "name", "task", "wait_s")

    def __init__(self, name: str, flag: str) -> None:
        self.name = name
        self.flag = flag
        self.attempt = 0
        self.life = QUEUED
        self.end: Mapping[str, str] = {}
        self.task = ""
        """of its next attempt, where one was ever submitted; of its latest one where that is lost"""
        self.due = False
        """it is to be submitted"""
        self.wait_s = 0

    @property
    def over(self) -> bool:
        return self.life == ENDED and not self.due

    @property
    def outcome(self) -> str:
        return word(self.end)


class Settling:
    """One pass over a whole run, under its lock."""

    def __init__(self, run: str, person: bool) -> None:
        self.attempts = RunDirectory(run)
        self.layout = self.attempts.layout
        self.attempts.nodes = self.cluster = Slurm(self.layout)
        self.lock = Lock(f"{self.layout.dispatch}/slurm.lock")
        self.arrays = Arrays(self.cluster, self.lock)
        self.notices = Notices(self.attempts, self.journal)
        self.holds = Holds(self.layout)
        self.person = person
        self.sessions: dict[str, Session] = {}

    def work(self) -> None:
        """Raises Refusal."""
        if not self.look() and (self.person or self.left()):
            raise self._silent()
        self._clear()
        hold = self.holds.look()
        if self.person and hold.kind:
            print(f"the run is {hold.kind} ({hold.why}). What lets it go on: bash {self.layout.front} resume")
            return
        if self.person:
            self._release()
        if not in_array():  # a task would hold its GPUs meanwhile
            self._missing()
        self._tell()
        self._decide()
        self._submit()
        if not self.left():
            self._end()
        strays = any(session.life == STRAY for session in self.sessions.values())
        if strays and len(self.cluster.settlers) <= in_settle_job():
            self.arrays.settle(f"--begin=now+{_AGAIN_S}")  # nobody else would look after them

    # --- looking

    def look(self) -> bool:
        """Where all sessions are now; False when Slurm does not say what it has."""
        answered = self.cluster.ask()
        self.sessions = {
            row.name: Session(row.name, row.flag) for row in rows(files.read_text(self.layout.queue, _MOST))
        }
        coming: dict[str, int] = {}
        for task in self.cluster.tasks.values():
            coming[task.session] = max(task.attempt, coming.get(task.session, 0))
        handed = self._handed()
        for session in self.sessions.values():
            self._place(session, coming.get(session.name, 0), handed)
        self._decide()
        return answered

    def _place(self, session: Session, coming: int, handed: Mapping[tuple[str, int], str]) -> None:
        number = session.attempt = self.attempts.latest(session.name)
        life, record = QUEUED, {}
        if number:
            seen = self.attempts.look(session.name, number)
            life, record = seen.life, seen.record
        session.end = record if life == ENDED else {}
        made_by = task_of(record)
        at = self.attempts.at(session.name, number).directory
        standing = Standing(
            life=life,
            cause=session.end.get("cause", ""),
            forgot=number > 0 and life != ENDED and self.cluster.forgot(at, record),
            restarts=made_by in self.cluster.tasks,
            sent=coming > number,
            handed=(session.name, number + 1) in handed,
        )
        session.life = standing.word
        if session.life == GONE and session.flag == DROPPED:
            session.life = ENDED if session.end else QUEUED  # it leaves, for it is no part of the run any more
        session.task = made_by if session.life == LOST else handed.get((session.name, number + 1), "")

    def _handed(self) -> dict[tuple[str, int], str]:
        """The last task that was submitted for each attempt of each session."""
        found = {}
        for line in files.read_text(self.layout.jobs, _MOST).splitlines():
            job, batch = line.split("\t")[:2]
            if job.isdigit() and batch != "0":
                found.update({row: f"{job}_{index}" for index, row in self.cluster.batch(batch).items()})
        return found

    def kept(self) -> list[Session]:
        return [session for session in self.sessions.values() if session.flag != DROPPED]

    def left(self) -> int:
        """How many have not ended for good."""
        return sum(not session.over for session in self.kept())

    # --- what nobody else does

    def _clear(self) -> None:
        """Take back tasks that wait though their attempt has ended for good.

        A controller that was killed puts them back into the queue, held even, and a settle job that waits for them
        waits for ever.
        """
        spent = [
            task.id
            for task in self.cluster.waiting()
            for session in [self.sessions.get(task.session)]
            if session and session.life == ENDED and task.attempt <= session.attempt
        ]
        self.cluster.cancel(spent, f"--state={PENDING}")  # not one that starts just now

    def _release(self) -> None:
        """Let go what Slurm holds: a person asks for that, too."""
        held = [task for task in [*self.cluster.tasks.values(), *self.cluster.settlers] if task.held]
        if not held:
            return
        refusal = self.cluster.release()
        if refusal:
            raise Refusal(BUSY, f"Slurm still holds tasks of the run: {refusal}")
        print("Slurm holds no task any more")

    def _missing(self) -> None:
        """Give an end to what has no task and no end, when every node has forgotten what it remembered of the files."""
        lives = (LOST,) if self.person else (LOST, STRAY, GONE)  # what is gone is due when a person asks
        missing = [session.name for session in self.sessions.values() if session.life in lives]
        if not missing:
            return
        print(f"no task and no end: {' '.join(missing)}; looking again in {settle_s():g} s", flush=True)
        time.sleep(settle_s())
        if not self.look():
            raise self._silent()
        lost = [session for session in self.sessions.values() if session.life == LOST]
        self.cluster.account_for(session.task for session in lost)
        for session in lost:
            self.journal(f"lost {session.name} {session.attempt}")
            self.attempts.bury(session.name, session.attempt)
            self._ended(session)
        if not self.person and not self.holds.look().kind:
            for session in self.sessions.values():
                if session.life == GONE:
                    self._gone(session)
        self._decide()

    def _gone(self, session: Session) -> None:
        """Its task is over and claimed nothing."""
        number = session.attempt + 1
        output = self.cluster.output(session.task)
        said = files.read_text(output, _MOST).replace("\0", "").rstrip().split("\n")
        if not os.path.exists(output):
            cause, note = "stopped", "its task was cancelled in Slurm before it began"
        elif any(line.startswith("task: ") and HELD in line for line in said):
            session.life = QUEUED  # it left since the run was held, which is over
            return
        else:
            cause, note = "launch_failed", ": ".join(filter(None, ["its task ended before it began", said[-1]]))
        if self.attempts.forestall(session.name, number, cause, note):
            session.attempt = number
            self._ended(session)

    def _ended(self, session: Session) -> None:
        session.end = self.attempts.end(session.name, session.attempt)
        session.life = ENDED if session.end else session.life

    # --- deciding

    def _decide(self) -> None:
        """Which sessions are due."""
        for session in self.sessions.values():
            session.due, session.wait_s = session.life == QUEUED or (session.life == GONE and self.person), 0
            if session.life == ENDED:
                self._decide_again(session)
            session.due = session.due and session.flag != DROPPED

    def _decide_again(self, session: Session) -> None:
        name, number = session.name, session.attempt
        if self.attempts.asked(name) >= number:
            session.due = True
        elif self.person and session.outcome in ("cancelled", "lost"):
            session.due = self.attempts.ask(name, number)
        else:
            due = self.attempts.due(name, number)
            session.due, session.wait_s = due is not None, int(-(-due.wait_s // 1)) if due else 0

    def _tell(self) -> None:
        """What no pass before has told of, in the order of the ends; then fail-fast."""
        heard = set(re.findall(r"^\S+ ended (\S+ [0-9]+) ", files.read_text(self.layout.journal, _MOST), re.MULTILINE))
        self.notices.open()
        self.holds.read_resumed()
        breaker = Breaker(self._policy("breaker"), files.read_text(self._breaker))
        for session, number, end in sorted(self._unheard(heard), key=lambda one: one[2].get("ended", "")):
            self._heed(session, number, end)
            self._count(breaker, end)
        files.write_text(self._breaker, breaker.rows())
        failed = [session for session in self.kept() if session.over and session.outcome in fail_fast.FAILED]
        failed = [session for session in failed if not self.holds.forgiven(session.end.get("ended", ""))]
        limits = self._policy("fail_fast"), self._policy("fail_fast_percent")
        why = fail_fast.reason(len(failed), len(self.kept()), *limits)
        if why:
            self.halt(why)
        self.notices.flush()

    def _unheard(self, heard: set[str]) -> Iterator[tuple[Session, int, dict[str, str]]]:
        for session in self.sessions.values():
            for number in range(1, session.attempt + 1):
                end = self.attempts.end(session.name, number) if f"{session.name} {number}" not in heard else {}
                if end:
                    yield session, number, end

    def _heed(self, session: Session, number: int, end: Mapping[str, str]) -> None:
        failure = failure_of(end)
        words = session.name, number, word(end), end.get("cause", ""), end.get("code", ""), failure
        self.journal(" ".join(map(str, ["ended", *words])))
        if failure == "disk_full":
            self.notices.tell("host", session.name, "its disk is full")
        if failure and number == session.attempt and session.over and session.flag != DROPPED:
            self.notices.tell("failed", session.name, f"{session.name} ended: {word(end)}")

    def _count(self, breaker: Breaker, end: Mapping[str, str]) -> None:
        """A node that is gone is Slurm's to drain, and `retry: {lost: N}` bounds each session."""
        if word(end) == "succeeded":
            breaker.succeeded(())
        elif end.get("cause") not in ("preempted", "lost"):
            for trip in breaker.heed(failure_of(end), ()):
                last = f", at last: {end['note']}" if end.get("note") else ""
                self.halt(f"{trip.failure} {trip.times} times in a row{last}")

    def _smoke(self) -> bool:
        """Whether the others wait for the sessions that try every combo first."""
        tried = [session for session in self.sessions.values() if session.flag == SMOKE]
        if not tried or any(session.attempt for session in self.sessions.values() if not session.flag):
            return False
        if not all(session.over for session in tried):
            return True
        missing = [session.name for session in tried if not self._has_record(session)]
        if missing:
            self.halt(f"the smoke test left no record: {', '.join(missing)}")
        else:
            self.journal("smoke passed")
        return bool(missing)

    def _has_record(self, session: Session) -> bool:
        """Or it had ended when a person last said that the run may go on."""
        ends = [self.attempts.end(session.name, number) for number in range(session.attempt, 0, -1)]
        made = any(end.get("completeness") == "complete" or end.get("records", "0").strip("0") for end in ends)
        return made or self.holds.forgiven(session.end.get("ended", ""))

    # --- doing

    def _submit(self) -> None:
        smoke = self._smoke()
        due = [session for session in self.sessions.values() if session.due and (session.flag == SMOKE or not smoke)]
        if self.holds.look().kind:
            due = []
        if due:
            files.remove(self.layout.done)
            self.arrays.submit(Due(session.name, session.attempt + 1, session.wait_s) for session in due)
            jobs = " ".join(self.arrays.jobs)
            self.journal(f"submitted {self.arrays.sent} sessions jobs {jobs}")
            print(f"submitted {self.arrays.sent} of {len(due)} sessions: job {jobs or 'none'}")
            if self.arrays.complaint:
                raise Refusal(CONFIG, f"Slurm refuses: {self.arrays.complaint}")
        elif self.person and self.left():
            print(f"{self.left()} sessions are on their way; nothing else is due")
        self.arrays.share()

    def _end(self) -> None:
        """All have ended for good."""
        self.attempts.link([session.name for session in self.kept()])
        if self._wants_after():
            files.remove(self.layout.done)  # it is written anew, with what comes of another `after`
            if not self._after():
                return
        secrets.forget(self.layout)
        if os.path.exists(self.layout.done):
            if self.person:
                print("nothing is left to do")
            return
        outcomes = [session.outcome for session in self.kept()]
        after = self.attempts.end(AFTER, self.attempts.latest(AFTER))
        fields = [("at", round(time.time(), 6)), *((each, outcomes.count(each)) for each in _COUNTED)]
        if not files.write(self.layout.done, [*fields, ("after", word(after) if after else "")]):
            raise Refusal(CANT_WRITE, f"can't write {self.layout.done}")
        self.journal("done")
        self.notices.tell("finished", "", notices.finished(outcomes.count("succeeded"), len(outcomes)))

    def _wants_after(self) -> bool:
        """Once; again when it was lost or cancelled, or when sessions have ended since."""
        number = self.attempts.latest(AFTER)
        if not os.path.exists(self.layout.session(AFTER)):
            return False
        end = self.attempts.end(AFTER, number) if number else {}
        if not end or word(end) in ("lost", "cancelled"):
            return True
        begun = _changed(self.attempts.at(AFTER, number).begin)
        return any(_changed(self.attempts.at(one.name, one.attempt).end) > begun for one in self.sessions.values())

    def _after(self) -> bool:
        """Run it, in a job of its own; False when it is not over yet."""
        number = self.attempts.latest(AFTER)
        life = self.attempts.look(AFTER, number).life if number else QUEUED
        if life not in (QUEUED, ENDED, LOST):
            return False  # another settle job is at it
        if life == LOST:
            self.attempts.bury(AFTER, number)
        if not in_settle_job():
            job = "" if self.cluster.settlers else self.arrays.settle()
            if self.arrays.complaint:
                raise Refusal(CONFIG, f"Slurm refuses: {self.arrays.complaint}")
            if self.person:
                print(f"all sessions have ended; {f'job {job}' if job else 'a job that is there'} ends the run")
            return False
        self.lock.give()
        program = [sys.executable, "-I", "-S", self.layout.program, "session", self.layout.directory]
        subprocess.run([*program, AFTER, str(number + 1), "slurm"], stdin=subprocess.DEVNULL, check=False)
        self.lock.take(120)
        return True

    def halt(self, why: str) -> None:
        """Nothing new starts until a person says `resume`; tasks that come to their turn leave."""
        hold = self.holds.look()
        if hold.halted or not self.holds.halt(why):
            return
        self.journal(f"halted {why}")
        self.notices.tell(
            "host", "", f"the run is {hold.kind}, and halted: {why}" if hold.kind else f"the run is halted: {why}"
        )

    def journal(self, words: str) -> None:
        files.append(self.layout.journal, f"{time.time():.6f} {words}\n")

    def _silent(self) -> Refusal:
        return Refusal(BUSY, f"Slurm does not answer: {self.cluster.silence}")

    def _policy(self, key: str) -> int:
        return int(self.attempts.policy.get(key, "0"))

    @property
    def _breaker(self) -> str:
        return f"{self.layout.dispatch}/breaker"


def word(end: Mapping[str, str]) -> str:
    """The outcome of an end as records have it: one word."""
    return outcome_of(end).replace(" ", "_")


def failure_of(end: Mapping[str, str]) -> str:
    """The class of a failure; empty for what succeeded, was stopped or is not needed."""
    return "" if word(end) in ("succeeded", "cancelled", "not_needed") else end.get("class") or "error"


def in_array() -> bool:
    """Whether this runs in a task of an array, which holds what its session asked for."""
    return "SLURM_ARRAY_JOB_ID" in os.environ


def in_settle_job() -> bool:
    return "SLURM_JOB_ID" in os.environ and not in_array()


def _changed(path: str) -> int:
    try:
        return os.stat(path).st_mtime_ns
    except OSError:
        return 0


def _options(words: list[str]) -> dict[str, str]:
    """--person, --parallel N, --secrets -; a multiplexer has no meaning here. Raises Refusal."""
    given = {}
    while words:
        name, *words = words
        if name == "--person":
            given[name] = "1"
        elif name in ("--parallel", "--secrets", "--multiplexer"):
            given[name], words = (words or [""])[0], words[1:]
        else:
            raise Refusal(USAGE, f"what is {name}? usage: [--parallel N]")
    if not re.fullmatch("[1-9][0-9]{0,5}", given.get("--parallel", "1")):
        raise Refusal(USAGE, "--parallel wants a number from 1")
    if given.get("--secrets", "-") != "-":
        raise Refusal(USAGE, "--secrets wants -")
    return given


def _prepare(settling: Settling, given: Mapping[str, str]) -> None:
    """What a launch or a resume brings. Raises Refusal."""
    layout = settling.layout
    if not shutil.which("sbatch"):
        raise Refusal(LACKING, "there is no sbatch on this machine")
    try:
        secrets.gather(layout, sys.stdin.buffer.read() if "--secrets" in given else None)
    except LookupError as error:
        raise Refusal(CONFIG, f"{error}; nothing was submitted") from error
    os.makedirs(f"{layout.slurm}/out", exist_ok=True)
    if "--parallel" in given and not files.write_text(layout.slots, given["--parallel"] + "\n"):
        raise Refusal(CANT_WRITE, f"can't write in {layout.dispatch}")


def _settle(arguments: list[str]) -> int:
    os.environ.pop("COMBORUN_SESSION", None)
    run = run_directory(arguments)
    given = _options(arguments[1:])
    os.chdir(run)
    settling = Settling(run, person="--person" in given)
    if settling.person:
        _prepare(settling, given)
    if not settling.lock.take(float(os.environ.get("COMBORUN_LOCK_S") or 60)):
        raise Refusal(BUSY, "somebody else submits or settles this run just now")
    try:
        if settling.person:
            files.remove(settling.layout.stopped)
        elif os.path.exists(settling.layout.stopped):
            return 0
        settling.work()
    finally:
        settling.lock.give()
        for child in settling.notices.children:  # it would end with this job
            while child.poll() is None:
                time.sleep(0.1)
    return 0


def main(arguments: list[str]) -> int:
    return answer("settle", _settle, arguments)
