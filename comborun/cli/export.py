"""combo export: the plan of a grid for other programs to run."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from comborun.cli.options import grid_argument, host_options
from comborun.cli.terminal import warn
from comborun.compose import compose_text
from comborun.planner import lay_out
from comborun.remote.grids import read_grid, with_policies
from comborun.remote.host import ask

if TYPE_CHECKING:
    from pathlib import Path

    from comborun.cli.options import Where


@click.group()
def export() -> None:
    """Write a grid's plan for something else than comborun to run.

    \b
    combo export compose grid.yaml > compose.yaml
    """


@export.command()
@grid_argument
@host_options
def compose(grid: Path, where: Where) -> None:
    """Write a Docker Compose file: a service for each session, with its own GPUs and range of episodes.

    The grid needs `container: {image: NAME}`. GPUs are numbered as on the host.

    \b
    combo export compose grid.yaml > compose.yaml
    combo export compose grid.yaml --host box > compose.yaml
    """
    checked = read_grid(grid)
    warn(*map(str, checked.warnings))
    transport = where.connect(checked.host)
    checked = with_policies(checked, transport)
    click.echo(compose_text(lay_out(checked, ask(transport, host_python=checked.host_python))), nl=False)
