"""How attempts ended, in words."""

from __future__ import annotations

from comborun.rules.vocabulary import Outcome


def outcome_words(outcome: str | None) -> str:
    """An outcome as people read it; empty for none."""
    return "not needed" if outcome == Outcome.NOT_NEEDED else str(outcome or "")
