"""Regular expressions of a grid for lines of logs, and those of ours that few processes need.

Those of a grid are in Python's syntax. Syntax that only `grep` knows is refused.
"""

from __future__ import annotations

import re
import time
import warnings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Pattern

LONGEST_LINE = 4096
"""characters of a line that are looked at"""
LONGEST_RECORD = 1024
"""the same for lines that are records: their pattern has several repeats, and each may begin and end anywhere"""
_SLOW_S, _TRIED_S = 5.0, 0.02
"""CPU seconds for such a line: too slow, and enough to end a trial with shorter lines"""
_REPEATS, _MANY = {"MAX_REPEAT", "MIN_REPEAT"}, 20
_POSIX = re.compile(r"\[:\^?(\w+):\]")
_CLASSES = {
    "alnum": "[0-9A-Za-z]", "alpha": "[A-Za-z]", "blank": r"[ \t]", "digit": "[0-9]", "lower": "[a-z]",
    "punct": r"[^\w\s]", "space": r"\s", "upper": "[A-Z]", "xdigit": "[0-9A-Fa-f]",
}  # fmt: skip
_BEYOND = re.compile(r"\(\?>|(?:[*+?]|\{[0-9]*,?[0-9]*\})\+")
_WORD = re.compile(r"\{[A-Za-z_]+\}")
_PLAIN = re.compile(r"\\.|\[\^?\]?[^\]]*\]", re.DOTALL)


class _Late:
    made: list[_Late] = []  # noqa: RUF012 - of all modules

    def __init__(self, text: str, flags: int) -> None:
        self._text, self._flags = text, flags
        self.made.append(self)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        found = getattr(re.compile(self._text, self._flags), name)
        setattr(self, name, found)
        return found


def late(text: str, flags: int = 0) -> Pattern[str]:
    """A pattern that is compiled at its first use."""
    found: Pattern[str] = _Late(text, flags)  # type: ignore[assignment]
    return found


def compile_late() -> None:
    """Compile them all: in a process that forks others, each of which would hold a copy."""
    for one in _Late.made:
        one.__getattr__("search")


class PatternError(ValueError):
    """A pattern that not every host reads alike; `hint` says what to write."""

    def __init__(self, message: str, hint: str) -> None:
        super().__init__(message)
        self.hint = hint


def compiled(text: str) -> Pattern[str]:
    """The compiled pattern. Raises PatternError, also for a pattern that matches an empty line: it would match every
    line.
    """
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
        raise PatternError(f"`{text}`: {word.group()} is not a number of repeats", "write \\{ for the character itself")
    if _BEYOND.search(bare):
        raise PatternError(f"`{text}` has what older Pythons can't read", "write it without (?>...), ++ and *+")
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about sets that later Pythons may read differently
            pattern = re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise PatternError(f"`{text}` is not a regular expression: {error}", "a literal [ or ( is \\[ or \\(") from None
    if pattern.search(""):
        raise PatternError(f"`{text}` finds every line, even an empty one", "name a word that must be there")
    return pattern


def matches(pattern: Pattern[str], line: str) -> bool:
    """Whether a line of a log matches. Only the beginning of a very long line is searched."""
    return pattern.search(line[:LONGEST_LINE]) is not None


def unhurried(text: str) -> str:
    """The pattern, checked when a grid is written. Raises PatternError if a search could take for ever."""
    if explodes(text):
        hint = "put something that must be there between the repeats, as in (a+,)+"
        raise PatternError(f"`{text}` repeats what repeats already: a line that almost matches may take for ever", hint)
    seconds = _slowest(re.compile(text), text)
    if seconds > _SLOW_S:
        hint = "leave out .* where it begins, and limit its repeats: \\d{1,9} for \\d+, [^,]* for .*"
        raise PatternError(f"`{text}` takes {seconds:.0f} s for a long line that almost matches", hint)
    return text


def _slowest(pattern: Pattern[str], text: str) -> float:
    """CPU seconds for the slowest of some lines of LONGEST_RECORD characters, estimated from shorter ones."""
    words = re.findall(r"[A-Za-z]{2,}[ :=]*", re.sub(r"\(\?P<\w+>|\\.", "", text))
    starts = [words[:count] for count in range(len(words) + 1)]
    fillers = dict.fromkeys(["1", "a", " ", "1a ", *(f"1{mark}" for mark in re.findall(r"[,:;/|=-]", text))])
    return max(_reckoned(pattern, start, filler) for start in starts for filler in fillers)


def _reckoned(pattern: Pattern[str], words: list[str], filler: str) -> float:
    before = spent = 1e-6
    size = 8
    while size < LONGEST_RECORD and spent < _TRIED_S:
        size, before = 2 * size, spent
        piece = filler * (1 + size // (len(filler) * (len(words) + 1)))
        began = time.process_time()
        pattern.search(piece.join(["", *words, ""])[:size])
        spent = max(time.process_time() - began, 1e-6)
    growth = min(spent / before, 64.0) if spent >= _TRIED_S else 1.0
    while size < LONGEST_RECORD:
        size, spent = 2 * size, spent * growth
    return spent


def explodes(text: str) -> bool:
    """Whether a pattern may take for ever on a line that does not match: `(a+)+b` tries every way to split the line."""
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
    """Whether a pattern can match with only its repeated parts, so that nothing fixed stands between them."""
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
