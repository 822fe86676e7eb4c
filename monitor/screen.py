"""Where a status is shown without keys: lines for a log, JSON lines for a program, or a table once."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator

from rich.console import Console
from rich.text import Text

from comborun.monitor.status import UP, RunStatus, SessionStatus
from comborun.monitor.table import USUAL, Rows, host_facts, render, render_whole
from comborun.monitor.wording import MARKS, clock_words, listed, visible
from comborun.rules.endings.evidence import Evidence
from comborun.rules.names import SAYS
from comborun.rules.vocabulary import Life, Outcome
from comborun.text import alike, several
from comborun.words import say
from comborun.words.endings import outcome_words
from comborun.words.times import brief, clock, duration

_PARTS = 10
"""how often the progress of the whole run is printed"""


class StatusScreen(ABC):
    @abstractmethod
    def show(self, status: RunStatus) -> None: ...


class PlainScreen(StatusScreen):
    def __init__(self, console: Console) -> None:
        self._console = console
        self._last: RunStatus | None = None

    def show(self, status: RunStatus) -> None:
        for line in changes(self._last, status):
            self._console.print(Text(line), soft_wrap=True)
        self._last = status


class JsonScreen(StatusScreen):
    """A document per look, each on a line; none for a look that still waits."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write

    def show(self, status: RunStatus) -> None:
        if not status.link.silent:
            from comborun.monitor.document import to_json  # slow to import

            self._write(to_json(status, indent=None) + "\n")


def show_once(console: Console, status: RunStatus, rows: Rows = USUAL) -> None:
    if console.is_terminal or os.environ.keys() >= {"COLUMNS", "LINES"}:  # as `watch` gives them
        height = console.height if console.is_terminal else None
        console.print(render(status, console.width, rows, height))
    else:
        console.print(render_whole(status, rows), soft_wrap=True)


# Lines for a log: changes between two looks


def changes(before: RunStatus | None, after: RunStatus) -> list[str]:
    """Lines in the order of the plan. The first look (`before` None) gives all sessions that are not simply queued."""
    lines = [] if before else [f"{visible(after.run)} on {visible(after.host)}: {_counts(after)}"]
    lines += [say(after.part)] if after.part and not before else []
    lines += [*_link(before, after), *_cluster(before, after), *_sessions(before, after)]
    lines += [*_progress(before, after), *(f"! {visible(said)}" for said in _remarks(before, after))]
    if after.finished and not (before and before.finished):
        lines.append(f"{after.how_over}: {_counts(after)}, took {duration(after.seconds or 0.0)}")
    time = "" if after.now is None else f"{clock(after.now)}  "
    return [f"{time}{line}" for line in lines]


def _remarks(before: RunStatus | None, after: RunStatus) -> Iterator[str]:
    if (clocks := clock_words(after.ahead, after.host)) and not (before and clock_words(before.ahead, before.host)):
        yield clocks
    if after.ordered and not (before and before.ordered == after.ordered):
        yield say(after.ordered.fact)
    if after.advice and not (before and before.advice == after.advice):
        yield say(after.advice)
    if after.would_move and not (before and before.would_move):
        yield say(after.would_move)
    if after.notify_problem and not (before and before.notify_problem):  # its age changes with every look
        yield say(after.notify_problem)
    if after.undecided and not (before and before.undecided == after.undecided):
        yield after.undecided
    known = {one.uncounted_for for one in before.sessions} if before else set()
    new = [one for one in after.sessions if one.uncounted_for not in {(), *known}]
    yield from alike([(one.name, one.uncounted) for one in new], [one.uncounted_for for one in new])


def _counts(status: RunStatus) -> str:
    smoke = f"; smoke test: {listed(status.smoke())}" if status.smoke() else ""
    return f"{listed(status.counts())}{smoke}"


def _link(before: RunStatus | None, after: RunStatus) -> Iterator[str]:
    """Reports that the host went away or came back, and events on it."""
    link, was = after.link, before.link if before else UP
    if link.silent and link.last_seen is not None and not was.silent and link.reachable:
        yield f"! no answer for {brief(link.silent)}: last contact {brief(link.last_seen)} ago"
    if was.silent and was.reachable and link.reachable and not link.silent:
        yield "it answers again"
    if was.reachable and not link.reachable:
        why = f": {visible(link.complaint)}" if link.complaint else ""
        yield f"! {link.trouble} since {clock(link.since)}{why}"
    if link.reachable and not was.reachable:
        yield "reachable again"
    lost = {one.host for one in before.hosts if one.lost} if before else set()
    yield from (f"! {visible(one.host)} was given up" for one in after.hosts if one.lost and one.host not in lost)
    yield from (say(one) for one in after.back if not (before and one in before.back))
    outage, known = after.outage, before.outage if before else None
    if outage and not (known and set(known.sessions) >= set(outage.sessions)):
        yield f"! {say(outage.fact(after.host))}"


def _cluster(before: RunStatus | None, after: RunStatus) -> Iterator[str]:
    """Slurm's summary at the first look that has one; then only whether Slurm answers."""
    if after.scheduler is None or after.slurm is None:
        return
    earlier, answered = before.scheduler if before else None, after.scheduler.answered
    if earlier is None or (earlier.answered and not answered):
        yield f"{'' if answered else '! '}{say(after.slurm)}"
    elif answered and not earlier.answered:
        yield "Slurm answers again"


def _sessions(before: RunStatus | None, after: RunStatus) -> Iterator[str]:
    known = {session.name: _key(session) for session in before.every} if before else {}
    ended_by_host = after.outage.sessions if after.outage else ()
    for session in after.every:
        if session.name not in ended_by_host and _key(session) != known.get(session.name, (Life.QUEUED, None, 0)):
            yield _line(session)


def _key(session: SessionStatus) -> tuple[object, ...]:
    return (session.life, session.outcome, session.attempt)


def _line(session: SessionStatus) -> str:
    parts = [f"{MARKS[session.word].symbol} {session.name}: {outcome_words(session.word)}"]
    if session.again_after:
        parts.append(f"attempt {session.attempt}")
    if session.done is not None and (session.done or session.life is Life.ENDED):
        unknown = several(session.done, session.unit)
        parts.append(f"{session.done}/{session.planned}" if session.planned else unknown)
    if session.successes is not None and session.recorded:
        parts.append(f"{session.successes} of {session.recorded} successful")
    if session.life is Life.ENDED and session.seconds is not None:
        parts.append(f"took {duration(session.seconds)}")
    if session.uncounted or session.note:
        parts += [session.note] if session.note else []
        failed = session.life is Life.ENDED and session.outcome is not Outcome.SUCCEEDED
        last, ending = session.last_line, session.latest.end.facts if session.latest.end else ()
        told = not last or last.startswith(SAYS)  # a line of ours, whose fact is shown
        told = told or any(one.code == Evidence.LOG_SAYS or one.text("said") == last for one in ending)
        parts += [f"last line: {session.last_line}"] if failed and not told else []
    return ", ".join(parts)


def _progress(before: RunStatus | None, after: RunStatus) -> Iterator[str]:
    """The progress of the run, for each tenth of it, with the use of the host."""
    more = _part(before) != _part(after)
    if after.planned and more:
        words = [f"{after.done}/{after.planned} done"]
        words += [f"{after.successes} of {after.recorded} successful"] if after.recorded else []
        words += [say(after.expected.fact(after.now))] if after.expected and after.now is not None else []
        yield ", ".join(words)
    first = before is None or before.now is None
    if after.now is not None and (first or more) and (facts := host_facts(after.use)):
        yield f"{visible(after.host)}: {', '.join(fact.plain for fact in facts)}"


def _part(status: RunStatus | None) -> int:
    return status.done * _PARTS // status.planned if status and status.planned else 0
