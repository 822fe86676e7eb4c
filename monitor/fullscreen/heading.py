"""The lines above the list: the run, its end, its hold, its progress, its host. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from rich.text import Text

from comborun.monitor.columns import bar, cut
from comborun.monitor.status import Link, RunStatus
from comborun.monitor.table import GAP, box_lines, host_lines, packed
from comborun.monitor.wording import MARKS, UNMARKED, by_urgency, clock_words, visible
from comborun.rules.vocabulary import Life, Outcome
from comborun.text import printable
from comborun.words import say
from comborun.words.endings import outcome_words
from comborun.words.times import brief, clock, clocks, duration

WIDE = 110
_NARROW = 60
_RESUME = "  [R]esume"
_LEAST_WHY = 12
_NOTES = 3
"""most notes"""
_LOW, _LOWEST = 12, 8
"""lines of a screen below which the heading is only the counts, and below which it has not even these"""


def below_title(status: RunStatus, link: Link, width: int, height: int) -> list[Text]:
    """The heading without its first line: the lower the screen, the fewer lines."""
    if height < _LOW:
        return counts(status, width) if height >= _LOWEST else []
    lines = [progress(status, width), *counts(status, width)]
    host = host_line(status, width) if not status.finished else []
    notes = [cut(Text(f"! {printable(one)}", "yellow"), width) for one in remarks(status, link)]
    room = max(3, height // 4) - len(lines)
    shown = notes[: min(_NOTES, max(1, room - len(host)))]
    if len(notes) > len(shown):
        more = f"  (and {len(notes) - len(shown)} more: page 4)"
        shown[-1] = cut(shown[-1], max(1, width - len(more))).append(more)
    return [*lines, *host[: max(0, room - len(shown))], *shown]


def title(status: RunStatus, link: Link, passed: float, width: int) -> Text:
    """The run, its hold with the key that lifts it, its end, and the age of the last contact, as far as they fit."""
    told = dict(_parts(status, link, passed))
    if width < _NARROW and "end" in told and status.expected and status.now is not None:
        told["end"] = Text(f"ends {clocks(status.expected.earliest, status.expected.latest, status.now)}")
    word = held(status)
    name = Text.assemble((visible(status.run, 60), "bold"), (" on ", "dim"), visible(status.host, 40))
    whole = sum(text.cell_len + len(GAP) for text in told.values()) + (60 if word else 0)
    if name.cell_len + whole > width:  # a run's id has its time, which its grid has not
        grid = visible(status.grid, max(8, width // 3))
        name = Text.assemble((grid, "bold"), (" on ", "dim"), visible(status.host, 20))
        if width < _NARROW and "end" in told and name.cell_len + len(GAP) + told["end"].cell_len > width:
            name = Text(grid, "bold")
    parts = {"name": name}
    if word:
        cut(name, max(1, width - len(word) - len(_RESUME) - len(GAP)))
        parts["hold"] = _hold(status, word, width - name.cell_len - len(GAP))
    free = width - sum(text.cell_len + len(GAP) for text in parts.values())
    kept = []
    for key in ("link", "end", "time", "seen"):
        if key in told and told[key].cell_len <= free:
            kept.append(key)
            free -= len(GAP) + told[key].cell_len
    return cut(Text(GAP).join([*parts.values(), *(text for key, text in told.items() if key in kept)]), width)


def _hold(status: RunStatus, word: str, room: int) -> Text:
    """What holds the run, since when and why, as far as there is room, and the key that lifts it."""
    hold = status.hold if not status.stopped else None
    when = f" {clock(hold.since, near=status.now)}" if hold and hold.since else ""
    why = f": {visible(hold.words)}" if hold and hold.words else ""
    room -= len(_RESUME)
    whole = f"{word}{when}{why}"
    if len(whole) > room:
        less = visible(whole, room) if why and room > len(word) + len(when) + _LEAST_WHY else f"{word}{when}"
        whole = less if len(less) <= room else word
    return Text.assemble((whole, "bold red"), (_RESUME, "bold"))


def _parts(status: RunStatus, link: Link, passed: float) -> Iterator[tuple[str, Text]]:
    """Its other parts in the order in which they are shown, each with its name."""
    if status.seconds is not None:
        going = passed if any(one.alive for one in status.every) else 0.0
        ran = f"{'took' if status.finished else 'ran'} {duration(status.seconds + going)}"
        yield "time", Text(ran)
    if not status.finished and status.expected and status.now is not None:
        yield "end", Text(say(status.expected.fact(status.now + passed)))
    if trouble := link_words(link):
        yield "link", Text(trouble, "bold yellow")
    elif link.last_seen is not None:
        yield "seen", Text(f"seen {brief(link.last_seen)} ago", "dim")


def held(status: RunStatus) -> str:
    """The word for what keeps new sessions from starting."""
    if status.hold and not status.stopped:
        return status.hold.kind.upper()
    if status.stopped:
        return "STOPPED"
    return "DISPATCHER GONE" if status.abandoned else ""


def link_words(link: Link) -> str:
    """The trouble with the link, with the age of the last contact; empty if there is none."""
    ago = "never seen" if link.last_seen is None else f"last contact {brief(link.last_seen)} ago"
    if not link.reachable:
        return f"{link.trouble}, {ago}"
    return f"no answer for {brief(link.silent)}, {ago}" if link.silent else ""


def progress(status: RunStatus, width: int) -> Text:
    done, planned = status.done, status.planned
    if not planned:
        ended = sum(one.life is Life.ENDED for one in status.proper)
        return Text(f"{ended}/{len(status.proper)} sessions have ended")
    words = f"{done}/{planned} {status.unit}"
    if status.recorded:
        words += f", {status.successes} of {status.recorded} successful" if width >= WIDE else (
            f", {status.successes}/{status.recorded} ok")  # fmt: skip
    style = MARKS[Outcome.SUCCEEDED if status.finished else Life.RUNNING].style
    return cut(bar(done, planned, max(0, width - len(words) - 2), style).append(f"  {words}", "default"), width)


def counts(status: RunStatus, width: int) -> list[Text]:
    """How many sessions are in each state, the most urgent first; if room is short, the last ones lose their words."""
    words = width >= 60
    long, short = [], []
    for word, count in by_urgency(status.counts()):
        mark = MARKS.get(word, UNMARKED)
        long.append(Text(f"{mark.symbol} {count} {outcome_words(word)}", mark.style))
        short.append(Text(f"{mark.symbol}{count}", mark.style))
    more = []
    if smoke := status.smoke():
        more.append(Text(f"smoke test: {', '.join(f'{count} {word}' for word, count in smoke.items())}", "dim"))
    if status.slots is not None and not status.finished:
        more.append(Text(f"{len(status.busy)} of {status.slots} slots" if words else f"{status.slots} slots", "dim"))
    spelled = len(long) if words else 0
    while spelled and len(packed([*long[:spelled], *short[spelled:]], width)) > 1:
        spelled -= 1
    return [cut(line, width) for line in packed([*long[:spelled], *short[spelled:], *more], width)[:1]]


def host_line(status: RunStatus, width: int) -> list[Text]:
    """What the host has left; scarce resources stay."""
    slurm = [cut(Text(say(status.slurm)), width)] if status.slurm else []
    return [*slurm, *(cut(line, width) for line in box_lines(status)), *host_lines(status.use, width)]


def remarks(status: RunStatus, link: Link) -> Sequence[str]:
    """What the user should know of the whole run, the most important first."""
    said: list[str] = [say(status.part)] if status.part else []
    if not link.reachable and link.complaint:
        said.append(": ".join(filter(None, (visible(link.complaint), link.comfort))))
    if status.outage:
        said.append(say(status.outage.fact(status.host)))
    if status.advice and not (status.hold and status.advice.code == "run_held"):
        said.append(say(status.advice))
    said += [say(one) for one in (*status.back, status.would_move, status.following, status.moved) if one]
    said += [say(status.ordered.fact)] if status.ordered else []
    said += [say(status.notify_problem)] if status.notify_problem else []
    said += [clock_words(status.ahead, status.host), status.undecided, *status.uncounted]
    return [one for one in said if one]
