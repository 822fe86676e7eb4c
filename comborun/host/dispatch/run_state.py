"""The state of a run that the parts of its dispatcher share: each part gets it as an argument."""

from __future__ import annotations

from comborun.host.admission.admission import Admission
from comborun.host.dispatch.notices import Notices
from comborun.host.dispatch.sessions import Queue
from comborun.host.engines.multiplexers import multiplexer
from comborun.host.record.events import Events
from comborun.host.record.holds import Hold, Holds
from comborun.host.record.run_directory import RunDirectory
from comborun.host.system import children, files
from comborun.host.system.children import Child
from comborun.rules import records
from comborun.rules.events import Kind
from comborun.rules.facts import Fact
from comborun.rules.holds import HALTED, Notice
from comborun.rules.names import bare


class RunState:
    """The files of a run, its policy, its hold, its notices and its events, with any engine."""

    def __init__(self, attempts: RunDirectory) -> None:
        self.attempts = attempts
        self.layout = attempts.layout
        self.holds = Holds(self.layout)
        self.hold = Hold()
        self.halted_why: Fact | None = None
        """why the run is halted, if that could not be written yet"""
        self.events = Events(self.layout)
        self.notices = Notices(attempts, self.events)

    def read(self) -> None:
        """Read the policy, and what people ordered."""
        self.attempts.read_policy()
        self.holds.read_resumed()
        self.notices.open()

    def configured(self, key: str) -> int:
        """A number of the policy; 0 if it is absent."""
        return records.integer(self.attempts.policy, key) or 0

    def look_at_hold(self) -> Hold:
        self.hold = self.holds.look()
        if self.halted_why and not self.hold.kind:  # on a full disk it is in memory only, until there is room
            self.hold = Hold(HALTED, self.halted_why)
            if self.holds.order(HALTED, self.halted_why):
                self.halted_why = None
        return self.hold

    def halt(self, why: Fact) -> None:
        """Start nothing new until a user resumes the run. The first reason is kept, and so is a user's hold."""
        if self.halted_why or self.holds.look().kind:
            return
        if not self.holds.order(HALTED, why):
            self.halted_why = why
        self.hold = Hold(HALTED, why)
        self.events.write(Kind.HALTED, reason=why)
        self.notices.tell("host", "", Fact(Notice.RUN_HALTED, reason=why.as_data()))


class LocalState(RunState):
    """The same of a run whose sessions this machine runs: with its queue, its resources and its processes."""

    def __init__(self, attempts: RunDirectory, kind: str) -> None:
        super().__init__(attempts)
        self.engine = multiplexer(kind, attempts.path)
        self.queue = Queue()
        self.admission = Admission(attempts.path, attempts.id, self.events, self.notices.tell)
        self.children: list[Child] = []
        """processes that were started and are not known to have ended"""
        self.waiting_changed = False
        """whether dispatch/waiting must be written before the next sweep"""

    # Work in the background

    def run_program(self, verb: str, *words: object) -> Child:
        child = children.background(children.host_program(self.layout, verb, *words), self.layout.out)
        self.children.append(child)
        return child

    def finalize_lost(self, name: str, number: int) -> Child:
        """Write the end of a lost attempt; this may take seconds, since its processes get some time to end."""

        def work() -> None:
            self.attempts.finalize_lost(name, number)
            files.tell(self.layout.fifo, f"ended {bare(name)} {number}")

        try:
            child = children.fork(work)
        except OSError:  # it is still lost at the next look
            return children.Child(0, children.NOT_RUN)
        self.children.append(child)
        return child
