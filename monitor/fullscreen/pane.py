"""The lines below the list, about one session: its log, why it is so, its episodes and attempts, its videos. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from rich.cells import cell_len, chop_cells
from rich.text import Text

from comborun.monitor.causes import SharedCause
from comborun.monitor.explain import Explanation
from comborun.monitor.fullscreen.table import symbol
from comborun.monitor.snapshot import Attempt
from comborun.monitor.states import verdicts_of
from comborun.monitor.status import SessionStatus
from comborun.monitor.watch import Look
from comborun.monitor.wording import indented, visible
from comborun.rules.results.videos import FAULTS
from comborun.rules.vocabulary import Life, amount
from comborun.words import say
from comborun.words.endings import outcome_words
from comborun.words.times import brief, clock, duration

_LONGEST = 500
"""most characters of a line of a log"""
NOT_STARTED = "no {} yet: it has not started; e says what it waits for"
PANES = ("log", "explain", "episodes", "video")
_MARKS = {True: ("■", "green"), False: ("□", "red"), None: ("!", "yellow")}


class Video(NamedTuple):
    attempt: int
    path: str
    """relative to the attempt's folder"""
    size: int
    fault: str


def log_lines(data: bytes, most: int) -> list[Text]:
    """The last lines of a log; of a progress bar only the last drawing."""
    lines = data.rstrip(b"\n").rsplit(b"\n", most)[-most:]
    return [Text(indented(line.decode("utf-8", "replace"), _LONGEST)) for line in lines]


def explain_lines(found: Explanation | None, cause: SharedCause | None, command: str, width: int) -> list[Text]:
    """Reasons, the next step, then the commands that continue, wrapped; `command` is a pattern for them."""
    if found is None:
        return [Text("not seen yet", "dim")]
    lines = [line for reason in found.reasons for line in wrapped(visible(say(reason), 2000), width, "- ")]
    if cause:
        alike = f"{len(cause.sessions)} failed alike; " if len(cause.sessions) > 1 else ""
        step = f"{alike}next: {visible(say(cause.step), 2000)}"
        lines += [Text(line.plain, "bold") for line in wrapped(step, width, "- ")]
    commands = [(command.format(one.words), one.does) for one in found.commands]
    return [*lines, Text(), *_commands(commands, width)]


def _commands(commands: Sequence[tuple[str, str]], width: int) -> Iterator[Text]:
    """Each with what it does; in two lines if one is too narrow."""
    longest = max((cell_len(words) for words, _ in commands), default=0)
    if all(longest + 2 + cell_len(does) <= width for _, does in commands):
        for words, does in commands:
            yield Text.assemble((words.ljust(longest), "bold"), ("  " + does, "dim"))
        return
    for words, does in commands:
        yield Text(f"{does}:", "dim")
        yield from (Text(line.plain, "bold") for line in wrapped(words, width, "  "))


def wrapped(sentence: str, width: int, lead: str = "") -> list[Text]:
    """The sentence in lines of that width, broken between words; further lines are indented like the first."""
    words = sentence.lstrip(" ")
    lead += " " * min(len(sentence) - len(words), width // 2)
    room, lines, line = max(8, width - len(lead)), list[str](), ""
    for word in words.split(" "):
        for piece in chop_cells(word, room) or [""]:
            if line and cell_len(line) + 1 + cell_len(piece) > room:
                lines.append(line)
                line = piece
            else:
                line = f"{line} {piece}" if line else piece
    lines.append(line)
    return [Text((" " * len(lead) if place else lead) + text) for place, text in enumerate(lines)]


def episode_lines(look: Look, session: SessionStatus, width: int) -> list[Text]:
    """A mark for each planned episode, then the attempts, the newest first."""
    attempts = look.history.of(session.name)
    planned = next((one for one in look.view.plan.sessions if one.name == session.name), None)
    verdicts = verdicts_of(planned, session, attempts) if planned else {}
    lines = list(_strip(session, verdicts, width))
    if lines:
        legend = "■ succeeded   □ failed   ! no verdict   · not done" if width >= 60 else "■ ok  □ failed  ! none  ·"
        lines.append(Text(f"{legend}   {len(verdicts)}/{session.planned}", "dim"))
    elif session.done is not None:
        lines.append(Text(f"{session.done} of {session.planned} {session.unit}s done; no marks of single ones", "dim"))
    for one in reversed(attempts):
        lines += _attempt(one, look.status.now, width)
    return lines or [Text("no attempt yet", "dim")]


def _strip(session: SessionStatus, verdicts: dict[int, bool | None], width: int) -> Iterator[Text]:
    if not verdicts or session.planned > 20_000:
        return
    number = len(str(session.first + session.planned))
    group = 10
    each = max(group, (width - number - 1) // (group + 1) * group)
    for begin in range(session.first, session.first + session.planned, each):
        line = Text(f"{begin:>{number}} ", "dim")
        for index in range(begin, min(begin + each, session.first + session.planned)):
            mark, style = _MARKS[verdicts[index]] if index in verdicts else ("·", "dim")
            line.append(mark, style)
            line.append(" " if (index - begin) % group == group - 1 else "")
        yield line


def _attempt(one: Attempt, now: float | None, width: int) -> Iterator[Text]:
    """`attempt 2  failed  13:02:11  took 4 s  exit code 1: ...`; how it ended has lines of its own if it is long."""
    word = str(one.end.outcome) if one.end else one.life
    line = Text(f"attempt {one.number}  ", "dim").append_text(symbol(word)).append(f" {outcome_words(word)}")
    if one.started:
        passed = one.took if one.end else now and now - one.started
        line.append(f"  began {clock(one.started)}" + (f", {duration(passed)}" if passed is not None else ""))
    if one.begin and one.begin.gpus:
        line.append(f"  GPU {visible(one.begin.gpus, 20)}")
    if one.end and one.end.peak_memory:
        line.append(f"  peak memory {amount(one.end.peak_memory)}")
    line.append(f"  {one.done} done" if one.done else "")
    how = visible(say(one.end.how)) if one.end else ""
    note = visible(one.end.note) if one.end else ""
    said = ": ".join(filter(None, (how, note)))
    if line.cell_len + 2 + cell_len(said) <= width:
        yield line.append(f"  {said}" if said else "", "dim")
        return
    yield line
    yield from (Text(each.plain, "dim") for each in wrapped(said, width, "  "))


def video_lines(found: Sequence[Video] | None, session: SessionStatus, width: int, *, named: bool) -> list[Text]:
    """`named`: the grid says where its videos are."""
    if found is None:
        return [Text("asking the host ..." if session.attempt else NOT_STARTED.format("video"), "dim")]
    if not found:
        ended = "its attempts left none" if named else "`results: {videos: ...}` says where they are"
        why = "they are listed when an attempt ends" if session.alive else ended
        return [Text(line.plain, "dim") for line in wrapped(f"no video: {why}", width)]
    how = "not played here: y copies the path, `combo view` plays them in a browser"
    lines = [Text(line.plain, "dim") for line in wrapped(how, width)]
    for one in found:
        fault = FAULTS.get(one.fault, one.fault)
        line = Text(f"attempt {one.attempt}  {visible(one.path)}  {amount(one.size)}")
        lines.append(line.append(f"  {fault}" if fault else "", "yellow"))
    return lines


def parsed_videos(text: str) -> tuple[Video, ...]:
    """Of lines `attempt-N<tab>bytes<tab>fault<tab>path`, the newest first."""
    found = []
    for line in text.splitlines():
        attempt, size, fault, path = (*line.split("\t", 3), "", "", "")[:4]
        number = attempt.rpartition("-")[2]
        if number.isdecimal() and size.isdecimal() and path:
            found.append(Video(int(number), path, int(size), fault))
    return tuple(reversed(found))


def title(look: Look, session: SessionStatus, pane: str, width: int) -> Text:
    """What the pane shows, of which attempt, and the other panes."""
    line = Text("─ ").append(visible(session.name, max(10, width // 2)), "bold")
    one = session.latest
    if one.end:
        line.append(f"  attempt {one.number} ended {clock(one.end.ended, near=look.status.now)}")
        line.append(f" after {brief(one.took)}" if one.took is not None else "")
        line.append(f", {visible(say(one.end.how), 40)}")
    elif session.life is not Life.QUEUED and one.started and look.status.now is not None:
        line.append(f"  attempt {one.number} for {brief(look.status.now - one.started)}")
    elif session.life is Life.QUEUED:
        line.append("  queued")
    if session.failure and width >= 110:
        line.append(f"   class {session.failure}")
    names = Text(" ")
    for name in PANES:
        part = Text(f"[{name}]" if name == pane else f" {name} ", "bold" if name == pane else "dim")
        part.apply_meta({"act": ("pane", name)})
        names.append_text(part)
    if line.cell_len + names.cell_len + 2 > width:
        names = Text(f" [{pane}]")
    line.truncate(max(1, width - names.cell_len - 1), overflow="ellipsis")
    line.append(" " + "─" * max(0, width - line.cell_len - names.cell_len - 1))
    return line.append_text(names)
