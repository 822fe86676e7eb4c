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
import resource
import time

from comborun.host.record import launch_environment
from comborun.host.record.deals import claiming
from comborun.host.supervise.attempt import Attempt, Place
from comborun.host.supervise.environment import CommandEnvironment, bind, inherited
from comborun.host.supervise.running import RunningCommand
from comborun.host.system import files, machine, process
from comborun.host.system.events import Events, spawn
from comborun.host.verb_errors import USAGE, Refusal, answer, unwritable
from comborun.rules import records
from comborun.rules.endings.evidence import Evidence, MissingResource, fact
from comborun.rules.host import Denial
from comborun.rules.names import TOGETHER

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping

    from comborun.host.supervise.display import Display
    from comborun.rules.facts import Fact

MADE = 76
"""exit code: another process makes this attempt, or has made it"""
_REFUSED = 78
"""exit code of a command that was not started"""
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
        raise Refusal(USAGE, Denial.USAGE, usage="session RUN NAME ATTEMPT ENGINE") from None
    if grant >= 0:
        supervisor.rehearse()
        if not supervisor.events.wait_for_byte(grant):
            return 0
    try:
        return supervisor.run()
    except Refusal as refusal:
        if refusal.exit_code != MADE:
            supervisor.attempt.tell("refused", refusal.exit_code)
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


def no_core_files() -> None:
    """A crash leaves no core file: many would fill the disk. `ulimit -c unlimited` in `setup` asks for them."""
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))


class Supervisor:
    """Claims an attempt, provides what its command needs, and starts it. Then running.py takes over."""

    def __init__(self, arguments: list[str]) -> None:
        if len(arguments) != 4:
            raise ValueError
        self.attempt = Attempt(*arguments[:3])
        self.events = Events()
        if arguments[3] == "slurm":
            from comborun.host.supervise.task import SlurmPlace

            self.place: Place = SlurmPlace(self.attempt)
        else:
            self.place = Place(self.attempt, arguments[3])
        self._inherited = inherited()
        self._command_env: CommandEnvironment
        self._display: Display | None = None
        self._missing: Fact | None = None
        """why the command could not be started"""
        self._claimed = False
        self._identity = process.identity()
        self._own_turn = files.read_line(_OOM_SCORE)
        files.append(_OOM_SCORE, _FIRST_TO_GO)  # until the command has inherited it
        process.become_subreaper()

    def run(self) -> int:
        attempt = self.attempt
        if os.path.exists(attempt.at.claim):
            raise Refusal(MADE, Denial.ATTEMPT_MADE, attempt=attempt.number)
        self.place.open()
        self.prepare()
        process.end_with_parent(yes=False)
        self.claim()
        command = self.start()
        command.finish(command.until_ended(self._display), self._display, self._missing)
        command.close()
        if not command.interrupted:
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
        attempt = self.attempt
        judged_by = attempt.data.get(records.JUDGING, {})
        fields = [("first", attempt.first), ("count", attempt.count), (records.JUDGING, judged_by)]
        return [*self._process(), *fields, *([(TOGETHER, attempt.together)] if attempt.together else [])]

    def prepare(self) -> None:
        attempt = self.attempt
        attempt.read(self.place.grant())
        self._command_env = CommandEnvironment(attempt.run_layout, attempt.data, attempt.grant, self._inherited)
        if attempt.data.get("servers"):
            from comborun.host.record import clients

            gpus = attempt.grant.get("gpus", "")
            words = (attempt.run_layout.directory, attempt.data["servers"], gpus, attempt.grant)
            variables = self._command_env.environment
            variables.update(clients.environment(*words), **clients.without_proxy(variables))

    def claim(self) -> None:
        """Claim the attempt. Raises Refusal if it was claimed before, or if the session runs on another box."""
        with claiming(self.attempt.run_layout, self.attempt.name):
            try:
                self._claimed = self.place.claim(self._claim())
            except OSError:
                raise unwritable(self.attempt.at.directory) from None
        if not self._claimed:
            raise Refusal(MADE, Denial.ATTEMPT_MADE, attempt=self.attempt.number)

    def _process(self) -> list[tuple[str, object]]:
        own = {**self._identity, "host": self.place.node}
        return [("supervisor", own.pop("pid")), ("supervisor_start", own.pop("start")), *own.items()]

    def withdraw(self, number: int) -> None:
        """Give the attempt back after an error for lack of processes, memory or room; it may be made later."""
        if self.attempt.pid:
            return
        if self._display:
            self._display.close()
        if self._claimed:
            self.place.withdraw()
        self.attempt.tell("lacks", number)

    # Its command

    def start(self) -> RunningCommand:
        """Provide what the command needs and start it. If something is missing, the launch has failed."""
        attempt, command_env = self.attempt, self._command_env
        try:
            self._provide()
        except MissingResource as error:
            self._missing = error.reason
        attempt.started = time.time()
        attempt.pid = self._spawn(self._environment())
        files.append(_OOM_SCORE, self._own_turn)
        attempt.kills = machine.kills()
        look = process.look(attempt.pid)
        attempt.start = look.start if look else ""
        attempt.port = command_env.port
        return RunningCommand(attempt, self.place, self.events, self._begin())

    def _provide(self) -> None:
        """Raises MissingResource."""
        attempt, command_env = self.attempt, self._command_env
        if flaw := bind(command_env.cores):
            attempt.add_to_log(flaw)
        command_env.open()
        if asked := attempt.data.get("display"):
            from comborun.host.supervise.display import Display

            self._display = Display(asked, command_env.gpus.indexes, attempt)
            number = self._display.number
            command_env.environment.update(DISPLAY=number, COMBORUN_DISPLAY=number)

    def _environment(self) -> dict[str, str]:
        attempt, run = self.attempt, self.attempt.run_layout
        own = {
            "RUN": attempt.run_id,
            "RUN_DIR": run.directory,
            "RESULTS_DIR": run.results,
            "OUTPUT_DIR": self.place.output,
            "ATTEMPT": str(attempt.number),
            "SESSION": attempt.marker,
            "FAILURE": attempt.at.failure,
            "EPISODES": str(attempt.count),
            "FIRST_EPISODE": str(attempt.first - attempt.rules.results.base),
        }
        if attempt.together:  # its script says how many episodes each of them has
            own["TOGETHER"] = " ".join(attempt.together)
        if attempt.data.get("files"):
            own["FILES"] = attempt.at.files
        inherited = {"SPT_NOENV": "1", **self._command_env.environment}  # setproctitle leaves the environment alone
        return {**inherited, **{f"COMBORUN_{key}": value for key, value in own.items()}}

    def _spawn(self, environment: Mapping[str, str]) -> int:
        """Start the script, with its output going straight to the log; returns the pid. Raises OSError if it may start
        later.
        """
        no_core_files()
        log, held = self.attempt.at.log, self._display.held if self._display else ()
        for fd in (*self.place.held, *self._command_env.held, *held):
            os.set_inheritable(fd, True)  # the command keeps them open: its lock, port and display
        actions: list[tuple[object, ...]] = [
            (os.POSIX_SPAWN_OPEN, 0, os.devnull, os.O_RDONLY, 0),
            (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666),
            (os.POSIX_SPAWN_DUP2, 1, 2),
        ]
        if not self._missing:
            try:
                return spawn(["bash", self.attempt.script], environment, actions)
            except OSError as error:
                if error.errno in _LATER:
                    raise
                folder = self.attempt.folder
                self._missing = fact(Evidence.COULD_NOT_RUN, program="bash", folder=folder, said=error.strerror)
        return spawn(["sh", "-c", f"exit {_REFUSED}"], {}, actions)

    def _begin(self) -> list[tuple[str, object]]:
        """The fields of the begin record."""
        attempt, command_env, place = self.attempt, self._command_env, self.place
        fields: list[tuple[str, object]] = [("attempt", attempt.number), ("started", round(attempt.started, 6))]
        fields += [*self._process(), ("pid", attempt.pid), ("pid_start", attempt.start), ("kills", attempt.kills)]
        fields += [("multiplexer", place.engine), ("address", place.address()), ("gpus", command_env.gpus.indexes)]
        fields += [("first", attempt.first), ("count", attempt.count)]
        fields += [("environment", launch_environment.number(attempt.run_layout, self._inherited))]
        more = {**place.sockets(), "cores": command_env.cores, "port": command_env.port}
        more["display"] = self._display.number if self._display else ""
        more.update(graphics(command_env.gpus.indexes))
        fields += [(key, value) for key, value in more.items() if value]
        return [*fields, *command_env.drawing.items()]
