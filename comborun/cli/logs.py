"""combo logs and combo runs."""

from __future__ import annotations

import codecs
import sys
from typing import TYPE_CHECKING, Any

import click

from comborun.cli.options import Target, Where, json_option, of_run_option, root_options
from comborun.cli.terminal import answer
from comborun.errors import UserError
from comborun.remote.logs import follow, latest, rank_log
from comborun.rules.names import RunLayout
from comborun.rules.words import Outcome
from comborun.text import harmless

if TYPE_CHECKING:
    from collections.abc import Iterable

    from comborun.remote.runs import Run


@click.command()
@click.argument("session")
@of_run_option
@click.option("-f", "--follow", "on", is_flag=True, help="Go on as the log grows, until the session has ended.")
@click.option("-n", "--lines", default=20, show_default=True, type=click.IntRange(min=0), help="Lines from the end.")
@click.option("--rank", type=click.IntRange(min=0), metavar="R", help="What one rank of a launcher prints.")
@click.option("--stderr", is_flag=True, help="With --rank: what it prints there.")
def logs(session: str, target: Target, **how: Any) -> None:
    """Show the end of a session's log. On a terminal, control characters of the log are not let through.

    \b
    combo logs -f stairs_flat
    combo logs vlm                              a model server, by its name
    combo logs --rank 3 --stderr pick_ppo
    combo logs stairs_flat -n 1000000 > it.log  every byte as it is
    """
    attempt = latest(target.transport, RunLayout(target.directory), session)
    log, end = attempt.log, attempt.log.with_name("end")
    if how["rank"] is not None:
        log = rank_log(target.transport, attempt, how["rank"], "stderr" if how["stderr"] else "stdout")
    elif how["stderr"]:
        raise UserError("--stderr is of one rank", "name it: --rank 0; a session's own log holds both")
    print_log(follow(target.transport, log, how["lines"], on=how["on"], end=end))


@click.command()
@root_options
@json_option
def runs(where: Where, as_json: bool) -> None:
    """List the runs on a host, newest first.

    \b
    combo runs --host h100
    """
    transport = where.connect()
    found = where.runs(transport)
    if as_json:
        rows = ((run.id, run.directory, dict(run.done), dict(run.held)) for run in found)
        answer([dict(zip(("run", "directory", "done", "held"), row, strict=True)) for row in rows])
        return
    for run in found:
        click.echo(harmless(f"{run.id}  {_state(run)}  ") + click.style(harmless(run.directory), dim=True))
    if not found:
        click.echo(f"no runs on {transport.host}")


def _state(run: Run) -> str:
    """How a run ended, or what keeps it from going on."""
    if run.done:
        counts = [f"{run.done[word]} {word}" for word in Outcome if run.done.get(word, "0") != "0"]
        return ", ".join(counts) or "ended"
    if run.held:
        why = " ".join(run.held.get("why", "").split())
        return run.held.get("kind", "held") + (f" ({why})" if why else "")
    return "not ended"


def print_log(pieces: Iterable[bytes]) -> None:
    """A log on standard output: every byte as it is, or on a terminal without what would act on it."""
    if not sys.stdout.isatty():
        for piece in pieces:
            sys.stdout.buffer.write(piece)
            sys.stdout.buffer.flush()
        return
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    for piece in pieces:  # \r stays: progress bars draw over themselves
        click.echo(harmless(decoder.decode(piece), keep="\n\r\t"), nl=False)
