"""combo presets: the known evaluation programs."""

from __future__ import annotations

import textwrap
from typing import TYPE_CHECKING

import click

from comborun.cli.options import json_option, offers
from comborun.cli.terminal import show_json, show_rows, wrapped
from comborun.errors import UserError
from comborun.grid import Preset, find_preset, known_presets
from comborun.grid.presets import SHIPPED

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def presets(context: click.Context, as_json: bool) -> None:
    """List the evaluation programs that a grid can name as its preset.

    \b
    combo presets
    combo presets show openpi
    """
    if context.invoked_subcommand:
        return
    found = {name: _summary(name) for name in known_presets()}
    if as_json:
        show_json([{"name": name, "own": _own(name), "summary": summary} for name, summary in found.items()])
    else:
        show_rows({name: summary + (" (yours)" if _own(name) else "") for name, summary in found.items()})


@presets.command()
@click.argument("preset", shell_complete=offers("presets"))
@json_option
def show(preset: str, as_json: bool) -> None:
    """Explain a preset: what it runs, what it needs, what you must know, and which keys it sets.

    \b
    combo presets show isaaclab-eval
    combo presets show ./mine.yaml
    """
    read = find_preset(preset)
    if as_json:
        about = read.about.model_dump(exclude={"starter"}) | {"shards": read.about.shards.how}
        show_json({"name": read.name, "file": read.file, "sha256": read.digest, "about": about})
        return
    click.echo(f"{click.style(read.name, bold=True)}: {read.about.summary}")
    show_rows(dict(_facts(read)))
    for title, lines in (("Before the first session", read.about.needs), ("Notes", read.about.notes)):
        if lines:
            click.echo("\n".join((f"\n{title}:", *(wrapped(line, "- ") for line in lines))))
    click.echo(f"\nWhat it sets ({read.file}):\n\n{textwrap.indent(read.settings_text, '  ')}", nl=False)


def _summary(name: str) -> str:
    try:
        return find_preset(name).about.summary
    except UserError:
        return f"can't be read: combo presets show {name}"


def _own(name: str) -> bool:
    return known_presets()[name].parent != SHIPPED


def _facts(preset: Preset) -> Iterator[tuple[str, str]]:
    about = preset.about
    yield "kind", about.kind
    if about.kind == "evaluation":
        yield "pairs", f"none: {about.unpaired}" if about.unpaired else "if records show how episodes started"
    if about.shards.how:
        yield "shards", about.shards.how
    yield from _attributes("policies", about.attributes.policy, about.defaults.policy)
    yield from _attributes("environments", about.attributes.environment, about.defaults.environment)


def _attributes(axis: str, attributes: Mapping[str, str], defaults: Mapping[str, str]) -> Iterator[tuple[str, str]]:
    for name, what in attributes.items():
        yield f"{axis}: {name}", what + (f"; {defaults[name]} unless given" if name in defaults else "")
