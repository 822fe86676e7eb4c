"""The columns of the table at a given width, and the text of their cells."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Literal, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from comborun.monitor.status import SUPERSEDED, RunStatus, SessionStatus
from comborun.monitor.wording import STYLES, SYMBOLS, brief, duration, span, visible
from comborun.rules.vocabulary import Life, Outcome
from comborun.words.endings import outcome_words

PADDING = 2
LAST_LINE = "last line"
_NAME = "session"
_SHORTEST_NAME = 8


class Column(NamedTuple):
    title: str
    cell: Callable[[SessionStatus, int], Text]
    """the cell of a session in a column of this width"""
    needed: bool = True
    """False if all its cells are empty"""
    width: int = 0
    justify: Literal["left", "right"] = "left"


class _Level(NamedTuple):
    """A level of detail; each level is narrower than the one before."""

    names: int = 60
    """most cells of a session's name"""
    bar: int = 20
    dropped: int = 0
    """number of columns of _DROPPED that are left out"""
    ranges: bool = True
    """whether the time left is shown as a range"""
    last_line: int = 40
    """least cells of the last line"""


_DROPPED = (LAST_LINE, "attempt", "node", "GPU", "idle", "left", "state", "successes")
_LEVELS = (
    _Level(),
    _Level(60, 10, last_line=24),
    _Level(60, 20, 1),
    _Level(40, 10, 1),
    _Level(30, 6, 1),
    _Level(30, 6, 2),
    _Level(30, 4, 2),
    _Level(30, 6, 2, ranges=False),
    *(_Level(30, 0, count, ranges=False) for count in range(1, len(_DROPPED) + 1)),
)


def columns(status: RunStatus, width: int) -> tuple[Column, ...]:
    """As many columns as fit. If even the narrowest level does not fit, names are shortened."""
    for level in _LEVELS:
        chosen = _chosen(status, level)
        free = width - sum(column.width for column in chosen) - PADDING * (len(chosen) - 1)
        if level.dropped and free >= 0:
            return chosen
        if not level.dropped and free - PADDING >= level.last_line:
            return (*chosen, Column(LAST_LINE, _last_line, width=free - PADDING))
    return tuple(
        column._replace(width=max(_SHORTEST_NAME, column.width + free)) if column.title == _NAME else column
        for column in chosen
    )


def _chosen(status: RunStatus, level: _Level) -> tuple[Column, ...]:
    """The columns of a level, except the last line; each as wide as its longest cell."""
    sessions, without = status.sessions, _DROPPED[: level.dropped]
    digits = max((len(str(max(one.planned, one.done or 0))) for one in sessions), default=1)
    left = partial(_left, status.now, level.ranges)
    every = (
        Column("" if "state" in without else "state", partial(_state, "state" not in without)),
        Column(_NAME, _name),
        Column(status.unit, partial(_episodes, level.bar, digits)),
        Column("successes", _successes, justify="right"),
        Column("idle", _idle, any(one.idle is not None for one in sessions), justify="right"),
        Column("left", left, any(one.life is not Life.ENDED for one in sessions), justify="right"),
        Column("attempt", _attempt, any(one.attempt > 1 for one in sessions), justify="right"),
        Column("node", _node, any(one.node for one in sessions)),
        Column("GPU", _gpus, any(one.gpus for one in sessions)),
    )
    kept = [column for column in every if column.title not in without and column.needed]
    return tuple(column._replace(width=_width(column, status, level)) for column in kept)


def _width(column: Column, status: RunStatus, level: _Level) -> int:
    widest = max((column.cell(session, level.names).cell_len for session in status.sessions), default=0)
    width = max(widest, cell_len(column.title))
    return min(width, level.names) if column.title == _NAME else width


def _state(in_words: bool, session: SessionStatus, _: int) -> Text:
    word = session.word
    return Text(f"{SYMBOLS[word]} {outcome_words(word)}" if in_words else SYMBOLS[word], STYLES[word])


def _name(session: SessionStatus, width: int) -> Text:
    """Long names are cut in the middle, because names of one grid often differ at the end."""
    name, tail = session.name + (f" ({SUPERSEDED})" if session.part == SUPERSEDED else ""), (width - 1) // 2
    if cell_len(name) > width:
        name = f"{set_cell_size(name, width - 1 - tail)}…{set_cell_size(name[::-1], tail)[::-1]}"
    return Text(name, _emphasis(session))


def _emphasis(session: SessionStatus) -> str:
    return "dim" if session.life is Life.QUEUED else ""


def _episodes(cells: int, digits: int, session: SessionStatus, _: int) -> Text:
    done = "-" if session.done is None else str(session.done)
    planned = f"/{session.planned:<{digits}}" if session.planned else ""
    numbers = f"{done:>{digits}}{planned}"
    if not cells:
        return Text(numbers, _emphasis(session))
    drawn = bar(session.done or 0, session.planned, cells, STYLES[session.word])
    return drawn.append(f" {numbers}", _emphasis(session) or "default")


def _successes(session: SessionStatus, _: int) -> Text:
    if session.successes is None or not session.recorded:
        return Text("-", "dim")
    return Text(f"{session.successes} of {session.recorded}")


def _idle(session: SessionStatus, _: int) -> Text:
    """Dim if the program is known to print nothing for long."""
    return Text("" if session.idle is None else brief(session.idle), "dim" if session.silent else "")


def _left(now: float | None, ranges: bool, session: SessionStatus, _: int) -> Text:
    """The time until the estimated end; `-` for a running session without one."""
    end = session.expected
    if session.life is Life.ENDED:
        return Text()
    if end is None or now is None:
        return Text("-", "dim")
    shown = span(end.earliest - now, end.latest - now) if ranges else brief(end.likeliest - now)
    return Text(shown, _emphasis(session))


def _attempt(session: SessionStatus, _: int) -> Text:
    return Text(str(session.attempt) if session.attempt > 1 else "")


def _gpus(session: SessionStatus, _: int) -> Text:
    return Text(",".join(map(str, session.gpus)), "" if session.alive else "dim")


def _node(session: SessionStatus, _: int) -> Text:
    return Text(visible(session.node), "" if session.alive else "dim")


def _last_line(session: SessionStatus, width: int) -> Text:
    """Its note, if it has one, and the last line of its log."""
    if remarked := session.remark:
        line = Text(remarked, note_style(session))
        line.append(f"  {session.last_line}" if session.last_line else "", "dim")
    elif session.outcome is Outcome.SUCCEEDED and session.seconds is not None:
        line = Text(f"took {duration(session.seconds)}", "dim")
    else:
        line = Text(session.last_line, "" if session.alive else "dim")
    return cut(line, width)


def note_style(session: SessionStatus) -> str:
    """A note of a successful session is a warning."""
    return "yellow" if session.outcome is Outcome.SUCCEEDED else STYLES[session.outcome or session.life]


def bar(done: int, planned: int, width: int, style: str) -> Text:
    """A bar of `width` cells, in steps of half a cell. The rest is a thin line, readable without colour."""
    halves = 2 * max(0, width)
    filled = min(halves, halves * done // planned) if planned > 0 else 0
    whole, half = divmod(filled, 2)
    text = Text("━" * whole + "╾" * half, style)
    return text.append("─" * (halves // 2 - whole - half), "bright_black")


def cut(line: Text, width: int) -> Text:
    line.truncate(width, overflow="ellipsis")
    return line
