"""What a view of a run can order: the functions of the commands, for the full screen and the page."""

from __future__ import annotations

import shlex
import subprocess
import sys
from typing import TYPE_CHECKING

from comborun.cli.control import restart
from comborun.cli.options import HostChoice
from comborun.cli.terminal import program
from comborun.errors import HostError
from comborun.monitor.fullscreen.orders import Orders
from comborun.monitor.listing import each_once, look_everywhere
from comborun.remote.program import steer
from comborun.remote.program import stop as stop_sessions
from comborun.remote.runs import remembered
from comborun.remote.transport import LOCAL

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comborun.cli.options import Target
    from comborun.remote.runs import Listing, Run

_LONGEST_S = 900.0


def orders(target: Target) -> Orders:
    """Orders for one run, over its own connection."""
    transport, directory = target.transport, target.directory

    def retry(names: tuple[str, ...]) -> tuple[str, ...]:
        steered = steer(transport, directory, "retry", *names)
        said = restart(target.source(), "now") if steered.done else ""
        return (*steered.texts, *([said] if said else []))

    def resume() -> tuple[str, ...]:
        """In a process of its own: it reads the records of all sessions, and says on standard error what it does."""
        done = subprocess.run(  # noqa: S603  our own program
            shell(target, ["resume"]), stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=_LONGEST_S
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
        runs=_runs,
        shell=lambda words: shell(target, words),
    )


def shell(target: Target, words: Sequence[str]) -> list[str]:
    """A command about a run, for another process: `--run` and the host follow where the command takes them."""
    options = shlex.split(target.options)
    if words[0] == "runs":
        options = []
    elif words[0] not in {"check", "init", "presets", "docs", "schema"} and "--run" not in words:
        options = [*([target.run] if words[0] in _TAKES_RUN else ["--run", target.run]), *options]
    return [sys.executable, "-m", "comborun", *words, *options]


_TAKES_RUN = {"status", "monitor", "resume", "pause", "drain", "notify", "report", "clean", "recheck"}
"""commands whose argument is the run; the others have the option `--run`"""


def _runs() -> list[tuple[Listing, Run]]:
    """The runs on all hosts that this machine has used, over connections of their own."""
    hosts = dict.fromkeys([LOCAL, *(launch.host for launch in reversed(remembered()))])
    where = HostChoice()
    transports = {host: where.connect(host) for host in hosts}
    try:
        return each_once(look_everywhere(transports, where.runs))
    except HostError:
        return []
