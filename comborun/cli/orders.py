"""What a view of a run can order: the functions of the commands, for the full screen and the page."""

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
from comborun.monitor.fullscreen.orders import Orders
from comborun.monitor.steering import PlannedStop

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comborun.answers.runs import Steered
    from comborun.api.named import Target

_LONGEST_S = 900.0
_AGAIN_S = 5.0
"""seconds between two looks at a host while the runs of all hosts are shown"""


def orders(target: Target) -> Orders:
    """Orders for one run, over its own connection."""
    quiet = target._replace(listener=QUIET)

    def stop(names: tuple[str, ...]) -> tuple[str, ...]:
        order = PlannedStop(target.run, target.transport.host, names)
        return steering.stop(quiet, order).lines or ("nothing was running",)

    def resume() -> tuple[str, ...]:
        """In a process of its own: it reads the records of all sessions, and says on standard error what it does."""
        done = subprocess.run(
            command_words(target, ["resume"]),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=_LONGEST_S,
        )
        said = (done.stdout + (done.stderr if done.returncode else b"")).decode("utf-8", "replace")
        return tuple(said.splitlines())

    return Orders(
        program=program(),
        options=target.options,
        stop=stop,
        retry=lambda names: _lines(steering.retry(quiet, names)),
        resume=resume,
        pause=lambda: steering.hold(quiet, "pause").lines,
        slots=lambda count: steering.slots(quiet, count).lines,
        fleet=_fleet,
        words=lambda words: command_words(target, words),
    )


def _lines(done: Steered) -> tuple[str, ...]:
    return (*done.lines, *([done.note] if done.note else []))


def command_words(target: Target, words: Sequence[str]) -> list[str]:
    """A command about a run, for another process: `--run` and the host follow where the command takes them."""
    options = shlex.split(target.options)
    if words[0] == "runs":
        options = []
    elif words[0] not in {"check", "init", "presets", "docs", "schema"} and "--run" not in words:
        options = [*([target.run] if words[0] in _TAKES_RUN else ["--run", target.run]), *options]
    return [sys.executable, "-m", "comborun", *words, *options]


_TAKES_RUN = {"status", "monitor", "resume", "pause", "drain", "notify", "report", "clean", "recheck"}
"""commands whose argument is the run; the others have the option `--run`"""


def _fleet() -> Fleet:
    where = HostChoice()  # nobody is asked for a password on the full screen
    return Fleet(where.everywhere(), where.look, _AGAIN_S)
