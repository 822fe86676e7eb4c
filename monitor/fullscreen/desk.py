"""What is on the screen: what is known, what the user has chosen, and the picture of both. Pure.

`picture` returns exactly as many lines as the screen is high; a line that can be clicked has the meta data `act`.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from rich.text import Text

from comborun.monitor.causes import SharedCause, shared_causes
from comborun.monitor.fleet import FleetRow
from comborun.monitor.fullscreen import grid, heading, keys, pages, pane
from comborun.monitor.fullscreen.pages import Page, Sample
from comborun.monitor.fullscreen.pane import Video
from comborun.monitor.fullscreen.rows import Choice, Row, chosen
from comborun.monitor.fullscreen.table import Layout, Moment, layout
from comborun.monitor.status import Link, SessionStatus
from comborun.monitor.watcher import Look
from comborun.rules.events import Event

LOG_KEPT = 1 << 18
"""bytes of a log that are kept"""
_SAMPLES, _LINES = 2000, 5000


class Question(NamedTuple):
    lines: tuple[str, ...]
    answers: Mapping[str, tuple[str, Callable[[], object]]]
    """key -> what it does, in words and as a function; every other key means no"""


class Log(NamedTuple):
    data: bytes = b""
    attempt: int = 0
    offset: int = -1
    over: bool = False
    """whether it can't grow any more"""


@dataclass
class Desk:
    look: Look
    link: Link
    program: str = "combo"
    options: str = ""
    """what a command needs to find the host"""
    passed: float = 0.0
    """seconds since the look"""
    width: int = 80
    height: int = 24
    page: str = "sessions"
    choice: Choice = field(default_factory=Choice)
    causes: Sequence[SharedCause] = ()
    rows: list[Row] = field(default_factory=list)
    cursor: int = 0
    """the chosen row"""
    cell: tuple[int, int] = (0, 0)
    """the chosen cell of the grid"""
    top: int = 0
    """the first row that is shown"""
    marked: set[str] = field(default_factory=set)
    pane: str = "log"
    full: bool = False
    """whether the pane has the whole screen"""
    scrolled: int = 0
    """lines of the pane, or of a page, by which it is scrolled: of a log from its end"""
    logs: dict[str, Log] = field(default_factory=dict)
    videos: dict[str, Sequence[Video]] = field(default_factory=dict)
    events: Sequence[Event] | None = None
    fleet: Sequence[FleetRow] | None = None
    """the runs on all hosts"""
    answer: tuple[str, ...] = ()
    """what a command has answered, as a page"""
    samples: deque[Sample] = field(default_factory=lambda: deque(maxlen=_SAMPLES))
    message: str = ""
    question: Question | None = None
    prompt: str = ""
    """`/` or `:` while the user types"""
    typed: str = ""
    help_words: str = ""
    _layouts: dict[tuple[int, int], Layout] = field(default_factory=dict)
    _below_title: tuple[object, list[Text]] = field(default_factory=lambda: ((), []))

    def renew(self, look: Look) -> None:
        """Take a new look. The cursor stays on its session."""
        if look.seen is not None and look.seen != self.look.seen and look.status.now is not None:
            self.samples.append(Sample(look.status.now, look.status.use))
        first = self.look.seen is None
        self.look, self.causes = look, shared_causes(look.status)
        self.choose(self.choice)
        if first:  # until then all sessions are queued
            self.cursor = 0

    def choose(self, choice: Choice) -> None:
        name = self.row.name if self.row else ""
        self.choice = choice
        self.rows = chosen(self.look.status, choice, self.causes)
        self._layouts.clear()
        place = next((place for place, row in enumerate(self.rows) if name in {row.name, *row.meant}), None)
        self.cursor = min(self.cursor, max(0, len(self.rows) - 1)) if place is None else place

    @property
    def row(self) -> Row | None:
        return self.rows[self.cursor] if 0 <= self.cursor < len(self.rows) else None

    @property
    def session(self) -> SessionStatus | None:
        """The session that keys mean: of the row, or of the cell of the grid."""
        if self.page == "grid" and not self.full:
            found = grid.Map.of(self.look.status)
            return found.at(*self.cell) if found.policies else None
        return self.row.session if self.row and self.page == "sessions" else None

    @property
    def meant(self) -> tuple[str, ...]:
        """The sessions that an order means: the marked ones, else those of the row or cell."""
        if self.marked and self.page == "sessions":
            return tuple(one.name for one in self.look.status.every if one.name in self.marked)
        if self.page == "sessions" and self.row and not self.full:
            return self.row.meant
        return (self.session.name,) if self.session else ()

    # Places

    @property
    def pane_height(self) -> int:
        """Lines of the pane below the list, without its title."""
        if self.page not in ("sessions", "grid") or self.full:
            return 0
        return max(7, self.height // 4) if self.height >= 30 else 4 if self.height >= 20 else 0

    def above(self) -> list[Text]:
        """The heading and the pages' names."""
        status, link = self.look.status, self.link
        key = self.look.number, self.width, self.height, link.reachable, link.complaint
        if self._below_title[0] != key:
            self._below_title = key, heading.below_title(status, link, self.width, self.height)
        lines = [self.title(), *(line.copy() for line in self._below_title[1])]
        return [*lines, tabs(self)] if self.height >= 12 else lines

    def title(self) -> Text:
        """The first line, which alone changes with every second."""
        return _fitted(heading.title(self.look.status, self.link, self.passed, self.width), self.width)

    def body_height(self, above: int) -> int:
        """Lines of the list, without its head."""
        below = (self.pane_height + 1 if self.pane_height else 0) + len(bottom(self))
        return max(1, self.height - above - below - self.has_head)

    @property
    def has_head(self) -> bool:
        return self.height >= 9

    def layout(self) -> Layout:
        key = self.width, len(self.rows)
        if key not in self._layouts:
            self._layouts[key] = layout(self.rows, self.width)
        return self._layouts[key]

    def moment(self) -> Moment:
        status = self.look.status
        digits = max((len(str(max(one.planned, one.done or 0))) for one in status.sessions), default=1)
        cursor = self.row.name if self.row else ""
        return Moment(status.now, self.passed, digits, frozenset(self.marked), cursor)


def picture(desk: Desk) -> list[Text]:
    above = desk.above()
    if desk.full and desk.session:
        lines = [*above, *_whole_pane(desk, desk.session, desk.height - len(above) - len(bottom(desk)))]
    else:
        height = desk.body_height(len(above))
        page = _page(desk, height)
        body = [*page.lines][:height]
        body += [Text()] * (height - len(body))
        lines = [*above, *([page.head] if desk.has_head else []), *body]
        if desk.pane_height and desk.session:
            title = pane.title(desk.look, desk.session, desk.pane, desk.width)
            shown = _pane_lines(desk, desk.session, desk.width - 2)
            cut = shown[-desk.pane_height :] if desk.pane == "log" else shown[: desk.pane_height]
            lines += [title, *(Text("  ").append_text(line) for line in cut)]
    below = bottom(desk)
    lines = lines[: desk.height - len(below)]
    lines += [Text()] * (desk.height - len(below) - len(lines))
    return [_fitted(line, desk.width) for line in (*lines, *below)]


def _fitted(line: Text, width: int) -> Text:
    line.no_wrap, line.end = True, ""
    line.truncate(width, overflow="crop")
    return line


def _page(desk: Desk, height: int) -> Page:
    status, width = desk.look.status, desk.width
    if desk.page == "grid":
        return _grid(desk, height)
    if desk.page == "host":
        return _scrolled(desk, pages.host(status, tuple(desk.samples), desk.events or (), width), height)
    if desk.page == "events":
        return _scrolled(desk, pages.events(desk.events, status.now, width), height)
    if desk.page == "runs":
        return _scrolled(desk, pages.runs(desk.fleet, status.run, width, time.time()), height)
    if desk.page == "help":
        return _scrolled(desk, pages.help_lines(desk.help_words, width), height)
    if desk.page == "answer":
        said = [line for one in desk.answer for line in pane.wrapped(one, width)]
        return _scrolled(desk, Page(Text("ANSWER (Esc leaves)", "dim"), said), height)
    return _sessions(desk, height)


def _sessions(desk: Desk, height: int) -> Page:
    desk.top = _window(desk.top, desk.cursor, len(desk.rows), height)
    form, at = desk.layout(), desk.moment()
    lines = []
    for place in range(desk.top, min(desk.top + height, len(desk.rows))):
        line = form.line(desk.rows[place], at)
        if place == desk.cursor:
            line.stylize("bold")
            line.stylize("reverse", 0, 2)
        line.apply_meta({"act": ("row", place)})
        if not desk.link.reachable:
            line.stylize("dim")
        lines.append(line)
    if not desk.rows:
        lines = [Text("  no session fits the filter; Esc ends it" if desk.choice.words else "  no session", "dim")]
    return Page(form.head, lines)


def _window(top: int, cursor: int, count: int, height: int) -> int:
    """The first row, so that the cursor is seen."""
    top = min(top, cursor)
    top = max(top, cursor - height + 1)
    return max(0, min(top, count - height))


def _grid(desk: Desk, height: int) -> Page:
    found = grid.Map.of(desk.look.status)
    if not found.policies:
        return Page(Text(), [Text("  no session", "dim")])
    head, lines = grid.drawn(found, desk.cell, desk.width)
    top = _window(0, desk.cell[0], len(lines), height)
    return Page(head, lines[top:])


def _scrolled(desk: Desk, page: Page, height: int) -> Page:
    desk.scrolled = max(0, min(desk.scrolled, len(page.lines) - height))
    return page._replace(lines=page.lines[desk.scrolled :])


def _pane_lines(desk: Desk, session: SessionStatus, width: int) -> list[Text]:
    if desk.pane == "explain":
        cause = next((one for one in desk.causes if session.name in one.names), None)
        found = pane.explanation(desk.look, session.name)
        return pane.explain_lines(found, cause, f"{desk.program} {{}}{desk.options}", width)
    if desk.pane == "episodes":
        return pane.episode_lines(desk.look, session, width)
    if desk.pane == "video":
        return pane.video_lines(desk.videos.get(session.name), session)
    log = desk.logs.get(session.name)
    most = _LINES if desk.full else desk.pane_height
    return pane.log_lines(log.data if log and log.attempt == session.attempt else session.latest.tail, most)


def _whole_pane(desk: Desk, session: SessionStatus, height: int) -> list[Text]:
    title = pane.title(desk.look, session, desk.pane, desk.width)
    lines = _pane_lines(desk, session, desk.width)
    if desk.pane == "log":  # long lines are wrapped, because here nothing else shows their end
        lines = [piece for line in lines for piece in pane.wrapped(line.plain, desk.width)]
    room = max(1, height - 1)
    desk.scrolled = max(0, min(desk.scrolled, len(lines) - room))
    begin = len(lines) - room - desk.scrolled if desk.pane == "log" else desk.scrolled
    return [title, *lines[max(0, begin) :][:room]]


def tabs(desk: Desk) -> Text:
    """The pages, the filter, the order, and which rows are shown."""
    line = Text("─ ")
    for place, name in enumerate(keys.PAGES, 1):
        shown = f"[{place} {name}]" if name == desk.page else f" {place} {name} "
        part = Text(shown, "bold" if name == desk.page else "dim")
        part.apply_meta({"act": ("show", name)})
        line.append_text(part)
    right = Text()
    if desk.page == "sessions":
        order = desk.choice.sort + (" ▲" if desk.choice.backwards else "")
        words = f"filter: {desk.choice.words}" if desk.choice.words else ""
        count = f"{desk.cursor + 1 if desk.rows else 0} of {len(desk.rows)}"
        marked = f"{len(desk.marked)} marked" if desk.marked else ""
        sorted_by = f"sort: {order}" if desk.choice.sort != "urgency" or desk.choice.backwards else ""
        right = Text(f" {'  '.join(filter(None, (marked, words, sorted_by, count)))} ─")
    free = desk.width - line.cell_len - right.cell_len
    if free < 0:
        line.truncate(max(0, desk.width - right.cell_len), overflow="ellipsis")
    return line.append("─" * max(0, free), "dim").append_text(right)


def bottom(desk: Desk) -> list[Text]:
    """The line of keys, or what the user is asked, types, or is told."""
    if desk.question:
        answers = "   ".join(f"{key} {does}" for key, (does, _) in desk.question.answers.items())
        said = [line for one in desk.question.lines for line in pane.wrapped(one, desk.width)]
        said = said[: max(1, desk.height // 2)]
        return [*(Text(line.plain, "bold yellow") for line in said), Text(f" {answers}   any other key: no", "bold")]
    if desk.prompt:
        return [Text(f"{desk.prompt}{desk.typed}", "bold").append("▏", "bold")]
    if desk.message:
        lines = pane.wrapped(desk.message, desk.width, " ")[: max(1, min(4, desk.height - 3))]
        return [Text(line.plain, "bold") for line in lines]
    return [Text(keys.line(desk.width), "dim")] if desk.height >= 8 else []


def with_words(choice: Choice, words: str) -> Choice:
    return replace(choice, words=" ".join(words.split()))
