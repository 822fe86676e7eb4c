"""`control RUN VERB [ARGUMENT]...`: steers a run without ending anything. Its decisions are files.

So it works without a dispatcher; a running one gets a message. It prints a line for each thing done.

  pause [WHY]     nothing new starts                          slots N           so many may run at once
  drain [WHY]     the same, and the dispatcher leaves then    retry NAME...     another attempt, with fresh budgets
  resume          no hold and no quarantine any more          retry --failed    failed, partial and lost ones
  set KEY=VALUE... [because=WHY]  parallel, use_gpus, reserve.gpu_memory and reserve.memory (MiB) from now on
  notify          a test notice through the grid's command    retry --stalled   those that were ended for a stall
  decided NAME... standard input holds the decision; these sessions need not begin any more

0: done. 1: nothing of it could be done. 64: usage, or no such session. 66: no run directory. 69: the grid has no
`notify`. 73: can't write. 75: another process holds a lock. Else, for notify: the code of its command.
"""

from __future__ import annotations

import os
import re
import sys
import time
from collections.abc import Callable

from comborun.host.engines.of_run import slurm_of
from comborun.host.record.deals import refuse_ceded
from comborun.host.record.events import Events
from comborun.host.record.holds import Holds, over
from comborun.host.record.queue import DROPPED, rows
from comborun.host.record.recounts import as_it_is
from comborun.host.record.run_directory import RunDirectory
from comborun.host.record.run_owner import refuse_elsewhere
from comborun.host.system import files, machine
from comborun.host.verb_errors import LACKING, USAGE, Refusal, answer, holding, must_write, run_directory, say
from comborun.rules import records, settings
from comborun.rules.endings.breaker import barred
from comborun.rules.endings.evidence import Evidence, fact
from comborun.rules.endings.failures import GPU
from comborun.rules.facts import Fact
from comborun.rules.holds import DRAINING, PAUSED, HoldReason, Notice
from comborun.rules.host import Denial
from comborun.rules.room.capacity import Capacity, never
from comborun.rules.vocabulary import Life, Outcome, outcome_of, several

_VERBS = "pause|drain|resume|slots N|set KEY=VALUE...|retry NAME...|notify|decided"
_ANYWHERE = frozenset(("decided", "notify"))
"""verbs that a run on another machine takes, too"""
_LOCK_S = 30.0
_AGAIN = frozenset((Outcome.FAILED, Outcome.PARTIAL, Outcome.LOST))


def main(arguments: list[str]) -> int:
    return answer("control", _control, arguments)


def _control(arguments: list[str]) -> int:
    os.environ.pop("COMBORUN_SESSION", None)
    run = run_directory(arguments)
    verb, words = (arguments[1] if len(arguments) > 1 else "", arguments[2:])
    if verb not in _ANYWHERE:
        refuse_elsewhere(run)
    steering = Steering(run)
    code = steering.steer(verb, words)
    if steering.slurm:
        from comborun.host.engines import arrays

        if flaw := arrays.follow_command(steering.slurm, verb, words):
            say(f"{steering.id}: {flaw}")
    return code


class Steering:
    def __init__(self, run: str) -> None:
        self.attempts = RunDirectory(run)
        self.slurm = slurm_of(self.attempts)
        self.layout = self.attempts.layout
        self.holds = Holds(self.layout)
        self.events = Events(self.layout)
        self.id = self.attempts.id

    def steer(self, verb: str, words: list[str]) -> int:
        acts: dict[str, Callable[[], int]] = {
            "pause": lambda: self._hold(PAUSED, words),
            "drain": lambda: self._hold(DRAINING, words),
            "resume": self._resume,
            "slots": lambda: self._slots("".join(words[:1])),
            "set": lambda: self._set(words),
            "retry": lambda: self._retry(words),
            "decided": lambda: self._decided(words),
            "notify": self._notify,
        }
        if verb not in acts:
            raise Refusal(USAGE, Denial.USAGE, usage=f"RUN {_VERBS}", given=verb)
        return acts[verb]()

    def tell(self, message: str) -> None:
        files.tell(self.layout.fifo, message)

    def _say(self, who: str, what: str) -> None:
        say(f"{who}: {what}", **({} if who == self.id else {"session": who}))

    def _ordered(self, done: bool, what: str, order: str, **given: str) -> int:
        """Send an order for the whole run to the dispatcher or Slurm. Raises Refusal if it could not be written."""
        must_write(done, self.layout.dispatch)
        self.events.order(order, **given)
        self.tell("reread run 0")
        self._say(self.id, what)
        return 0

    def _was(self) -> str:
        before = self.holds.look()
        return f"; it was {before.kind} ({before.words})" if before.kind else ""

    def _hold(self, kind: str, words: list[str]) -> int:
        was = self._was()
        goes_on = (
            "the run has ended; sessions that are added later will wait"
            if over(self.layout)
            else "running sessions continue"
        )
        why = records.clean(" ".join(words))
        order = "pause" if kind == PAUSED else "drain"
        done = self.holds.order(kind, Fact(HoldReason.BY_PERSON, words=why))
        return self._ordered(done, f"{kind}: no new sessions start; {goes_on}{was}", order, why=why)

    def _resume(self) -> int:
        was = self._was()
        layout = self.layout
        lifted = (layout.hold, layout.quarantine, layout.breaker, layout.gpu_caps, layout.stopped)
        there = [path for path in lifted if os.path.exists(path)]
        must_write(files.write(self.layout.resumed, [("at", round(time.time(), 6))]), self.layout.dispatch)
        files.remove(*there)
        done = not any(map(os.path.exists, there))
        return self._ordered(done, f"resumed{was}" if there else "was not held", "resume")

    def _slots(self, number: str) -> int:
        if not re.fullmatch("[1-9][0-9]{0,5}", number):
            raise Refusal(USAGE, Denial.NOT_A_NUMBER)
        done = files.write_text(self.layout.slots, f"{number}\n")
        what = f"at most {several(int(number), 'session')} at a time{self._later()}"
        return self._ordered(done, what, "set", values=f"{settings.PARALLEL}={number}")

    def _later(self) -> str:
        return "; the run has ended, so this holds for sessions that are added later" if over(self.layout) else ""

    def _set(self, words: list[str]) -> int:
        """Change settings of the run: KEY=VALUE of `rules/settings.py`, and `because=WHY`."""
        values = {key: value for key, _, value in (word.partition("=") for word in words)}
        why = records.clean(values.pop(settings.BECAUSE, ""))
        for key, value in values.items():
            if not settings.is_value(key, value):
                keys = [settings.PARALLEL, *settings.FIELDS]
                raise Refusal(USAGE, Denial.NOT_SETTABLE, given=f"{key}={value}", keys=keys)
            if self.slurm and key != settings.PARALLEL:
                raise Refusal(USAGE, Denial.SLURM_DECIDES, key=key)
        planned = self.attempts.planned
        with holding(self.layout.settings_lock, _LOCK_S):  # somebody else may set another key now
            record = settings.changed(files.read(self.layout.settings), planned, values)
            before = records.integers(self.attempts.policy, "gpus")
            policy = {**planned, **settings.in_force(record, planned)}
            if values.keys() & settings.FIELDS.keys():
                self._check_room(policy, before)
                must_write(files.write(self.layout.settings, record.items()), self.layout.dispatch)
        if number := values.get(settings.PARALLEL):
            must_write(files.write_text(self.layout.slots, f"{number}\n"), self.layout.dispatch)
        told = " ".join(f"{key}={value}{settings.unit(key)}" for key, value in values.items())
        gone = [gpu for gpu in before if gpu not in records.integers(policy, "gpus")]
        drains = f"; running sessions on GPU {', '.join(map(str, gone))} go on" if gone else ""
        closed = self._closed(policy) if "use_gpus" in values else ""
        said = f"set {told}{drains}{closed}{self._later()}"
        return self._ordered(True, said, "set", values=told, **({"why": why} if why else {}))

    def _closed(self, policy: dict[str, str]) -> str:
        """That nothing starts yet on GPUs that were set: they are in quarantine."""
        quarantine = {one.name for one in barred(files.read_text(self.layout.quarantine), GPU)}
        closed = ", ".join(str(gpu) for gpu in records.integers(policy, "gpus") if str(gpu) in quarantine)
        said = f"; in quarantine, so nothing starts there until `combo resume {self.id}`: GPU {closed}"
        return said if closed else ""

    def _check_room(self, policy: dict[str, str], before: tuple[int, ...]) -> None:
        """Raise Refusal for an unknown GPU, or if a session that is left could never start."""
        from comborun.host.system import driver

        capacity = Capacity(gpus=records.integers(policy, "gpus"))
        capacity.reserve, capacity.memory_reserve = (int(policy[f"reserve_{key}_mib"]) for key in ("gpu", "memory"))
        capacity.memory_total = (machine.memory_kib()[0] or 0) >> 10 or None
        cards = {one.index: one for one in driver.cards(driver.hear(driver.Question(driver.CARDS)))}
        capacity.totals = {gpu: card.total for gpu, card in cards.items() if card.total is not None}
        added = [gpu for gpu in capacity.gpus if gpu not in before]
        for gpu in added:
            if gpu not in cards:
                raise Refusal(USAGE, Denial.NO_SUCH_GPU, gpu=gpu, has=sorted(cards))
        each = [row for row in files.read_rows(self.layout.server_table) if row.get("gpu")]
        if added and each:
            raise Refusal(USAGE, Denial.SERVER_ON_EACH_GPU, server=str(each[0].get("kind") or each[0].get("name")))
        for row in rows(self.layout.queue):
            number = self.attempts.latest(row.name)
            over = number and self.attempts.end(row.name, number) and not self.attempts.follows(row.name, number)
            if row.flag != DROPPED and not over and (why := never(row.request, capacity)):
                raise Refusal(USAGE, Denial.NEVER_STARTS, session=row.name, reason=why.as_data())

    def _notify(self) -> int:
        """Run the grid's command in the foreground, to show its output."""
        if not os.path.exists(self.layout.notify):
            raise Refusal(LACKING, Denial.NO_NOTIFY)
        from comborun.host.dispatch import notices

        code = notices.hand_over(self.attempts, "test", "", Fact(Notice.TEST))
        if not code:
            self._say(self.id, "the command took a test notice, and ended with 0")
        return code

    # Another attempt

    def _retry(self, words: list[str]) -> int:
        word = words[0] if words else ""
        if word in ("--failed", "--stalled"):
            names = self._ended(stalled=word == "--stalled")
            if not names:
                self._say(self.id, f"no session has {word[2:]}")
        elif not word or word.startswith("-"):
            raise Refusal(USAGE, Denial.NO_NAMES)
        else:
            self.attempts.check_names(words)
            names = [one for word in words for one in self.attempts.members(word)]
        again = [name for name in names if self._retry_one(name)]
        if again:
            self.events.order("retry", again)
        return 0 if again else 1

    def _ended(self, *, stalled: bool) -> list[str]:
        names = []
        for row in rows(self.layout.queue):
            for name in row.sessions if row.flag != DROPPED else ():
                number = self.attempts.latest(name)
                seen = self.attempts.glance(name, number)
                end = as_it_is(self.attempts.at(name, number), seen.record)
                bad = seen.life == Life.LOST or (seen.life == Life.ENDED and outcome_of(end) in _AGAIN)
                if bad and (not stalled or seen.record.get("class") == "stalled"):
                    names.append(name)
        return names

    def _retry_one(self, name: str) -> bool:
        """Whether a session gets another attempt. One that runs or has succeeded is left alone, and reported, unless
        results of it are gone.
        """
        refuse_ceded(self.layout, self.attempts.process_of(name))
        number = self.attempts.latest(name)
        seen = self.attempts.look(name, number)
        if seen.life == Life.QUEUED:
            held = self.holds.look().kind or os.path.exists(self.layout.stopped)
            starts = f"; nothing starts until `combo resume {self.id}`" if held else ""
            self._say(name, f"waits for its turn already{starts}")
        elif seen.life == Life.ENDED and self._has_succeeded(name, number, seen.record):
            self._say(name, "has succeeded, and does not run again")
        elif seen.life in (Life.ENDED, Life.LOST):
            must_write(self.attempts.ask(name, number, lost=seen.life == Life.LOST), self.layout.session(name))
            self.tell(f"again {self.attempts.process_of(name)} {number}")
            self._say(name, f"attempt {number + 1} comes next")
            return True
        else:
            self._say(name, "still runs: stop it first")
        return False

    def _has_succeeded(self, name: str, number: int, end: dict[str, str]) -> bool:
        """Whether its results are there, too: deleted ones can be made again."""
        if outcome_of(end) != Outcome.SUCCEEDED:
            return False
        there = records.integer(as_it_is(self.attempts.at(name, number), end), "records") or 0
        return there >= (records.integer(end, "records") or 0)

    # Early decisions, and sessions that are no longer needed

    def _decided(self, names: list[str]) -> int:
        """Record decisions and end sessions that are no longer needed. Safe to repeat, to run twice at once, and to
        kill.
        """
        self.attempts.check_names(names)
        decided = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
        with holding(self.layout.decided_lock, _LOCK_S):
            self._write_decided(decided)
        for name in names:
            self._not_needed(name)
        return 0

    def _write_decided(self, text: str) -> None:
        """Append the lines that are not there yet."""
        there = files.read_text(self.layout.decided, most=1 << 26)
        known = set(there.split("\n"))
        fresh = [line for line in dict.fromkeys(text.split("\n")) if line and line not in known]
        torn = "\n" if there and not there.endswith("\n") else ""  # a line that a full disk has cut off
        if fresh:
            lines = "".join(f"{line}\n" for line in fresh)
            must_write(files.append(self.layout.decided, torn + lines), self.layout.dispatch)
            print(lines, end="", flush=True)
            self.events.order("decided", decisions=len(fresh))

    def _not_needed(self, name: str) -> None:
        """End a session before it begins or before its next attempt. A running one goes on."""
        number = self.attempts.latest(name)
        life = self.attempts.look(name, number).life
        waits = life == Life.QUEUED or (life == Life.ENDED and self.attempts.follows(name, number))
        reason = fact(Evidence.DECIDED)
        if waits and self.attempts.cancel_unstarted(name, number + 1, "not_needed", reason):
            self.tell(f"ended {name} {number + 1}")
            self._say(name, "not needed any more")
