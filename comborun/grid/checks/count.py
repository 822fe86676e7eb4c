"""Counts of a grid for one combo: the number, and why there is none."""

from __future__ import annotations

from comborun.errors import UserError
from comborun.grid.checks.commands import OWNERS
from comborun.grid.combos import Combo
from comborun.grid.keys.count import OWNED
from comborun.grid.keys.quantity import parse_whole


def number(text: str, combo: Combo) -> int:
    """A count, from the attribute that it names if need be; 0 for none. Raises UserError."""
    if match := OWNED.fullmatch(text):
        text = getattr(combo, match[1]).attributes[match[2]]
    return parse_whole(text) if text else 0


def no_number(text: str, combo: Combo) -> UserError | None:
    """What is wrong with a count for this combo."""
    match = OWNED.fullmatch(text)
    if not match:
        return None  # the key has read it already
    axis = getattr(combo, match[1])
    if match[2] not in axis.attributes:
        message = f"{text} is not there for {match[1]} `{axis.name}`"
        return UserError(message, f"give it the attribute in `{OWNERS[match[1]]}`")
    whose = f"{text} of {match[1]} `{axis.name}`"
    try:
        if (found := number(text, combo)) < 1:
            return UserError(f"{whose} is {found}", "at least 1")
    except UserError as error:
        return UserError(f"{whose}: {error.message}", error.hint)
    return None
