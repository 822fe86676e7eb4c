"""Two runs side by side, in the terminal."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click
from rich.console import Console
from rich.table import Table
from rich.text import Text

from comborun.cli.frame import answer, tell
from comborun.plaintext import harmless

if TYPE_CHECKING:
    from pathlib import Path

    from comborun.reporter.comparing.between import Between


def tell_between(between: Between, target: Path, *, as_json: bool) -> None:
    """A row per combo, what is decided, and where the files are."""
    from comborun.reporter.pages.between_files import HEADS, NAMES, cells

    if as_json:
        answer({"report": str(target), **json.loads((target / "comparison.json").read_text("utf-8"))})
        return
    click.echo(harmless(f"{between.after} against {between.before}"))
    table = Table(box=None, pad_edge=False)
    for head in HEADS:
        table.add_column(head, header_style="dim")
    for policy, one in between.rows:
        style = "" if not one.decided else "green" if one.difference > 0 else "red"
        table.add_row(*(Text(harmless(cell, keep="")) for cell in cells(policy, one)), style=style)
    Console(highlight=False).print(table)
    for sentence in (*between.sentences, *between.notes):
        click.echo(harmless(sentence))
    click.echo(f"\nReport: {click.style(str(target), bold=True)}")
    tell(dict(zip(NAMES, ("for reading; one file, opens offline", "for pasting", "for programs"), strict=True)))
