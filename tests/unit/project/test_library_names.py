"""Bash finds out only when it gets there that a function is defined nowhere: every name that is used has to be."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from comborun.session.command import START_TIME

CHECKOUT = Path(__file__).parents[3]
DEFINED = re.compile(r"^ *([a-z_]+::[a-z0-9_]+)\(\)", re.MULTILINE)
USED = re.compile(r"(?<![$\w{:])([a-z_]+::[a-z0-9_]+)\b")
COMMENT = re.compile(r"(^|\s)#.*$", re.MULTILINE)
FOREIGN = {"std::bad_alloc"}
"""of C++, in the signatures of failures"""


def calls(text: str) -> set[str]:
    """Names of functions that bash code uses, in words handed on and in quoted code, too."""
    return {name for name in USED.findall(COMMENT.sub("", text)) if name not in FOREIGN}


def sources() -> Iterator[tuple[str, str]]:
    for path in sorted((CHECKOUT / "scripts").rglob("*.sh")):
        yield str(path.relative_to(CHECKOUT)), path.read_text()
    for package in ("comborun", "remote", "monitor"):
        for path in sorted((CHECKOUT / package).rglob("*.py")):  # calls that are sent behind a file of the library
            yield str(path.relative_to(CHECKOUT)), path.read_text().replace("\\n", "\n")


def test_every_function_that_the_library_uses_is_defined() -> None:
    texts = dict(sources())
    defined = {name for path, text in texts.items() if path.endswith(".sh") for name in DEFINED.findall(text)}
    used = {path: calls(text) for path, text in texts.items()}
    assert len(defined) > 500
    assert len(set().union(*used.values()) & defined) > 500
    assert {path: names - defined for path, names in used.items() if names - defined} == {}


@pytest.mark.parametrize(
    ("text", "used"),
    [
        ("  elif ! finish::due; then # not finish::never", {"finish::due"}),
        ("trap 'session::tell gone; exit 0' INT", {"session::tell"}),
        ('declare -F "$owner::grant" >/dev/null && "${owner}::take"', set()),
        ("admit::choose WHO && x=$(due::list 0)", {"admit::choose", "due::list"}),
        ("'host_memory ^MemoryError|std::bad_alloc'", set()),
    ],
)
def test_a_use_is_told_from_what_only_looks_like_one(text: str, used: set[str]) -> None:
    assert calls(text) == used


def test_the_library_sets_every_value_that_a_command_can_ask_for_when_it_starts() -> None:
    library = "\n".join(path.read_text() for path in (CHECKOUT / "scripts/lib").rglob("*.sh"))
    assert set(START_TIME.values()) <= set(re.findall(r"\b(COMBORUN_[A-Z_]+)=", library))
