"""What the full screen can order: the calls that the commands make, with nothing said on the terminal."""

from __future__ import annotations

import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

from comborun.api import steering
from comborun.api.listener import QUIET
from comborun.api.named import HostChoice
from comborun.cli.terminal import program
from comborun.monitor.fleet import Fleet
from comborun.monitor.fullscreen.ordering import Orders
from comborun.monitor.steering import resume_lines

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comborun.answers.orders import Steered
    from comborun.api.named import Target

_AGAIN_S = 5.0
"""seconds between two looks at a host while the runs of all hosts are shown"""
_TAKES_RUN = {"status", "monitor", "resume", "pause", "drain", "notify", "report", "clean", "recheck", "view"}
"""commands whose argument is the run; the others have the option `--run`"""
_OF_NO_RUN = {"runs", "check", "init", "presets", "docs", "schema", "doctor", "plan", "launch", "run"}


def orders(target: Target) -> Orders:
    """Orders for one run, over its own connection; for one on several hosts, by the commands."""
    if target.boxes:
        return _orders_to_all(target)
    quiet = target._replace(listener=QUIET)

    def stop(names: tuple[str, ...]) -> tuple[str, ...]:
        order = steering.planned_stop(quiet, names, None, None)
        return steering.stop(quiet, order).lines or ("nothing was running",)

    def resume() -> tuple[str, ...]:
        going = steering.planned_resume(quiet)
        said = steering.resume(quiet, going)
        return (*resume_lines(going), *said.splitlines())

    return Orders(
        program=program(),
        options=target.options,
        stop=stop,
        retry=lambda names: _lines(steering.retry(quiet, names)),
        resume=resume,
        pause=lambda: _lines(steering.hold(quiet, "pause")),
        slots=lambda count: _lines(steering.slots(quiet, count)),
        fleet=every_host,
        words=lambda words: command_words(target, words),
    )


def _orders_to_all(target: Target) -> Orders:
    def told(*words: str) -> tuple[str, ...]:
        done = subprocess.run(
            command_words(target, words), stdin=subprocess.DEVNULL, capture_output=True, check=False, text=True
        )
        return (*filter(None, (done.stdout + done.stderr).splitlines()),) or (f"exit code {done.returncode}",)

    return Orders(
        program=program(),
        options=target.options,
        stop=lambda names: told("stop", "--yes", *names),
        retry=lambda names: told("retry", *names),
        resume=lambda: told("resume"),
        pause=lambda: told("pause"),
        slots=lambda count: told("slots", str(count)),
        fleet=every_host,
        words=lambda words: command_words(target, words),
    )


def _lines(done: Steered) -> tuple[str, ...]:
    return (*done.lines, *((done.note,) if done.note else ()))


def every_host() -> Fleet:
    """The runs of all hosts, until it is closed. Nobody is asked for a password while the screen shows something."""
    where = HostChoice()
    return Fleet(where.everywhere(), where.look, _AGAIN_S)


def command_words(target: Target, words: Sequence[str]) -> list[str]:
    """A command about a run, for another process: `--run` and the host follow where the command takes them."""
    command = [sys.executable, "-m", "comborun", *words]
    if words[0] in _OF_NO_RUN or "--run" in words:
        return command
    run = [target.run] if words[0] in _TAKES_RUN else ["--run", target.run]
    return [*command, *run, *shlex.split(target.options)]
