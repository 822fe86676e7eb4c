"""`dispatch RUN`: keeps the slots of a run full until all its sessions have ended.

It is the only process that starts sessions. All its state is in files, so it can be killed and
started again at any time.

0: the run is done, stopped or held    66: no run directory    73: can't write there
75: another dispatcher lives    143: told to end
"""

from __future__ import annotations

import contextlib
import math
import os
import re
import select
import signal
import stat
import sys
import time
from dataclasses import dataclass

from comborun.host.dispatch import windows
from comborun.host.dispatch.launching import Launcher
from comborun.host.dispatch.lifecycle import Lifecycle
from comborun.host.dispatch.servers import Servers
from comborun.host.record import secrets
from comborun.host.record.attempts import RunDirectory
from comborun.host.record.queue import BUSY, CLOSING, ORPHANED, QUEUED, RUNNING, STARTING, Session, rows
from comborun.host.system import files, process
from comborun.rules import records
from comborun.rules.holds import LEAVING
from comborun.rules.names import AFTER
from comborun.rules.room.placement import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn

_MESSAGE = re.compile("([a-z]+) ([A-Za-z0-9_-]+) ([0-9]{1,9})( ([0-9]*))?")
_LINE_MOST = 4096
_SWEEP_S = 2.0
_DONE_AGAIN_S = 5.0


def main(arguments: list[str]) -> int:
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
        if files.lock(attempts.layout.lock) < 0:
            sys.stderr.write("dispatch: another dispatcher lives\n")
            return 75
        dispatcher = Dispatcher(attempts, files.read_line(attempts.layout.multiplexer))
    except OSError as error:
        sys.stderr.write(f"dispatch: {error}\n")
        return 73
    return dispatcher.run_to_the_end()


class Leave(Exception):  # noqa: N818 # no error: the dispatcher's own way out
    """The dispatcher leaves."""


class Dispatcher(Lifecycle):
    def __init__(self, attempts: RunDirectory, multiplexer: str) -> None:
        super().__init__(attempts, multiplexer)
        self._signals = Signals()
        self._fifo = Fifo(self.layout.fifo)
        self._fifo.listen()
        self.servers = Servers(self)
        self.launcher = Launcher(self)
        self.windows = windows.Windows(self)
        self._after = False
        """all sessions have ended, and `after` runs"""
        self._amended = False
        """a message asked to read the queue again"""
        self._tables: list[int] = []
        """when the files of the plan that were read were last changed"""
        self._next_sweep = 0.0

    # The life of a dispatcher

    def run_to_the_end(self) -> int:
        try:
            self._run()
        except Leave:
            self.engine.finish()
        finally:
            windows.dismiss(self.layout.dispatch)
        return 0

    def _run(self) -> None:
        self.journal(f"dispatcher {os.getpid()} {self.engine.kind}")
        windows.dismiss(self.layout.dispatch)
        self._read()
        self.engine.prepare()
        self.adopt()
        if not self.queue.left and os.path.exists(self.layout.done) and not self.wants_after(self.queue):
            self.journal("nothing-left")
            secrets.forget(self.layout)
            raise Leave
        files.remove(self.layout.done, self._leaving)
        if self.look_at_hold().kind in LEAVING and self.queue.left:
            self._leave_held()
        self._sign()
        self.servers.read()
        self._rounds()
        raise Leave

    def _sign(self) -> None:
        """Write down that this dispatcher lives; `start` waits for that."""
        pid, start, boot = process.identity()
        at = f"{time.time():.6f}"
        files.write(self.layout.dispatcher, [("pid", pid), ("start", start), ("boot", boot), ("at", at)])

    @property
    def _leaving(self) -> str:
        return f"{self.layout.dispatch}/leaving"

    def complain(self, text: str) -> None:
        """Write a line to dispatch/out if there is room."""
        with contextlib.suppress(OSError):
            os.write(2, f"dispatch: {text}\n".encode("utf-8", "surrogateescape"))

    def _read(self) -> None:
        """Read policy.json, queue.jsonl and what people ordered."""
        self._tables = self._tables_now()
        self.read()
        if not os.path.exists(self.layout.slots):
            files.write_text(self.layout.slots, f"{self.policy('parallel')}\n")
        self.launcher.slots = self.policy("parallel")
        self.gpus_allowed = records.integers(self.attempts.policy, "gpus")
        self.admission.configure(self.attempts.policy)
        for row in rows(self.layout.queue):
            session = self.queue.sessions.get(row.name) or self.queue.add(row.name)
            session.flag, session.served = row.flag, bool(row.servers)
            self.servers.kinds_of[row.name] = row.servers
            self.admission.register(row.name, row.request, row.program)
        self.admission.open()
        self.close_gpus()

    def _tables_now(self) -> list[int]:
        return [files.changed(path) for path in (self.layout.queue, self.layout.policy, self.layout.server_table)]

    def _replanned(self) -> bool:
        """Whether the plan was changed: the message of an amendment is lost with its FIFO. A torn policy is no plan."""
        return self._tables_now() != self._tables and bool(files.read(self.layout.policy))

    # The loop

    def _work(self) -> None:
        """Start sessions until nothing is left, the run was stopped, or it is held and nothing runs."""
        self._next_sweep = time.monotonic() + _SWEEP_S
        while self.queue.left > 0:
            if os.path.exists(self.layout.stopped):
                self.journal("stopped")
                raise Leave
            self.servers.again()
            self.launcher.fill()
            if self.hold.kind in LEAVING:
                self._leave_held()
            self.launcher.check()
            self.windows.fill()
            if self.waiting_changed:
                self.launcher.write_waiting()
            self._wait()
            if time.monotonic() >= self._next_sweep:
                self._sweep()
                self._next_sweep = time.monotonic() + _SWEEP_S

    def _wait(self) -> None:
        """Wait for a message, a child, nvidia-smi or a time, whichever comes first."""
        due = min(self._next_sweep, self.launcher.due, self.windows.due, self.admission.due())
        poll = select.poll()
        for fd in (self._fifo.fd, self._signals.fd, *self.admission.book.descriptors()):
            poll.register(fd, select.POLLIN)
        happened = poll.poll(math.ceil(max(0.0, due - time.monotonic()) * 1000))
        if any(fd == self._fifo.fd for fd, _ in happened):
            self._hear_all()
        if self._signals.take():
            self.children = [child for child in self.children if child.poll() is None]
            self.windows.reaped()
        self.admission.book.serve()

    def _hear_all(self) -> None:
        for message in self._fifo.read():
            self._hear(message)

    def _hear(self, message: Message) -> None:
        if message.what in ("reread", "again"):
            self._heed_person(message)
            return
        if self.servers.on_message(message.name, message.attempt):
            return
        session = self.queue.sessions.get(message.name)
        if not session:
            return
        if message.what == "window":
            self.windows.here(session.name, message.attempt, message.word)
        if session.life == QUEUED and message.attempt == session.attempt + 1:
            self._ended_before_it_began(session, message.attempt)
        if message.attempt == session.attempt:  # else it is of an earlier attempt
            self._hear_session(session, message)

    def _ended_before_it_began(self, session: Session, attempt: int) -> None:
        if os.path.exists(self.attempts.at(session.name, attempt).end):
            session.attempt = attempt
            self.windows.forget(session.name)
            self.stop_waiting(session)

    def _hear_session(self, session: Session, message: Message) -> None:
        if message.what == "free":
            if session.life in (STARTING, RUNNING, ORPHANED) and not self.next_end_decides():
                self.release(session, CLOSING)
        elif message.what == "ended":
            self.ended(session)
        elif message.what == "progressed":
            self.admission.progressed(session.name)
        elif message.what == "refused" and session.life == STARTING:
            self.launcher.refused(session, f"its supervisor left with code {message.word or 0}")
        elif message.what == "lacks" and session.life == STARTING:
            self.launcher.refused(session, f"its supervisor left: {os.strerror(int(message.word or 0))}")

    def _heed_person(self, message: Message) -> None:
        if self._after and message.name != AFTER:
            self._amended = True
        elif message.what == "reread":
            self._reread()
        elif message.name in self.queue.sessions:
            self.on_retry(self.queue[message.name])

    def _reread(self) -> None:
        before = self.policy("parallel")
        self.halted_why = None
        self._read()
        if self.policy("parallel") != before:
            files.write_text(self.layout.slots, f"{self.policy('parallel')}\n")
        self.reread_sessions()
        self.servers.read()
        self.journal(f"reread left={self.queue.left} busy={self.queue.busy}")

    def _sweep(self) -> None:
        """Notice changes that come without a message. Leaves if the run was removed or moved while its file system is
        there. A run that can't be read for a while is neither.
        """
        try:
            os.stat(self.layout.id)
        except FileNotFoundError:
            if os.path.isdir(os.path.dirname(self.layout.directory)):
                raise Leave from None
        except OSError:
            return
        if not self._fifo.whole():
            try:
                self._fifo.listen()
            except OSError:
                return
            self.windows.again()
        if self._replanned():
            self._hear(Message("reread", "run", 0, ""))
        self.look_at_sessions()
        self.servers.sweep()
        self.admission.book.flush()
        self.notices.flush()
        self.launcher.write_waiting()

    # The end of a run

    def _rounds(self) -> None:
        """Run until nothing is left, and no new work was requested."""
        while True:
            self._work()
            self.servers.finish()
            self.link_results(self.queue)
            if self.wants_after(self.queue):
                self._run_after()
            self._last_news()
            if not self.queue.left and self._finish():
                return

    def _run_after(self) -> None:
        names = self.queue.names
        self._after = True
        after = self.queue.only(AFTER)
        self.admission.register(AFTER, Request())
        self.adopt_one(after, [], again=True)
        self._work()
        self.queue.restore(names)
        self._after = False

    def _last_news(self) -> None:
        """Follow requests that came while `after` ran."""
        self._hear_all()
        if (self._amended or self._replanned()) and not self._after:
            self._amended = False
            self._reread()

    def _finish(self) -> bool:
        """Record that the run has ended, then report it. False if new work was requested just then."""
        secrets.forget(self.layout)
        while not self.record_done(self.queue):
            self.complain(f"can't write {self.layout.done}; is the disk full?")
            time.sleep(_DONE_AGAIN_S)
        files.write_text(self._leaving, "")
        self._last_news()
        if self.queue.left:
            files.remove(self.layout.done, self._leaving)
            return False
        secrets.forget(self.layout)  # a start may have put them there meanwhile
        self.launcher.write_waiting()
        self.admission.book.flush()
        self.report_done(self.queue)
        return True

    def _leave_held(self) -> None:
        """Leave a held run when nothing runs, unless the hold was just lifted."""
        if self.halted_why or any(session.life in BUSY for session in self.queue.sessions.values()):
            return
        self.servers.finish()
        files.write_text(self._leaving, "")
        self._last_news()
        if self.look_at_hold().kind not in LEAVING:
            files.remove(self._leaving)
            return
        self.launcher.write_waiting()
        self.admission.book.flush()
        self.journal(f"left {self.hold.kind}")
        raise Leave


# Messages: lines in a FIFO, and signals


@dataclass(frozen=True)
class Message:
    """WHAT SESSION ATTEMPT [NUMBER]"""

    what: str
    name: str
    attempt: int
    word: str


class Fifo:
    """The run's FIFO, open for reading and writing, so that it never reports end of file."""

    def __init__(self, path: str) -> None:
        self.path = path
        self.fd = -1
        self._text = b""

    def whole(self) -> bool:
        """Whether the path still leads to our FIFO; a user may have removed it."""
        return files.leads_to(self.path, self.fd)

    def listen(self) -> None:
        """Make it if it is missing, and open it. Raises OSError."""
        try:
            fifo = stat.S_ISFIFO(os.lstat(self.path).st_mode)
        except OSError:
            fifo = False
        if not fifo:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self.path)
            os.mkfifo(self.path)
        fd = os.open(self.path, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        if self.fd >= 0:
            os.close(self.fd)
        self.fd = fd

    def read(self) -> list[Message]:
        with contextlib.suppress(OSError):
            while data := os.read(self.fd, 65536):
                self._text += data
        *lines, rest = self._text.split(b"\n")
        self._text = rest if len(rest) <= _LINE_MOST else b""
        found = map(_MESSAGE.fullmatch, (line.decode("utf-8", "replace") for line in lines))
        return [Message(one[1], one[2], int(one[3]), one[5] or "") for one in found if one]


class Signals:
    """HUP, INT and QUIT have no effect on us, but children do not ignore them; TERM ends us; CHLD wakes us."""

    def __init__(self) -> None:
        self.fd, wake = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
        for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGCHLD):
            signal.signal(number, lambda *_: None)
        signal.signal(signal.SIGTERM, _end)

    def take(self) -> bool:
        try:
            return bool(os.read(self.fd, 4096))
        except BlockingIOError:
            return False


def _end(*_: object) -> NoReturn:
    raise SystemExit(143)
