"""docs/guarantees.md against the tests: every promise names some, and all that it names are there."""

from __future__ import annotations

import ast
import re
from functools import cache
from pathlib import Path

CHECKOUT = Path(__file__).parents[3]
PAGE = (CHECKOUT / "docs/guarantees.md").read_text()
PROMISED, _, REFUSED = PAGE.partition("\n## What is not promised\n")
PROMISE = re.compile(r"^(\d+)\. (.*?)(?=^\d+\. |^#|\Z)", re.MULTILINE | re.DOTALL)
TEST = re.compile(r"^ +- `(tests/[a-z_/]+\.py)::(test_[a-z0-9_]+)`$", re.MULTILINE)

PROMISES = {int(number): text for number, text in PROMISE.findall(PROMISED)}
NAMED = sorted(set(TEST.findall(PAGE)))


@cache
def names_in(path: str) -> set[str]:
    tree = ast.parse((CHECKOUT / path).read_text())
    return {node.name for node in tree.body if isinstance(node, ast.FunctionDef)}


def test_every_promise_has_a_test_and_every_test_that_is_named_is_there() -> None:
    assert [number for number, text in PROMISES.items() if not TEST.search(text)] == []
    assert [f"{path}::{name}" for path, name in NAMED if name not in names_in(path)] == []


def test_a_test_that_is_named_is_named_in_the_form_that_is_checked() -> None:
    assert len(re.findall(r"tests/\S+::test_", PAGE)) == len(TEST.findall(PAGE))
