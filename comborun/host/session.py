"""Supervise one attempt of a session or a model server, from its claim to its end.

    session RUN NAME ATTEMPT ENGINE             ENGINE: tmux, screen, slurm, or none in a terminal
    session RUN NAME ATTEMPT ENGINE ahead FIFO  the same once FIFO says `go`: armed, it has claimed and written nothing

NAME is `servers/NAME` for a model server. Exit codes:

    0: the end is on record, whatever it is      64: usage      66: no such run or session
    69: a model server is not ready      73: can't write here      75: an earlier attempt still lives
    76: this attempt has been made       71: no memory or process to be had
"""

from __future__ import annotations

import os
import re
import signal
import sys
import time

from comborun.host import container, files, judging, pressure, process
from comborun.host.attempt import Attempt, setting
from comborun.host.attempts import stopping
from comborun.host.command import Command
from comborun.host.events import Events
from comborun.host.ladder import Ladder, signal_all
from comborun.host.place import place
from comborun.host.refusal import CANT_WRITE, LACKING, NO_RUN, USAGE, Refusal, answer, complain
from comborun.host.remains import Remains
from comborun.host.surroundings import Missing, Surroundings
from comborun.host.window import Window

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

    from comborun.host.display import Display
    from comborun.host.health import Health
    from comborun.host.watch import Verdict, Watch

MADE = 76
"""exit code: another process makes this attempt, or has made it"""
_ARMED_LOOK_S = 2.0
_WATCH_S = 5.0
_WINDOW_S = 2.0
"""for the last lines to reach a window that takes them slowly"""
_TRIES = 60
_NO_BLAME = {"stopped", "launch_failed", "preempted"}
"""causes that the log has nothing to add to"""
_TROUBLE = re.compile("error|not ?found|no such|can.?not|can't|could not|unable|unknown|denied|fail", re.IGNORECASE)


def main(arguments: list[str]) -> int:
    """The exit code."""
    process.set_name()
    return answer("session", _supervise, arguments)


def _supervise(arguments: list[str]) -> int:
    try:
        supervisor = Supervisor(arguments)
    except ValueError:
        raise Refusal(USAGE, "usage: session RUN NAME ATTEMPT ENGINE [ahead FIFO]") from None
    except LookupError as error:
        raise Refusal(NO_RUN, str(error.args[0])) from None
    try:
        return supervisor.run()
    except Refusal as refusal:
        if refusal.code != MADE:
            supervisor.tell("refused", refusal.code)
        raise
    except (OSError, MemoryError):
        supervisor.withdraw()
        raise


class Supervisor(Attempt):
    """One attempt."""

    def __init__(self, arguments: list[str]) -> None:
        if len(arguments) not in {4, 6}:
            raise ValueError
        super().__init__(*arguments[:3])
        self.engine = arguments[3]
        self.fifo = arguments[5] if len(arguments) == 6 else ""
        self.events = Events(hangup=bool(self.fifo))
        self.remains = Remains(self.marker, self.events.until)
        self.surroundings: Surroundings
        self.display: Display | None = None
        self.window: Window
        self.watch: Watch | Health | None = None
        self.verdict: Verdict | None = None
        self.place = place(self, self.engine)
        self.ladder: Ladder
        self.began = 0.0
        """seconds since the machine started"""
        self.started = ""
        self.claimed = self.begun = False
        self.interrupted = ""

    def run(self) -> int:
        if self.fifo:
            if not self.wait_for_go():
                return 0
        else:
            self.open()
        self.prepare()
        self.claim()
        process.become_subreaper()
        self.furnish()
        code = self.attend()
        Ending(self, code).write()
        self.window.close(_WINDOW_S if self.engine != "none" else 3600.0)
        if not self.interrupted:
            self.place.leave()
        return 0

    # Before there is a command

    def open(self) -> None:
        """All that can be done before there is a slot."""
        if os.path.exists(self.at.claim):
            raise Refusal(MADE, f"attempt {self.number} has been made")
        self.place.open()

    def wait_for_go(self) -> bool:
        """Whether the FIFO says `go`: False when it says anything else, or nobody is left who could."""
        try:
            fifo = os.open(self.fifo, os.O_RDWR | os.O_NONBLOCK | os.O_CLOEXEC)
        except OSError:
            return False
        self.open()
        self.tell("ahead", os.getpid())
        sys.stdout.write(f"{self.name} waits for a free slot\n")
        sys.stdout.flush()
        said = b""
        while b"\n" not in said:
            self.events.wait(time.monotonic() + _ARMED_LOOK_S, [fifo])
            if self.events.heard:
                self.tell("gone")
                return False
            try:
                said += os.read(fifo, 100)
            except BlockingIOError:
                if not self._dispatcher_lives():
                    return False
        os.close(fifo)
        self.events.ignore_hangup()
        return said == b"go\n"

    def _dispatcher_lives(self) -> bool:
        """Whether the one that opened this window does."""
        record = files.read(self.run_layout.dispatcher)
        pid = record.get("pid", "")
        own = f"/ahead-{pid}-" in self.fifo
        return own and process.alive(pid, record.get("start", ""), record.get("boot", ""))

    def prepare(self) -> None:
        """What it was granted, and where its servers are."""
        try:
            self.read(self.place.grant())
        except LookupError as error:
            raise Refusal(NO_RUN, str(error.args[0])) from None
        self.surroundings = Surroundings(self.run_layout, self.data, self.grant)
        self.gpus = self.surroundings.gpus.indexes
        if self.data.get("servers"):
            from comborun.host import served

            try:
                told = served.environment(
                    self.run_layout.directory, self.data["servers"], self.grant.get("gpus", ""), self.grant
                )
            except LookupError as error:
                raise Refusal(LACKING, str(error.args[0])) from None
            self.surroundings.environment.update(told)

    def claim(self) -> None:
        """An attempt is made once."""
        pid, start, boot = process.identity()
        facts: list[tuple[str, object]] = [("supervisor", pid), ("supervisor_start", start), ("boot", boot)]
        facts += [("kills", pressure.kills()), *self.rules().fields()]
        try:
            self.claimed = self.place.claim(facts)
        except OSError:
            raise Refusal(CANT_WRITE, f"can't write in {self.at.directory}: is the disk full?") from None
        if not self.claimed:
            raise Refusal(MADE, f"attempt {self.number} has been made")

    # Its command

    def furnish(self) -> None:
        """Give it what it asks for and start it. What can't be had is a failed launch."""
        refusal = ""
        given = self.surroundings
        try:
            given.open()
            self.port = given.port
            if self.data.get("display"):
                from comborun.host.display import Display

                word = (self.data["display"], given.gpus.indexes, self.at.directory, self.marker, given.cores)
                self.display = Display(*word)
                given.environment["DISPLAY"] = given.environment["COMBORUN_DISPLAY"] = self.display.number
        except Missing as error:
            refusal = str(error)
        if not container.write(self.at.directory, self.data.get("container", ""), self.marker):
            refusal = f"can't write in {self.at.directory}"
        self.began = process.uptime()
        self.started = f"{time.time():.6f}"
        self.pid = self._command(refusal).start()
        look = process.look(self.pid)
        self.start = look.start if look else ""
        self.begin()
        self.window = Window(self.place.shown, skips=self.engine != "none")

    def _command(self, refusal: str) -> Command:
        inherited = [*self.place.held, *self.surroundings.held, *(self.display.held if self.display else ())]
        command = Command(f"{self.folder}/session.sh", self.at.log, self._environment(), inherited)
        command.cores = self.surroundings.cores
        command.refusal = refusal
        if refusal:
            files.write_text(self.at.failure, refusal + "\n")
        return command

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
            "FIRST_EPISODE": str(self.first),
        }
        if self.data.get("files"):
            own["FILES"] = self.at.files
        return {**self.surroundings.environment, **{f"COMBORUN_{key}": value for key, value in own.items()}}

    def withdraw(self) -> None:
        """No process, memory or room can be had: the attempt has not been made, and may be later."""
        if self.pid:
            return
        if self.display:
            self.display.close()
        if self.claimed:
            self.place.withdraw()
        self.tell("refused", CANT_WRITE)

    def begin(self) -> None:
        """Write down that it runs; tried again later where there is no room."""
        pid, start, boot = process.identity()
        given = self.surroundings
        told: list[tuple[str, object]] = [("attempt", self.number), ("started", self.started)]
        told += [("supervisor", pid), ("supervisor_start", start), ("pid", self.pid), ("pid_start", self.start)]
        told += [("boot", boot), ("host", self.place.node), ("multiplexer", self.engine)]
        told += [("address", self.place.address()), ("gpus", given.gpus.indexes)]
        told += [("first", self.first), ("count", self.count)]
        more = {"screendir": os.environ.get("SCREENDIR"), "cores": given.cores, "port": given.port}
        more["display"] = self.display.number if self.display else ""
        told += [(key, value) for key, value in more.items() if value]
        if given.egl_told:
            told += [("egl", given.egl), ("egl_told", given.egl_told)]
        self.begun = files.write(self.at.begin, told)

    def attend(self) -> int:
        """Show its log, watch it, hand signals on, until it has ended; its exit code."""
        every = max(0.02, setting("COMBORUN_WATCH_S", _WATCH_S))
        look_again = time.monotonic() + min(every, 1.0)  # what is done in a second needs no watch
        ladder = self.ladder = Ladder(self.pid)
        while self.pid not in self.events.status:
            watch = self.watch
            descriptors = [*self.window.descriptors(), *(watch.descriptors() if watch else ())]
            self.events.wait(
                min(look_again, self.window.deadline, ladder.due, watch.due() if watch else look_again), descriptors
            )
            self._forward()
            self.window.show()
            ladder.climb()
            if watch and not self.verdict:
                self._look(watch)
            if time.monotonic() >= look_again:
                look_again = time.monotonic() + every
                self._once_in_a_while()
        if self.display:
            self.display.reaped(self.events.status)
        return self.events.status[self.pid]

    def _forward(self) -> None:
        for number in self.events.heard:
            if number == signal.SIGUSR1:
                self._warned()
                continue
            self.interrupted = (
                "interrupted in its window" if number == signal.SIGINT else "its supervisor was told to end"
            )
            signal_all(self.pid, number)
            if number == signal.SIGTERM and self.engine == "slurm":
                self.ladder.hurry()  # it is killed in a moment, and the evidence takes time, too
        self.events.heard.clear()

    def _warned(self) -> None:
        """Slurm's time limit is near."""
        from comborun.host.watch import Verdict

        if self.engine == "slurm" and not self.verdict:
            self.verdict = Verdict("timed_out", "Slurm's time limit")
            files.write(self.at.verdict, [("cause", self.verdict.cause), ("note", self.verdict.note)])
            self.ladder.begin()

    def _once_in_a_while(self) -> None:
        said = self.place.beat()
        if said == "closed":
            signal_all(self.pid, signal.SIGKILL)  # what it still writes counts for nothing
        elif said == "stop" and not (self.interrupted or self.ladder.begun):
            self.ladder.begin()
        if not self.begun:
            self.begin()
        if self.watch is None:
            self._open_watch()

    def _open_watch(self) -> None:
        from comborun.host import watching

        try:
            self.watch = watching.over(self)
        except (OSError, MemoryError):
            return  # later

    def _look(self, watch: Watch | Health) -> None:
        if time.monotonic() < watch.due() and not watch.descriptors():
            return
        try:
            self.verdict = watch.look()
        except (OSError, MemoryError) as error:
            complain(f"session: the watch can't look just now: {error}")
        if self.verdict:
            self.ladder.begin()

    def patiently(self, act: Callable[[], None]) -> None:
        """Do what has to be done; where there is no memory, or no descriptor to be had, again in a second."""
        for left in reversed(range(_TRIES)):
            try:
                act()
            except (OSError, MemoryError) as error:
                if not left:
                    raise
                complain(f"session: {self.name} waits to write its end: {error}")
                self.events.until(1.0, lambda: False)
            else:
                return


class Ending:
    """What is done when the command has ended. That the slot is free comes first: somebody waits for it."""

    def __init__(self, supervisor: Supervisor, code: int) -> None:
        self._of = supervisor
        self._at = supervisor.at
        self._code = code
        self._ended = f"{time.time():.6f}"
        self._cause, self._note = "exited", ""
        self._stopped = stopping(self._at)
        at_once = supervisor.interrupted or supervisor.verdict or self._stopped
        self._grace = setting("COMBORUN_GRACE_S", 5.0)
        self._behind = self._end_group(0.0 if at_once else self._grace)

    def write(self) -> None:
        of = self._of
        if of.data.get("container"):
            container.end(self._at.directory)
        of.tell("free")
        if of.watch:
            of.watch.close()
        if of.display:
            of.display.close()
        of.window.show()
        self._see()
        of.patiently(self._sweep)
        of.patiently(self._judge)
        of.tell("ended")

    def _end_group(self, grace: float) -> int:
        """How many of the command's group had to be killed: a child may still write results, or the end of a video."""
        of, left = self._of, 0
        if grace:
            over = lambda: not of.remains.of_group(of.pid) or stopping(self._at)  # noqa: E731
            if not of.events.until(grace, over) or stopping(self._at):
                left = of.remains.of_group(of.pid)
        process.send_group(of.pid, signal.SIGKILL)
        return left

    def _see(self) -> None:
        """The cause, as far as it was seen from here."""
        of, code = self._of, self._code
        if 128 < code <= 192:
            self._cause = "signal"
        failure = files.read_text(self._at.failure).strip()
        runtime = of.data.get("container", "")
        if failure:
            self._cause, self._note = "launch_failed", with_output(failure, self._at.log)
        elif runtime and container.why(self._at.log, runtime, code):
            self._cause, self._note = "launch_failed", container.why(self._at.log, runtime, code)
        if of.interrupted:
            self._cause, self._note = "stopped", of.interrupted
        told = of.place.why() if of.interrupted or self._cause == "signal" else None
        if told:
            self._cause, self._note, self._grace = (*told, 0.0)
        if of.verdict:
            self._cause, self._note, self._grace = of.verdict.cause, of.verdict.note, 0.0
        if self._stopped or stopping(self._at):
            self._cause, self._note, self._grace = "stopped", "", 0.0

    def _sweep(self) -> None:
        """What left the group has its grace, too."""
        behind, survivors = self._of.remains.end(self._grace, 5.0)
        self._behind += behind
        if survivors:
            self._add(f"processes survive: {' '.join(map(str, survivors))}")

    def _add(self, text: str) -> None:
        self._note = f"{self._note}; {text}" if self._note else text

    def _judge(self) -> None:
        of = self._of
        proven = self._code if self._cause == "exited" else None  # told to leave, it may leave with 0 and nothing done
        judged = judging.judge(self._at, proven)
        ending = judging.Ending(self._cause, self._note, self._code, of.started, self._ended)
        if judged.completeness.value != "complete" and self._cause not in _NO_BLAME:
            if self._behind and self._grace:
                self._add(f"processes that it left behind were ended after {self._grace:g} s: {self._behind}")
            ending.note = self._note
            self._refine(ending, judged)
        why = files.read(self._at.wrong_gpu).get("why", "")
        if why:
            ending.note = f"{ending.note}; {why}" if ending.note else why
        if of.watch and of.watch.peak_kib:
            ending.peak_memory_kib = str(of.watch.peak_kib)
        if judging.write_end(self._at, ending, judged):
            files.remove(self._at.watch, self._at.verdict, self._at.stalled)

    def _refine(self, ending: judging.Ending, judged: judging.Judged) -> None:
        from comborun.host import causes, watching

        failed = causes.Failed(watching.job(self._of), ending.cause, ending.code, ending.note)
        failed.records, failed.began = judged.records, self._of.began
        failed.kills = files.read(self._at.claim).get("kills", ",")
        failed.signatures = [(one[0], one[1]) for one in self._of.data.get("signatures", ())]
        why = causes.explain(failed)
        ending.cause, ending.signature, ending.note = why.cause, why.signature, why.note


def with_output(failure: str, log: str) -> str:
    """Why a command was not started, with the line of its output that says most."""
    failure = " ".join(failure.split())
    if "could not be run in" in failure:
        return f"{failure}: {_why_not(failure, log)}"
    lines = [line for line in _said(log) if failure not in " ".join(line.split())]
    if not lines or not failure.startswith("setup line"):
        return failure
    telling = [line for line in lines if _TROUBLE.search(line)]
    return f"{failure}: {(telling or lines)[-1]}"


def _said(log: str) -> list[str]:
    """The last lines of a log, without what bash puts in front of its own."""
    lines = (line.strip() for line in container.tail(log))
    return [re.sub(r"^(/.*?)?session\.sh: (line [0-9]+: )?(exec: )?", "", line) for line in lines if line]


def _why_not(failure: str, log: str) -> str:
    """What bash says, unless it is the interpreter that a script names which is not there."""
    program, _, folder = failure.partition(" could not be run in ")
    try:
        with open(os.path.join(folder, program), "rb") as file:
            first = file.readline(256)
    except OSError:
        first = b""
    words = first[2:].split(None, 1) if first.startswith(b"#!") else []
    interpreter = first[2:].rstrip(b"\n").lstrip().split(b" ")[0].decode("utf-8", "replace") if words else ""
    if interpreter and not os.access(interpreter, os.X_OK):
        return f"it wants the interpreter {interpreter!r}, which is not there"
    told = [line for line in _said(log) if line.startswith(program)]
    return told[-1].rpartition(": ")[2] if told else "bash says nothing"
