"""combo init, schema and check: a grid file before anything runs."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from comborun.cli.options import grid_argument, json_option
from comborun.cli.presets import named_preset
from comborun.cli.terminal import answer, warn
from comborun.grid import preset_starter, schema_text, starter_grid
from comborun.text import several

if TYPE_CHECKING:
    from comborun.cli.options import GridChoice


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
def check(grid: GridChoice, as_json: bool) -> None:
    """Find every mistake in a grid file at once.

    \b
    combo check grid.yaml
    """
    checked = grid.read()
    if as_json:
        answer({"grid": checked.name, "combos": len(checked.combos), "warnings": [str(w) for w in checked.warnings]})
        return
    warn(*map(str, checked.warnings))
    found = f" for each file that {checked.policy_glob} finds" if checked.policy_glob else ""
    click.echo(f"{checked.name}: {several(len(checked.combos), 'combo')}{found}, no mistakes")
