"""What the full screen can order: the calls that the commands make, with nothing said on the terminal."""

from __future__ import annotations

import shlex
import sys
from typing import TYPE_CHECKING

import click

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


def orders(target: Target) -> Orders:
    """Orders for one run, over its own connections."""
    parts = [one._replace(listener=QUIET) for one in target.boxes]
    quiet = target._replace(listener=QUIET, boxes=tuple(parts))

    def resume() -> tuple[str, ...]:
        lines = list[str]()
        for part, going in steering.planned_resumes(quiet):
            host = f"{part.transport.host}: " if quiet.boxes else ""
            for said in ("\n".join(resume_lines(going)), steering.resume(part, going)):
                lines += f"{host}{said}".splitlines() if said else ()
        return tuple(lines)

    return Orders(
        program=program(),
        options=target.options,
        stop=lambda names: steering.stop_now(quiet, names).lines or ("nothing was running",),
        retry=lambda names: _lines(steering.retry(quiet, names)),
        resume=resume,
        pause=lambda: _lines(steering.hold(quiet, "pause")),
        slots=lambda count: _lines(steering.slots(quiet, count)),
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
    """A command about a run, for another process: the run and its host follow where the command takes them."""
    from comborun.cli import combo

    found: click.Command | None = combo
    for word in words:  # `hosts list` is a command of a group
        if not isinstance(found, click.Group):
            break
        found = found.get_command(click.Context(found), word)
    takes = {one.name for one in found.params} if found else set()
    command = [sys.executable, "-m", "comborun", *words]
    if "wanted" not in takes or "--run" in words:
        return command
    run = [target.run] if "run" in takes else ["--run", target.run]
    return [*command, *run, *shlex.split(target.options)]
