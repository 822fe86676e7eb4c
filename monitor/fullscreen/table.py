"""The table of sessions: which columns fit, and the line of one session. Pure."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.text import Text

from comborun.monitor.columns import apart, bar, clipped
from comborun.monitor.rate_interval import exact_interval
from comborun.monitor.rows import Row, group_of
from comborun.monitor.status import SessionStatus
from comborun.monitor.wording import DONE, FAILED, MARKS, STALLED, UNMARKED, visible
from comborun.rules.vocabulary import Life, Outcome
from comborun.words.endings import outcome_words
from comborun.words.times import brief, span

_LONGEST_NAME, _SHORTEST_NAME = 28, 9
_LONGEST_SPAN = 13
"""`16.6 h–2.35 d`"""
_LEAST_WHY = 0.3
"""of the width"""
_LAST = "WHY, OR LAST LINE"
INDENT = 4
"""of the lines below a row that say why a session failed"""


class Moment(NamedTuple):
    """What cells need besides their row."""

    now: float | None = None
    """on the host's clock, as of the last look"""
    passed: float = 0.0
    """seconds since then"""
    digits: int = 1
    """of the largest number of episodes"""
    marked: frozenset[str] = frozenset()
    cursor: str = ""


class Column(NamedTuple):
    title: str
    cell: Callable[[Row, Moment, int], Text]
    """the last argument is its width"""
    width: int = 0
    right: bool = False
    drop: int = 0
    """the lowest one goes first when the width does not suffice; 0: it stays"""


def symbol(word: str) -> Text:
    mark = MARKS.get(word, UNMARKED)
    return Text(mark.symbol, mark.style)


def _faded(row: Row) -> str:
    return "dim" if row.session.life is Life.QUEUED or group_of(row.session) == DONE else ""


def _marker(row: Row, at: Moment, _: int) -> Text:
    return Text(("▸" if row.name == at.cursor else " ") + ("*" if row.name in at.marked else " "), "bold")


def _state(row: Row, _: Moment, width: int) -> Text:
    text = symbol(row.session.word)
    return text if width < 2 else text.append(f" {outcome_words(row.session.word)}")


def _policy_of(session: SessionStatus) -> str:
    return visible(session.policy or session.name)


def _environment_of(session: SessionStatus) -> str:
    return visible(session.environment) + (f" {session.part}" if session.part else "")


def _names(of: Callable[[SessionStatus], str], shown: Mapping[str, str]) -> Callable[[Row, Moment, int], Text]:
    return lambda row, _, width: Text(shown.get(name := of(row.session)) or clipped(name, width), _faded(row))


def _bar(row: Row, _: Moment, width: int) -> Text:
    return bar(row.session.done or 0, row.session.planned, width, MARKS.get(row.session.word, UNMARKED).style)


def _episodes(row: Row, at: Moment, _: int) -> Text:
    one = row.session
    done = "-" if one.done is None else str(one.done)
    return Text(f"{done:>{at.digits}}" + (f"/{one.planned}" if one.planned else ""), _faded(row))


def _success(row: Row, _: Moment, width: int) -> Text:
    one = row.session
    if one.successes is None or not one.recorded:
        return Text("-", "dim")
    of = " of " if width >= 8 else "/"
    return Text(f"{one.successes}{of}{one.recorded}", _faded(row))


def _interval(row: Row, *_: object) -> Text:
    one = row.session
    found = exact_interval(one.successes, one.recorded) if one.successes is not None and one.recorded else None
    return Text(f"{100 * found[0]:.0f}–{100 * found[1]:.0f}" if found else "-", "dim")


def _quiet(row: Row, *_: object) -> Text:
    """As of the last look: nobody knows what came since."""
    idle = row.session.idle
    if idle is None:
        return Text("-" if row.session.alive else "", "dim")
    style = "yellow" if group_of(row.session) == STALLED else "dim" if row.session.silent else ""
    return Text(brief(idle), style)


def _left(row: Row, at: Moment, _: int) -> Text:
    one = row.session
    if one.life is Life.ENDED or one.expected is None or at.now is None:
        return Text("" if one.life is Life.ENDED else "-", "dim")
    now = at.now + at.passed
    return Text(span(one.expected.earliest - now, one.expected.latest - now), _faded(row))


def _host(row: Row, _: Moment, width: int) -> Text:
    return Text(clipped(visible(row.session.host), width), "" if row.session.alive else "dim")


def _gpu(row: Row, *_: object) -> Text:
    where = visible(row.session.node, 12) if row.session.node else ",".join(map(str, row.session.gpus))
    return Text(where, "" if row.session.alive else "dim")


def _tries(row: Row, *_: object) -> Text:
    return Text(str(row.session.attempt), "" if row.session.again_after else "dim")


def why_text(row: Row, at: Moment, width: int, *, left: bool, below: bool = False) -> Text:
    """Why it failed, with the number of sessions that failed alike.

    `left`: the time that is left stands here, because it has no column. `below`: why it failed stands below the row.
    """
    if left and row.session.alive and (shown := _left(row, at, width).plain.strip("-")):
        rest = clipped(f"  {row.why}", max(0, width - cell_len(shown) - 5)) if row.why else ""
        return Text(f"{shown} left").append(rest, "dim")
    if group_of(row.session) != FAILED:
        style = "yellow" if group_of(row.session) == STALLED or row.session.remark else _faded(row)
        return Text(clipped(row.why, width), style)
    if row.same:
        return Text(clipped("= the same", width), "dim")
    if below:
        alike = f"{len(row.alike)} alike{' →' if row.folded else ''}" if row.alike else ""
        done = f", {row.session.done} done" if row.session.done else ""
        return Text(clipped(alike or f"{outcome_words(row.session.word)}{done}", width), "bold")
    count = _alike(row)
    more = ", → shows them" if row.folded and cell_len(row.why) + len(count) + 14 <= width else ""
    style = "yellow" if row.session.outcome is Outcome.CANCELLED else "red"
    return Text(row.why, style).append(f"{count[:-1]}{more})" if count else "", "bold")


def _alike(row: Row) -> str:
    return f" ({len(row.alike)} alike)" if row.alike else ""


class Layout(NamedTuple):
    columns: tuple[Column, ...]
    why: int
    """cells of the last column; 0: there is none"""
    below: int = 0
    """cells of the lines below a row that say why it failed, where the last column has no room for it"""

    @property
    def head(self) -> Text:
        cells = [Text(clipped(one.title, one.width)) for one in self.columns]
        for one, cell in zip(self.columns, cells, strict=True):
            if one.right:
                cell.plain = one.title.rjust(one.width)
        last = _LAST if self.why >= len(_LAST) else "LAST LINE"
        return Text(" ".join(cell.plain for cell in cells) + (f" {last}" if self.why else ""), "dim")

    @property
    def _has_left(self) -> bool:
        """Whether the time that is left stands in the last column."""
        return all(one.cell is not _left for one in self.columns)

    def line(self, row: Row, at: Moment) -> Text:
        text = Text(no_wrap=True, end="")
        for one in self.columns:
            cell = one.cell(row, at, one.width)
            blanks = " " * max(0, one.width - cell.cell_len)
            if one.right:
                text.append(blanks).append_text(cell).append(" ")
            else:
                text.append_text(cell).append(f"{blanks} ")
        why = why_text(row, at, self.why, left=self._has_left, below=self.has_below(row))
        return text.append_text(why) if self.why else text

    def has_below(self, row: Row) -> bool:
        """Whether lines below the row say why its session failed, because the last column has no room for it."""
        failed = group_of(row.session) == FAILED and not row.same
        return failed and self.below > 0 and cell_len(row.why) + len(_alike(row)) > self.why


def layout(rows: Sequence[Row], width: int) -> Layout:
    """As many columns as fit, with room for why something failed."""
    sessions = [row.session for row in rows]
    most = max((max(one.planned, one.done or 0) for one in sessions), default=1)
    digits = len(str(most))
    policies, environments = ({of(one) for one in sessions} for of in (_policy_of, _environment_of))
    policy, environment = (
        max(6, min(_LONGEST_NAME, max(map(cell_len, names), default=0))) for names in (policies, environments)
    )
    gpu = max((len(one.node[:12]) or 2 * len(one.gpus) for one in sessions), default=0)
    host = min(12, max((len(one.host) for one in sessions), default=0))
    tries = any(one.again_after for one in sessions)
    columns = [
        Column("", _marker, 2),
        Column("STATE", _state, 11, drop=45),
        Column("POLICY", _names(_policy_of, {}), policy),
        Column("ENVIRONMENT", _names(_environment_of, {}), max(environment, 11)),
        Column("", _bar, 10, drop=10),
        Column("EPISODES", _episodes, max(8, 2 * digits + 1), right=True, drop=70),
        Column("SUCCESS", _success, max(7, 2 * digits + 4), right=True, drop=50),
        Column("95 %", _interval, 6, right=True, drop=20),
        Column("QUIET", _quiet, 6, right=True, drop=60),
        Column("LEFT", _left, _LONGEST_SPAN, right=True, drop=40),
        *([Column("HOST", _host, max(4, host), drop=30)] if host else []),
        *([Column("GPU", _gpu, max(3, gpu), drop=25)] if gpu else []),
        *([Column("TRY", _tries, 3, right=True, drop=15)] if tries else []),
    ]
    found = _fitted(columns, width)
    for title, of, names in (("POLICY", _policy_of, policies), ("ENVIRONMENT", _environment_of, environments)):
        place = next(place for place, one in enumerate(found) if one.title == title)
        found[place] = found[place]._replace(cell=_names(of, apart(names, found[place].width)))
    why = width - sum(one.width + 1 for one in found)
    return Layout(tuple(found), max(0, why), max(0, width - INDENT))


def _fitted(columns: list[Column], width: int) -> list[Column]:
    def free() -> int:
        return width - sum(one.width + 1 for one in columns)

    while free() < min(40, _LEAST_WHY * width):
        # names shrink before the columns that matter most go
        wide = [place for place, one in enumerate(columns) if one.title in ("POLICY", "ENVIRONMENT")]
        shrinkable = [place for place in wide if columns[place].width > _SHORTEST_NAME]
        going = min((one for one in columns if one.drop), key=lambda one: one.drop, default=None)
        if shrinkable and (going is None or going.drop > 45):
            place = max(shrinkable, key=lambda one: columns[one].width)
            columns[place] = columns[place]._replace(width=columns[place].width - 1)
        elif going and going.title == "STATE" and going.width > 1:
            columns[columns.index(going)] = going._replace(title="", width=1, drop=0)
        elif going and going.title == "SUCCESS" and going.width > 7:
            columns[columns.index(going)] = going._replace(width=7)
        elif going:
            columns.remove(going)
        else:
            break
    return columns
