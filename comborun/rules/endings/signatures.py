"""Log lines that show why a program failed, in the order in which they are checked.

They only name a failure that other evidence shows; they never make a session fail. A line that matches `ignore` is
checked by no other pattern, because good runs print it too. A line after which the program made progress is not checked
either. The wordings are in the table of classes (failures.py).
"""

from __future__ import annotations

import re

from comborun.rules import patterns
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


def find(lines: Sequence[str], own: Iterable[Signature], *, records: int = 0) -> tuple[str, str]:
    """The class of the first signature that matches, and the last line that it matches; both empty if none does.

    `own`: the grid's signatures, which come first. `lines`: the end of a log, after the last progress. If a session has
    left records, a message about a port in use is about another program.
    """
    known = [entry for entry in BUILTIN if not (records and entry[0] == Failure.LAUNCH_FAILED.value)]
    searched = [(failure, finder) for failure, pattern in own if (finder := _finder(pattern))]
    text = "\n".join(lines)
    searched += [(failure, finder) for failure, wordings in known for finder in _there(wordings, text)]
    for failure, finder in searched:
        if failure == IGNORE:
            lines = [line for line in lines if not finder(line)]
    for failure, finder in searched:
        matches = [] if failure == IGNORE else [line for line in lines if finder(line)]
        if matches:
            return failure, matches[-1]
    return "", ""


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
