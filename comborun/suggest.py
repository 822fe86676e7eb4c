"""What somebody may have meant by a word that is not known."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_ALIKE = 0.65
"""of difflib's ratio, at least: `cdv` is like `cvd` (0.67), and `nope` not like `openpi` (0.60)"""


def close_to(word: str, known: Iterable[str]) -> str:
    """The known word that looks most like `word`, or the only one that it begins; empty when there is none."""
    folded = {entry.casefold(): entry for entry in known}
    close = difflib.get_close_matches(word.casefold(), folded, n=1, cutoff=_ALIKE)
    begun = [entry for entry in folded if len(word) > 2 and entry.startswith(word.casefold())]
    return folded[[*close, *begun][0]] if close or len(begun) == 1 else ""


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """A hint: the closest known word, or else all of them when they are few."""
    known = list(known)
    if close := close_to(word, known):
        return f"did you mean `{close}`?"
    return f"known here: {listed(known)}" if 0 < len(known) <= 12 else ""


def listed(words: Iterable[str]) -> str:
    return ", ".join(f"`{word}`" for word in words)
