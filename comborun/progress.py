"""What a log tells of progress: the rules of a session, and what a pattern that finds it has to look like."""

from __future__ import annotations

import re
import warnings
from dataclasses import dataclass

from comborun.errors import UserError
from comborun.rules.patterns import PatternError, unhurried

_EXAMPLE = r"such as '\[ *(\d+)/(\d+)\]', or '# episodes completed so far: (?P<done>\d+)'"


@dataclass(frozen=True)
class ProgressRules:
    """What a session's log tells of how much it has done, where its records don't say so yet. For watchers alone."""

    pattern: str | None = None
    """a regular expression of Python: group `done` (else the first) and, if there is one, `total` (else the second)"""
    counts_from: int | None = None
    """None: the number is how many are done. Else it names the one that has just begun, with this for the first"""
    silent: bool = False
    """prints nothing for long stretches: silence says nothing"""
    guess: bool = True
    """without a pattern, a counter up to the planned number is taken for one of episodes"""
    each: int = 0
    """what the pattern's total stands for, in episodes (or steps), before the bar starts again; 0: for all of them"""


ANY_PROGRESS = ProgressRules()
NO_PROGRESS = ProgressRules(guess=False)
"""`progress: none`: the log tells nothing"""


def has_total(pattern: re.Pattern[str]) -> bool:
    """Whether it finds the number beside what is done that all of it would be."""
    return "total" in pattern.groupindex or (not pattern.groupindex and pattern.groups > 1)


def compile_pattern(text: str) -> re.Pattern[str]:
    """A regular expression with a group for what is done and, perhaps, one for the total. Raises UserError."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # of sets that may be read differently one day
            pattern = re.compile(text)
    except (re.error, RecursionError, OverflowError) as error:
        raise UserError(
            f"`{text}` is no regular expression: {error}", "the syntax is Python's; a literal [ is \\["
        ) from None
    try:
        unhurried(text)
    except PatternError as error:
        raise UserError(str(error), error.hint) from None
    names = set(pattern.groupindex)
    if names and "done" not in names:
        raise UserError(
            f"`{text}` names no group `done`", f"(?P<done>\\d+), and (?P<total>\\d+) if it has one; {_EXAMPLE}"
        )
    if not names and pattern.groups == 0:
        raise UserError(f"`{text}` has no group for the number of episodes", f"put it in parentheses, {_EXAMPLE}")
    if not names and pattern.groups > 2:
        hint = "name them, (?P<done>\\d+) and (?P<total>\\d+), or begin the others with (?:"
        raise UserError(f"`{text}` has {pattern.groups} groups, and which is the number of episodes is not clear", hint)
    return pattern
