"""Which columns a table has at a width, and what is in their cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from comborun.monitor.lastline import visible
from comborun.monitor.showing.style import STYLES, bar, note_style
from comborun.monitor.status import RunStatus, SessionStatus
from comborun.monitor.wording import SYMBOLS, brief, duration, remark, span, state
from comborun.rules.words import Life, Outcome

PADDING = 2
LAST_LINE = "last line"
_SHORTEST_NAME = 4


@dataclass(frozen=True)
class Column:
    title: str
    cell: Callable[[SessionStatus, int], Text]
    """the cell of a session in a column of this width"""
    width: int = 0
    justify: Literal["left", "right"] = "left"


@dataclass(frozen=True)
class _Level:
    """How much is shown; each is narrower than the one before it."""

    names: int = 32
    """cells, at most, of a policy and of an environment"""
    bar: int = 20
    last_line: int = 40
    """cells, at least"""
    ranges: bool = True
    """how long it will still take from shortest to longest, or only what is likely"""
    without: tuple[str, ...] = ()


_DROPPED = (LAST_LINE, "attempt", "node", "GPU", "idle", "left", "state", "successes")
_LEVELS = (
    _Level(),
    _Level(names=24, bar=10, last_line=24),
    _Level(without=_DROPPED[:1]),
    _Level(names=24, bar=10, without=_DROPPED[:1]),
    _Level(names=16, bar=6, without=_DROPPED[:1]),
    _Level(names=16, bar=6, without=_DROPPED[:2]),
    _Level(names=16, bar=4, without=_DROPPED[:2]),
    _Level(names=16, bar=6, ranges=False, without=_DROPPED[:2]),
    *(_Level(names=16, bar=0, ranges=False, without=_DROPPED[:count]) for count in range(1, len(_DROPPED) + 1)),
)


def columns(status: RunStatus, width: int) -> tuple[Column, ...]:
    """The most that fits; where nothing does, the names give way."""
    for level in _LEVELS:
        chosen = _chosen(status, level)
        free = width - sum(column.width for column in chosen) - PADDING * (len(chosen) - 1)
        if LAST_LINE in level.without and free >= 0:
            return chosen
        if LAST_LINE not in level.without and free - PADDING >= level.last_line:
            return (*chosen, Column(LAST_LINE, _last_line, free - PADDING))
    return _squeezed(_chosen(status, _LEVELS[-1]), width)


def _squeezed(chosen: Sequence[Column], width: int) -> tuple[Column, ...]:
    """The same columns with names as short as the width asks for."""
    names = [column for column in chosen if column.title in ("policy", "environment")]
    others = sum(column.width for column in chosen) - sum(column.width for column in names)
    room = (width - others - PADDING * (len(chosen) - 1)) // len(names)
    longest = max(_SHORTEST_NAME, room)
    return tuple(replace(column, width=min(column.width, longest)) if column in names else column for column in chosen)


def _chosen(status: RunStatus, level: _Level) -> tuple[Column, ...]:
    """The columns of a level, but for the last line, as wide as their longest cell."""
    every = (
        Column("state", _state) if "state" not in level.without else Column("", _symbol),
        Column("policy", _policy),
        Column("environment", _environment),
        Column(_unit(status), _Episodes(level.bar, _digits(status))),
        Column("successes", _successes, justify="right"),
        Column("idle", _idle, justify="right"),
        Column("left", _Left(status.now, level.ranges), justify="right"),
        Column("attempt", _attempt, justify="right"),
        Column("node", _node),
        Column("GPU", _gpus),
    )
    kept = [column for column in every if column.title not in level.without and _needed(column, status)]
    return tuple(replace(column, width=_width(column, status, level)) for column in kept)


def _needed(column: Column, status: RunStatus) -> bool:
    """Columns that would be empty from top to bottom are left out."""
    if column.title == "attempt":
        return any(session.attempt > 1 for session in status.sessions)
    if column.title == "node":
        return any(session.node for session in status.sessions)
    if column.title == "GPU":
        return any(session.gpus for session in status.sessions)
    if column.title == "idle":
        return any(session.idle is not None for session in status.sessions)
    return column.title != "left" or any(session.life is not Life.ENDED for session in status.sessions)


def _width(column: Column, status: RunStatus, level: _Level) -> int:
    widest = max((column.cell(session, level.names).cell_len for session in status.sessions), default=0)
    if column.title in ("policy", "environment"):
        return max(min(widest, level.names), min(cell_len(column.title), level.names))
    return max(widest, cell_len(column.title))


def _unit(status: RunStatus) -> str:
    units = {session.unit for session in status.sessions}
    return f"{units.pop()}s" if len(units) == 1 else "done"


def _digits(status: RunStatus) -> int:
    return max((len(str(max(one.planned, one.done or 0))) for one in status.sessions), default=1)


def _symbol(session: SessionStatus, _: int) -> Text:
    word = state(session)
    return Text(SYMBOLS[word], STYLES[word])


def _state(session: SessionStatus, _: int) -> Text:
    word = state(session)
    return Text(f"{SYMBOLS[word]} {word}", STYLES[word])


def _policy(session: SessionStatus, width: int) -> Text:
    return Text(_shortened(visible(session.policy), width), _emphasis(session))


def _environment(session: SessionStatus, width: int) -> Text:
    return Text(_shortened(visible(session.combo), width), _emphasis(session))


def _shortened(name: str, width: int) -> str:
    """Without its middle: names of one grid tend to differ at their ends."""
    if cell_len(name) <= width:
        return name
    tail = (width - 1) // 2
    return f"{set_cell_size(name, width - 1 - tail)}…{set_cell_size(name[::-1], tail)[::-1]}"


def _emphasis(session: SessionStatus) -> str:
    return "dim" if session.life is Life.QUEUED else ""


@dataclass(frozen=True)
class _Episodes:
    """A bar, when there is room, and done/planned."""

    bar: int
    digits: int

    def __call__(self, session: SessionStatus, _: int) -> Text:
        done = "-" if session.done is None else str(session.done)
        planned = f"/{session.planned:<{self.digits}}" if session.planned else ""
        numbers = f"{done:>{self.digits}}{planned}"
        if not self.bar:
            return Text(numbers, _emphasis(session))
        drawn = bar(session.done or 0, session.planned, self.bar, STYLES[state(session)])
        return drawn.append(f" {numbers}", _emphasis(session) or "default")


def _successes(session: SessionStatus, _: int) -> Text:
    if session.successes is None or not session.recorded:
        return Text("-", "dim")
    return Text(f"{session.successes} of {session.recorded}")


def _idle(session: SessionStatus, _: int) -> Text:
    """Silence is no sign of trouble where a program is known for it."""
    return Text("" if session.idle is None else brief(session.idle), "dim" if session.silent else "")


@dataclass(frozen=True)
class _Left:
    """Until the estimated end; `-` for a running session that can't tell yet."""

    now: float | None
    ranges: bool

    def __call__(self, session: SessionStatus, _: int) -> Text:
        if session.life is Life.ENDED:
            return Text()
        end = session.expected
        if end is None or self.now is None:
            return Text("-", "dim")
        shown = span(end.earliest - self.now, end.latest - self.now) if self.ranges else brief(end.likeliest - self.now)
        return Text(shown, _emphasis(session))


def _attempt(session: SessionStatus, _: int) -> Text:
    return Text(str(session.attempt) if session.attempt > 1 else "")


def _gpus(session: SessionStatus, _: int) -> Text:
    return Text(",".join(map(str, session.gpus)), "" if session.alive else "dim")


def _node(session: SessionStatus, _: int) -> Text:
    return Text(visible(session.node), "" if session.alive else "dim")


def _last_line(session: SessionStatus, width: int) -> Text:
    """How it ended, where that needs words, else what its log says."""
    if remarked := remark(session):
        line = Text(remarked, note_style(session))
        line.append(f"  {session.last_line}" if session.last_line else "", "dim")
    elif session.outcome is Outcome.SUCCEEDED and session.seconds is not None:
        line = Text(f"took {duration(session.seconds)}", "dim")
    else:
        line = Text(session.last_line, "" if session.alive else "dim")
    line.truncate(width, overflow="ellipsis")
    return line
