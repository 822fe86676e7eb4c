"""The columns of the table, one row each, and which of them fit into a given width."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from itertools import takewhile
from types import MappingProxyType
from typing import Literal, NamedTuple

from rich.cells import cell_len, set_cell_size
from rich.text import Text

from comborun.monitor.status import SUPERSEDED, RunStatus, SessionStatus
from comborun.monitor.wording import MARKS, visible
from comborun.rules.vocabulary import Life, Outcome
from comborun.words.endings import outcome_words
from comborun.words.times import brief, duration, span

PADDING = 2
_SHORTEST_NAME = 8
_ENDLESS = 100_000


class _Level(NamedTuple):
    """A level of detail; each level is narrower than the one before."""

    names: int = 60
    """most cells of a session's name"""
    bar: int = 20
    dropped: int = 0
    """number of columns that are left out, in the order of their priority"""
    ranges: bool = True
    """whether the time left is shown as a range"""
    words: bool = True
    """whether a state has its word beside its symbol"""
    last_line: int = 40
    """least cells of the last line"""


class Setting(NamedTuple):
    """What the cells of a column have in common."""

    level: _Level = _Level()
    width: int = 0
    now: float | None = None
    digits: int = 1
    """of the largest number of episodes"""
    names: frozenset[str] = frozenset()
    """of all sessions"""
    shown: Mapping[str, str] = MappingProxyType({})
    """those names in this width"""


class Column(NamedTuple):
    """`title` is the heading; that of the episodes is the unit of the run."""

    title: str
    line: str
    """its line in docs/grid.md"""
    cell: Callable[[SessionStatus, Setting], Text]
    used: Callable[[SessionStatus], object] | None = None
    """the column is there if this holds for a session; None: always"""
    priority: int | None = None
    """a narrow table leaves out the lowest one first; None: it always stays"""
    justify: Literal["left", "right"] = "left"
    setting: Setting = Setting()

    @property
    def width(self) -> int:
        return self.setting.width

    def resized(self, width: int) -> Column:
        shown = apart(self.setting.names, width) if self.cell is _name else {}
        return self._replace(setting=self.setting._replace(width=width, shown=shown))


# Cells


def _state(session: SessionStatus, at: Setting) -> Text:
    symbol, style, _ = MARKS[session.word]
    return Text(f"{symbol} {outcome_words(session.word)}" if at.level.words else symbol, style)


def _name(session: SessionStatus, at: Setting) -> Text:
    name = _whole_name(session)
    shown = name if cell_len(name) <= at.width else at.shown.get(name) or clipped(name, at.width)
    return Text(shown, _emphasis(session))


def _whole_name(session: SessionStatus) -> str:
    return session.name + (f" ({SUPERSEDED})" if session.part == SUPERSEDED else "")


def _emphasis(session: SessionStatus) -> str:
    return "dim" if session.life is Life.QUEUED else ""


def _episodes(session: SessionStatus, at: Setting) -> Text:
    done = "-" if session.done is None else str(session.done)
    planned = f"/{session.planned:<{at.digits}}" if session.planned else ""
    numbers = f"{done:>{at.digits}}{planned}"
    if not at.level.bar:
        return Text(numbers, _emphasis(session))
    drawn = bar(session.done or 0, session.planned, at.level.bar, MARKS[session.word].style)
    return drawn.append(f" {numbers}", _emphasis(session) or "default")


def _successes(session: SessionStatus, _: Setting) -> Text:
    if session.successes is None or not session.recorded:
        return Text("-", "dim")
    return Text(f"{session.successes} of {session.recorded}")


def _idle(session: SessionStatus, _: Setting) -> Text:
    """Dim if the program is known to print nothing for long."""
    return Text("" if session.idle is None else brief(session.idle), "dim" if session.silent else "")


def _left(session: SessionStatus, at: Setting) -> Text:
    """The time until the estimated end; `-` for a running session without one."""
    end = session.expected
    if session.life is Life.ENDED:
        return Text()
    if end is None or at.now is None:
        return Text("-", "dim")
    shown = span(end.earliest - at.now, end.latest - at.now) if at.level.ranges else brief(end.likeliest - at.now)
    return Text(shown, _emphasis(session))


def _last_line(session: SessionStatus, at: Setting) -> Text:
    """Its note, if it has one, and the last line of its log."""
    if remarked := "; ".join(filter(None, (session.remark, session.training if session.alive else ""))):
        line = Text(remarked, note_style(session) if session.remark else "")
        line.append(f"  {session.unquoted_line}" if session.unquoted_line else "", "dim")
    elif session.outcome is Outcome.SUCCEEDED and session.seconds is not None:
        line = Text("; ".join(filter(None, (session.training, f"took {duration(session.seconds)}"))), "dim")
    else:
        line = Text(session.last_line, "" if session.alive else "dim")
    return cut(line, at.width)


COLUMNS = (
    Column("state", "its state, or its outcome once it has ended", _state),
    Column("session", "its name", _name),
    Column("episodes", "how many of its episodes (or steps) are done, as a bar and in numbers", _episodes),
    Column("successes", "how many of its episodes with a verdict succeeded", _successes, priority=70, justify="right"),
    Column("quiet", "the time since its newest record, file of output, or line of its log", _idle,
           lambda session: session.idle is not None, 50, "right"),
    Column("left", "the time until it ends, by the episodes that it has done", _left,
           lambda session: session.life is not Life.ENDED, 60, "right"),
    Column("attempt", "the number of its latest attempt, if an earlier one has run",
           lambda session, _: Text(str(session.attempt) if session.again_after else ""),
           lambda session: session.again_after, 20, "right"),
    Column("node", "its node, on Slurm",
           lambda session, _: Text(visible(session.node), "" if session.alive else "dim"),
           lambda session: session.node, 30),
    Column("host", "its host, in a run on several",
           lambda session, _: Text(visible(session.host)), lambda session: session.host, 35),
    Column("GPU", "the GPUs of its latest attempt",
           lambda session, _: Text(",".join(map(str, session.gpus)), "" if session.alive else "dim"),
           lambda session: session.gpus, 40),
    Column("last line", "why its rows don't count, how far a training is, how it ended, or the last line of its log",
           _last_line, priority=10),
)  # fmt: skip
LAST_LINE = COLUMNS[-1]


def grid_lines() -> list[str]:
    """The lines about columns in docs/grid.md."""
    return [f"- **{column.title}**: {column.line}" for column in COLUMNS]


# Which columns fit

_LEVELS = (
    _Level(),
    _Level(60, 10, last_line=24),
    _Level(60, 20, 1),
    _Level(40, 10, 1),
    _Level(30, 6, 1),
    _Level(30, 6, 2),
    _Level(30, 4, 2),
    _Level(30, 6, 2, ranges=False),
    *(_Level(30, 0, count, ranges=False) for count in range(1, 7)),
    *(_Level(30, 0, count, ranges=False, words=False) for count in range(6, 10)),  # for columns that may be added, too
)


def columns(status: RunStatus, width: int) -> tuple[Column, ...]:
    """As many columns as fit. If even the narrowest level does not fit, names are shortened."""
    for level in _LEVELS:
        chosen = _of_level(status, level)
        free = width - sum(one.width for one in chosen) - PADDING * (len(chosen) - 1)
        if level.dropped and free >= 0:
            return chosen
        if not level.dropped and free - PADDING >= level.last_line:
            return (*chosen, LAST_LINE.resized(free - PADDING))
    return tuple(one.resized(max(_SHORTEST_NAME, one.width + free)) if one.cell is _name else one for one in chosen)


def whole_width(status: RunStatus) -> int:
    """Cells of a table in which nothing is cut."""
    setting = Setting(width=_ENDLESS)
    last = max((LAST_LINE.cell(session, setting).cell_len for session in status.sessions), default=0)
    chosen = _of_level(status, _LEVELS[0]._replace(names=_ENDLESS))
    return sum(one.width + PADDING for one in chosen) + max(last, _LEVELS[0].last_line)


def _of_level(status: RunStatus, level: _Level) -> tuple[Column, ...]:
    """The columns of a level, except the last line; each as wide as its longest cell."""
    sessions = status.sessions
    there = [one for one in COLUMNS if not one.used or any(map(one.used, sessions))]
    leaving = sorted((one for one in there if one.priority is not None), key=lambda one: one.priority or 0)
    without = (LAST_LINE, *leaving[: level.dropped])
    digits = max((len(str(max(one.planned, one.done or 0))) for one in sessions), default=1)
    setting = Setting(level, level.names, status.now, digits, frozenset(map(_whole_name, sessions)))
    chosen = []
    for one in there:
        if one in without:
            continue
        title = status.unit if one.cell is _episodes else one.title
        title = title if one.cell is not _state or level.words else ""
        widest = max((one.cell(session, setting).cell_len for session in sessions), default=0)
        chosen.append(one._replace(title=title, setting=setting).resized(max(widest, cell_len(title))))
    return tuple(chosen)


# Parts of cells, for the table too


def note_style(session: SessionStatus) -> str:
    """A note of a successful session is a warning."""
    return "yellow" if session.outcome is Outcome.SUCCEEDED else MARKS[session.word].style


def bar(done: int, planned: int, width: int, style: str) -> Text:
    """A bar of `width` cells, in steps of half a cell. The rest is a thin line, readable without colour."""
    halves = 2 * max(0, width)
    filled = min(halves, halves * done // planned) if planned > 0 else 0
    whole, half = divmod(filled, 2)
    text = Text("━" * whole + "╾" * half, style)
    return text.append("─" * (halves // 2 - whole - half), "bright_black")


def clipped(text: str, width: int) -> str:
    """Text of exactly that width; what is too long ends with an ellipsis."""
    if cell_len(text) <= width:
        return set_cell_size(text, width)
    return set_cell_size(text, max(0, width - 1)) + "…" * (width > 0)


def apart(names: Collection[str], width: int) -> dict[str, str]:
    """Names in exactly that width. Long ones lose their middle, where it is, so that different names stay different; if
    that is not possible, what they have in common at the beginning.
    """
    ends = range(width // 2, max(width // 2 + 1, width - 1))
    ways = ({name: _shortened(name, width, end) for name in names} for end in ends)
    if told := next((way for way in ways if len({*way.values()}) == len(way)), None):
        return told
    long = [name for name in names if cell_len(name) > width]
    common = sum(1 for _ in takewhile(lambda column: len({*column}) == 1, zip(*long, strict=False)))
    return {name: _shortened(name if cell_len(name) <= width else f"…{name[common:]}", width, 0) for name in names}


def _shortened(name: str, width: int, end: int) -> str:
    """Of a longer name the middle goes, and so many cells of its end stay."""
    if cell_len(name) <= width or width < 5:
        return clipped(name, width)
    last = name
    while cell_len(last) > end:
        last = last[1:]
    return clipped(name, width - cell_len(last)) + last


def cut(line: Text, width: int) -> Text:
    line.truncate(width, overflow="ellipsis")
    return line
