"""The table of the runs on all hosts: rows and a width to lines of text, pure; and where it is shown."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from rich.console import Console, Group
from rich.text import Text

from comborun.monitor.columns import PADDING, cut
from comborun.monitor.fleet import FleetRow
from comborun.monitor.wording import visible
from comborun.remote.launches import short
from comborun.rules.vocabulary import amount
from comborun.text import KIB, MIB
from comborun.words.times import brief, clock, duration

if TYPE_CHECKING:
    from comborun.monitor.fleet import Fleet

_NAME, _HOST = 24, 12
"""most characters of a grid's name and of a host in a narrow table"""
_NONE = "-"
_REDRAW_S = 1.0


class _Level(NamedTuple):
    """A level of detail; each is narrower than the one before."""

    ids: bool = True
    """whether runs have their whole ids; else the grid's name and the last four characters, which name it as well"""
    words: bool = True
    """whether states are words; else symbols"""
    dropped: tuple[str, ...] = ()
    name: int = _NAME


_LEVELS = (
    _Level(),
    _Level(dropped=("started",)),
    _Level(ids=False, dropped=("started",)),
    _Level(ids=False, words=False, dropped=("started",)),
    _Level(ids=False, words=False, dropped=("started", "ran")),
    _Level(ids=False, words=False, dropped=("started", "ran"), name=14),
    _Level(ids=False, words=False, dropped=("started", "ran"), name=8),
    _Level(ids=False, words=False, dropped=("started", "ran", "others"), name=12),
    _Level(ids=False, words=False, dropped=("started", "ran", "others", "gpus", "ends"), name=10),
)


class _Column(NamedTuple):
    title: str
    cell: Callable[[FleetRow, _Level, float], str]
    right: bool = False


def _run(row: FleetRow, level: _Level, _now: float) -> str:
    if level.ids:
        return visible(row.run.id)
    name = Text(visible(row.run.grid))
    name.truncate(level.name, overflow="ellipsis")
    return f"{name.plain} {short(row.run.id)}"


def _host(row: FleetRow, level: _Level, _now: float) -> str:
    name = Text(visible(row.host))
    if not level.ids:
        name = Text(f"{len(row.parts)} hosts") if row.parts else name
        name.truncate(min(level.name, _HOST), overflow="ellipsis")
    return name.plain


def _done(row: FleetRow, _level: _Level, _now: float) -> str:
    return _NONE if row.done is None or not row.planned else f"{row.done}/{row.planned}"


def _gpus(row: FleetRow, level: _Level, now: float) -> str:
    """`0,2-5`; of a run on several hosts `alpha 0,2-5; beta 0`."""
    if row.parts:
        return "; ".join(f"{_host(one, level, now)} {_gpus(one, level, now)}" for one in row.parts if one.gpus) or _NONE
    parts: list[list[int]] = []
    for gpu in row.gpus:
        if parts and parts[-1][-1] == gpu - 1:
            parts[-1][1:] = [gpu]
        else:
            parts.append([gpu])
    return ",".join("-".join(map(str, part)) for part in parts) or _NONE


def _others(row: FleetRow, level: _Level, _now: float) -> str:
    if level.words or not row.others:
        return ", ".join(f"{visible(who)} {amount(mib * MIB)}" for who, mib in row.others) or _NONE
    who, mib = row.others[0]
    more = len(row.others) - 1
    return f"{visible(who)[: level.name]} {mib / KIB:.0f}G" + (f" +{more}" if more else "")


def _started(row: FleetRow, _level: _Level, now: float) -> str:
    return clock(row.started, near=now) if now - row.started < 6 * 86400 else day(row.started)


def _state(row: FleetRow, level: _Level, _now: float) -> str:
    state = visible(row.state if level.words else row.brief_state or row.state)
    state = f"recheck: {state}" if row.run.canary else state
    if row.complaint and row.age is None:
        return f"{state} (never seen)"
    if row.age is None:
        return state
    return f"{state} (seen {brief(row.age)} ago)" if level.words else f"{brief(row.age)} ago: {state}"


def day(moment: float) -> str:
    import time

    return time.strftime("%Y-%m-%d %H:%M", time.localtime(moment))


_COLUMNS = (
    _Column("run", _run),
    _Column("host", _host),
    _Column("done", _done, right=True),
    _Column("ends", lambda row, _, now: clock(row.expected.likeliest, near=now) if row.expected else _NONE),
    _Column("gpus", _gpus),
    _Column("others", _others),
    _Column("started", _started),
    _Column("ran", lambda row, *_: _NONE if row.run.seconds is None else duration(row.run.seconds), right=True),
    _Column("state", _state),
)


class Layout:
    """Columns that fit some rows: within `width`, where a column in which no row says anything is left out; or all of
    them.
    """

    def __init__(self, rows: Sequence[FleetRow], width: int | None, now: float) -> None:
        self._width, self._now = width, now
        for level in _LEVELS if width else _LEVELS[:1]:
            self._fit(rows, level)
            if width is None or sum(self._widths) + PADDING * (len(self._widths) - 1) <= width:
                break

    def _fit(self, rows: Sequence[FleetRow], level: _Level) -> None:
        self._level, self._columns, self._widths = level, list[_Column](), list[int]()
        for column in _COLUMNS:
            cells = [Text(column.cell(row, level, self._now)).cell_len for row in rows]
            said = any(column.cell(row, level, self._now) != _NONE for row in rows)
            if (said or column.title in ("run", "state") or not self._width) and column.title not in level.dropped:
                self._columns.append(column)
                self._widths.append(max([len(column.title), *cells]))

    def head(self) -> Text:
        return self._line([column.title for column in self._columns], "dim")

    def line(self, row: FleetRow) -> Text:
        style = "dim" if row.complaint else ""
        return self._line([column.cell(row, self._level, self._now) for column in self._columns], style)

    def _line(self, cells: Sequence[str], style: str) -> Text:
        line = Text(style=style, no_wrap=True)
        for column, cell, width in zip(self._columns, cells, self._widths, strict=True):
            text = Text(cell)
            text.align("right" if column.right else "left", max(width, text.cell_len))
            line.append_text(text).append(" " * PADDING)
        line.rstrip()
        return cut(line, self._width) if self._width else line


def table(rows: Sequence[FleetRow], width: int | None, now: float, most: int | None = None) -> list[Text]:
    """At most `most` lines: runs that go on come first, then the newest."""
    if not rows:
        return []
    rows = sorted(rows, key=lambda row: row.run.finished) if most else rows
    shown = rows[: max(1, most - 2)] if most and len(rows) + 1 > most else rows
    layout = Layout(shown, width, now)
    lines = [layout.head(), *map(layout.line, shown)]
    return [*lines, Text(f"and {len(rows) - len(shown)} more", "dim")] if len(shown) < len(rows) else lines


def complaints(fleet: Fleet) -> Iterator[str]:
    left = fleet.late if fleet.over else ()
    for host, why in {one.host: one.complaint for one in fleet.listings() if one.complaint}.items():
        more = f"; `combo runs --host {visible(host)}` waits for it" if host in left else ""
        yield f"! {visible(host)}: {visible(why)}{more}"


def picture(fleet: Fleet, console: Console, now: float) -> Group:
    """The table as it fits on the terminal, and which hosts are not heard."""
    below = [cut(Text(line, "yellow"), console.width) for line in complaints(fleet)]
    rows = fleet.rows()
    above = table(rows, console.width, now, max(3, console.height - len(below) - 1))
    if not rows and not below:
        above = [Text("no runs" if fleet.answered else "asking the hosts ...", "dim")]
    return Group(*above, *below)


def show_live(fleet: Fleet, console: Console, now: Callable[[], float], *, lasting: bool) -> None:
    """Redraw the table in place until there is nothing more to wait for; with `lasting` until Ctrl-C."""
    from rich.live import Live

    # questions of a login go to standard error
    with Live(
        console=console,
        auto_refresh=False,
        transient=not lasting,
        vertical_overflow="crop",
        redirect_stderr=False,
    ) as live:
        while True:
            live.update(picture(fleet, console, now()), refresh=not fleet.asking)
            if not lasting and fleet.over:
                return
            fleet.wait(_REDRAW_S)
