"""What `--slurm` adds to plan, launch and run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from comborun.errors import UserError
from comborun.remote.slurm import check_taken, consult
from comborun.text import harmless

if TYPE_CHECKING:
    from collections.abc import Iterator

    from comborun.cli.request import Request
    from comborun.plan import Plan
    from comborun.remote.transport import Transport

slurm_option = click.option("--slurm", is_flag=True, help="Hand the sessions to Slurm, as job arrays.")


def refuse_options(request: Request) -> None:
    """Raise UserError for options that have no meaning on Slurm."""
    if request.multiplexer:
        raise UserError("--multiplexer with --slurm: sessions on nodes have no windows", "combo attach shows them")


def check_engine(found: Plan, wanted: Plan, run: str) -> None:
    """Raise UserError where a grid's run is another engine's: its sessions are started by one of them."""
    if found.engine == wanted.engine:
        return
    if found.slurm:
        message, hint = f"this grid's run {run} is on Slurm", "add --slurm to go on with it, or --new for another run"
    else:
        message = f"this grid's run {run} is not on Slurm: a dispatcher starts its sessions"
        hint = "leave --slurm out to go on with it, or add --new for another run"
    raise UserError(message, hint)


def check_cluster(transport: Transport, plan: Plan) -> None:
    """Raise HostError where Slurm is not there, or would not take the plan's jobs; warn of what it can't say now."""
    for doubt in check_taken(transport, plan, consult(transport, plan)):
        click.secho("Warning: ", fg="yellow", nl=False, err=True)
        click.echo(f"{harmless(doubt)}. It is submitted all the same: sbatch lets it wait, or refuses it", err=True)


def lines_said(said: str) -> Iterator[str]:
    """What slurm_submit.sh said, a sentence each."""
    return filter(None, map(str.strip, said.splitlines()))
