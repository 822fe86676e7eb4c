"""The JSON Schema, docs/grid.md and the starter grid say what the model says."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import jsonschema
import pytest
from click.testing import CliRunner
from ruamel.yaml import YAML

from comborun.cli import combo
from comborun.errors import GridError
from comborun.grid import grid_schema, parse_grid
from comborun.grid.draft import keys_of, section_of
from comborun.grid.keys.grid_file import GridFile
from comborun.grid.presets import starter_grid
from comborun.model.command import PLAN_TIME, START_TIME
from comborun.model.judging import DEFAULT_RETRY
from comborun.rules.endings.failures import Failure

CHECKOUT = Path(__file__).parents[3]
DOCUMENT = (CHECKOUT / "docs" / "grid.md").read_text()
FENCES = re.findall(r"^```(\w[^\n]*)\n(.*?)^```", DOCUMENT, re.MULTILINE | re.DOTALL)
EXAMPLES = [text for kind, text in FENCES if kind == "yaml"]
FRAGMENTS = [text for kind, text in FENCES if kind == "yaml fragment"]
HEAD = "policies: [a]\nenvironments: [x]\nepisodes: 1\ncommand: run {episodes} {output_dir}\n"


def data(text: str) -> Any:
    return YAML(typ="safe", pure=True).load(text)


def validator() -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator(grid_schema())


def documented(pattern: str) -> set[str]:
    """The first cells of the table rows below the heading row that matches `pattern`."""
    cells: set[str] = set()
    for table in re.findall(rf"^\| {pattern} \|.*\n\|[-|]+\n((?:\|.*\n)+)", DOCUMENT, re.MULTILINE):
        cells.update(re.match(r"\| `(\w+)`", row)[1] for row in table.splitlines())  # type: ignore[index]
    return cells


def test_the_schema_is_valid_and_the_command_writes_it() -> None:
    jsonschema.Draft202012Validator.check_schema(grid_schema())
    assert json.loads(CliRunner().invoke(combo, ["schema"]).output) == grid_schema()


@pytest.mark.parametrize("text", [*EXAMPLES, starter_grid("x"), HEAD + "results: none\n", HEAD + "poll: 0.5\n"])
def test_the_schema_accepts_good_grids(text: str) -> None:
    parse_grid(text, Path("grid.yaml"))
    validator().validate(data(text))


REFUSED = (
    "comand: x",
    "limits: {parralel: 1}",
    "first_episode: -1",
    "overrides: [{episodes: 1}]",
    "sync: [{from: x}]",
    "secrets: {HF_TOKEN: hf_abc}",
    "failures: {oom: x}",
    "retry: {lost: {tries: 1}}",
    "slurm: {partition: a b}",
    "placement: {env: {node_group: node}}",
    "sync: [{from: x, to: ~/y, max_size: 0}]",
    "stop_early: some",
    "stop_early: {comparisons: []}",
    "stop_early: {comparisons: [[a]]}",
    "overrides: [{when: {policy: a}, limits: {parallel: 1}}]",
)


def test_the_schema_and_the_parser_refuse_the_same_mistakes() -> None:
    for line in REFUSED:
        assert not validator().is_valid(data(HEAD + line + "\n")), line
        with pytest.raises(GridError):
            parse_grid(HEAD + line + "\n", Path("grid.yaml"))


def test_the_document_lists_exactly_the_keys_that_exist() -> None:
    entry = {"": "exclude", "ready": "servers.ready", "a server": "servers"}
    headings = re.findall(r"^\| (key(?: of [^|]+)?) \|", DOCUMENT, re.MULTILINE)
    assert len({*headings}) == 21
    for heading in headings:
        name = re.sub(r"^key ?(of )?(an entry ?(of )?)?", "", heading).strip("`")
        words = [] if heading == "key" else entry.get(name, name).split(".")
        assert documented(re.escape(heading)) == {*keys_of(section_of(GridFile, words))}, heading


def test_the_document_lists_the_classes_of_failures_with_their_retries() -> None:
    section = DOCUMENT.split("## Classes of failures")[1].split("```")[0]
    rows = re.findall(r"^\| (\w+) \| [^|]+ \| (\d+) \| (none|\d+ s|1 min) \|$", section, re.MULTILINE)
    waits = {"none": 0.0, "1 min": 60.0, "10 s": 10.0, "30 s": 30.0}
    assert [(name, int(times), waits[wait]) for name, times, wait in rows] == [
        (rule.failure, rule.times, rule.wait) for rule in DEFAULT_RETRY
    ]
    assert {rule.failure for rule in DEFAULT_RETRY} == set(Failure)


def test_the_document_lists_exactly_the_placeholders() -> None:
    section = DOCUMENT.split("Known when the plan is made")[1].split("They stand in")[0]
    rows = " ".join(row.split("|")[1] for row in section.splitlines() if row.startswith("| `"))
    assert set(re.findall(r"`\{([a-z_]+)\}`", rows)) == {*PLAN_TIME, *START_TIME}


@pytest.mark.parametrize("text", FRAGMENTS)
def test_a_fragment_completes_a_grid(text: str) -> None:
    policies = "" if "policies:" in text else "policies: [flat, rough]\n"
    axes = policies + "environments: [grass, boulder, stairs]\n"
    seed = "" if "seed:" in text else "seed: 1\n"
    command = "command: run {first_episode} {episodes} {seed} {output_dir}\n"
    command = "episodes: 1\n" + ("" if re.search("(?m)^command:", text) else command)
    assert parse_grid(axes + seed + command + text, Path("grid.yaml")).combos


@pytest.mark.parametrize("name", ["my_grid", "push cube", "null", "1.10", 'a "b" \\', "é: #", "true"])
def test_the_starter_grid_is_right_whatever_it_is_called(name: str) -> None:
    grid = parse_grid(starter_grid(name), Path("grid.yaml"))
    assert grid.warnings == ()
    assert len(grid.combos) == 8
