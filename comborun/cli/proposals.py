"""Lines of a grid that are proposed, shown to be copied."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from comborun.cli.terminal import wrapped
from comborun.text import harmless

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comborun.rules.facts import Fact


def show_why(facts: Sequence[Fact], grid: Path) -> None:
    """Print why rows don't count by a grid. The line that would count them stands alone, to be copied."""
    from comborun.words.rows import other_way, proposed, why_not_counted, without_line

    at = next((place for place, fact in enumerate(facts) if proposed(fact)), None)
    if at is None:
        if facts:
            click.echo(wrapped(harmless(why_not_counted(facts)), "  "))
        return
    before = why_not_counted([*facts[:at], *without_line(facts[at])])
    click.echo(wrapped(harmless(f"{before}. This line of the grid counts them:"), "  "))
    show_line(proposed(facts[at]), grid)
    if rest := "; ".join(filter(None, (other_way(facts[at]), why_not_counted(facts[at + 1 :])))):
        click.echo(wrapped(harmless(rest), "  "))


def show_videos(fact: Fact | None, grid: Path) -> None:
    """Print why videos are not shown beside their episodes, and the line of the grid that shows them."""
    from comborun.words import say
    from comborun.words.rows import proposed

    if fact:
        click.echo(wrapped(harmless(say(fact)), "  "))
    if fact and (keys := proposed(fact)):
        show_line(keys, grid)


def show_line(keys: Mapping[str, Any], grid: Path) -> None:
    """Print the line `results: {...}` of a grid with these keys added, to be copied."""
    from ruamel.yaml import YAML  # slow to import

    from comborun.words.rows import flow

    own = YAML(typ="safe", pure=True).load(grid.read_text("utf-8")).get("results")
    kept = dict(own) if isinstance(own, dict) else {}
    if "from" in keys:
        kept.pop("files", None)
    line = f"results: {flow({**kept, **keys})}"
    click.echo(f"    {click.style(harmless(line), bold=True)}")
