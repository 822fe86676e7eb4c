"""`start RUN [--parallel N] [--multiplexer NAME] [--environment first|now] [--secrets -] [--for moves]`: starts the
dispatcher, or resumes it. `--for moves`: for sessions of another host only, so nothing is tried again, and a stop
stays. `start RUN VERB [ARGUMENT]...`: runs `bash run_parallel.sh VERB`: stop, resume, pause,
slots, take-over ...

Safe to repeat. With `--secrets -` the laptop's secrets are on standard input, each NAME=VALUE and a NUL.

0: a dispatcher lives, or nothing is left to do. 64: usage. 66: no run directory. 68: it runs elsewhere.
69: no multiplexer. 73: can't write there. 75: something holds the run's locks. 78: a secret is missing.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import subprocess
import sys
import time

from comborun.host.dispatch import MOVES
from comborun.host.record import launch_environment, secrets
from comborun.host.record.deals import refuse_stopped
from comborun.host.record.events import Events
from comborun.host.record.holds import Holds
from comborun.host.record.run_owner import refuse_elsewhere
from comborun.host.system import files, process
from comborun.host.system.changes import Changes
from comborun.host.system.children import host_program
from comborun.host.verb_errors import (
    BUSY,
    CONFIG,
    LACKING,
    USAGE,
    Refusal,
    answer,
    holding,
    must_write,
    run_directory,
    say,
)
from comborun.host.verbs.replace import replace
from comborun.rules.endings.evidence import MissingResource
from comborun.rules.findings import Found
from comborun.rules.host import Denial
from comborun.rules.names import MULTIPLEXER_NAMES, RunLayout

_OPTIONS = ("--parallel", "--multiplexer", "--secrets", "--environment", "--follow", "--for")
_USAGE = f"[--parallel N] [--multiplexer {'|'.join(MULTIPLEXER_NAMES)}] [--environment first|now] [--secrets -]"
_OTHERS_S = 120.0
"""seconds to wait for another start, which may have to end the user's old sessions"""
UNTIL_STOPPED = "stopped"
"""in place of the pid of a training: it is followed until the run is stopped"""
_STEERED = frozenset(("pause", "drain", "slots", "retry", "notify", "resume"))
_LEAVING_S = 15.0
"""seconds for which a leaving dispatcher may hold the lock"""


def main(arguments: list[str]) -> int:
    run, verb, words = arguments[:1], "".join(arguments[1:2]), arguments[2:]
    if verb == "stop":
        from comborun.host.verbs import stop

        return stop.main([*run, *words])
    if verb == "take-over":
        from comborun.host.verbs import take_over

        return take_over.main(run)
    if verb in _STEERED:
        from comborun.host.verbs import control

        code = control.main([*run, verb, *words])
        if code or verb != "resume":
            return code
        arguments = [*run, *words]  # lift the hold
    return answer("start", _start, arguments)


def _start(arguments: list[str]) -> int:
    run = run_directory(arguments)
    given = _options(arguments[1:])
    refuse_elsewhere(run)
    refuse_stopped(RunLayout(run))
    Events(RunLayout(run)).order("start", **{name[2:]: value for name, value in given.items() if name != "--secrets"})
    if os.path.exists(RunLayout(run).engine):
        from comborun.host.dispatch import slurm_reconcile
        from comborun.host.engines.arrays import take_variables
        from comborun.words import say as worded

        for fact in take_variables(RunLayout(run)):
            say(worded(fact), fact=fact.as_data())
        enter_environment(RunLayout(run), given)
        return slurm_reconcile.settle(run, given)  # Slurm uses no multiplexer
    os.environ.pop("COMBORUN_SESSION", None)
    Start(run).start(given)
    return 0


def _options(words: list[str]) -> dict[str, str]:
    """The options, by name. Raises Refusal for invalid ones."""
    given = {}
    while words:
        name, value = words[0], words[1] if len(words) > 1 else "none"
        if name not in _OPTIONS:
            raise Refusal(USAGE, Denial.USAGE, usage=_USAGE, given=name)
        given[name], words = value, words[2:]
    good = {
        "--parallel": re.fullmatch("[1-9][0-9]{0,5}", given.get("--parallel", "1")),
        "--multiplexer": given.get("--multiplexer", MULTIPLEXER_NAMES[0]) in MULTIPLEXER_NAMES,
        "--secrets": given.get("--secrets", "-") == "-",
        "--for": given.get("--for", MOVES) == MOVES,
        "--follow": re.fullmatch(f"[1-9][0-9]{{0,9}}|{UNTIL_STOPPED}", given.get("--follow", "1")),
    }
    for name in (name for name, fits in good.items() if not fits):
        raise Refusal(USAGE, Denial.USAGE, usage=_USAGE, given=f"{name} {given[name]}")
    return given


def enter_environment(layout: RunLayout, given: dict[str, str]) -> None:
    """Say how the variables of a start differ from those of the first launch. Raises Refusal."""
    if differs := launch_environment.enter(layout, given.get("--environment", launch_environment.NOW)):
        from comborun.words import say as worded

        say(worded(differs), fact=differs.as_data())


class Start:
    def __init__(self, run: str) -> None:
        self.run = run
        self.layout = RunLayout(run)
        self.multiplexer = ""

    def start(self, given: dict[str, str]) -> None:
        """Make sure that a dispatcher lives. Raises Refusal."""
        self._choose(given.get("--multiplexer", ""))
        if "--parallel" in given:
            self._write(self.layout.slots, given["--parallel"])
        with holding(self.layout.start_lock, _OTHERS_S):
            if "--follow" in given:
                self._follow(given["--follow"])
            try:
                secrets.gather(self.layout, sys.stdin.buffer.read() if "--secrets" in given else None)
                self._go_on(given)
            except MissingResource as missing:
                raise Refusal(CONFIG, missing.reason) from None
            finally:
                self._leave()

    def _go_on(self, given: dict[str, str]) -> None:
        replace(self.run)
        moves = [MOVES] if "--for" in given else []
        if not moves:
            files.remove(self.layout.stopped)
        if not self._signed():
            enter_environment(self.layout, given)
        say(self._dispatcher(*moves))

    def _choose(self, wanted: str) -> None:
        """Choose the wanted multiplexer, else the run's former one, else the first that is there."""
        before = files.read_line(self.layout.multiplexer)
        for kind in [wanted] if wanted else [before, *MULTIPLEXER_NAMES]:
            if kind in MULTIPLEXER_NAMES and shutil.which(kind):
                self.multiplexer = kind
                return self._write(self.layout.multiplexer, kind)
        if wanted:
            raise Refusal(LACKING, Found.PROGRAMS_MISSING, programs=[wanted])
        raise Refusal(LACKING, Found.NO_MULTIPLEXER, multiplexers=list(MULTIPLEXER_NAMES))

    def _follow(self, pid: str) -> None:
        """Write down which process the training is. Raises Refusal if there is none."""
        seen = process.look(pid) if pid != UNTIL_STOPPED else None
        if pid != UNTIL_STOPPED and not (seen and seen.lives):
            raise Refusal(USAGE, Denial.NO_PROCESS, pid=pid)
        named = {"pid": pid, "start": seen.start, **process.machine()} if seen else {"pid": ""}
        must_write(files.write(self.layout.training, named.items()), self.layout.dispatch)

    def _write(self, path: str, line: str) -> None:
        must_write(files.write_text(path, f"{line}\n"), self.layout.dispatch)

    def _dispatcher(self, *words: str) -> str:
        """Start dispatchers until one lives; returns the line to print."""
        deadline = time.monotonic() + _LEAVING_S
        while True:
            child = self._detached(*words)
            with Changes(self.layout.dispatch, end_of=child.pid) as changes:
                while child.poll() is None and self._signed() != str(child.pid):
                    changes.wait(1.0)
            if pid := self._signed():
                mine = pid == str(child.pid)
                if not mine and process.is_held(pid):
                    process.send(int(pid), signal.SIGCONT)
                    return f"dispatcher {pid} was held by a signal, and goes on"
                return f"dispatcher {pid} started with {self.multiplexer}" if mine else f"dispatcher {pid} is running"
            code = child.wait()
            if code == 0:
                return self._nothing()
            if code != BUSY:
                said = "\n".join(files.read_text(self.layout.out).splitlines()[-3:])
                raise Refusal(code if code > 0 else 128 - code, Denial.DISPATCHER_ENDED, exit=code, said=said)
            if time.monotonic() > deadline:
                raise Refusal(BUSY, Denial.LOCK_FOREIGN, lock=self.layout.lock)
            if (held := files.lock(self.layout.lock, 0.2)) >= 0:  # a dispatcher that was leaving has left
                os.close(held)

    def _detached(self, *words: str) -> subprocess.Popen[bytes]:
        """A dispatcher in a process session of its own, with no inherited descriptor and no ignored signal."""
        for number in (signal.SIGINT, signal.SIGQUIT):
            signal.signal(number, signal.SIG_DFL)
        program = host_program(self.layout, "dispatch", *words)
        with open(self.layout.out, "ab") as out:
            return subprocess.Popen(program, stdin=subprocess.DEVNULL, stdout=out, stderr=out, start_new_session=True)

    def _signed(self) -> str:
        """The pid of a dispatcher that lives, has taken over and is not about to leave; empty without one."""
        record = files.read(self.layout.dispatcher)
        leaves = os.path.exists(self.layout.leaving)
        return record["pid"] if process.named(record) and not leaves else ""

    def _nothing(self) -> str:
        """The line to print if the dispatcher found nothing to start."""
        now = Holds(self.layout).look()
        return now.told(self.layout) if now.kind else "nothing is left to do"

    def _leave(self) -> None:
        """Remove the secrets, unless a live dispatcher still needs them: it removes them at its end."""
        if not os.path.exists(self.layout.secrets) or (self._signed() and not os.path.exists(self.layout.done)):
            return
        if files.lock(self.layout.lock, 5) >= 0:
            secrets.forget(self.layout)
