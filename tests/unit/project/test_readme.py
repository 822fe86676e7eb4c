"""What README and docs say exists, exists: commands, options, files, sections; and nothing is left to be filled in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from comborun.cli import combo
from comborun.grid import load_grid

CHECKOUT = Path(__file__).parents[3]
README = CHECKOUT / "README.md"
EXAMPLES = CHECKOUT / "examples"
"""they have programs of their own"""
DOCUMENTS = sorted([*CHECKOUT.glob("*.md"), *(CHECKOUT / "docs").rglob("*.md"), *EXAMPLES.rglob("*.md")])
CALL = re.compile(
    r"(?:^|[\s(/])combo(?:(?P<monitor>-monitor)|\s+(?P<name>[a-z][a-z-]*))(?P<rest>(?:(?!combo[ -])[^\n])*)"
)
OPTION = re.compile(r"(?<![\w-])--?[a-z][a-z-]*")
EVERYWHERE = {"--help", "-h", "--version"}


CONTEXT = click.Context(combo)
COMMANDS = combo.list_commands(CONTEXT)


def command_of(name: str) -> click.Command:
    found = combo.get_command(CONTEXT, name)
    assert found
    return found


def named(document: Path) -> str:
    return document.relative_to(CHECKOUT).as_posix()


def blocks(text: str) -> list[str]:
    """What stands between fences."""
    return re.findall(r"^ *```[^\n]*\n(.*?)^ *```", text, re.MULTILINE | re.DOTALL)


def prose(text: str) -> str:
    return re.sub(r"^ *```.*?^ *```", "", text, flags=re.MULTILINE | re.DOTALL)


def code(text: str) -> list[str]:
    """Everything that is set as code: spans, and lines of blocks."""
    spans = re.findall(r"`([^`]+)`", prose(text))
    return [*spans, *(line for block in blocks(text) for line in block.splitlines())]


def options_of(name: str) -> set[str]:
    command = command_of(name)
    below = command.commands.values() if isinstance(command, click.Group) else ()
    opts = {opt for one in (command, *below) for param in one.params for opt in (*param.opts, *param.secondary_opts)}
    return {opt for opt in opts if opt.startswith("-")} | EVERYWHERE


def calls(text: str) -> Iterator[tuple[str, set[str]]]:
    """The commands of combo in a piece of code, each with the options that follow it."""
    for call in CALL.finditer(text):
        yield call["name"] or "monitor", set(OPTION.findall(call["rest"]))


def table() -> list[tuple[list[str], set[str]]]:
    """The rows of the README's table: the commands of a row, and all options that it names."""
    section = README.read_text().partition("\n## Commands\n")[2].partition("\n## ")[0]
    rows = [line for line in section.splitlines() if line.startswith("| `")]
    spans = [(re.findall(r"`([^`]+)`", row.split(" | ")[0]), re.findall(r"`([^`]+)`", row)) for row in rows]
    return [
        ([name for span in first for name, _ in calls(span)], {o for span in every for o in OPTION.findall(span)})
        for first, every in spans
    ]


def test_commands_and_their_options_exist() -> None:
    wrong = []
    for document in DOCUMENTS:
        text = document.read_text()
        for name, options in (call for piece in code(text) for call in calls(piece)):
            unknown = options - options_of(name) if name in COMMANDS else {""}
            wrong += [f"{named(document)}: combo {name} {option}" for option in sorted(unknown)]
        if not document.is_relative_to(EXAMPLES):
            known = {option for name in COMMANDS for option in options_of(name)}
            alone = re.findall(r"`(--[^`]+)`", prose(text))
            wrong += [f"{named(document)}: {span}" for span in alone if not set(OPTION.findall(span)) <= known]
    assert not wrong


def test_the_table_has_every_command() -> None:
    told = {name for names, _ in table() for name in names}
    assert told == set(COMMANDS)


def test_the_options_in_a_row_are_those_of_its_commands() -> None:
    rows = [(names, options) for names, options in table() if names]
    assert len(rows) > 5
    for names, options in rows:
        assert options <= set().union(*map(options_of, names)), names


def test_the_help_of_a_command_has_an_example_with_options_that_exist_and_fits_80_columns() -> None:
    for name in COMMANDS:
        examples = [options for called, options in calls(command_of(name).help or "") if called == name]
        assert examples, name
        assert set().union(*examples) <= options_of(name), name
        for command in (command_of(name), *getattr(command_of(name), "commands", {}).values()):
            context = click.Context(command, info_name=name, parent=CONTEXT, terminal_width=80)
            assert [line for line in command.get_help(context).splitlines() if len(line) > 80] == []


def slugs(document: Path) -> set[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ +(.*)$", prose(document.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


def test_links_lead_somewhere_and_nothing_is_left_to_be_filled_in() -> None:
    broken = []
    for document in DOCUMENTS:
        text = prose(document.read_text())
        for target in re.findall(r"\]\(([^)\s]+)\)", text):
            name, _, anchor = target.partition("#")
            file = document.parent / name if name else document
            if not re.match(r"[a-z]+:", target) and (not file.exists() or (anchor and anchor not in slugs(file))):
                broken.append(f"{named(document)}: {target}")
        broken += re.findall(r"^[A-Z][A-Z_ ]+$|\b(?:TODO|FIXME|XXX|TBD)\b", text, re.MULTILINE)
    assert not broken


def test_grids_in_the_readme_are_grids(tmp_path: Path) -> None:
    grids = re.findall(r"^```yaml\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)
    assert grids
    for text in grids:
        file = tmp_path / "grid.yaml"
        file.write_text(text)
        assert load_grid(file).combos
