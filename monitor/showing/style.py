"""Colours and bars."""

from __future__ import annotations

from rich.text import Text

from comborun.monitor.status import SessionStatus
from comborun.rules.words import Life, Outcome

STYLES: dict[str, str] = {
    Life.QUEUED: "dim",
    Life.STARTING: "cyan",
    Life.RUNNING: "cyan",
    Life.STALLED: "yellow",
    Life.ORPHANED: "magenta",
    Outcome.SUCCEEDED: "green",
    Outcome.PARTIAL: "yellow",
    Outcome.FAILED: "red",
    Outcome.CANCELLED: "yellow",
    Outcome.LOST: "magenta",
    Outcome.NOT_NEEDED: "dim",
}


def note_style(session: SessionStatus) -> str:
    """A note to a success is a warning."""
    return "yellow" if session.outcome is Outcome.SUCCEEDED else STYLES[session.outcome or session.life]


def bar(done: int, planned: int, width: int, style: str) -> Text:
    """`width` cells, in halves; what is missing is drawn thin, so that it reads without colour too."""
    halves = 2 * max(0, width)
    filled = min(halves, halves * done // planned) if planned > 0 else 0
    whole, half = divmod(filled, 2)
    text = Text("━" * whole + "╾" * half, style)
    return text.append("─" * (halves // 2 - whole - half), "bright_black")
