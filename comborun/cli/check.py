"""combo init, schema and check: a grid file before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from comborun.cli.options import grid_argument, json_option
from comborun.cli.presets import named_preset
from comborun.cli.terminal import answer, warn
from comborun.errors import UserError
from comborun.grid import Grid, load_grid, preset_starter, schema_text, starter_grid
from comborun.page import says_something
from comborun.planner import absent_gpus
from comborun.remote.transport import LocalTransport
from comborun.text import several

if TYPE_CHECKING:
    from pathlib import Path

    from comborun.resources import HostFacts


@click.command()
@click.option("--name", default="my_grid", show_default=True, help="The grid's name.")
@click.option("--preset", metavar="P", help="The program that it is for; `combo presets` lists them.")
def init(name: str, preset: str | None) -> None:
    """Write a commented starter grid to standard output.

    \b
    combo init --name push_cube > grid.yaml
    combo init --preset openpi > grid.yaml
    """
    click.echo(preset_starter(named_preset(preset), preset, name) if preset else starter_grid(name), nl=False)


@click.command()
def schema() -> None:
    """Write the JSON Schema of a grid file, for editors.

    \b
    combo schema > grid.schema.json
    """
    click.echo(schema_text(), nl=False)


@click.command()
@grid_argument
@json_option
def check(grid: Path, as_json: bool) -> None:
    """Find every mistake in a grid file at once.

    \b
    combo check grid.yaml
    """
    checked = load_grid(grid)
    check_setup(checked)
    if as_json:
        answer({"grid": checked.name, "combos": len(checked.combos), "warnings": [str(w) for w in checked.warnings]})
        return
    warn(checked)
    found = f" for each file that {checked.policy_glob} finds" if checked.policy_glob else ""
    click.echo(f"{checked.name}: {several(len(checked.combos), 'combo')}{found}, no mistakes")


def warn_of_host(grid: Grid, host: HostFacts) -> None:
    """Show what of a grid the host can't do, though it can do the rest."""
    if absent := absent_gpus(grid, host):
        gpus = f"GPU{'s' * (len(absent) > 1)} {', '.join(map(str, absent))}"
        has = ", ".join(map(str, host.gpus))
        click.secho("Warning: ", fg="yellow", nl=False, err=True)
        click.echo(
            f"{grid.path}: `use_gpus` names {gpus}, and {host.called} has {has}: the others of it are used", err=True
        )


def check_setup(grid: Grid) -> None:
    """Let bash read every `setup` once, without running it. Raises UserError with what bash says."""
    for text in filter(says_something, dict.fromkeys(combo.settings.setup for combo in grid.combos)):
        done = LocalTransport().run("bash -n", stdin=f"setup() {{\n{text}\n}}\n".encode())
        if done.code:
            raise UserError(f"{grid.path}: bash can't read setup:\n{done.complaint}", "mind quotes, `fi` and `done`")
