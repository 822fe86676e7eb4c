"""What every command says of itself."""

from __future__ import annotations

from collections.abc import Iterator

import click
import pytest

from comborun.cli import combo


def commands(group: click.Group, names: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    yield names
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from commands(command, (*names, name))
        else:
            yield (*names, name)


def help_of(names: tuple[str, ...]) -> str:
    context = click.Context(combo, info_name="combo", terminal_width=80)
    command: click.Command = combo
    for name in names:
        assert isinstance(command, click.Group)
        found = command.get_command(context, name)
        assert found is not None
        command, context = found, click.Context(found, info_name=name, parent=context, terminal_width=80)
    return command.get_help(context)


@pytest.mark.parametrize("names", list(commands(combo)), ids=" ".join)
def test_no_line_of_a_help_is_broken_by_a_terminal_of_80_columns(names: tuple[str, ...]) -> None:
    wide = [line for line in help_of(names).splitlines() if len(line) > 80]
    assert not wide
