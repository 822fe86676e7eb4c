"""What README and docs say exists, exists: commands, options, files, sections; and nothing is left to be filled in."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

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


documents = pytest.mark.parametrize("document", DOCUMENTS, ids=named)


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
    opts = {opt for param in command_of(name).params for opt in (*param.opts, *param.secondary_opts)}
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


@documents
def test_commands_and_their_options_exist(document: Path) -> None:
    wrong = []
    for piece in code(document.read_text()):
        for name, options in calls(piece):
            known = options_of(name) if name in COMMANDS else set()
            wrong += [
                f"combo {name} {option}".strip() for option in ("", *sorted(options)) if option not in known | {""}
            ]
            wrong += [] if name in COMMANDS else [f"combo {name}"]
    assert not wrong


@pytest.mark.parametrize("document", [path for path in DOCUMENTS if not path.is_relative_to(EXAMPLES)], ids=named)
def test_an_option_that_stands_alone_is_one_of_some_command(document: Path) -> None:
    known = {option for name in COMMANDS for option in options_of(name)}
    alone = re.findall(r"`(--[^`]+)`", prose(document.read_text()))
    assert [span for span in alone if not set(OPTION.findall(span)) <= known] == []


def test_the_table_has_every_command() -> None:
    told = {name for names, _ in table() for name in names}
    assert told == set(COMMANDS)


def test_the_options_in_a_row_are_those_of_its_commands() -> None:
    rows = [(names, options) for names, options in table() if names]
    assert len(rows) > 5
    for names, options in rows:
        assert options <= set().union(*map(options_of, names)), names


@pytest.mark.parametrize("name", COMMANDS)
def test_the_help_of_a_command_has_an_example_with_options_that_exist(name: str) -> None:
    examples = [options for called, options in calls(command_of(name).help or "") if called == name]
    assert examples
    assert set().union(*examples) <= options_of(name)


def slugs(document: Path) -> set[str]:
    """The anchors of a document's headings, as GitHub makes them."""
    titles = re.findall(r"^#+ +(.*)$", prose(document.read_text()), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).strip().replace(" ", "-") for title in titles}


@documents
def test_links_lead_somewhere(document: Path) -> None:
    broken = []
    for target in re.findall(r"\]\(([^)\s]+)\)", prose(document.read_text())):
        if re.match(r"[a-z]+:", target):
            continue
        name, _, anchor = target.partition("#")
        file = document.parent / name if name else document
        if not file.exists() or (anchor and anchor not in slugs(file)):
            broken.append(target)
    assert not broken


@documents
def test_nothing_is_left_to_be_filled_in(document: Path) -> None:
    text = document.read_text()
    assert re.findall(r"^[A-Z][A-Z_ ]+$|\b(?:TODO|FIXME|XXX|TBD)\b", prose(text), re.MULTILINE) == []


def test_grids_in_the_readme_are_grids(tmp_path: Path) -> None:
    grids = re.findall(r"^```yaml\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL)
    assert grids
    for text in grids:
        file = tmp_path / "grid.yaml"
        file.write_text(text)
        assert load_grid(file).combos
