"""The pattern that finds progress in a log: what it has to look like, for the grid that names it and the monitor."""

from __future__ import annotations

import re
import warnings

from comborun.errors import UserError

_EXAMPLE = r"such as '\[ *(\d+)/(\d+)\]', or '# episodes completed so far: (?P<done>\d+)'"


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
