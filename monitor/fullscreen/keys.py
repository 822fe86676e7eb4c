"""The keys of the full screen: one table for the line of keys, the help, the documents and the app."""

from __future__ import annotations

from typing import NamedTuple

PAGES = ("sessions", "grid", "host", "events", "runs")


class Key(NamedTuple):
    names: tuple[str, ...]
    """as textual calls them"""
    shown: str
    action: str
    """`act_NAME` of the app, perhaps with one argument after a colon"""
    does: str
    short: str = ""
    """for the line of keys; empty: only in the help"""
    more: str = ""


KEYS = (
    Key(("up", "k"), "↑ k", "move:-1", "one row up"),
    Key(("down", "j"), "↓ j", "move:1", "one row down", "↑↓ jk move"),
    Key(("pageup", "ctrl+u"), "PgUp", "page:-1", "a page up"),
    Key(("pagedown", "ctrl+d"), "PgDn", "page:1", "a page down"),
    Key(("g", "home"), "g Home", "end:-1", "the first row"),
    Key(("G", "end"), "G End", "end:1", "the last row"),
    Key(("enter",), "⏎", "open", "shows the pane of the session on the whole screen", "⏎ open"),
    Key(("escape",), "Esc", "back", "back: out of a pane, a filter, marks, a page"),
    Key(("tab",), "Tab", "pane:1", "the next pane: log, explain, episodes, video"),
    Key(("shift+tab",), "Shift-Tab", "pane:-1", "the pane before"),
    Key(("right",), "→", "right", "shows the sessions of a folded row; in the grid, a cell to the right"),
    Key(("left",), "←", "left", "folds them again; in the grid, a cell to the left"),
    Key(("slash",), "/", "filter", "filters the list", "/ filter", "state:failed policy:pi0 -why:cuda"),
    Key(("f",), "f", "failed", "only what failed, and back", "f failed"),
    Key(("s",), "s", "sort:1", "sorts by the next column", "s sort"),
    Key(("S",), "S", "reverse", "reverses the order"),
    *(Key((str(place),), str(place), f"show:{name}", f"page: {name}") for place, name in enumerate(PAGES, 1)),
    Key(("l",), "l", "log", "its log, which follows while it runs", "l log"),
    Key(("L",), "L", "pager", "its log on the whole screen"),
    Key(("e",), "e", "explain", "why it is so, and how to continue", "e explain"),
    Key(("v",), "v", "video", "its videos", "", "in the pane of videos Enter opens the newest on this machine"),
    Key(("space",), "Space", "mark", "marks the row; r and x then mean all marked ones"),
    Key(("a",), "a", "attach", "opens its window; its own keys leave it", "a attach"),
    Key(("r",), "r", "retry", "starts it again; asks first", "r retry"),
    Key(("x",), "x", "stop", "ends it; asks first", "x stop"),
    Key(("R",), "R", "resume", "lets a held run go on; asks first"),
    Key(("p",), "p", "pause", "starts nothing new; asks first", "p pause"),
    Key(("plus", "equals_sign"), "+", "slots:1", "one more session at once", "+/- slots"),
    Key(("minus",), "-", "slots:-1", "one session fewer at once"),
    Key(("u",), "u", "refresh", "looks at the host at once"),
    Key(("y",), "y", "copy", "copies the command that does the same in a shell", "y copy"),
    Key(("colon",), ":", "command", "a command: retry, stop, slots 4, sort policy, any other of combo", ": command"),
    Key(("question_mark",), "?", "help", "these keys; / filters them", "? help"),
    Key(("q", "ctrl+c"), "q Ctrl-C", "leave", "leaves; the sessions go on", "q leave"),
)
"""in the order of the help"""
BY_NAME = {name: key for key in KEYS for name in key.names}


def line(width: int) -> str:
    """As many keys as fit, the last two always."""
    parts = [key.short for key in KEYS if key.short]
    while len(parts) > 2 and len("  ".join(parts)) > width - 2:
        parts.pop(-3)
    return f" {'  '.join(parts)}"


def document_lines() -> list[str]:
    """The keys in docs/watching.md."""
    shown = ((" ".join(f"`{word}`" for word in key.shown.split()), key) for key in KEYS)
    return [f"| {names} | {key.does} |" for names, key in shown]
