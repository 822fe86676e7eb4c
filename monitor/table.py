"""The table: (RunStatus, Look) -> a rich renderable, pure.

Colour is never the only carrier: every state has a word or a symbol of its own, every bar its numbers.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import tzinfo

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from comborun.state import Life, Outcome
from monitor.columns import Column, columns
from monitor.hostline import GAP, host_lines, packed
from monitor.lastline import visible
from monitor.status import RunStatus, SessionStatus
from monitor.style import STYLES, bar, note_style
from monitor.wording import SYMBOLS, brief, clock, duration, expectation, happening, state

MOST_ROWS = 100
_FEWEST_ROWS = 3
_MOST_PROBLEMS = 5
_PLACES = (
    (Life.RUNNING, Life.STALLED, Life.ORPHANED, Life.STARTING),
    (Outcome.FAILED, Outcome.PARTIAL, Outcome.LOST, Outcome.CANCELLED),
    (Life.QUEUED,),
    (Outcome.SUCCEEDED,),
)
_PLACE = {str(word): place for place, words in enumerate(_PLACES) for word in words}


@dataclass(frozen=True)
class Look:
    """What the drawing depends on besides the run."""

    width: int
    height: int | None = None
    """lines that may be used; None: as many as it takes"""
    zone: tzinfo | None = None
    """of the times of day; None: this machine's"""


def render(status: RunStatus, look: Look) -> RenderableType:
    """The whole picture: title, progress, a row per combo, what needs attention."""
    ordered = sorted(status.sessions, key=lambda session: _PLACE[state(session)])
    chosen = columns(status, look.width)
    above = _title(status, look)
    told = any(column.title == "last line" for column in chosen)
    below = _footer(status, look, problems=() if told else ordered)
    faded = "" if status.link.reachable else "dim"
    rows = _room(look, len(ordered), sum(_lines(part, look.width) for part in (*above, *below)))
    left_out = _left_out(ordered[rows:])
    return Group(*above, _table(chosen, ordered[:rows], faded), *left_out, *below)


def _table(chosen: Sequence[Column], sessions: Sequence[SessionStatus], style: str) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for column in chosen:
        table.add_column(column.title, width=column.width, justify=column.justify, no_wrap=True, overflow="ellipsis")
    for session in sessions:
        table.add_row(*(column.cell(session, column.width) for column in chosen), style=style)
    return table


def _room(look: Look, rows: int, others: int) -> int:
    """How many rows are shown; one line is kept for the header, and one for what is left out."""
    if look.height is None:
        return min(rows, MOST_ROWS)
    free = look.height - others - 1
    return min(rows, MOST_ROWS) if rows <= min(free, MOST_ROWS) else max(_FEWEST_ROWS, min(free - 1, MOST_ROWS))


def _lines(part: Text, width: int) -> int:
    return max(1, -(-part.cell_len // width))


def _title(status: RunStatus, look: Look) -> list[Text]:
    counts = sorted(status.counts().items(), key=lambda item: _PLACE[item[0]])
    facts = [Text(f"{SYMBOLS[word]} {count} {word}", STYLES[word]) for word, count in counts]
    name = Text.assemble((visible(status.run), "bold"), (" on ", "dim"), visible(status.host))
    times = _times(status, look)
    time = Text(", ".join(times))
    gap = look.width - name.cell_len - time.cell_len
    if gap >= len(GAP):
        name.append(" " * gap).append_text(time)
    else:
        facts += map(Text, times)
    lines = [name, _progress(status, look.width), *packed(facts, look.width)]
    if not status.finished:
        lines += host_lines(status.use, look.width, look.height)
    if not status.link.reachable:
        for line in lines:
            line.stylize("dim")
        lines += _unreachable(status, look)
    if status.host_event:
        lines.append(Text(f"! {happening(status.host_event, visible(status.host), look.zone)}", "bold yellow"))
    return [*lines, Text()]


def _times(status: RunStatus, look: Look) -> list[str]:
    """How long it has taken, and when it will be over: `-` as long as that can't be told."""
    if status.now is None or status.seconds is None:
        return []
    if status.finished:
        return [f"took {duration(status.seconds)}"]
    end = "ends -" if status.expected is None else expectation(status.expected, status.now, look.zone)
    return [duration(status.seconds), end]


def _progress(status: RunStatus, width: int) -> Text:
    """The bar over everything; left out where no program of the run tells how far it is."""
    if not status.planned:
        return Text(f"{sum(session.life is Life.ENDED for session in status.sessions)}/{len(status.sessions)} ended")
    units = {session.unit for session in status.sessions}
    word = f"{units.pop()}s" if len(units) == 1 else "done"
    label = f"{status.done}/{status.planned} {word}"
    successes = f"{status.successes} of {status.recorded} successful"
    if status.recorded and width >= len(label) + len(successes) + 16:
        label = f"{label}, {successes}"
    style = STYLES[Outcome.SUCCEEDED if status.finished else Life.RUNNING]
    return bar(status.done, status.planned, width - len(label) - 1, style).append(f" {label}", "default")


def _unreachable(status: RunStatus, look: Look) -> list[Text]:
    """Since when, and how old is what is shown."""
    link = status.link
    line = Text(f"! unreachable since {clock(link.since, look.zone)} ({duration(link.lasting)} ago)", "bold yellow")
    line.append(f": {visible(link.complaint)}" if link.complaint else "", "not bold")
    if link.last_seen is None:
        return [line, Text("never seen so far: this is the plan", "yellow")]
    return [line, Text(f"this was seen {duration(link.last_seen)} ago; the sessions don't need the link", "yellow")]


def _left_out(sessions: Sequence[SessionStatus]) -> list[Text]:
    if not sessions:
        return []
    kinds = Counter(state(session) for session in sessions)
    return [Text(f"and {len(sessions)} more: {', '.join(f'{n} {word}' for word, n in kinds.items())}", "dim")]


def _footer(status: RunStatus, look: Look, problems: Sequence[SessionStatus]) -> list[Text]:
    noted = [session for session in problems if session.note]
    lines = [_problem(session, look.width) for session in noted[:_MOST_PROBLEMS]]
    if len(noted) > _MOST_PROBLEMS:
        lines.append(Text(f"and {len(noted) - _MOST_PROBLEMS} more with a note", "dim"))
    if status.after:
        lines.append(_after(status.after, look.width))
    if status.hint:
        lines.append(Text(f"! {visible(status.hint)}", "yellow"))
    return [Text(), *lines] if lines else []


def _problem(session: SessionStatus, width: int) -> Text:
    combo = f"{visible(session.policy)} in {visible(session.environment)}"
    line = Text(f"{SYMBOLS[state(session)]} {combo}: {session.note}", note_style(session))
    line.truncate(width, overflow="ellipsis")
    return line


def _after(after: SessionStatus, width: int) -> Text:
    word = state(after)
    line = Text.assemble(("after  ", "dim"), (f"{SYMBOLS[word]} {word}", STYLES[word]))
    if after.seconds is not None:
        line.append(f"  {brief(after.seconds)}")
    said = after.note or after.last_line
    line.append(f"  {said}" if said else "", "dim")
    line.truncate(width, overflow="ellipsis")
    return line
