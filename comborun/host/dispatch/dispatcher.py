"""`dispatch RUN`: keeps the slots of a run full until all its sessions have ended.

It is the only process that starts sessions. All its state is in files, so it can be killed and
started again at any time.

0: the run is done, stopped or held    66: no run directory    73: can't write there
68: it runs on another machine    75: another dispatcher lives    143: told to end
"""

from __future__ import annotations

import math
import os
import select
import sys
import time

from comborun.host.dispatch import MOVES, windows
from comborun.host.dispatch.ends import Ends
from comborun.host.dispatch.launching import Launcher, complain
from comborun.host.dispatch.lifecycle import Lifecycle
from comborun.host.dispatch.messages import Fifo, Message, Signals
from comborun.host.dispatch.run_policy import RunPolicy
from comborun.host.dispatch.run_state import LocalState
from comborun.host.dispatch.servers import Servers
from comborun.host.dispatch.sessions import Granted, Queued, Server, Session, Starting
from comborun.host.dispatch.windows import Windows
from comborun.host.engines.multiplexers import MULTIPLEXERS
from comborun.host.record import run_owner, secrets
from comborun.host.record.queue import rows
from comborun.host.record.run_directory import RunDirectory
from comborun.host.record.training import is_over
from comborun.host.system import files, process
from comborun.host.system.children import Child
from comborun.host.verb_errors import ELSEWHERE
from comborun.rules.endings.evidence import Evidence, fact
from comborun.rules.events import Kind
from comborun.rules.holds import LEAVING, ServerStop
from comborun.rules.names import AFTER
from comborun.rules.room.capacity import Request
from comborun.words import say

_SWEEP_S = 2.0
_FOLLOW_AGAIN_S = 5.0
_DONE_AGAIN_S = 5.0
_END_S, _PAUSE_S = 60.0, 0.05
"""seconds to wait for the end of model servers, and between two looks at them"""


def main(arguments: list[str]) -> int:
    try:
        attempts = RunDirectory(os.path.realpath(arguments[0] if arguments else ""))
        os.chdir(attempts.path)
    except (LookupError, OSError) as error:
        sys.stderr.write(f"dispatch: {error}\n")
        return 66
    windows_set = (name for one in MULTIPLEXERS.values() for name in one.variables)
    for name in ("COMBORUN_SESSION", "SYSSCREENRC", *windows_set):
        os.environ.pop(name, None)
    process.set_name()
    try:
        if files.lock(attempts.layout.lock) < 0:
            sys.stderr.write("dispatch: another dispatcher lives\n")
            return 75
        if owner := run_owner.claim(attempts.layout):
            sys.stderr.write(f"dispatch: {say(owner)}\n")
            return ELSEWHERE
        dispatcher = Dispatcher(attempts, files.read_line(attempts.layout.multiplexer), person=MOVES not in arguments)
    except OSError as error:
        sys.stderr.write(f"dispatch: {error}\n")
        return 73
    return dispatcher.run_to_the_end()


class Leave(Exception):  # noqa: N818 # no error: the dispatcher's own way out
    """The dispatcher leaves."""


class Dispatcher:
    """Puts the parts together, and runs their loop."""

    def __init__(self, attempts: RunDirectory, multiplexer: str, *, person: bool = True) -> None:
        """`person`: a user has started it, which asks for another attempt of what was cancelled or lost."""
        self._run = run = LocalState(attempts, multiplexer)
        self._signals = Signals()
        self._fifo = Fifo(run.layout.fifo)
        self._fifo.listen()
        self._policy = RunPolicy(run)
        self._ends = Ends(run, self._policy)
        self._servers = Servers(run, self._policy)
        self._windows = Windows(run)
        self._launcher = Launcher(run, self._policy, self._ends, self._windows, self._servers)
        self._lifecycle = Lifecycle(run, self._policy, self._ends, self._launcher, self._servers, person=person)
        self._after = False
        """all sessions have ended, and `after` runs"""
        self._amended = False
        """a message asked to read the queue again"""
        self._tables: list[int] = []
        """when the files of the plan that were read were last changed"""
        self._next_sweep = 0.0
        self._follower: Child | None = None
        self._follow_at = 0.0
        """when a follower that has ended too early is started again"""

    # The life of a dispatcher

    def run_to_the_end(self) -> int:
        try:
            self._begin()
        except Leave:
            self._run.engine.end()
        finally:
            windows.dismiss(self._run.layout)
        return 0

    def _begin(self) -> None:
        self._run.events.write(Kind.DISPATCHING, pid=os.getpid(), engine=self._run.engine.kind)
        windows.dismiss(self._run.layout)
        self._read()
        self._run.engine.prepare()
        self._lifecycle.adopt()
        if (
            not self._run.queue.left
            and os.path.exists(self._run.layout.done)
            and not self._policy.wants_after(self._run.queue)
            and not self._follows()
        ):
            self._run.events.write(Kind.LEFT, why="nothing_left")
            secrets.forget(self._run.layout)
            run_owner.release(self._run.layout)
            raise Leave
        files.remove(self._run.layout.done, self._run.layout.leaving)
        if self._run.look_at_hold().kind in LEAVING and self._run.queue.left:
            self._leave_held()
        own = {**process.identity(), "at": f"{time.time():.6f}"}
        files.write(self._run.layout.dispatcher, own.items())  # `start` waits for that
        self._read_servers()
        self._rounds()
        raise Leave

    def _read(self) -> None:
        """Read policy.json, queue.jsonl and what people ordered."""
        self._tables = self._tables_now()
        self._run.read()
        self._policy.read()
        if not os.path.exists(self._run.layout.slots):
            files.write_text(self._run.layout.slots, f"{self._run.configured('parallel')}\n")
        self._launcher.slots = self._run.configured("parallel")
        self._run.admission.configure(self._run.attempts.policy)
        for row in rows(self._run.layout.queue):
            session = self._run.queue.sessions.get(row.name) or self._run.queue.add(row.name)
            session.flag, session.servers = row.flag, row.servers
            self._run.admission.register(row.name, row.request, row.program)
        self._run.admission.open()
        self._ends.close_gpus()

    def _tables_now(self) -> list[int]:
        layout = self._run.layout
        return [files.changed(path) for path in (layout.queue, layout.policy, layout.server_table, layout.settings)]

    def _replanned(self) -> bool:
        """Whether the files of the plan have changed. An amendment also sends a message, but its FIFO may be gone.

        While `policy` can't be read, nothing counts as changed.
        """
        return self._tables_now() != self._tables and bool(files.read(self._run.layout.policy))

    # The loop

    def _work(self) -> None:
        """Start sessions until nothing is left, the run was stopped, or it is held and nothing runs."""
        self._next_sweep = time.monotonic() + _SWEEP_S
        while self._run.queue.left > 0 or (self._follows() and not self._after):
            if os.path.exists(self._run.layout.stopped):
                self._run.events.write(Kind.LEFT, why="stopped")
                raise Leave
            self._launcher.fill()
            if self._run.hold.kind in LEAVING:
                self._leave_held()
            self._launcher.check()
            self._launcher.refuse(self._windows.fill(self._launcher.slots, self._launcher.ahead))
            if self._run.waiting_changed:
                self._launcher.write_waiting()
            self._wait()
            if time.monotonic() >= self._next_sweep:
                self._sweep()
                self._next_sweep = time.monotonic() + _SWEEP_S

    def _wait(self) -> None:
        """Wait for a message, a child, nvidia-smi or a time, whichever comes first."""
        due = min(self._next_sweep, self._launcher.due, self._windows.due, self._run.admission.due())
        poll = select.poll()
        for fd in (self._fifo.fd, self._signals.fd, *self._run.admission.book.descriptors()):
            poll.register(fd, select.POLLIN)
        happened = poll.poll(math.ceil(max(0.0, due - time.monotonic()) * 1000))
        if any(fd == self._fifo.fd for fd, _ in happened):
            self._hear_all()
        if self._signals.take():
            self._run.children = [child for child in self._run.children if child.poll() is None]
            self._launcher.refuse(self._windows.reaped())
        self._run.admission.serve()

    def _hear_all(self) -> None:
        for message in self._fifo.read():
            self._hear(message)

    def _hear(self, message: Message) -> None:
        if message.what in ("reread", "again"):
            self._heed_person(message)
            return
        queue = self._run.queue
        session = queue.sessions.get(message.name) or queue.servers.get(message.name)
        if not session:
            return
        if message.what == "window":
            self._windows.here(session.name, message.attempt, message.word)
        if isinstance(session.state, Queued) and message.attempt == session.attempt + 1:
            if os.path.exists(self._run.attempts.at(session.path, message.attempt).end):  # it ended before it began
                self._windows.forget(session.name)
                self._ends.ended(session, message.attempt)
        elif message.attempt == session.attempt:  # else it is of an earlier attempt
            self._hear_session(session, message)

    def _hear_session(self, session: Session, message: Message) -> None:
        if message.what == "ended":
            self._ends.ended(session, message.attempt)
        elif message.what == "free":
            self._ends.free(session)
        elif message.what == "progressed":
            self._run.admission.progressed(session.name)
        elif message.what == "refused" and isinstance(session.state, Starting):
            self._launcher.refused(session, fact(Evidence.SUPERVISOR_LEFT, exit=message.word or "0"))
        elif message.what == "lacks" and isinstance(session.state, Starting):
            error = int(message.word or 0)
            self._launcher.refused(session, fact(Evidence.SUPERVISOR_LEFT, error=os.strerror(error)), error)
        if isinstance(session, Server):
            self._look_at_servers()

    def _heed_person(self, message: Message) -> None:
        if self._after and message.name != AFTER:
            self._amended = True
        elif message.what == "reread":
            self._reread()
        elif message.name in self._run.queue.sessions:
            self._ends.on_retry(self._run.queue[message.name])

    def _reread(self) -> None:
        before = self._run.configured("parallel")
        self._run.halted_why = None
        self._read()
        if self._run.configured("parallel") != before:
            files.write_text(self._run.layout.slots, f"{self._run.configured('parallel')}\n")
        for session in self._lifecycle.reread():
            self._windows.forget(session.name)
        self._read_servers()
        self._run.events.write(Kind.REREAD, left=self._run.queue.left, busy=self._run.queue.busy)

    def _sweep(self) -> None:
        """Notice changes that come without a message. Leaves if the run was removed or moved while its file system is
        there. A run that can't be read for a while is neither.
        """
        try:
            os.stat(self._run.layout.id)
        except FileNotFoundError:
            if os.path.isdir(os.path.dirname(self._run.layout.directory)):
                raise Leave from None
        except OSError:
            return
        if not run_owner.ours(self._run.layout):
            self._run.events.write(Kind.LEFT, why="taken_over")
            raise Leave
        if not self._fifo.whole():
            try:
                self._fifo.listen()
            except OSError:
                return
            for session in self._windows.close():
                self._launcher.later(session)
        if self._replanned():
            self._hear(Message("reread", "run", 0, ""))
        if [gpu for gpu in sorted(self._run.admission.book.fallen) if self._policy.gpu_fell(gpu)]:
            self._ends.close_gpus()
        self._lifecycle.look()
        self._servers.sweep()
        self._run.admission.book.flush()
        self._run.notices.flush()
        self._launcher.write_waiting()
        self._follows()

    def _follows(self) -> bool:
        """Whether the run follows a training. Then its follower lives, or starts again soon."""
        if self._follower and self._follower.poll() is None:
            return True
        if is_over(self._run.layout):
            return False
        if time.monotonic() >= self._follow_at:
            self._follow_at = time.monotonic() + _FOLLOW_AGAIN_S
            self._follower = self._run.run_program("follow")
        return True

    # Model servers

    def _read_servers(self) -> None:
        for server in self._servers.read():
            self._lifecycle.adopt_one(server)
        self._look_at_servers()

    def _look_at_servers(self) -> None:
        self._lifecycle.look_at_servers()
        self._servers.sweep()

    def _end_servers(self) -> None:
        """End all live servers and wait for that: the run is over, or none of its sessions runs."""
        servers, deadline = self._run.queue.servers.values(), time.monotonic() + _END_S
        self._lifecycle.look_at_servers()
        for server in servers:
            server.due = False
            self._servers.end(server, ServerStop.RUN_OVER)
        while any(server.lives for server in servers) and time.monotonic() < deadline:
            time.sleep(_PAUSE_S)
            self._lifecycle.look_at_servers()
        for server in servers:
            if server.lives:
                self._run.events.write(Kind.SURVIVES, server.path, server.attempt)

    # The end of a run

    def _rounds(self) -> None:
        """Run until nothing is left, and no new work was requested."""
        while True:
            self._work()
            self._end_servers()
            self._policy.link_results(self._run.queue)
            if self._policy.wants_after(self._run.queue):
                self._run_after()
            self._last_news()
            if not self._run.queue.left and self._finish():
                return

    def _run_after(self) -> None:
        names = self._run.queue.names
        self._after = True
        after = self._run.queue.only(AFTER)
        self._run.admission.register(AFTER, Request())
        self._lifecycle.adopt_one(after, again=True)
        self._work()
        self._run.queue.restore(names)
        self._after = False

    def _last_news(self) -> None:
        """Follow requests that came while `after` ran."""
        self._hear_all()
        if (self._amended or self._replanned()) and not self._after:
            self._amended = False
            self._reread()

    def _finish(self) -> bool:
        """Record that the run has ended, then report it. False if new work was requested just then."""
        secrets.forget(self._run.layout)
        while not self._policy.record_done(self._run.queue):
            complain(f"can't write {self._run.layout.done}; is the disk full?")
            time.sleep(_DONE_AGAIN_S)
        files.write_text(self._run.layout.leaving, "")
        self._last_news()
        if self._run.queue.left or self._follows():
            files.remove(self._run.layout.done, self._run.layout.leaving)
            return False
        secrets.forget(self._run.layout)  # a start may have put them there meanwhile
        self._launcher.write_waiting(last=True)
        self._run.admission.book.flush()
        self._policy.report_done(self._run.queue)
        run_owner.release(self._run.layout)
        return True

    def _leave_held(self) -> None:
        """Leave a held run when nothing runs, unless the hold was just lifted."""
        if self._run.halted_why or any(isinstance(one.state, Granted) for one in self._run.queue.sessions.values()):
            return
        self._end_servers()
        files.write_text(self._run.layout.leaving, "")
        self._last_news()
        if self._run.look_at_hold().kind not in LEAVING:
            files.remove(self._run.layout.leaving)
            return
        self._launcher.write_waiting(last=True)
        self._run.admission.book.flush()
        self._run.events.write(Kind.LEFT, why=self._run.hold.kind)
        run_owner.release(self._run.layout)
        raise Leave
