"""What a view of a run can order: the functions of the commands, for the full screen and the page."""

from __future__ import annotations

import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

from comborun.api.named import HostChoice
from comborun.cli.control import restart
from comborun.cli.terminal import program
from comborun.monitor.fleet import Fleet
from comborun.monitor.fullscreen.orders import Orders
from comborun.remote.program import steer
from comborun.remote.program import stop as stop_sessions

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comborun.api.named import Target

_LONGEST_S = 900.0
_AGAIN_S = 5.0
"""seconds between two looks at a host while the runs of all hosts are shown"""


def orders(target: Target) -> Orders:
    """Orders for one run, over its own connection."""
    transport, directory = target.transport, target.directory

    def retry(names: tuple[str, ...]) -> tuple[str, ...]:
        steered = steer(transport, directory, "retry", *names)
        said = restart(target.source(), "now") if steered.done else ""
        return (*steered.texts, *([said] if said else []))

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
        stop=lambda names: stop_sessions(transport, directory, names).texts or ("nothing was running",),
        retry=retry,
        resume=resume,
        pause=lambda: steer(transport, directory, "pause").texts,
        slots=lambda count: steer(transport, directory, "slots", str(count)).texts,
        fleet=_fleet,
        words=lambda words: command_words(target, words),
    )


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
