"""The table: (RunStatus, width) -> a rich renderable, pure.

Colour never carries information alone: every state has its own word or symbol, every bar has numbers.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, NamedTuple

from rich.console import Group, RenderableType
from rich.text import Text

from comborun.monitor.causes import shared_causes
from comborun.monitor.columns import LAST_LINE, PADDING, Column, apart, bar, columns, cut, note_style, whole_width
from comborun.monitor.rows import FEW, Choice, chosen
from comborun.monitor.snapshot import HostUse, ServerStatus, Space, Waiting
from comborun.monitor.status import SMOKE, HostStatus, RunStatus, SessionStatus
from comborun.monitor.wording import MARKS, SERVER_MARKS, UNMARKED, by_urgency, clock_words, listed, sizes, visible
from comborun.rules.room.capacity import Card
from comborun.rules.vocabulary import Life, Outcome
from comborun.text import MIB, printable, several
from comborun.words import say
from comborun.words.endings import outcome_words
from comborun.words.times import brief, clock, duration

GAP = "   "
_SCARCE = "yellow"
_WIDE = 80
"""columns from which on there are two lines about the host"""
MOST_ROWS = 100
_MOST_UNCOUNTED = 2
_MOST_PROBLEMS = 5
_MOST_SERVERS = 8
_PAGE, _ENDLESS = 120, 100_000
"""columns of the title in a file, and of lines that are never cut"""


class Rows(NamedTuple):
    """Which sessions a table has, and in which order."""

    failed: bool = False
    """only those that went wrong"""
    sort: str = "state"
    """one of SORTS"""
    every: bool = False
    """without a limit"""

    def of(self, status: RunStatus) -> list[SessionStatus]:
        found = [one for one in status.sessions if went_wrong(one) or not self.failed]
        if self.sort == "state":
            rows = chosen(
                replace(status, sessions=tuple(found), after=None), Choice(), shared_causes(status), folds=False
            )
            found = [row.session for row in rows]
        return sorted(found, key=SORTS[self.sort])


USUAL = Rows()


def went_wrong(session: SessionStatus) -> bool:
    """Whether it stalls, or its latest attempt ended without success."""
    if session.alive:
        return session.life is Life.STALLED
    return session.attempt > 0 and not session.done_with and (session.life is Life.ENDED or session.failure is not None)


def render_whole(status: RunStatus, rows: Rows = USUAL) -> RenderableType:
    """The table for a file or a pipe: all rows, and no text is cut."""
    ordered = rows.of(status)
    chosen = columns(status, whole_width(status))
    lines = [*_title(status, min(sum(one.width + PADDING for one in chosen), _PAGE))]
    for line in (*_table(chosen, ordered, "", rows), *_footer(status, _ENDLESS)):
        line.rstrip()
        line.overflow = "ignore"
        lines.append(line)
    return Group(*lines)


def render(status: RunStatus, width: int, rows_of: Rows = USUAL, height: int | None = None) -> RenderableType:
    """The whole table: title, progress, problems, a row per combo. A terminal of that height shows the end of what is
    longer, so there problems come last.
    """
    ordered = rows_of.of(status)
    rows = _first_of(status, ordered, rows_of)
    chosen = columns(replace(status, sessions=tuple(rows)), width)
    notes = [] if any(one.title == LAST_LINE.title for one in chosen) else list(_notes(status, ordered, width))
    faded = "" if status.link.reachable else "dim"
    title, table = _title(status, width), [*_table(chosen, rows, faded, rows_of)]
    scrolls = height is not None and len(title) + len(notes) + len(table) >= height
    lines = [*title, *([] if scrolls else notes), *table]
    if len(rows) < len(ordered):
        left = Counter(one.word for one in ordered)
        left.subtract(one.word for one in rows)
        lines.append(cut(Text(f"and {left.total()} more: {listed(+left)}", "dim"), width))
    return Group(*lines, *([Text(), *notes[:-1]] if scrolls and notes else []), *_footer(status, width))


def _first_of(status: RunStatus, ordered: Sequence[SessionStatus], wanted: Rows) -> Sequence[SessionStatus]:
    """Those that the table has room for. What failed alike many times leaves room for other failures, and for what runs
    now."""
    if wanted.every or len(ordered) <= MOST_ROWS or wanted.sort != "state":
        return ordered if wanted.every else ordered[:MOST_ROWS]
    alike = {name for cause in shared_causes(status) for name in cause.names[FEW:]}

    def place(one: SessionStatus) -> int:
        return 1 if one.name in alike else 0 if one.alive or went_wrong(one) else 2

    names = {one.name for one in sorted(ordered, key=place)[:MOST_ROWS]}
    return [one for one in ordered if one.name in names]


def _largest(value: float | None) -> float:
    """Sort key: the largest first, what is unknown last."""
    return math.inf if value is None else -value


SORTS: Mapping[str, Callable[[SessionStatus], Any]] = {
    "state": lambda one: one.part != SMOKE or one.outcome is Outcome.SUCCEEDED,
    "name": lambda one: one.name,
    "policy": lambda one: (one.policy, one.environment),
    "environment": lambda one: (one.environment, one.policy),
    "success": lambda one: one.successes / one.recorded if one.recorded and one.successes is not None else math.inf,
    "quiet": lambda one: _largest(one.idle),
    "left": lambda one: _largest(one.likely_end),
}
"""the orders of `combo status --sort`. success: the lowest rate first; state: as on the full screen, but a smoke test
that has not succeeded comes first"""


def _table(chosen: Sequence[Column], sessions: Sequence[SessionStatus], style: str, wanted: Rows) -> Iterator[Text]:
    if wanted.failed and not sessions:
        yield Text("no session has gone wrong")
        return
    yield _row(chosen, [Text(one.title) for one in chosen], "dim")
    for session in sessions:
        yield _row(chosen, [one.cell(session, one.setting) for one in chosen], style)


def _row(chosen: Sequence[Column], cells: Sequence[Text], style: str) -> Text:
    line = Text(style=style, no_wrap=True, overflow="crop")
    for one, cell in zip(chosen, cells, strict=True):
        cut(cell, one.width).align(one.justify, one.width)
        line.append_text(cell).append(" " * PADDING)
    return line


def _title(status: RunStatus, width: int) -> list[Text]:
    facts = [
        Text(f"{MARKS[word].symbol} {count} {outcome_words(word)}", MARKS[word].style)
        for word, count in by_urgency(status.counts())
    ]
    facts += [Text(f"smoke test: {listed(status.smoke())}", "dim")] if status.smoke() else []
    name = Text.assemble((visible(status.run), "bold"), (" on ", "dim"), visible(status.host))
    times = _times(status)
    time = Text(", ".join(times))
    gap = width - name.cell_len - time.cell_len
    if gap >= len(GAP):
        name.append(" " * gap).append_text(time)
    else:
        facts += map(Text, times)
    part = [Text(say(status.part), "yellow")] if status.part else []
    lines = [name, *part, _progress(status, width), *packed(facts, width)]
    if status.slurm and not status.finished:
        silent = status.scheduler and not status.scheduler.answered
        lines.append(cut(Text(f"! {say(status.slurm)}", "yellow") if silent else Text(say(status.slurm)), width))
    lines += [cut(line, width) for line in box_lines(status)]
    if not status.finished:
        lines += host_lines(status.use, width)
    if not status.link.reachable:
        for line in lines:
            line.stylize("dim")
        lines += _unreachable(status)
    if status.outage:
        lines.append(Text(f"! {say(status.outage.fact(status.host))}", "bold yellow"))
    lines += [Text(say(one)) for one in (*status.back, status.following, status.moved) if one]
    if status.ordered:
        lines.append(cut(Text(say(status.ordered.fact), "dim"), width))
    clocks = clock_words(status.ahead, status.host)
    advice = map(say, filter(None, (status.advice, status.would_move, status.notify_problem)))
    said = [clocks, *advice, status.undecided, *status.uncounted[:_MOST_UNCOUNTED]]
    lines += [Text(f"! {printable(one)}", "yellow") for one in said if one]
    return [*lines, Text()]


def box_lines(status: RunStatus) -> list[Text]:
    """A line for each host of a run on several."""
    width = max((len(one.host) for one in status.hosts), default=0)
    return [box_line(one, width) for one in status.hosts]


def box_line(one: HostStatus, width: int) -> Text:
    """One of several hosts: its sessions, its GPUs and its load; or why they are not known."""
    line = Text(visible(one.host).ljust(width + 2))
    line.append(" ".join(f"{MARKS[word].symbol}{count}" for word, count in by_urgency(one.counts)))
    if one.lost:
        return line.append("  given up", "dim")
    if not one.link.reachable:
        why = f": {visible(one.link.complaint)}" if one.link.complaint and not one.link.late else ""
        return line.append(f"  {one.link.absence}", "bold yellow").append(why, "yellow")
    if one.hold:
        line.append(f"  {one.hold.kind}", "bold red")
    for fact in host_facts(one.use, summed=True):
        line.append("  ").append_text(fact)
    return line


def _times(status: RunStatus) -> list[str]:
    """The time so far and the expected end; `-` if unknown."""
    if status.now is None or status.seconds is None:
        return []
    if status.finished:
        return [f"took {duration(status.seconds)}"]
    end = "ends -" if status.expected is None else say(status.expected.fact(status.now))
    return [f"ran {duration(status.seconds)}", end]


def _progress(status: RunStatus, width: int) -> Text:
    """The bar of the whole run; only a count of sessions if no program shows its progress."""
    done, planned = status.done, status.planned
    if not status.proper:
        return Text("no session yet")
    if not planned:
        return Text(f"{sum(session.life is Life.ENDED for session in status.proper)}/{len(status.proper)} ended")
    words = f"{done}/{planned} {status.unit}"
    successes = f"{status.successes} of {status.recorded} successful"
    if status.recorded and width >= len(words) + len(successes) + 16:
        words = f"{words}, {successes}"
    style = MARKS[Outcome.SUCCEEDED if status.finished else Life.RUNNING].style
    return bar(done, planned, width - len(words) - 1, style).append(f" {words}", "default")


def _unreachable(status: RunStatus) -> list[Text]:
    """Since when the host does not answer, and the age of the table."""
    link = status.link
    line = Text(f"! {link.trouble} since {clock(link.since)} ({duration(link.lasting)} ago)", "bold yellow")
    line.append(f": {visible(link.complaint)}" if link.complaint else "", "not bold")
    if link.last_seen is None:
        return [line, Text("not seen yet: this is the plan", "yellow")]
    seen = f"this was seen {duration(link.last_seen)} ago"
    return [line, Text("; ".join(filter(None, (seen, link.comfort))), "yellow")]


def _notes(status: RunStatus, sessions: Sequence[SessionStatus], width: int) -> Iterator[Text]:
    """What the rows have no room for: why sessions failed or wait, the same cause once."""
    causes = {name: cause for cause in shared_causes(status) for name in cause.names}
    noted: dict[object, SessionStatus] = {}
    for session in sessions:
        if session.remark:
            cause = causes.get(session.name)
            noted.setdefault(cause.names if cause else session.name, session)
    shown = list(noted.values())[:_MOST_PROBLEMS]
    names = apart({visible(session.name) for session in shown}, max(12, width // 3))
    for session in shown:
        cause = causes.get(session.name)
        count = f" ({len(cause.sessions)} alike)" if cause and len(cause.sessions) > 1 else ""
        why = (cause.said if cause and session.life is Life.ENDED else "") or session.remark
        name = names[visible(session.name)].rstrip()
        line = Text(f"{MARKS[session.word].symbol} {name}{count}: {why}", note_style(session))
        yield cut(line.append(f"  {session.unquoted_line}" if session.unquoted_line else "", "dim"), width)
    if len(noted) > _MOST_PROBLEMS:
        yield Text(f"and {len(noted) - _MOST_PROBLEMS} more with a note", "dim")
    if noted:
        yield Text()


def _footer(status: RunStatus, width: int) -> list[Text]:
    lines = []
    waits = status.server_waits
    over = status.finished and not status.hold  # a server may be the reason for a halt
    servers = () if over else status.servers[:_MOST_SERVERS]
    lines += [server_line(one, status.now, waits.get(one.name), width) for one in servers]
    if status.after:
        lines.append(_after(status.after, width))
    return [Text(), *lines] if lines else []


def _after(after: SessionStatus, width: int) -> Text:
    symbol, style, _ = MARKS[after.word]
    line = Text.assemble(("after  ", "dim"), (f"{symbol} {outcome_words(after.word)}", style))
    if after.seconds is not None:
        line.append(f"  {'runs for' if after.alive else 'took'} {brief(after.seconds)}")
    said = after.note or after.last_line
    line.append(f"  {said}" if said else "", "dim")
    return cut(line, width)


# The use of the host


def packed(facts: Sequence[Text], width: int) -> list[Text]:
    """Facts side by side, on as many lines as needed; no fact is split."""
    lines: list[Text] = []
    for fact in facts:
        if lines and lines[-1].cell_len + len(GAP) + fact.cell_len <= width:
            lines[-1].append(GAP).append_text(fact)
        else:
            lines.append(Text().append_text(fact))
    return lines


def host_lines(use: HostUse, width: int) -> list[Text]:
    """One or two lines. If space is short, GPUs become a sum; then the last facts go, but scarce resources stay."""
    most = 2 if width >= _WIDE else 1
    facts = host_facts(use)
    if len(packed(facts, width)) > most:
        facts = sorted(host_facts(use, summed=True), key=lambda fact: fact.style != _SCARCE)
    while len(lines := packed(facts, width)) > most:
        facts.pop()
    return [line for line in lines if line.cell_len <= width]


def host_facts(use: HostUse, *, summed: bool = False) -> list[Text]:
    facts = [_all_gpus(use.gpus)] if summed and len(use.gpus) > 1 else [_gpu(gpu) for gpu in use.gpus]
    if use.load is not None:
        facts.append(Text(f"load {use.load:.3g}" + (f" on {several(use.cpus, 'cpu')}" if use.cpus else "")))
    for name, room in (("memory", use.memory), ("disk", use.disk)):
        if room:
            facts.append(Text(f"{name} {sizes(room.free, room.total)} free", _SCARCE if room.scarce else ""))
    return facts


def _gpu(gpu: Card) -> Text:
    text = Text(f"gpu {gpu.index} ")
    if gpu.used is None or not gpu.total:
        return text.append("unknown", _SCARCE)
    scarce = Space(gpu.total, gpu.total - gpu.used).scarce
    text.append(sizes(gpu.used * MIB, gpu.total * MIB), _SCARCE if scarce else "default")
    return text.append("" if gpu.utilization is None else f", {gpu.utilization} % busy")


def _all_gpus(gpus: Sequence[Card]) -> Text:
    known = [(gpu.used * MIB, gpu.total * MIB) for gpu in gpus if gpu.used is not None and gpu.total]
    missing = len(gpus) - len(known)
    text = Text(f"{len(gpus)} gpus ")
    if known:
        text.append(sizes(sum(used for used, _ in known), sum(total for _, total in known)))
    busy = [gpu.utilization for gpu in gpus if gpu.utilization is not None]
    if busy:
        text.append(f", {round(sum(busy) / len(busy))} % busy")
    if missing:
        text.append(f", {missing} unknown" if known else "unknown", _SCARCE)
    return text


def server_line(server: ServerStatus, now: float | None, waits: Waiting | None, width: int) -> Text:
    """One model server; `waits` says what delays its start."""
    symbol, style, _ = SERVER_MARKS.get(server.state, UNMARKED)
    line = Text.assemble(("server  ", "dim"), (f"{symbol} {visible(server.name)}", style))
    line.append(f" {say(server.fact(now))}")
    if server.port and server.state in {"ready", "silent"}:
        line.append(f" on port {server.port}", "dim")
    if server.gpus:
        line.append(f"  GPU {','.join(map(str, server.gpus))}", "dim")
    if server.attempt > 1:
        line.append(f"  start {server.attempt}", "dim")
    if waits and server.state in {"queued", "ended"}:
        line.append(f"  waits: {waits.words}", "dim")
    return cut(line, width)
