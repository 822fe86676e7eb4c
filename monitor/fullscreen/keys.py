"""The keys of the full screen: one table for the line of keys, the help, the documents and the app."""

from __future__ import annotations

from typing import NamedTuple

PAGES = ("sessions", "grid", "host", "events", "runs")


class Key(NamedTuple):
    names: tuple[str, ...]
    """as textual calls them"""
    shown: str
    action: str
    """a method of the desk, the orders or the app, perhaps with one argument after a colon"""
    does: str
    short: str = ""
    """for the line of keys; empty: only in the help"""
    more: str = ""


KEYS = (
    Key(("up", "k"), "↑ k", "desk.move:-1", "one row up"),
    Key(("down", "j"), "↓ j", "desk.move:1", "one row down", "↑↓ jk move"),
    Key(("pageup", "ctrl+u"), "PgUp", "desk.screenful:-1", "a page up"),
    Key(("pagedown", "ctrl+d"), "PgDn", "desk.screenful:1", "a page down"),
    Key(("g", "home"), "g Home", "desk.end:-1", "the first row"),
    Key(("G", "end"), "G End", "desk.end:1", "the last row"),
    Key(("enter",), "⏎", "desk.open", "shows the pane of the session on the whole screen", "⏎ open"),
    Key(("escape",), "Esc", "desk.back", "back: out of a pane, a filter, marks, a page"),
    Key(("tab",), "Tab", "desk.next_pane:1", "the next pane: log, explain, episodes, video"),
    Key(("shift+tab",), "Shift-Tab", "desk.next_pane:-1", "the pane before"),
    Key(("right",), "→", "desk.right", "shows the sessions of a folded row; in the grid, a cell to the right"),
    Key(("left",), "←", "desk.left", "folds them again; in the grid, a cell to the left"),
    Key(("slash",), "/", "desk.type_filter", "filters the list", "/ filter", "state:failed policy:pi0 -why:cuda"),
    Key(("f",), "f", "desk.failed", "only what failed, and back", "f failed"),
    Key(("s",), "s", "desk.sort:1", "sorts by the next column", "s sort"),
    Key(("S",), "S", "desk.reverse", "reverses the order"),
    *(Key((str(place),), str(place), f"desk.show:{name}", f"page: {name}") for place, name in enumerate(PAGES, 1)),
    Key(("l",), "l", "desk.show_pane:log", "its log, which follows while it runs", "l log"),
    Key(("L",), "L", "desk.pager", "its log on the whole screen"),
    Key(("e",), "e", "desk.show_pane:explain", "why it is so, and how to continue", "e explain"),
    Key(("v",), "v", "desk.show_pane:video", "its videos", "", "y then copies the place of the newest"),
    Key(("space",), "Space", "desk.mark", "marks the row; r and x then mean all marked ones"),
    Key(("a",), "a", "app.attach", "opens its window; its own keys leave it", "a attach"),
    Key(("r",), "r", "order.retry", "starts it again; asks first", "r retry"),
    Key(("x",), "x", "order.stop", "ends it; asks first", "x stop"),
    Key(("R",), "R", "order.resume", "lets a held run go on; asks first"),
    Key(("p",), "p", "order.pause", "starts nothing new; asks first", "p pause"),
    Key(("plus", "equals_sign"), "+", "order.slots:1", "one more session at once", "+/- slots"),
    Key(("minus",), "-", "order.slots:-1", "one session fewer at once"),
    Key(("u",), "u", "app.refresh_look", "looks at the host at once"),
    Key(("y",), "y", "app.copy", "copies the command that does the same in a shell", "y copy"),
    Key(
        ("colon",),
        ":",
        "desk.type_command",
        "a command: retry, stop, slots 4, any other of combo",
        ": command",
    ),
    Key(("question_mark",), "?", "desk.help", "these keys; / filters them", "? help"),
    Key(("ctrl+z",), "Ctrl-Z", "app.to_shell", "back to the shell, whose `fg` leads here again"),
    Key(("q", "ctrl+c"), "q Ctrl-C", "app.leave", "leaves; the sessions go on", "q leave"),
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
