"""Sessions that went wrong for the same cause, and the next step for each cause. Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from comborun.monitor.explain import Command
from comborun.monitor.status import SUPERSEDED, RunStatus, SessionStatus
from comborun.monitor.wording import visible
from comborun.rules.endings.evidence import Evidence
from comborun.rules.endings.failures import Failure
from comborun.rules.facts import Fact
from comborun.rules.vocabulary import Life, Outcome
from comborun.text import harmless
from comborun.words import say

if TYPE_CHECKING:
    from comborun.answers import runs

_TELLING = (Failure.ERROR, Failure.CRASHED, Failure.GPU_FAULT, Failure.LAUNCH_FAILED, Failure.NO_RESULT, Failure.KILLED)
"""classes with many causes; sessions of another class have the cause in common, whatever the line says"""
_NUMBER = re.compile(r"0x[0-9A-Fa-f]+|\d+(?:\.\d+)?")
_WORD = re.compile(r"\w+")
_SHORTEST_NAME = 3
_MOST_NAMED = 20
"""names in a command"""


class SharedCause(NamedTuple):
    """A cause, and the sessions whose latest attempt ended by it, in the order of the plan."""

    sessions: tuple[SessionStatus, ...]
    what: Fact
    """how the first of them ended"""
    said: str
    """the line that ended the first of them, else empty: untrusted, but safe to show"""
    step: Fact
    """what to do next"""
    commands: tuple[Command, ...]

    @property
    def failure(self) -> Failure | None:
        return self.sessions[0].failure

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(one.name for one in self.sessions)

    @property
    def words(self) -> str:
        """The cause in one line."""
        return self.said or harmless(say(self.what))


class RunCauses(NamedTuple):
    """What went wrong in a run."""

    run: str
    advice: tuple[str, ...]
    """what to do about the run as a whole"""
    causes: tuple[SharedCause, ...]

    @property
    def summary(self) -> Fact:
        """`3 causes, 9 sessions`."""
        return Fact("shared_causes", causes=len(self.causes), sessions=sum(len(one.sessions) for one in self.causes))

    @property
    def answer(self) -> runs.Causes:
        from comborun.answers import runs  # slow to import, and only JSON needs it

        causes = (
            runs.Cause(
                failure=cause.failure and str(cause.failure),
                sessions=cause.names,
                cause=cause.words,
                next=say(cause.step),
                facts=(cause.what, cause.step),
                commands=tuple(runs.NextCommand(f"combo {one.words}", one.does) for one in cause.commands),
            )
            for cause in self.causes
        )
        return runs.Causes(self.run, self.advice, tuple(causes))


def run_causes(status: RunStatus) -> RunCauses:
    said = (status.ordered.fact if status.ordered else None, status.advice)
    advice = tuple(say(one) for one in said if one)
    return RunCauses(status.run, advice, shared_causes(status))


def shared_causes(status: RunStatus) -> tuple[SharedCause, ...]:
    """The causes why sessions failed, are lost, stalled, or were stopped; those of the most sessions first."""
    bare = _bare_of(status.sessions)
    groups: dict[tuple[str, ...], list[SessionStatus]] = {}
    for one in status.sessions:
        if one.part != SUPERSEDED and (one.life is Life.STALLED or _went_wrong(one)):
            groups.setdefault(_alike(one, bare), []).append(one)
    causes = [_cause(status, sessions) for sessions in groups.values()]
    return tuple(sorted(causes, key=lambda one: (one.failure is None, -len(one.sessions))))


def _went_wrong(one: SessionStatus) -> bool:
    """Whether its latest attempt has ended without success; it may wait for another one."""
    return not one.alive and one.attempt > 0 and not one.done_with and (one.failure is not None or _stopped(one))


def _stopped(one: SessionStatus) -> bool:
    return one.outcome is Outcome.CANCELLED or (one.outcome is Outcome.PARTIAL and one.failure is None)


def error_line(one: SessionStatus) -> str:
    """The line of its log that ended it, or the message of what could not start it."""
    facts = one.latest.end.facts if one.latest.end else ()
    said = [fact.text("said") for fact in sorted(facts, key=lambda fact: fact.code != Evidence.LOG_SAYS)]
    return visible(next(filter(None, said), ""))


def _bare_of(sessions: Sequence[SessionStatus]) -> Callable[[str], str]:
    """A function that takes what differs from session to session out of a line: numbers, and names of the grid.

    Names are found by their first word, since a pattern of ten thousand names would be tried at each place of a line.
    """
    found = {name for one in sessions for name in (one.name, one.policy, one.environment)}
    by_word: dict[str, list[str]] = {}
    for name in sorted(found, key=len, reverse=True):
        if len(name) >= _SHORTEST_NAME and (word := _WORD.search(name)):
            by_word.setdefault(word[0], []).append(name[word.start() :])

    def bare(line: str) -> str:
        parts, at = list[str](), 0
        for word in _WORD.finditer(line):
            begin = word.start()
            for name in by_word.get(word[0], ()) if begin >= at else ():
                if line.startswith(name, begin) and not _WORD.match(line, begin + len(name)):
                    parts += [line[at:begin], "*"]
                    at = begin + len(name)
                    break
        return _NUMBER.sub("0", "".join(parts) + line[at:])

    return bare


def _alike(one: SessionStatus, bare: Callable[[str], str]) -> tuple[str, ...]:
    """What is equal for sessions with the same cause."""
    if one.life is Life.STALLED:
        return ("stalled",)
    if one.failure is None:
        return ("stopped",)
    if one.failure not in _TELLING:
        return (str(one.failure),)
    if line := error_line(one):
        return str(one.failure), bare(line)
    end = one.latest.end
    return (str(one.failure), *((str(end.code), str(end.signal)) if end else ()))


def _cause(status: RunStatus, sessions: Sequence[SessionStatus]) -> SharedCause:
    first = sessions[0]
    end = first.latest.end
    if first.life is Life.STALLED:
        what = Fact("no_progress_for", seconds=max(0.0, (status.now or 0.0) - (first.stalled or 0.0)))
    else:
        what = end.how if end else Fact("nobody_saw_end")
    line = "" if first.life is Life.STALLED or first.failure is None else error_line(first)
    return SharedCause(tuple(sessions), what, line, _step(status, sessions), tuple(_commands(status, sessions)))


def _step(status: RunStatus, sessions: Sequence[SessionStatus]) -> Fact:
    """What to do next; nothing while a retry is to come."""
    first = sessions[0]
    if first.life is Life.STALLED:
        return Fact("look_at_stalled")
    if not status.stopped and not status.hold and all(one.life is Life.QUEUED for one in sessions):
        return Fact("retry_will_come")
    if first.failure is None:
        return Fact("mend_stopped")
    return Fact("mend_failure", failure=str(first.failure))


def _commands(status: RunStatus, sessions: Sequence[SessionStatus]) -> Sequence[Command]:
    run, first = f"--run {shlex.quote(status.run)}", shlex.quote(sessions[0].name)
    explain = Command(f"explain {first} {run}", "says more about the first of them")
    if status.elsewhere:  # the others are refused here
        return (explain,)
    if sessions[0].life is Life.STALLED:
        return explain, Command(f"attach {first} {run}", "opens its window")
    ended = [one for one in sessions if one.life is not Life.QUEUED]
    if status.stopped or status.hold or not ended:
        going = Command(f"resume {shlex.quote(status.run)}", "lets the run go on")
        return (explain, going) if status.stopped or status.hold else (explain,)
    if len(ended) > _MOST_NAMED:
        return explain, Command(f"retry --failed {run}", "starts all failed sessions again")
    names = " ".join(shlex.quote(one.name) for one in ended)
    return explain, Command(f"retry {names} {run}", f"starts {'them' if len(ended) > 1 else 'it'} again")
