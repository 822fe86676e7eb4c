"""`stop RUN [NAME...]`: ends sessions and everything that they started; without names the whole run.

It sends INT, then TERM, then KILL to all at once, then sweeps for processes that left their group, and prints what it
did. Model servers end after their clients; `--server NAME` instead of names ends one of them. A lost connection or a
Ctrl-C ends only the output: the stop goes on.

0: nothing of them is left. 1: something survives, and the output names it. 64: no such session. 66: no run directory.
68: it runs on another machine. 73: it is another user's.
"""

from __future__ import annotations

import functools
import os
import select
import signal
import time
from collections.abc import Callable
from itertools import starmap

from comborun.host.engines.multiplexers import multiplexer
from comborun.host.engines.of_run import slurm_of
from comborun.host.record import secrets
from comborun.host.record.events import Events
from comborun.host.record.holds import over
from comborun.host.record.run_directory import RunDirectory, stopping
from comborun.host.record.run_owner import refuse_elsewhere, release
from comborun.host.system import descendants, files, ownership, process
from comborun.host.system.changes import Changes
from comborun.host.system.children import Child, fork
from comborun.host.system.driver import still_held
from comborun.host.verb_errors import CANT_WRITE, Refusal, answer, complain, run_directory, say
from comborun.rules.endings.evidence import Evidence, fact
from comborun.rules.host import Denial
from comborun.rules.names import SERVERS, bare
from comborun.rules.vocabulary import Life, outcome_of, several
from comborun.words.endings import in_words, outcome_words

_LOOK_S = 0.25
"""seconds between two looks at unsupervised processes: their end changes no file"""
_FINALIZERS_MOST = 8
"""that run at once"""
_BEGINS_S, _BURIED_S, _DISPATCHER_S = 5.0, 2.0, 2.0


def main(arguments: list[str]) -> int:
    return answer("stop", _stop, arguments)


def _stop(arguments: list[str]) -> int:
    run, words = run_directory(arguments), arguments[1:]
    names = [SERVERS + name for name in words[1:]] if words[:1] == ["--server"] else words
    found = RunDirectory(run)
    found.check_names(names)
    refuse_elsewhere(run)
    if os.getuid() not in (0, os.stat(run).st_uid):
        raise Refusal(CANT_WRITE, Denial.OTHER_USER, owner=process.owner(run))
    if names == words:  # servers are ended by the dispatcher
        Events(found.layout).order("stop", names)
    return _in_background(lambda: Stopping(run).stop(names))


def _in_background(work: Callable[[], int]) -> int:
    """Do `work` in another process, which goes on if this one is ended; returns its exit code.

    Its output comes through pipes, so that a caller who waits for our output to close need not wait for it.
    """
    pipes = [os.pipe(), os.pipe()]
    null = os.open(os.devnull, os.O_RDONLY)
    child = fork(lambda: _detached(work), (null, *(writing for _, writing in pipes)))
    for fd in (null, *(writing for _, writing in pipes)):
        os.close(fd)
    _copy_output({pipes[0][0]: 1, pipes[1][0]: 2})
    code = child.wait()
    return code if code >= 0 else 1


def _detached(work: Callable[[], int]) -> int:
    os.setsid()
    for number in (signal.SIGHUP, signal.SIGINT, signal.SIGTERM, signal.SIGQUIT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)
    return answer("stop", lambda _: work(), [])


def _copy_output(streams: dict[int, int]) -> None:
    """Copy from each descriptor to another, until all have ended."""
    while streams:
        for reading in select.select(list(streams), [], [])[0]:
            data = os.read(reading, 65536)
            if data:
                files.write_all(streams[reading], data)
            else:
                del streams[reading]


class Stopping:
    """One stop of a run, or of some of its sessions."""

    def __init__(self, run: str) -> None:
        self.attempts = RunDirectory(run)
        self.layout, self._at = self.attempts.layout, self.attempts.at
        slurm_of(self.attempts)
        self.backend = self.attempts.backend
        self.active: dict[str, int] = {}
        """name -> the attempt that must still end"""
        self.marked: dict[str, int] = {}
        """name -> attempt, of all that were marked as being stopped"""
        self.clean = True
        """whether every step did what it should"""
        self._faults: set[str] = set()
        self._finalizers: dict[str, Child] = {}
        """the children that write the ends of lost sessions"""
        self.on_gpus: set[str] = set()
        """pids of the processes of sessions with GPUs, before the first signal"""

    def stop(self, names: list[str]) -> int:
        everything = not names
        if everything:
            if not over(self.layout):
                files.append(self.layout.stopped)
            self._end_dispatcher()
            self._step(lambda: files.remove(*self.layout.window_fifos(files.entries(self.layout.dispatch))))
            names = files.entries(self.layout.sessions)
        names = list(dict.fromkeys(map(self.attempts.process_of, names)))
        if flaw := self.backend.call_off(None if everything else names):
            complain(f"stop: {flaw}")
        self._step(lambda: self._round(names, named=not everything))
        if everything:
            servers = [SERVERS + name for name in files.entries(self.layout.servers)]
            self._step(lambda: self._round(servers, named=False))
            self._step(lambda: secrets.forget(self.layout))
            self._step(multiplexer(files.read_line(self.layout.multiplexer), self.layout.directory).end)
        self._step(lambda: self._sweep(everything))
        if everything and self.clean:
            self._step(lambda: release(self.layout))
        self._step(self._memory_came_back)
        return 0 if self.clean else 1

    def _step(self, act: Callable[[], object], name: str = "") -> None:
        """Do one step of the stop: whatever happens in it, the others follow."""
        try:
            self.clean = act() is not False and self.clean
        except Exception as error:  # noqa: BLE001
            fault = f"{name}: {error!r}" if name else repr(error)
            if fault not in self._faults:
                complain(f"stop: {fault}")
            self._faults.add(fault)
            self.clean = False

    def _round(self, names: list[str], *, named: bool) -> bool:
        """Stop these sessions or servers. Returns whether all have ended."""
        try:
            for name in names:
                self._step(functools.partial(self._mark, name, named=named), bare(name))
            self._ladder()
        finally:
            for name, number in self.active.items():  # it may end by itself later, which is not this stop
                files.remove(self._at(name, number).stop)
        for name, number in self.active.items():
            if name in self._finalizers and self._finalizers[name].poll() is None:
                say(f"{bare(name)}: its processes have ended; its files are still read for its end", session=bare(name))
                continue
            say(f"{bare(name)}: has not ended", session=bare(name))
            if survivor := self.backend.survivor(self._at(name, number)):
                say(f"survives: {survivor}")
        clean, self.active = not self.active, {}
        return clean

    # Before the signals

    def _end_dispatcher(self) -> None:
        """End the dispatcher first, so that nothing new starts."""
        record = files.read(self.layout.dispatcher)
        for number in (signal.SIGTERM, signal.SIGTERM, signal.SIGKILL):
            if not process.named(record):
                return
            pid = int(record["pid"])
            process.send(pid, number)
            with Changes(end_of=pid) as changes:
                _until(_DISPATCHER_S, changes, lambda: not process.named(record))

    def _mark(self, name: str, *, named: bool) -> None:
        """Cancel a session that has not begun; mark one that has as being stopped."""
        number = self.attempts.latest(name)
        life = self.attempts.look(name, number).life
        before = "beginning"
        if life in (Life.QUEUED, Life.ENDED) and not named:
            return
        if life == Life.ENDED:
            if name.startswith(SERVERS) or not self.attempts.follows(name, number):
                say(f"{bare(name)}: has ended already", session=bare(name))
                return
            life, before = Life.QUEUED, "another_attempt"
        if life == Life.QUEUED:
            number += 1
        begins = life in (Life.QUEUED, Life.STARTING)
        reason = fact(Evidence.CANCELLED, before=before)
        why = in_words("", [reason])
        if begins and self.attempts.cancel_unstarted(name, number, "stopped", reason):
            self._tell(name, number)
            say(f"{bare(name)}: cancelled {why}", session=bare(name))
            return
        at = self._at(name, number)
        if begins and not named and not os.path.exists(at.claim):  # on a full disk, files can only be removed
            files.remove(at.grant)
            lost = f"nothing can be written in {at.directory}, so this is not on record"
            say(f"{bare(name)}: cancelled {why}; {lost}", session=bare(name))
            return
        if life == Life.LOST and not named and not self.backend.elsewhere and not stopping(at):
            self.active[name] = number  # it ended before this stop, which only writes that down
            return
        self._mark_begun(name, number)

    def _mark_begun(self, name: str, number: int) -> None:
        """Mark a session. The mark names the stopping process and is ignored once that is gone."""
        at = self._at(name, number)
        with Changes(at.directory) as changes:
            _until(_BEGINS_S, changes, lambda: self.attempts.look(name, number).life != Life.STARTING)
        if not files.write(at.stop, {"by": "stop", **process.identity()}.items()):
            files.append(at.stop)  # on a full disk it is empty
        if not self.backend.elsewhere and files.read(at.grant).get("gpus"):
            marker, known = self.attempts.marker(name, number), self.attempts.roots(name, number)
            self.on_gpus.update(map(str, ownership.members(marker, known)))
        self.active[name] = self.marked[name] = number

    def _tell(self, name: str, number: int) -> None:
        files.tell(self.layout.fifo, f"ended {bare(name)} {number}")

    # INT, TERM, KILL

    def _ladder(self) -> None:
        """Send the signals to all at once."""
        kind = "server" if any(name.startswith(SERVERS) for name in self.active) else "session"
        with Changes(*(at.directory for at in starmap(self._at, self.active.items()))) as changes:
            for _, word, default in process.STOP_STEPS:  # the last wait is for supervisors, which sweep and judge
                if not self.active:
                    return
                seconds = process.stop_s(word, default)
                complain(f"stop: sent {word} to {several(len(self.active), kind)}, waiting up to {seconds:g} s")
                if flaw := self.backend.signal(word, starmap(self._at, self.active.items())):
                    complain(f"stop: {flaw}; the sessions look for themselves")
                _until(seconds, changes, self._all_ended)
            self.backend.kill_supervisors(starmap(self._at, self.active.items()))
            _until(_BURIED_S, changes, self._all_ended)

    def _all_ended(self) -> bool:
        """Look at each session that must still end, and finalize those without a supervisor. True if none is left."""
        self.backend.refresh()
        for name, number in list(self.active.items()):
            self._step(functools.partial(self._look_at, name, number), bare(name))
        return not self.active

    def _look_at(self, name: str, number: int) -> None:
        seen = self.attempts.glance(name, number)
        if seen.life == Life.LOST and not files.read(self._at(name, number).claim):
            seen = self.attempts.look(name, number)
        if seen.life == Life.LOST:
            self._finalize(name, number)
            return
        if seen.life == Life.ENDED:
            del self.active[name]
            self._say_ended(name, seen.record)

    def _finalize(self, name: str, number: int) -> None:
        """Write the end of a lost session in a child, for which the stop waits as for all else: its files may be long.
        The child goes on after the stop."""
        running = [one for one in self._finalizers.values() if one.poll() is None]
        if len(running) >= _FINALIZERS_MOST or self._finalizers.get(name) in running:
            return

        def work() -> None:
            self.attempts.finalize_lost(name, number)
            self._tell(name, number)

        null = os.open(os.devnull, os.O_RDWR)
        try:
            self._finalizers[name] = fork(work, (null, null, null))
        finally:
            os.close(null)

    def _say_ended(self, name: str, end: dict[str, str]) -> None:
        """Print how it ended. A stopped server has no records, and its outcome does not matter."""
        if name.startswith(SERVERS):
            say(f"the server {bare(name)}: stopped")
            return
        records = int(end.get("records") or 0)
        say(f"{name}: {outcome_words(outcome_of(end))}, {several(records, 'record')}", session=name)

    def _memory_came_back(self) -> bool:
        """Whether all memory of GPUs came back, as far as is known."""
        held = still_held(self.layout.policy, self.on_gpus) if self.on_gpus else []
        if held is None:
            say("GPU memory: unknown whether all of it came back, nvidia-smi gives no answer")
        for pid, mib in held or ():
            say(f"GPU memory: process {pid} still holds {mib or '?'} MiB")
        return not held

    def _sweep(self, everything: bool) -> bool:
        """End all processes that still have a marker. Returns whether none is left."""
        run = self.attempts.id
        markers = [f"{run}/"] if everything else [self.attempts.marker(*one) for one in self.marked.items()]
        known = [root for one in self.marked.items() for root in self.attempts.roots(*one)]
        left = [pid for marker in markers for pid in descendants.sweep(marker, 0.0, known)]
        for pid in left:
            say(f"survives: {process.described(pid)}")
        return not left


def _until(seconds: float, changes: Changes, done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + seconds
    while not done() and (left := deadline - time.monotonic()) > 0:
        changes.wait(min(left, _LOOK_S))
