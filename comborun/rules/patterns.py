"""Regular expressions of a grid for lines of logs, in Python's syntax. Syntax that only `grep` knows is refused."""

from __future__ import annotations

import re
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Pattern

LONGEST_LINE = 4096
"""characters of a line that are looked at"""
_REPEATS, _MANY = {"MAX_REPEAT", "MIN_REPEAT"}, 20
_POSIX = re.compile(r"\[:\^?(\w+):\]")
_CLASSES = {
    "alnum": "[0-9A-Za-z]", "alpha": "[A-Za-z]", "blank": r"[ \t]", "digit": "[0-9]", "lower": "[a-z]",
    "punct": r"[^\w\s]", "space": r"\s", "upper": "[A-Z]", "xdigit": "[0-9A-Fa-f]",
}  # fmt: skip
_BEYOND = re.compile(r"\(\?>|(?:[*+?]|\{[0-9]*,?[0-9]*\})\+")
_WORD = re.compile(r"\{[A-Za-z_]+\}")
_PLAIN = re.compile(r"\\.|\[\^?\]?[^\]]*\]", re.DOTALL)


class PatternError(ValueError):
    """No pattern that every host reads alike; `hint` says what to write."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def compiled(text: str) -> Pattern[str]:
    """The pattern. Raises PatternError; an empty line must not match, else every line would."""
    posix = _POSIX.search(text)
    if posix:
        instead = _CLASSES.get(posix.group(1))
        hint = f"write {instead}" if instead else "name the characters themselves"
        raise PatternError(f"`{text}`: {posix.group()} is grep's, and Python's patterns have no such classes", hint)
    if re.search(r"(?<!\\)(?:\\\\)*\\[<>]", text):
        raise PatternError(f"`{text}`: \\< and \\> are grep's", "write \\b where a word begins or ends")
    bare = _PLAIN.sub("x", text)
    word = _WORD.search(bare)
    if word:
        raise PatternError(f"`{text}`: {word.group()} is no number of repeats", "write \\{ for the character itself")
    if _BEYOND.search(bare):
        raise PatternError(f"`{text}` has what older Pythons can't read", "write it without (?>...), ++ and *+")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of sets that may be read differently one day
            pattern = re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise PatternError(f"`{text}` is no regular expression: {error}", "a literal [ or ( is \\[ or \\(") from None
    if pattern.search(""):
        raise PatternError(f"`{text}` finds every line, even an empty one", "name a word that must be there")
    return pattern


def matches(pattern: Pattern[str], line: str) -> bool:
    """Whether a line of a log matches; of a very long one its beginning is looked at."""
    return pattern.search(line[:LONGEST_LINE]) is not None


def unhurried(text: str) -> str:
    """The pattern itself. Raises PatternError for one that may take for ever: for who writes a grid, not for hosts."""
    if explodes(text):
        hint = "put something that must be there between the repeats, as in (a+,)+"
        raise PatternError(f"`{text}` repeats what repeats already: a line that almost matches may take for ever", hint)
    return text


def explodes(text: str) -> bool:
    """Whether a pattern may take for ever on a line that has no match: `(a+)+b` tries every way to part it."""
    import importlib
    import sys

    parser = importlib.import_module("re._parser" if sys.version_info >= (3, 11) else "sre_parse")
    return _explodes(parser.parse(text))


def _explodes(parts: Any) -> bool:
    return any(
        (str(kind) in _REPEATS and value[1] > _MANY and _loose(value[2])) or any(map(_explodes, _within(value)))
        for kind, value in parts
    )


def _loose(parts: Any) -> bool:
    """Whether it may be made of parts that repeat alone, with nothing between them that must be there."""
    repeats = False
    for kind, value in parts:
        if str(kind) in _REPEATS:
            repeats = repeats or value[1] > _MANY or _loose(value[2])
        elif not any(map(_loose, _within(value))):
            return False
        else:
            repeats = True
    return repeats


def _within(value: Any) -> list[Any]:
    """The parts of a group, a repeat, or of each of several alternatives."""
    if not isinstance(value, tuple):
        return []
    found = [one for one in value if hasattr(one, "data")]
    return found + [one for several in value if isinstance(several, list) for one in several if hasattr(one, "data")]
