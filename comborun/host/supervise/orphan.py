"""`orphan RUN NAME ATTEMPT`: watches a session whose supervisor is gone, for the dispatcher that found it.

So a command that hangs, or left processes behind, does not keep its run open for ever. The dispatcher writes the end.
This watch leaves when the command or the dispatcher has ended.
"""

from __future__ import annotations

import signal
import time

from comborun.host.supervise.attempt import Attempt, StopSequence
from comborun.host.supervise.running import watch_over
from comborun.host.system import descendants, files, process
from comborun.host.system.changes import process_end
from comborun.host.system.events import Events
from comborun.host.verb_errors import Refusal


def main(arguments: list[str]) -> int:
    process.set_name()
    try:
        attempt = Attempt(*arguments)
        attempt.read(files.read(attempt.at.grant))
    except (Refusal, ValueError, TypeError):
        return 64
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP):
        signal.signal(number, signal.SIG_IGN)
    begin = files.read(attempt.at.begin)
    attempt.port = begin.get("port", "")
    attempt.pid = _command(attempt, begin)
    if not attempt.pid:  # a remaining process holds the session's lock
        descendants.sweep(attempt.marker, attempt.timing.grace_s)
        return 0
    look = process.look(attempt.pid)
    attempt.start = look.start if look else ""
    _follow(attempt, files.read(attempt.run_layout.dispatcher))
    return 0


def _command(attempt: Attempt, begin: dict[str, str]) -> int:
    """The pid of its command; 0 if it has ended."""
    if begin.get("pid"):
        return int(begin["pid"]) if process.named(begin, "pid") else 0
    for pid in process.marked(attempt.marker):  # without a begin record: the leader of its process session
        look = process.look(pid)
        if look and look.session == pid:
            return pid
    return 0


def _follow(attempt: Attempt, keeper: dict[str, str]) -> None:
    """Watch as long as both live."""
    watch, stop_sequence = watch_over(attempt), StopSequence(attempt.pid)
    events = Events(term=False)
    ends = [process_end(attempt.pid), process_end(int(keeper.get("pid") or 0))]
    descriptors = [fd for fd in ends if fd >= 0]
    while attempt.lives and process.named(keeper):
        deadline = min(watch.due(), stop_sequence.due, time.monotonic() + watch.every)
        events.wait(deadline, [*watch.descriptors(), *descriptors])
        if watch.look():
            stop_sequence.begin()
        stop_sequence.advance()
    watch.close()
