"""combo logs and combo runs."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from comborun.cli.options import Where, json_option, root_option, run_option, where_options
from comborun.cli.terminal import answer, print_log
from comborun.errors import UserError
from comborun.remote.logs import follow as follow_log
from comborun.remote.logs import latest, rank_log
from comborun.rules.names import RunLayout
from comborun.rules.words import Outcome
from comborun.text import harmless

if TYPE_CHECKING:
    from comborun.remote.runs import Run


@click.command()
@click.argument("session")
@run_option
@where_options
@root_option
@click.option("-f", "--follow", is_flag=True, help="Go on as the log grows, until the session has ended.")
@click.option("-n", "--lines", default=20, show_default=True, type=click.IntRange(min=0), help="Lines from the end.")
@click.option("--rank", type=click.IntRange(min=0), metavar="R", help="What one rank of a launcher prints.")
@click.option("--stderr", is_flag=True, help="With --rank: what it prints there.")
def logs(session: str, wanted: str | None, where: Where, root: str | None, **how: Any) -> None:
    """Show the end of a session's log. On a terminal, control characters of the log are not let through.

    \b
    combo logs -f stairs_flat
    combo logs vlm                              a model server, by its name
    combo logs --rank 3 --stderr pick_ppo
    combo logs stairs_flat -n 1000000 > it.log  every byte as it is
    """
    transport, found = where.find(wanted, root)
    layout = RunLayout(found.directory)
    attempt = latest(transport, layout, session)
    log, end = attempt.log, attempt.log.with_name("end")
    if how["rank"] is not None:
        log = rank_log(transport, attempt, how["rank"], "stderr" if how["stderr"] else "stdout")
    elif how["stderr"]:
        raise UserError("--stderr is of one rank", "name it: --rank 0; a session's own log holds both")
    print_log(follow_log(transport, log, how["lines"], on=how["follow"], end=end))


@click.command()
@where_options
@root_option
@json_option
def runs(where: Where, root: str | None, as_json: bool) -> None:
    """List the runs on a host, newest first.

    \b
    combo runs --host h100
    """
    transport = where.connect()
    found = where.runs(transport, root)
    if as_json:
        answer(
            [
                {"run": run.id, "directory": run.directory, "done": dict(run.done), "held": dict(run.held)}
                for run in found
            ]
        )
        return
    for run in found:
        click.echo(harmless(f"{run.id}  {_state(run)}  ") + click.style(harmless(run.directory), dim=True))
    if not found:
        click.echo(f"no runs on {transport.host}")


def _state(run: Run) -> str:
    """How a run ended, or what keeps it from going on."""
    if run.done:
        told = [f"{run.done[word]} {word}" for word in Outcome if run.done.get(word, "0") != "0"]
        return ", ".join(told) or "ended"
    if run.held:
        why = " ".join(run.held.get("why", "").split())
        return run.held.get("kind", "held") + (f" ({why})" if why else "")
    return "not ended"
