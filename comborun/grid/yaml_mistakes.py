"""YAML's complaints in words that help somebody who does not know how a YAML scanner works."""

from __future__ import annotations

import re

from ruamel.yaml.error import MarkedYAMLError, YAMLError
from ruamel.yaml.reader import ReaderError

from comborun.errors import Problem

DIRECTIVE = re.compile(r"(?:[ \t]*(?:#[^\n]*)?\n)*(?=%)")
TOO_DEEP = ("lists and maps are nested too deeply", "a grid needs four levels")


_INDENTATION = "give all entries of one map, or of one list, the same indentation"
_SENTENCES = (
    (r"character '\\t'", "a tab, where only blanks may indent", "indent with spaces"),
    (r"character '(.)' that cannot start", "a value can't begin with `{0}`", "put the whole value in quotes"),
    (
        "quoted scalar, found unexpected",
        "a quote is opened here and never closed",
        'close it; within \'...\' a quote is written twice, within "..." as \\"',
    ),
    (
        "unknown escape character|expected escape sequence",
        "a backslash that begins no escape within double quotes",
        "use single quotes, where a backslash is a backslash",
    ),
    (
        "mapping values are not allowed",
        "a colon that can't be one of a key here: the line is indented too far, or a value holds `: `",
        "align the keys of a map; put a value that holds `: ` in quotes, or on lines of its own after `>-`",
    ),
    (
        r"flow (?:sequence|mapping), expected ',' or '(.)'",
        "what is opened here lacks its `{0}`, or a comma between two entries",
        "a value that begins with a brace or bracket and is meant as text needs quotes",
    ),
    (
        "found '<scalar>'",
        "text after a value that has ended already",
        "a value that begins with a quote, a brace or a bracket ends at its partner: put all of it in quotes",
    ),
    (
        "expected <block end>|expected '<document start>'",
        "indented differently from the lines that it belongs to",
        _INDENTATION,
    ),
    (
        "found undefined alias '?([^']*)",
        "`*{0}` is read as an alias, and nothing is anchored by that name",
        'a pattern that begins with `*` needs quotes: "*{0}"',
    ),
    ("sequence entries are not allowed", "a `-` that can't begin a list entry here", _INDENTATION),
    ("could not find expected ':'", "a key without its colon", "write `key: value`"),
    ("single document", "a second document begins here", "one grid per file: remove the `---`"),
    ("undefined tag handle", "a value can't begin with `!`", "put the whole value in quotes"),
    ("block scalar", "`|` and `>` stand alone on their line", "begin the text on the next line"),
)
"""how ruamel.yaml words a complaint (`context, problem`), the message for it, and the hint"""
_OPENED = ("quoted scalar", r"flow (?:")
"""of which the mistake is where the construct began, not where the scanner noticed"""


def syntax_problem(error: YAMLError, text: str, file: str) -> Problem:
    """The one mistake that keeps the whole file from being read."""
    if isinstance(error, ReaderError):
        return _strange_character(error, text, file)
    if not isinstance(error, MarkedYAMLError):
        return Problem(file, 0, 0, f"is no YAML: {error}")
    words = ", ".join(part for part in (error.context, error.problem) if part)
    for pattern, message, hint in _SENTENCES:
        if match := re.search(pattern, words):
            mark = error.context_mark if pattern.startswith(_OPENED) else error.problem_mark
            return Problem(file, *_position(mark), message.format(*match.groups()), hint.format(*match.groups()))
    return Problem(file, *_position(error.problem_mark or error.context_mark), f"is no YAML: {words}")


def _position(mark: object) -> tuple[int, int]:
    line, column = getattr(mark, "line", None), getattr(mark, "column", None)
    return (0, 0) if line is None or column is None else (line + 1, column + 1)


def _strange_character(error: ReaderError, text: str, file: str) -> Problem:
    before = text[: error.position]
    line, column = before.count("\n") + 1, len(before) - before.rfind("\n")
    message = f"the character U+{ord(text[error.position]):04X} can't stand in a text file"
    return Problem(file, line, column, message, "is this the right file? it looks like a binary one")
