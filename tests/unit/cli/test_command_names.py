"""Names of commands, former ones included, and the order of their options."""

from __future__ import annotations

from collections.abc import Iterator

import click

from comborun.cli import combo

CONTEXT = click.Context(combo)
OPENING = {"--run", "--host", "--transport", "--accept-new", "--root"}
"""options that only find a run or its host"""


def commands() -> Iterator[click.Command]:
    for name in combo.list_commands(CONTEXT):
        command = combo.get_command(CONTEXT, name)
        assert command
        yield from (command, *getattr(command, "commands", {}).values())


def test_options_that_find_a_run_or_its_host_come_after_the_others() -> None:
    found = 0
    for command in commands():
        opening = [bool(OPENING & {*one.opts}) for one in command.params]
        assert opening == sorted(opening), command.name
        found += any(opening)
    assert found > 20


def test_a_former_name_is_the_same_command_and_is_not_shown() -> None:
    assert combo.get_command(CONTEXT, "canary") is combo.get_command(CONTEXT, "recheck")
    assert "canary" not in combo.list_commands(CONTEXT)
    assert "canary" not in combo.get_help(CONTEXT)
    assert combo.get_command(CONTEXT, "no-such") is None
