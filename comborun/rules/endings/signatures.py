"""The class of a failure, from what ended the program (last_error.py), held against the wordings of the classes.

Wordings only name a failure that other evidence shows; they never make a session fail. A line that matches `ignore` is
checked by no other pattern, because good runs print it too. A line after which the program made progress is not checked
either. The wordings are in the table of classes (failures.py).
"""

from __future__ import annotations

import re

from comborun.rules import log_lines, patterns
from comborun.rules.endings import last_error
from comborun.rules.endings.failures import Failure

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    Signature = tuple[str, str]

IGNORE = "ignore"

BUILTIN: tuple[tuple[str, tuple[str, ...]], ...] = (
    (IGNORE, ("ERROR_INCOMPATIBLE_DRIVER", "vkCreateInstance failed", "Failed to create any GPU devices")),
    (IGNORE, ("Disabling key-value database because another kit process is locking it",)),
    *((failure.value, failure.row.signatures) for failure in Failure if failure.row.signatures),
)
_SPECIAL = frozenset("\\^$*+?{}[]|()")


class Ended:
    """What is known of an end apart from its log."""

    __slots__ = ("killed", "records", "served")

    def __init__(self, *, records: int = 0, killed: bool = False, served: bool = False) -> None:
        self.records = records
        """records that the session has left: then a message about a port in use is about another program"""
        self.killed = killed
        """whether a signal ended it"""
        self.served = served
        """whether it uses a model server; else none was lost"""


def find(lines: Sequence[str], own: Iterable[Signature], ended: Ended) -> tuple[str, str]:
    """The class of what ended a program, and its line. The class is empty if no wording fits; then the line is the
    first that says itself what failed. It is empty without an exception or a fatal line.

    `own`: the grid's signatures, which come first, also for the last line of the program. If nothing that ended it has
    a class, they are held against all lines of the program: a grid knows its program. `lines`: the end of a log, after
    the last progress.
    """
    excluded = {Failure.LAUNCH_FAILED.value if ended.records else "", "" if ended.served else Failure.SERVER_LOST.value}
    text = "\n".join(lines)
    ours = [(failure, finder) for failure, pattern in own if (finder := _finder(pattern))]
    known = [
        (failure, finder) for failure, words in BUILTIN if failure not in excluded for finder in _there(words, text)
    ]
    for failure, finder in (*ours, *known):
        if failure == IGNORE:
            lines = [line for line in lines if not finder(line)]
    ours, known = ([one for one in some if one[0] != IGNORE] for some in (ours, known))
    fatal = lambda line: any(finder(line) for _, finder in known)  # noqa: E731
    groups = list(last_error.candidates(lines, killed=ended.killed, fatal=fatal))
    program = [line for line in lines if line.strip() and not log_lines.of_others(line)]
    if found := _first(ours, [*(groups[0] if groups else ()), *program[-1:]]):
        return found
    for group in groups:
        if found := _first(ours, group) or _first(known, group):
            return found
    if found := _first(ours, program):
        return found
    telling = [group for group in groups if group and not last_error.says_other_failed(group)]
    return "", next((group[0] for group in (*telling, *groups[:1]) if group), "")


def beside(text: str) -> tuple[int, str]:
    """How many lines of a log tell of a failure that another try mends, such as one of memory, and the first of them,
    though the program went on. Lines that only warn tell of none.
    """
    retried = [words for failure, words in BUILTIN if failure != IGNORE and Failure(failure).row.retries]
    finders = [finder for words in retried for finder in _there(words, text)]
    lines = text.split("\n") if finders else ()
    told = [line for line in lines if any(finder(line) for finder in finders) and not log_lines.of_others(line)]
    return len(told), told[0].strip() if told else ""


def _first(searched: Iterable[tuple[str, Callable[[str], object]]], lines: Sequence[str]) -> tuple[str, str] | None:
    """The first class that fits a line, and the last such line."""
    for failure, finder in searched:
        matches = [line for line in lines if finder(line)]
        if matches:
            return failure, matches[-1]
    return None


def _there(wordings: Iterable[str], text: str) -> list[Callable[[str], object]]:
    """Returns a search for those wordings that occur anywhere in the text. For most logs there are none."""
    found = [one for one in wordings if (re.search(one, text, re.MULTILINE) if set(one) & _SPECIAL else one in text)]
    finder = _finder("|".join(one if set(one) & _SPECIAL else re.escape(one) for one in found)) if found else None
    return [finder] if finder else []


def _finder(pattern: str) -> Callable[[str], object] | None:
    try:
        return patterns.compiled(pattern).search
    except patterns.PatternError:
        return None
