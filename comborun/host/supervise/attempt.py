"""One attempt, as its supervisor or watch sees it: where it runs, and how to end its command."""

from __future__ import annotations

import json
import os
import re
import signal
import time
from collections.abc import Sequence

from comborun.host.record import end_record, judging
from comborun.host.system import descendants, files, process
from comborun.host.system.files import Json
from comborun.host.system.ownership import Root, roots
from comborun.host.verb_errors import BUSY, NO_RUN, Refusal, unwritable
from comborun.rules import records
from comborun.rules.facts import Fact
from comborun.rules.host import Denial
from comborun.rules.names import SAYS, SOCKETS, TOGETHER, RunLayout, bare, window

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional, Tuple

    Verdict = Tuple[str, Optional[Fact]]
else:
    Verdict = tuple
"""cause and reason, if a command must end"""

_NEVER = float("inf")
_NUMBER = re.compile("[1-9][0-9]{0,8}")


class Timing:
    """The times of a supervisor in seconds, read once. Each is a variable COMBORUN_<NAME>_S."""

    def __init__(self) -> None:
        self.watch_s = max(0.02, process.setting("COMBORUN_WATCH_S", 5.0))
        """between two looks of a watch"""
        self.stalled_s = process.setting("COMBORUN_STALLED_S", 1200.0)
        """without progress until a session without `stall_after` is shown as stalled"""
        self.grace_s = process.setting("COMBORUN_GRACE_S", 5.0)
        """for the processes that a command leaves behind"""
        self.left_s = process.setting("COMBORUN_LEFT_S", 60.0)
        """for such processes to write something, if the command ended well before its work was done"""
        self.server_grace_s = process.setting("COMBORUN_SERVER_GRACE_S", 10.0)
        """for a program to notice that its model server is gone"""
        self.answer_s = process.setting("COMBORUN_ANSWER_S", 5.0)
        """for the answer of a model server"""
        self.display_s = process.setting("COMBORUN_DISPLAY_S", 15.0)
        """for an Xvfb to start"""
        self.lock_s = process.setting("COMBORUN_LOCK_S", 10.0)
        """for an earlier attempt to leave the session's lock"""


class Attempt:
    """`name` is `servers/NAME` for a model server.

    Raises Refusal where there is no such run, ValueError where the attempt is not a number.
    """

    def __init__(self, run: str, name: str, number: str) -> None:
        self.run_layout = layout = RunLayout(os.path.abspath(run))
        self.name = bare(name)
        if not _NUMBER.fullmatch(number):
            raise ValueError(number)
        self.number = int(number)
        self.run_id = files.read_line(layout.id).strip()
        if not self.run_id:
            raise Refusal(NO_RUN, Denial.NO_RUN, path=run)
        self.folder, self.at = layout.session(name), layout.attempt(name, self.number)
        self.former, self.lock = layout.attempt(name, self.number - 1), layout.session_lock(name)
        self.script, self.session_json = layout.script(name), layout.session_json(name)
        self.timing = Timing()
        self.marker = f"{self.run_id}/{self.name}/{self.number}"
        self.data: Json = {}
        """session.json"""
        self._text = ""
        self.grant: dict[str, str] = {}
        self.first = self.count = 0
        self.together: list[str] = []
        """the sessions that share its process, in the order of this start; empty: it is a session by itself"""
        self.rules: judging.Rules
        self.port = ""
        self.kills = ""
        """counts of processes killed for memory before its command began"""
        self.started = 0.0
        """seconds since 1970"""
        self.pid = 0
        """of its command"""
        self.start = ""
        """start time of the command, in clock ticks since boot"""

    def read(self, grant: dict[str, str]) -> None:
        """Read the granted range of episodes and the files of the session. Raises Refusal."""
        before, self._text = self._text, files.read_text(self.session_json)
        try:
            self.data = json.loads(self._text)
            self.first, self.count = int(self.data["first"]), int(self.data["count"])
        except (ValueError, KeyError, TypeError):
            raise Refusal(NO_RUN, Denial.UNREADABLE, path=self.session_json) from None
        self.grant = grant
        judged_by, named = self.data.get("judging"), self.data.get(TOGETHER)
        if self._text != before:
            self.rules = judging.Rules(judged_by, self.first, self.count)
        self.together = list(records.texts(grant, TOGETHER) or named) if isinstance(named, list) else []
        first, count = records.integer(grant, "first"), records.integer(grant, "count")
        if self.rules.ranged and first is not None and first >= 0 and count and count > 0:
            self.first, self.count = first, count  # only the missing tail
        if self.rules.span != (self.first, self.count):
            self.rules = judging.Rules(judged_by, self.first, self.count)

    def tell(self, what: str, word: object = "") -> None:
        files.tell(self.run_layout.fifo, f"{what} {self.name} {self.number} {word}")

    def add_to_log(self, line: str) -> None:
        """Add a line of ours to the log of the command."""
        files.append(self.at.log, f"{SAYS}{line}\n")

    @property
    def roots(self) -> list[Root]:
        """Its command: what has left its process session and group, and has no marker, is below its supervisor."""
        return [Root(self.pid, self.start, self.marker, leads=True)] if self.pid and self.start else []

    @property
    def lives(self) -> bool:
        seen = process.look(self.pid)
        return seen is not None and seen.start == self.start and seen.lives


class StopSequence:
    """Ends a command step by step: INT, TERM and KILL to its group, each after the wait of the one before."""

    def __init__(self, attempt: Attempt) -> None:
        self.due = _NEVER
        """when to advance, in time.monotonic()"""
        self.begun = False
        self._attempt = attempt
        self._steps: list[tuple[int, float]] = []

    def begin(self) -> None:
        self.begun = True
        self._steps = [(number, process.stop_s(word, seconds)) for number, word, seconds in process.STOP_STEPS]
        self.due = 0.0

    def skip_to_kill(self) -> None:
        """TERM was sent: KILL is next."""
        self.begin()
        *_, (_, seconds), kill = self._steps
        self._steps = [kill]
        self.due = time.monotonic() + seconds

    def advance(self) -> None:
        if time.monotonic() < self.due:
            return
        number, seconds = self._steps.pop(0)
        judging.note_signal(self._attempt.at)
        process.send_all(self._attempt.pid, number)
        process.send_all(self._attempt.pid, signal.SIGCONT)  # a stopped process reacts to no other signal
        self.due = time.monotonic() + seconds if self._steps else _NEVER


class Place:
    """Where an attempt runs: a window of a multiplexer, or a terminal. For tasks of Slurm see task.py."""

    def __init__(self, attempt: Attempt, engine: str) -> None:
        self.node = os.uname().nodename
        self.at = attempt.at
        self.output, self.shown = self.at.output, self.at.log
        """the folder that the command writes into, and the log that its window shows"""
        self.held: list[int] = []
        """descriptors that stay open as long as the command runs"""
        self._attempt = attempt
        self.engine = engine
        self._lock = attempt.lock

    def make_files(self) -> bool:
        """Make the folder of the output, the file of the lock, and room for the end. None of them claims anything."""
        os.makedirs(self.output, exist_ok=True)
        return files.append(self._lock) and end_record.reserve(self.at)

    def open(self) -> None:
        """Take the session's lock and reserve room for the end. Raises OSError, Refusal."""
        attempt, folder = self._attempt, self._attempt.folder
        try:
            os.makedirs(self.output, exist_ok=True)
            lock = files.lock(self._lock, attempt.timing.lock_s)
            if lock < 0 and os.path.exists(attempt.former.end):
                known = roots(f"{attempt.run_id}/{attempt.name}/", {}, files.read(attempt.former.begin))
                descendants.sweep(f"{attempt.run_id}/{attempt.name}/", 0.0, known)  # processes of earlier attempts
                lock = files.lock(self._lock, 2.0)
        except OSError as error:
            raise unwritable(folder, error) from None
        if lock < 0:
            raise Refusal(BUSY, Denial.ATTEMPT_LIVES, session=attempt.name)
        self.held.append(files.inheritable(lock))
        if not end_record.reserve(self.at):
            raise unwritable(self.at.directory)

    def grant(self) -> dict[str, str]:
        return files.read(self.at.grant)

    def claim(self, fields: Sequence[tuple[str, object]]) -> bool:
        """Claim the attempt, with room for its end; False if it has been claimed. Raises OSError."""
        try:
            if not files.create(self.at.claim, records.render(fields)):
                return False
        except OSError:
            self.withdraw()
            raise
        if not files.append(self.at.log):
            self.withdraw()
            raise OSError(f"can't write {self.at.log}")
        return True

    def withdraw(self) -> None:
        """Withdraw a claim because nothing can be started: the attempt may be made later."""
        files.remove(self.at.claim)

    def address(self) -> str:
        """The address for `combo attach`; empty without a window."""
        from comborun.host.engines.multiplexers import MULTIPLEXERS

        engine = MULTIPLEXERS.get(self.engine)
        return engine.address(window(self._attempt.name, self._attempt.number, self._attempt.run_id)) if engine else ""

    def sockets(self) -> dict[str, str]:
        """The variable with the folder of its window's sockets, as its record has it."""
        name = SOCKETS.get(self.engine, "")
        return {name.lower(): os.environ.get(name, "")}

    def heartbeat(self) -> str:
        """Show that it lives. Returns `closed` if another process has ended this attempt, `stop` if it must end."""
        return ""

    def why(self) -> Verdict | None:
        """Cause and reason of an attempt that got a signal to end, if this place knows more."""
        return None

    def leave(self) -> None:
        """Clean up after the end is on record."""
