"""`dispatch RUN`: keep the slots of a run full until all its sessions have ended.

The only process that starts sessions. State is what the files say: killed at any instant and started again, it goes on.

0: the run is done, stopped or held    66: no run directory    69: neither tmux nor screen    73: can't write there
75: another dispatcher lives    143: told to end
"""

from __future__ import annotations

import contextlib
import math
import os
import select
import signal
import sys
import time

from comborun.host import children, engines, files, process, secrets, windows
from comborun.host.admission import Admission
from comborun.host.attempts import RunDirectory
from comborun.host.ends import Ends
from comborun.host.engines.screen import quietly
from comborun.host.holds import HALTED, LEAVING, Hold, Holds
from comborun.host.launching import Launcher
from comborun.host.news import Fifo, Message
from comborun.host.notices import Notices
from comborun.host.queue import BUSY, CLOSING, DROPPED, ORPHANED, QUEUED, RUNNING, STARTING, Queue, rows
from comborun.host.servers import Servers
from comborun.host.usage import Usage
from comborun.host.waiting import Waiting
from comborun.rules import notices
from comborun.rules.breaker import Breaker
from comborun.rules.names import AFTER, RunLayout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Mapping, NoReturn

    from comborun.host.children import Child
    from comborun.host.engines import Engine, Opening
    from comborun.host.queue import Session

_SWEEP_S = 2.0
_DONE_AGAIN_S = 5.0
_QUEUE_MOST = 1 << 26
_OUTCOMES = ("succeeded", "partial", "failed", "cancelled", "lost", "not_needed")


def main(arguments: list[str]) -> int:
    """Runs a dispatcher; see the codes above."""
    try:
        attempts = RunDirectory(os.path.realpath(arguments[0] if arguments else ""))
        os.chdir(attempts.path)
    except (LookupError, OSError) as error:
        sys.stderr.write(f"dispatch: {error}\n")
        return 66
    for name in ("COMBORUN_SESSION", "TMUX", "TMUX_PANE", "STY"):
        os.environ.pop(name, None)
    process.set_name()
    try:
        if files.lock(f"{attempts.path}/dispatch/lock") < 0:
            sys.stderr.write("dispatch: another dispatcher lives\n")
            return 75
        dispatcher = Dispatcher(attempts)
    except OSError as error:
        sys.stderr.write(f"dispatch: {error}\n")
        return 73
    if not dispatcher.engine_kind:
        return 69
    return dispatcher.run_to_the_end()


class Left(Exception):  # noqa: N818 # no error: the dispatcher's own way out
    """The dispatcher has nothing to do any more."""


class Dispatcher:
    """One run's dispatcher: its parts, and the loop that waits for whatever happens next."""

    def __init__(self, attempts: RunDirectory) -> None:
        """Raises OSError."""
        self.attempts = attempts
        self.run = RunLayout(attempts.path)
        self._signals = Signals()
        self._fifo = Fifo(self.run.fifo)
        self._fifo.listen()
        self._journal = os.open(self.run.journal, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o666)
        self.engine_kind = files.read_line(self.run.multiplexer) or engines.choose()
        self.engine: Engine = engines.engine(self.engine_kind, attempts.path)
        self.queue = Queue()
        self.holds = Holds(self.run)
        self.hold = Hold()
        self.gpus_allowed: tuple[int, ...] = ()
        self.breaker = Breaker(0)
        self.notices = Notices(attempts, self.journal)
        self.admission = Admission(attempts.path, attempts.id, self.journal, self.notices.tell)
        self.servers = Servers(attempts.path, self.admission, self)
        self.ends = Ends(self)
        self.launcher = Launcher(self)
        self.windows = windows.Windows(self)
        self.waiting = Waiting(self)
        self._children: list[Child] = []
        self._halted_why = ""
        """a hold that has yet to be written"""
        self._after = False
        """all sessions have ended, and `after` runs"""
        self._amended = False
        """told to read the queue again meanwhile"""
        self._next_sweep = 0.0

    # The life of a dispatcher

    def run_to_the_end(self) -> int:
        try:
            self._run()
        except Left:
            self.engine.finish()
            return 0
        finally:
            windows.dismiss(self.run.dispatch)
        return 0

    def _run(self) -> None:
        self.journal(f"dispatcher {os.getpid()} {self.engine_kind}")
        windows.dismiss(self.run.dispatch)
        self._read()
        self.notices.open()
        self.engine.prepare()
        self.ends.adopt()
        if not self.queue.left and os.path.exists(self.run.done) and not self._wants_after():
            self.journal("nothing-left")
            secrets.forget(self.attempts.layout)
            raise Left
        files.remove(self.run.done, f"{self.run.dispatch}/leaving")
        self.look_at_hold()
        if self.hold.kind in LEAVING and self.queue.left:
            self._leave_held()
        self._sign()
        self.servers.read()
        self.usage = Usage(self.run, self.gpus_allowed)
        self._rounds()
        raise Left

    def _sign(self) -> None:
        """start waits for this."""
        pid, start, boot = process.identity()
        at = f"{time.time():.6f}"
        files.write(self.run.dispatcher, [("pid", pid), ("start", start), ("boot", boot), ("at", at)])

    def journal(self, words: str) -> None:
        with contextlib.suppress(OSError):  # on a full disk; nothing goes by the journal
            os.write(self._journal, f"{time.time():.6f} {words}\n".encode("utf-8", "surrogateescape"))

    def complain(self, text: str) -> None:
        """Into dispatch/out, if there is room."""
        with contextlib.suppress(OSError):
            os.write(2, f"dispatch: {text}\n".encode("utf-8", "surrogateescape"))

    def policy(self, key: str) -> int:
        value = self.attempts.policy.get(key, "")
        return int(value) if value.isdecimal() else 0

    def _read(self) -> None:
        """policy.tsv and queue.tsv, what is held and what was forgiven."""
        self.attempts.read_policy()
        policy = self.attempts.policy
        if not os.path.exists(self.run.slots):
            files.write_text(self.run.slots, f"{self.policy('parallel')}\n")
        self.launcher.slots = self.policy("parallel")
        gpus = policy.get("gpus", "").split(",")
        self.gpus_allowed = tuple(int(gpu) for gpu in gpus if gpu.isdecimal())
        self.holds.read_resumed()
        folder = self.run.dispatch
        rows_of, quarantine = files.read_text(f"{folder}/breaker"), files.read_text(f"{folder}/quarantine")
        self.breaker = Breaker(self.policy("breaker"), rows_of, quarantine)
        self.admission.configure(policy)
        for row in rows(files.read_text(self.run.queue, _QUEUE_MOST)):
            session = self.queue.sessions.get(row.name) or self.queue.add(row.name)
            session.flag, session.served = row.flag, row.served
            self.admission.ask(row.name, row.gpus, row.columns)
        self.admission.open()
        self.close_gpus()

    def close_gpus(self) -> None:
        quarantined = {int(gpu) for gpu in self.breaker.quarantine}
        self.admission.close(quarantined, "in quarantine")

    # Holds

    def look_at_hold(self) -> None:
        self.hold = self.holds.look()
        if self._halted_why and not self.hold.kind:  # on a full disk it is in memory only, until there is room
            if self.holds.halt(self._halted_why):
                self._halted_why = ""
            self.hold = Hold(HALTED, self._halted_why)

    def halt(self, why: str) -> None:
        """Nothing new starts until a person says `resume`; the first reason stays."""
        hold = self.holds.look()
        if self._halted_why or hold.halted:
            return
        if not self.holds.halt(why) and not hold.kind:
            self._halted_why = why
        self.hold = hold if hold.kind else Hold(HALTED, why)
        self.journal(f"halted {why}")
        ordered = f"{hold.kind}, and " if hold.kind else ""
        self.notices.tell("host", "", f"the run is {ordered}halted: {why}")

    # The loop

    def _work(self) -> None:
        """Until nothing is left, or the run was stopped, or is held and nothing runs."""
        self._next_sweep = time.monotonic() + _SWEEP_S
        while self.queue.left > 0:
            if os.path.exists(self.run.stopped):
                self.journal("stopped")
                raise Left
            if self.servers.any:
                self.servers.again()
            self.launcher.fill()
            if self.hold.kind in LEAVING:
                self._leave_held()
            self.launcher.check()
            self.windows.fill()
            if self.waiting.stale:
                self.waiting.tell()
            self._wait()
            if time.monotonic() >= self._next_sweep:
                self._sweep()
                self._next_sweep = time.monotonic() + _SWEEP_S

    def _wait(self) -> None:
        """For whatever comes first: a message, a child, tmux, nvidia-smi, or a time."""
        parts = (self.admission, self.servers, self.usage)
        due = min(
            self._next_sweep, self.launcher.due, self.windows.due, self.engine.due(), *(part.due() for part in parts)
        )
        poll = select.poll()
        for fd in (self._fifo.fd, self._signals.fd, *self.engine.descriptors()):
            poll.register(fd, select.POLLIN)
        for part in parts:
            for fd in part.descriptors():
                poll.register(fd, select.POLLIN)
        happened = poll.poll(math.ceil(max(0.0, due - time.monotonic()) * 1000))
        if any(fd == self._fifo.fd for fd, _ in happened):
            for message in self._fifo.read():
                self._hear(message)
        if self._signals.heard():
            self._children = [child for child in self._children if child.poll() is None]
        self.engine.serve()
        for part in parts:
            part.serve()

    def _hear(self, message: Message) -> None:
        if message.what in ("reread", "again"):
            self._heed_person(message)
            return
        if self.servers.any and self.servers.is_server(message.name):
            self.servers.heard(message.name, message.attempt)
            return
        session = self.queue.sessions.get(message.name)
        if not session:
            return
        if message.what in ("ahead", "gone", "refused"):
            self.windows.heard(message.what, session, message.attempt, message.word)
        if session.life == QUEUED and message.attempt == session.attempt + 1:
            self._ended_before_it_began(session, message.attempt)
        if message.attempt == session.attempt:  # else an echo of the past
            self._hear_session(session, message)

    def _ended_before_it_began(self, session: Session, attempt: int) -> None:
        if os.path.exists(self.attempts.at(session.name, attempt).end):
            session.attempt = attempt
            self.windows.forget(session.name)
            self.ends.leave(session)

    def _hear_session(self, session: Session, message: Message) -> None:
        if message.what == "free":
            if session.life in (STARTING, RUNNING, ORPHANED) and not self.ends.wary():
                self.ends.release(session, CLOSING)
        elif message.what == "ended":
            self.ends.ended(session)
        elif message.what == "progressed":
            self.admission.progressed(session.name)
        elif message.what == "refused" and session.life == STARTING:
            self.launcher.refused(session, f"its supervisor left with code {message.word or 0}")

    def _heed_person(self, message: Message) -> None:
        if self._after and message.name != AFTER:
            self._amended = True
        elif message.what == "reread":
            self._reread()
        elif message.name in self.queue.sessions:
            self.ends.asked(self.queue[message.name])

    def _reread(self) -> None:
        """The grid was amended, or a person let the run go on."""
        before = self.policy("parallel")
        self._halted_why = ""
        self._read()
        if self.policy("parallel") != before:
            files.write_text(self.run.slots, f"{self.policy('parallel')}\n")
        self.notices.open()
        self.ends.reread()
        self.servers.read()
        self.ends.open_smoke()
        self.journal(f"reread left={self.queue.left} busy={self.queue.busy}")

    def _sweep(self) -> None:
        """What no message told."""
        if not self._fifo.whole():
            try:
                self._fifo.listen()
            except OSError:
                return
            self.windows.again()
        self.ends.sweep()
        if self.servers.any:
            self.servers.sweep()
        self.admission.flush()
        self.notices.flush()
        self.waiting.tell()

    def look_at(self, session: Session, vanished: list[str]) -> None:
        """A session that is neither queued nor ended."""
        self._tell_stall(session)
        if session.undertaker and session.undertaker.poll() is None:
            return
        if session.supervisor:
            seen = process.look(session.supervisor[0])
            if seen and seen.lives and seen.start == session.supervisor[1]:
                if seen.state in "Tt":
                    self._continue(session)
                return
        look = self.attempts.look(session.name, session.attempt)
        self.ends.see(session, look.life, look.record, vanished)

    def _continue(self, session: Session) -> None:
        """Somebody has stopped its supervisor, which can't see any more that its command has ended."""
        begin = files.read(self.attempts.at(session.name, session.attempt).begin)
        command = (begin.get("pid", ""), begin.get("pid_start", ""), begin.get("boot", ""))
        if session.supervisor and command[0] and not process.alive(*command):
            process.send(int(session.supervisor[0]), signal.SIGCONT)

    def _tell_stall(self, session: Session) -> None:
        """Once for each attempt."""
        stalled = self.attempts.at(session.name, session.attempt).stalled
        if session.stalled_told != session.attempt and os.path.exists(stalled):
            session.stalled_told = session.attempt
            why = files.read(stalled).get("why", "")
            self.notices.tell("stalled", session.name, f"{session.name} makes no progress: {why}")

    # How it comes to its end

    def _rounds(self) -> None:
        """Until nothing is left, and nobody has asked for more meanwhile."""
        while True:
            self._work()
            if self.servers.any:
                self.servers.finish()
            self.attempts.link([session.name for session in self.queue if session.flag != DROPPED])
            self._run_after()
            self._last_news()
            if not self.queue.left and self._finish():
                return

    def _wants_after(self) -> bool:
        """Run it once; again when it was lost or cancelled, or when sessions have ended since."""
        if not os.path.exists(self.run.script(AFTER)):
            return False
        number = self.attempts.latest(AFTER)
        end = self.attempts.end(AFTER, number) if number else {}
        if not end or outcome(end) in ("lost", "cancelled"):
            return True
        begun = _changed(self.attempts.at(AFTER, number).begin)
        names = (session for session in self.queue if session.attempt)
        return any(_changed(self.attempts.at(one.name, one.attempt).end) > begun for one in names)

    def _run_after(self) -> None:
        if not self._wants_after():
            return
        names = self.queue.names
        self._after = True
        after = self.queue.only(AFTER)
        self.admission.ask(AFTER, 0, ())
        self.ends.adopt_one(after, [], again=True)
        self._work()
        self.queue.restore(names)
        self._after = False

    def _last_news(self) -> None:
        """What was asked for while `after` ran, and what no loop has read yet."""
        for message in self._fifo.read():
            self._hear(message)
        if self._amended and not self._after:
            self._amended = False
            self._reread()

    def _finish(self) -> bool:
        """The run has ended; told only when it is on disk. False when somebody asked for more just then."""
        count: dict[str, int] = dict.fromkeys(_OUTCOMES, 0)
        for session in self.queue:
            if session.flag != DROPPED:
                count[session.outcome] += 1
        secrets.forget(self.attempts.layout)
        after = self.queue.sessions.get(AFTER)
        fields: list[tuple[str, object]] = [("at", round(time.time(), 6)), *count.items()]
        fields.append(("after", after.outcome if after else ""))
        while not files.write(self.run.done, fields):
            self.complain(f"can't write {self.run.done}; is the disk full?")
            time.sleep(_DONE_AGAIN_S)
        leaving = f"{self.run.dispatch}/leaving"
        files.write_text(leaving, "")
        self._last_news()
        if self.queue.left:
            files.remove(self.run.done, leaving)
            return False
        secrets.forget(self.attempts.layout)  # those that a start has put there meanwhile, to find us done
        self.waiting.tell()
        self.admission.flush()
        self.journal("done")
        self.notices.tell("finished", "", notices.finished(count["succeeded"], self.queue.size()))
        return True

    def _leave_held(self) -> None:
        """When nothing runs any more, unless the run may go on just then."""
        if self._halted_why or any(session.life in BUSY for session in self.queue.sessions.values()):
            return
        if self.servers.any:
            self.servers.finish()
        leaving = f"{self.run.dispatch}/leaving"
        files.write_text(leaving, "")
        self._last_news()
        self.look_at_hold()
        if self.hold.kind not in LEAVING:
            files.remove(leaving)
            return
        self.waiting.tell()
        self.admission.flush()
        self.journal(f"left {self.hold.kind}")
        raise Left

    # What its parts ask of it

    def words(self, name: str, attempt: int, fifo: str = "") -> list[str]:
        """The command of a window: the supervisor of an attempt, armed where it has a FIFO to wait at."""
        return self._program("session", name, attempt, self.engine_kind, *(("ahead", fifo) if fifo else ()))

    def _program(self, verb: str, *words: object) -> list[str]:
        return [sys.executable, "-I", "-S", self.run.program, verb, self.run.directory, *map(str, words)]

    def open_window(self, name: str, attempt: int) -> Opening:
        """Of a model server."""
        return self.launcher.open(name, attempt, self.words(f"servers/{name}", attempt))

    def watch_orphan(self, session: Session) -> None:
        """Nobody else sees to it that an orphan ends."""
        if not session.watcher or session.watcher.poll() is not None:
            session.watcher = self.watch(session.name, session.attempt)

    def watch(self, name: str, attempt: int, family: str = "") -> Opening:
        return quietly(self._program("orphan", name, attempt, *filter(None, [family])), self.run.out)

    def in_child(self, work: Callable[[], object]) -> Child:
        """Work that may take seconds."""
        child = children.fork(work)
        self._children.append(child)
        return child

    def notify(self, kind: str, who: str, text: str) -> None:
        self.notices.tell(kind, who, text)

    def lives(self) -> Mapping[str, str]:
        return self.queue.lives()

    @property
    def busy(self) -> int:
        return self.queue.busy


class Signals:
    """HUP, INT and QUIT mean nothing here, and are not ignored by what we start; TERM ends; CHLD wakes."""

    def __init__(self) -> None:
        self.fd, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        signal.signal(signal.SIGTERM, _end)

    def heard(self) -> bool:
        try:
            return bool(os.read(self.fd, 4096))
        except BlockingIOError:
            return False


def _end(*_: object) -> NoReturn:
    raise SystemExit(143)


def outcome(end: Mapping[str, str]) -> str:
    from comborun.host.ends import word_of

    return word_of(dict(end))


def _changed(path: str) -> float:
    try:
        return os.stat(path).st_mtime
    except OSError:
        return -1.0
