"""From a desk to the lines of the screen: exactly as many as it is high, at any size. Pure.

A line that can be clicked has the meta data `act`.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from rich.cells import cell_len
from rich.text import Text

from comborun.monitor.columns import clipped
from comborun.monitor.explain import explanation
from comborun.monitor.fullscreen import heading, keys, pages, pane
from comborun.monitor.fullscreen.desk import Desk
from comborun.monitor.fullscreen.pages import Page
from comborun.monitor.fullscreen.pane import wrapped
from comborun.monitor.fullscreen.table import INDENT, Layout, Moment, layout
from comborun.monitor.grid_map import the_map
from comborun.monitor.rows import Row, group_of, no_key
from comborun.monitor.status import SessionStatus
from comborun.monitor.wording import FAILED
from comborun.rules.vocabulary import Outcome

_LINES = 5000
"""most lines of a log on the whole screen"""
_MOST_BELOW = 3
"""most lines that say why a session failed, in the list"""
_HIGH, _MIDDLE, _LOW = 12, 9, 8
"""least lines of a screen that shows the pages' names, the heads of columns, and the keys"""


def picture(desk: Desk) -> list[Text]:
    above = _above(desk)
    if desk.full and desk.session:
        lines = [*above, *_whole_pane(desk, desk.session, desk.height - len(above) - len(bottom(desk)))]
    else:
        below_list = desk.pane_height + 1 if desk.pane_height else 0
        has_head = desk.height >= _MIDDLE
        desk.shown = height = max(1, desk.height - len(above) - below_list - len(bottom(desk)) - has_head)
        page = _page(desk, height)
        body = [*page.lines][:height]
        body += [Text()] * (height - len(body))
        lines = [*above, *([page.head] if has_head else []), *body]
        if desk.pane_height and desk.session:
            title = pane.title(desk.look, desk.session, desk.pane, desk.width)
            shown = _pane_lines(desk, desk.session, desk.width - 2)
            cut = shown[-desk.pane_height :] if desk.pane == "log" else shown[: desk.pane_height]
            lines += [title, *(Text("  ").append_text(line) for line in cut)]
    below = bottom(desk)
    lines = lines[: desk.height - len(below)]
    lines += [Text()] * (desk.height - len(below) - len(lines))
    return [_fitted(line, desk.width) for line in (*lines, *below)]


def _above(desk: Desk) -> list[Text]:
    """The heading and the pages' names."""
    status, link = desk.look.status, desk.link
    if desk.unseen:
        return [title(desk), *([_tabs(desk)] if desk.height >= _HIGH else [])]
    key = desk.look.number, desk.width, desk.height, link.reachable, link.complaint
    if desk.drawn.get("heading", ((),))[0] != key:
        desk.drawn["heading"] = key, heading.below_title(status, link, desk.width, desk.height)
    lines = [title(desk), *(line.copy() for line in desk.drawn["heading"][1])]
    return [*lines, _tabs(desk)] if desk.height >= _HIGH else lines


def title(desk: Desk) -> Text:
    """The first line, which alone changes with every second."""
    return _fitted(heading.title(desk.look.status, desk.link, desk.passed, desk.width), desk.width)


def _fitted(line: Text, width: int) -> Text:
    line.no_wrap, line.end = True, ""
    line.truncate(width, overflow="crop")
    return line


def _page(desk: Desk, height: int) -> Page:
    status, width = desk.look.status, desk.width
    if desk.unseen and desk.page in {"sessions", "grid", "host"}:
        return Page(Text(), [Text("  asking the host ..." if desk.link.reachable else "  not seen yet", "dim")])
    if desk.page == "grid":
        return _grid(desk, height)
    if desk.page == "host":
        return _scrolled(desk, pages.host(status, tuple(desk.samples), desk.events or (), width), height)
    if desk.page == "events":
        return _scrolled(desk, pages.events(desk.events, heading.remarks(status, desk.link), status.now, width), height)
    if desk.page == "runs":
        return _scrolled(desk, pages.runs(desk.fleet, status.run, width, time.time()), height)
    if desk.page == "help":
        return _scrolled(desk, pages.help_lines(desk.help_words, width), height)
    if desk.page == "answer":
        said = [line for one in desk.answer for line in wrapped(one, width)]
        return _scrolled(desk, Page(Text("ANSWER (Esc leaves)", "dim"), said), height)
    return _sessions(desk, height)


def _sessions(desk: Desk, height: int) -> Page:
    form, at = _layout(desk), _moment(desk)
    most = _most_below(desk.rows, form, height)
    blocks = [1 + len(_below(form, row, most)) for row in desk.rows]

    def top_row(place: int) -> Row:
        """A row at the top: if it is the same as one that is not seen, it says the cause itself."""
        row = desk.rows[place]
        named = next(one for one in reversed(desk.rows[: place + 1]) if not one.same) if row.same else row
        return row._replace(same=False, why=named.why, alike=named.alike)

    def more(place: int) -> int:
        return len(_below(form, top_row(place), most)) + 1 - blocks[place]

    desk.top = _window(desk.top, desk.cursor, blocks, height, more)
    lines: list[Text] = []
    desk.shown = 0
    for place in range(desk.top, len(desk.rows)):
        row = top_row(place) if place == desk.top else desk.rows[place]
        block = [form.line(row, at), *_below(form, row, most)]
        if lines and len(lines) + len(block) > height:
            break
        if place == desk.cursor:
            block[0].stylize("bold")
            block[0].stylize("reverse", 0, 2)
        for line in block:
            line.apply_meta({"act": ("row", place)})
            if not desk.link.reachable:
                line.stylize("dim")
        lines += block
        desk.shown += 1
    if not desk.rows:
        said = [
            "no session fits; Esc ends the filter" if desk.choice.words else "no session",
            no_key(desk.choice.words),
        ]
        lines = [line for one in said if one for line in wrapped(one, desk.width, "  ")]
    return Page(form.head, lines)


def _below(form: Layout, row: Row, most: int) -> list[Text]:
    """Why a session failed, below its row, where the last column is too narrow for it."""
    if not form.has_below(row):
        return []
    lines = wrapped(row.why, form.below)
    if len(lines) > most:
        lines = [*lines[: most - 1], Text(clipped(" ".join(line.plain for line in lines[most - 1 :]), form.below))]
    style = "yellow" if row.session.outcome is Outcome.CANCELLED else "red"
    return [Text(" " * INDENT).append(line.plain, style) for line in lines]


def _most_below(rows: Sequence[Row], form: Layout, height: int) -> int:
    """As many lines for each cause as let all causes be seen."""
    failed = [row for row in rows if group_of(row.session) == FAILED]
    if 2 * len(failed) > height:
        return 1
    fits = (
        most for most in range(_MOST_BELOW, 1, -1) if sum(1 + len(_below(form, row, most)) for row in failed) <= height
    )
    return next(fits, 1)


def _layout(desk: Desk) -> Layout:
    """Kept until the rows or the width change."""
    if desk.drawn.get("layout", (0,))[0] != desk.width:
        desk.drawn["layout"] = desk.width, layout(desk.rows, desk.width)
    found: Layout = desk.drawn["layout"][1]
    return found


def _moment(desk: Desk) -> Moment:
    status = desk.look.status
    digits = max((len(str(max(one.planned, one.done or 0))) for one in status.sessions), default=1)
    return Moment(status.now, desk.passed, digits, frozenset(desk.marked), desk.row.name if desk.row else "")


def _window(top: int, cursor: int, blocks: Sequence[int], height: int, more: Callable[[int], int] = lambda _: 0) -> int:
    """The first row, so that the cursor is seen. `blocks`: lines of each row; `more`: how many more at the top."""
    top = max(0, min(top, cursor))
    used = sum(blocks[top : cursor + 1])
    while top < cursor and used + more(top) > height:
        used -= blocks[top]
        top += 1
    used = sum(blocks[top:])
    while top and used + blocks[top - 1] + more(top - 1) <= height:
        top -= 1
        used += blocks[top]
    return top


def _grid(desk: Desk, height: int) -> Page:
    found = the_map(desk.look.status)
    if not found.rows:
        return Page(Text(), [Text("  no session", "dim")])
    page = pages.grid(found, desk.cell, desk.width)
    return page._replace(lines=page.lines[_window(0, desk.cell[0], [1] * len(page.lines), height) :])


def _scrolled(desk: Desk, page: Page, height: int) -> Page:
    desk.scrolled = max(0, min(desk.scrolled, len(page.lines) - height))
    return page._replace(lines=page.lines[desk.scrolled :])


def _pane_lines(desk: Desk, session: SessionStatus, width: int) -> list[Text]:
    if desk.pane == "explain":
        cause = next((one for one in desk.causes if session.name in one.names), None)
        found = explanation(desk.look, session.name, desk.events or ())
        return pane.explain_lines(found, cause, f"{desk.program} {{}}{desk.options}", width)
    if desk.pane == "episodes":
        return pane.episode_lines(desk.look, session, width)
    if desk.pane == "video":
        named = any(one.results.videos for one in desk.look.view.plan.sessions if one.name == session.name)
        return pane.video_lines(desk.videos_of(session), session, width, named=named)
    log = desk.logs.get(session.name)
    most = _LINES if desk.full else desk.pane_height
    data = log.data if log and log.attempt == session.attempt else session.latest.tail
    if not data and not session.attempt:
        return [Text(pane.NOT_STARTED.format("log"), "dim")]
    return pane.log_lines(data, most)


def _whole_pane(desk: Desk, session: SessionStatus, height: int) -> list[Text]:
    title = pane.title(desk.look, session, desk.pane, desk.width)
    lines = _pane_lines(desk, session, desk.width)
    if desk.pane == "log":  # long lines are wrapped, because here nothing else shows their end
        lines = [piece for line in lines for piece in wrapped(line.plain, desk.width)]
    room = max(1, height - 1)
    desk.scrolled = max(0, min(desk.scrolled, len(lines) - room))
    begin = len(lines) - room - desk.scrolled if desk.pane == "log" else desk.scrolled
    return [title, *lines[max(0, begin) :][:room]]


def _tabs(desk: Desk) -> Text:
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
        others = sum(len(one) + 2 for one in (marked, sorted_by, count) if one)
        words = clipped(words, min(cell_len(words), max(0, desk.width - others - 4)))
        right = Text(f" {'  '.join(filter(None, (marked, words, sorted_by, count)))} ─")
    free = desk.width - line.cell_len - right.cell_len
    if free < 0:
        line.truncate(max(1, desk.width - right.cell_len), overflow="ellipsis")
    return line.append("─" * max(0, free), "dim").append_text(right)


def bottom(desk: Desk) -> list[Text]:
    """The line of keys, or what the user is asked, types, or is told."""
    if desk.question:
        answers = "   ".join(f"{key} {does}" for key, (does, _) in desk.question.answers.items())
        said = [line for one in desk.question.lines for line in wrapped(one, desk.width)]
        keyed = wrapped(f"{answers}   any other key: no", desk.width, " ")[: max(1, desk.height // 2)]
        said = said[: max(1, desk.height - len(keyed) if desk.height < _LOW else desk.height // 2)]
        return [*(Text(line.plain, "bold yellow") for line in said), *(Text(line.plain, "bold") for line in keyed)]
    if desk.prompt:
        return [Text(f"{desk.prompt}{desk.typed}", "bold").append("▏", "bold")]
    if desk.message:
        lines = wrapped(desk.message, desk.width, " ")[: max(1, min(4, desk.height - 3))]
        return [Text(line.plain, "bold") for line in lines]
    return [Text(keys.line(desk.width), "dim")] if desk.height >= _LOW else []
