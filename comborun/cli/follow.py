"""combo follow: evaluate the checkpoints of a training as they appear."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from comborun.api.launching import start_run
from comborun.cli.options import (
    SLOTS,
    environment_option,
    grid_argument,
    host_options,
    json_lines_option,
    take_over_option,
)
from comborun.cli.terminal import show_record, show_rows
from comborun.remote.preparing import LaunchRequest
from comborun.rules.names import MULTIPLEXER_NAMES
from comborun.text import harmless

if TYPE_CHECKING:
    from comborun.api.named import GridChoice, HostChoice


@click.command()
@grid_argument
@host_options
@click.option(
    "--pid", type=click.IntRange(1, 2**31), help="The training on the host: when it has ended, so has the run."
)
@click.option("--parallel", type=SLOTS, metavar="N", help="The most sessions that run at once.")
@click.option(
    "--multiplexer", type=click.Choice(MULTIPLEXER_NAMES), help="The program whose windows show the sessions."
)
@click.option("--new", is_flag=True, help="Start another run, even if this grid has one.")
@environment_option
@take_over_option
@click.option("--force", is_flag=True, help="Start even if the host lacks something that the grid needs.")
@json_lines_option
def follow(grid: GridChoice, where: HostChoice, pid: int | None, as_json: bool, **options: Any) -> int:
    """Evaluate the checkpoints of a training as they appear, on its host, until it has ended.

    \b
    combo follow grid.yaml --pid 4711

    Without --pid it goes on until `combo stop`. The host does it alone; this machine may be switched off. The same
    command again goes on with the same run.
    """
    started = start_run(grid, where, LaunchRequest(follow=str(pid or "stopped"), **options))
    if as_json:
        show_record(started.answer)
        return 0
    launched, publication, target = started.launched, started.launched.publication, started.target
    new = publication.state == "new"
    click.echo(
        f"{click.style(launched.plan.grid, bold=True)}: {'follows' if new else 'goes on to follow'} the training"
    )
    for note in (*launched.replaced, *started.changes):
        click.echo(f"  {harmless(note)}")
    commands = {verb: target.command(verb) for verb in ("status", "monitor", "report", "stop")}
    show_rows({"run": publication.run, "folder": publication.directory, **commands})
    return 0
