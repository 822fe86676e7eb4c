"""Supervises one attempt of a session or a model server, from its claim to its end.

    session RUN NAME ATTEMPT ENGINE    ENGINE: tmux, screen, slurm, or none in a terminal

NAME is `servers/NAME` for a model server. Exit codes:

    0: the end is on record, whatever it is      64: usage      66: no such run or session
    69: a model server is not ready      73: can't write here      75: an earlier attempt still lives
    76: this attempt has been made       71: no memory, or no process can start
"""

from __future__ import annotations

import contextlib
import errno
import glob
import os
import re
import signal
import time

from comborun.host.supervise.attempt import Attempt, Place, StopSequence
from comborun.host.supervise.ending import finish
from comborun.host.supervise.environment import CommandEnvironment, MissingResource, bind, inherited
from comborun.host.supervise.window import Window
from comborun.host.system import files, machine, process
from comborun.host.system.descendants import Leftovers
from comborun.host.system.events import Events, spawn
from comborun.host.system.process import setting
from comborun.host.verb_errors import CANT_WRITE, LACKING, NO_MEMORY, NO_RUN, USAGE, Refusal, answer, complain
from comborun.rules import records

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Mapping

    from comborun.host.supervise.display import Display
    from comborun.host.supervise.health import Health
    from comborun.host.supervise.watch import Verdict, Watch
    from comborun.host.system.events import Action

MADE = 76
"""exit code: another process makes this attempt, or has made it"""
_REFUSED = 78
"""exit code of a command that was not started"""
_WINDOW_S = 2.0
"""seconds for the last lines to reach a slow window"""
_TRIES = 60
_LATER = (errno.EAGAIN, errno.ENOMEM, errno.ENFILE, errno.EMFILE, errno.ENOSPC)
"""errors with which a command can't start now, but may start later"""
_OOM_SCORE, _FIRST_TO_GO = "/proc/self/oom_score_adj", "500"
"""the command's score: when memory runs out, the kernel ends it before its supervisor"""


def main(arguments: list[str]) -> int:
    process.set_name()
    return supervise(arguments)


def supervise(arguments: list[str], grant: int = -1) -> int:
    """Supervise in a process that has its name already. One that the dispatcher forked (host/dispatch/windows.py) waits
    for its grant.
    """
    return answer("session", lambda words: _supervise(words, grant), arguments)


def _supervise(arguments: list[str], grant: int) -> int:
    try:
        supervisor = Supervisor(arguments)
    except ValueError:
        raise Refusal(USAGE, "usage: session RUN NAME ATTEMPT ENGINE") from None
    except LookupError as error:
        raise Refusal(NO_RUN, str(error.args[0])) from None
    if grant >= 0:
        supervisor.rehearse()
        if not supervisor.events.wait_for_byte(grant):
            return 0
    try:
        return supervisor.run()
    except Refusal as refusal:
        if refusal.code != MADE:
            supervisor.tell("refused", refusal.code)
        raise
    except (OSError, MemoryError) as error:
        supervisor.withdraw(getattr(error, "errno", None) or errno.ENOMEM)
        raise


def graphics(indexes: str, nvidia: str = "/proc/driver/nvidia") -> dict[str, str]:
    """The driver and the models of these GPUs (`0,1`, in the order of the PCI bus); empty without any."""
    granted = [int(one) for one in indexes.split(",") if one.strip().isdigit()]
    if not granted:
        return {}
    version = re.search(r"\s([0-9]+\.[0-9.]+)", files.read_text(f"{nvidia}/version").partition("\n")[0])
    cards = [files.read_text(path) for path in sorted(glob.glob(f"{nvidia}/gpus/*/information"))]
    models = [re.search(r"(?m)^Model:\s*(.+)", card) for card in cards]
    known = {model[1].strip() for place, model in enumerate(models) if model and place in granted}
    return {"driver": version[1] if version else "", "gpu_models": ", ".join(sorted(known))}


def watch_over(of: Attempt) -> Watch | Health:
    if "ready" in of.data:
        from comborun.host.supervise.health import Health

        return Health(of)
    from comborun.host.supervise.watch import Watch

    return Watch(of)


class Supervisor(Attempt):
    def __init__(self, arguments: list[str]) -> None:
        if len(arguments) != 4:
            raise ValueError
        super().__init__(*arguments[:3])
        self.engine = arguments[3]
        self.events = Events()
        self.remains = Leftovers(self.marker, self.events.until)
        self._inherited = inherited()
        self.given: CommandEnvironment
        self.display: Display | None = None
        self.window: Window
        self.watch: Watch | Health | None = None
        self.verdict: Verdict | None = None
        self.place = self._place()
        self.ladder: StopSequence
        self.started = 0.0
        """seconds since 1970"""
        self.claimed = self.begun = False
        self.interrupted = ""
        self.identity = process.identity()
        self._own_turn = files.read_line(_OOM_SCORE)
        files.append(_OOM_SCORE, _FIRST_TO_GO)  # until the command has inherited it
        process.become_subreaper()

    def _place(self) -> Place:
        if self.engine != "slurm":
            return Place(self, self.engine)
        from comborun.host.supervise.task import SlurmPlace

        return SlurmPlace(self.run_layout.directory, self.name, self.number)

    def run(self) -> int:
        if os.path.exists(self.at.claim):
            raise Refusal(MADE, f"attempt {self.number} has been made")
        self.place.open()
        self.prepare()
        process.end_with_parent(yes=False)
        self.claim()
        self.prepare_and_start()
        finish(self, self.supervise_until_exit())
        self.window.close(_WINDOW_S if self.engine != "none" else 3600.0)
        if not self.interrupted:
            self.place.leave()
        return 0

    # Before there is a command

    def rehearse(self) -> None:
        """Do what takes time and claims nothing: make the empty files, and run the other steps of a start once, so that
        code and memory are at hand later.
        """
        with contextlib.suppress(Refusal, OSError):
            self.place.make_files()
            self.prepare()
            records.render(self._claim())

    def _claim(self) -> list[tuple[str, object]]:
        return [*self._facts(), *self.rules.fields()]

    def prepare(self) -> None:
        try:
            self.read(self.place.grant())
        except LookupError as error:
            raise Refusal(NO_RUN, str(error.args[0])) from None
        self.given = CommandEnvironment(self.run_layout, self.data, self.grant, self._inherited)
        self.gpus = self.given.gpus.indexes
        if self.data.get("servers"):
            from comborun.host.record import clients

            words = (self.run_layout.directory, self.data["servers"], self.grant.get("gpus", ""), self.grant)
            try:
                self.given.environment.update(clients.environment(*words))
            except LookupError as error:
                raise Refusal(LACKING, str(error.args[0])) from None

    def claim(self) -> None:
        """Claim the attempt. Raises Refusal if it was claimed before."""
        try:
            self.claimed = self.place.claim(self._claim())
        except OSError:
            raise Refusal(CANT_WRITE, f"can't write in {self.at.directory}: is the disk full?") from None
        if not self.claimed:
            raise Refusal(MADE, f"attempt {self.number} has been made")

    def _facts(self) -> list[tuple[str, object]]:
        pid, start, boot = self.identity
        return [("supervisor", pid), ("supervisor_start", start), ("boot", boot)]

    def withdraw(self, number: int) -> None:
        """Give the attempt back after an error for lack of processes, memory or room; it may be made later."""
        if self.pid:
            return
        if self.display:
            self.display.close()
        if self.claimed:
            self.place.withdraw()
        self.tell("lacks", number)

    # Its command

    def prepare_and_start(self) -> None:
        """Provide what the command needs and start it. If something is missing, the launch has failed."""
        refusal = ""
        given = self.given
        try:
            if flaw := bind(given.cores):
                files.append(self.at.log, f"comborun: {flaw}\n")
            given.open()
            self.port = given.port
            if self.data.get("display"):
                from comborun.host.supervise.display import Display

                word = (self.data["display"], given.gpus.indexes, self.at.directory, self.marker)
                self.display = Display(*word)
                given.environment["DISPLAY"] = given.environment["COMBORUN_DISPLAY"] = self.display.number
        except MissingResource as error:
            refusal = str(error)
        if refusal:
            files.write_text(self.at.failure, refusal + "\n")
        self.started = time.time()
        self.pid = self._start(self._environment(), refusal)
        files.append(_OOM_SCORE, self._own_turn)
        self.kills = machine.kills()
        look = process.look(self.pid)
        self.start = look.start if look else ""
        self.begin()
        self.window = Window(self.place.shown, skips=self.engine != "none")

    def _environment(self) -> dict[str, str]:
        run = self.run_layout
        own = {
            "RUN": self.run_id,
            "RUN_DIR": run.directory,
            "RESULTS_DIR": run.results,
            "OUTPUT_DIR": self.place.output,
            "ATTEMPT": str(self.number),
            "SESSION": self.marker,
            "FAILURE": self.at.failure,
            "EPISODES": str(self.count),
            "FIRST_EPISODE": str(self.first - self.rules.results.base),
        }
        if self.data.get("files"):
            own["FILES"] = self.at.files
        return {**self.given.environment, **{f"COMBORUN_{key}": value for key, value in own.items()}}

    def _start(self, environment: Mapping[str, str], refusal: str) -> int:
        """Start the script, with its output going straight to the log; returns the pid. Raises OSError if it may start
        later.
        """
        for fd in (*self.place.held, *self.given.held, *(self.display.held if self.display else ())):
            os.set_inheritable(fd, True)  # the command keeps them open: its lock, port and display
        actions: list[Action] = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, self.at.log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
        if not refusal:
            try:
                return spawn(["bash", self.script], environment, actions)
            except OSError as error:
                if error.errno in _LATER:
                    raise
                refusal = f"bash can't be started: {error.strerror}"
        files.append(self.at.log, f"comborun: {refusal}\n")
        return spawn(["sh", "-c", f"exit {_REFUSED}"], {}, actions)

    def begin(self) -> None:
        """Write the begin record; tried again later if the disk is full."""
        given = self.given
        fields: list[tuple[str, object]] = [("attempt", self.number), ("started", round(self.started, 6))]
        fields += [*self._facts(), ("pid", self.pid), ("pid_start", self.start), ("kills", self.kills)]
        fields += [("host", self.place.node), ("multiplexer", self.engine)]
        fields += [("address", self.place.address()), ("gpus", given.gpus.indexes)]
        fields += [("first", self.first), ("count", self.count)]
        more = {"screendir": os.environ.get("SCREENDIR"), "cores": given.cores, "port": given.port}
        more["display"] = self.display.number if self.display else ""
        more.update(graphics(given.gpus.indexes))
        fields += [(key, value) for key, value in more.items() if value]
        fields += given.drawing.items()
        self.begun = files.write(self.at.begin, fields)

    def supervise_until_exit(self) -> int:
        """Show the log, watch the command and forward signals until it ends; returns its exit code."""
        every = max(0.02, setting("COMBORUN_WATCH_S", 5.0))
        look_again = time.monotonic() + min(every, 1.0)  # a command of one second needs no watch
        ladder = self.ladder = StopSequence(self.pid)
        while self.pid not in self.events.status:
            watch = self.watch
            descriptors = [*self.window.descriptors(), *(watch.descriptors() if watch else ())]
            due = watch.due() if watch else look_again
            self.events.wait(min(look_again, self.window.deadline, ladder.due, due), descriptors)
            self._forward()
            if self.pid in self.events.status:
                continue
            self.window.show()
            ladder.advance()
            if watch and not self.verdict:
                self._look(watch)
            if time.monotonic() >= look_again:
                look_again = time.monotonic() + every
                self._once_in_a_while()
        if self.display:
            self.display.reaped(self.events.status)
        return self.events.status[self.pid]

    def _forward(self) -> None:
        for number in self.events.received:
            if number == signal.SIGUSR1:
                self._warned()
                continue
            by_hand = number == signal.SIGINT
            self.interrupted = "interrupted in its window" if by_hand else "its supervisor was told to end"
            process.send_all(self.pid, number)
            if number == signal.SIGTERM and self.engine == "slurm":
                self.ladder.skip_to_kill()  # Slurm kills it soon, and judging takes time too
        self.events.received.clear()

    def _warned(self) -> None:
        """Slurm's time limit is near."""
        if self.engine == "slurm" and not self.verdict:
            self.verdict = "timed_out", "Slurm's time limit"
            files.write(self.at.verdict, [("cause", self.verdict[0]), ("note", self.verdict[1])])
            self.ladder.begin()

    def _once_in_a_while(self) -> None:
        said = self.place.heartbeat()
        if said == "closed":
            process.send_all(self.pid, signal.SIGKILL)  # its output no longer counts
        elif said == "stop" and not (self.interrupted or self.ladder.begun):
            self.ladder.begin()
        if not self.begun:
            self.begin()
        if self.watch is None:
            try:
                self.watch = watch_over(self)
            except (OSError, MemoryError):
                return  # later

    def _look(self, watch: Watch | Health) -> None:
        if time.monotonic() < watch.due() and not watch.descriptors():
            return
        try:
            self.verdict = watch.look()
        except (OSError, MemoryError) as error:
            complain(f"session: the watch can't look just now: {str(error) or NO_MEMORY}")
        if self.verdict:
            self.ladder.begin()

    def patiently(self, act: Callable[[], None]) -> None:
        """Call `act`; without memory or descriptors try again every second, for a minute."""
        for left in reversed(range(_TRIES)):
            try:
                act()
            except (OSError, MemoryError) as error:
                if not left:
                    raise
                complain(f"session: {self.name} waits to write its end: {str(error) or NO_MEMORY}")
                self.events.until(1.0, lambda: False)
            else:
                return
