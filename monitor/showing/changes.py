"""What has changed between two looks, a compact line each: for logs and pipes, where nothing can be redrawn."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import tzinfo

from comborun.monitor.lastline import visible
from comborun.monitor.showing.clusterline import summary
from comborun.monitor.showing.hostline import host_facts
from comborun.monitor.status import Link, RunStatus, SessionStatus
from comborun.monitor.wording import SYMBOLS, clock, duration, expectation, happening, listed, remark, state
from comborun.rules.words import Life, Outcome

_PARTS = 10
"""how often the progress of the whole run is told"""


def changes(before: RunStatus | None, after: RunStatus, zone: tzinfo | None = None) -> list[str]:
    """Lines in the order of the plan; the first look (`before` None) tells what is not simply queued."""
    told = [] if before else [f"{visible(after.run)} on {visible(after.host)}: {_counts(after)}"]
    told += [*_link(before.link if before else Link(), after.link, zone), *_event(before, after, zone)]
    told += [*_cluster(before, after), *_sessions(before, after)]
    progress = _progress(before, after, zone)
    told += [line for line in (progress, _host(before, after)) if line]
    told += [f"! {visible(said)}" for said in _remarks(before, after)]
    if after.finished and not (before and before.finished):
        told.append(f"finished: {_counts(after)}, took {duration(after.seconds or 0.0)}")
    time = "" if after.now is None else f"{clock(after.now, zone)}  "
    return [f"{time}{line}" for line in told]


def _remarks(before: RunStatus | None, after: RunStatus) -> Iterator[str]:
    if after.hint and not (before and before.hint == after.hint):
        yield after.hint
    if after.unheard and not (before and before.unheard):  # its age changes with every look
        yield after.unheard
    if after.undecided and not (before and before.undecided == after.undecided):
        yield after.undecided


def _counts(status: RunStatus) -> str:
    smoke = f"; smoke test: {listed(status.smoke())}" if status.smoke() else ""
    return f"{listed(status.counts())}{smoke}"


def _link(before: Link, after: Link, zone: tzinfo | None) -> Iterator[str]:
    if before.reachable and not after.reachable:
        why = f": {visible(after.complaint)}" if after.complaint else ""
        yield f"! unreachable since {clock(after.since, zone)}{why}"
    if after.reachable and not before.reachable:
        yield "reachable again"


def _event(before: RunStatus | None, after: RunStatus, zone: tzinfo | None) -> Iterator[str]:
    event = after.host_event
    if event and not (before and before.host_event and set(before.host_event.sessions) >= set(event.sessions)):
        yield f"! {happening(event, visible(after.host), zone)}"


def _cluster(before: RunStatus | None, after: RunStatus) -> Iterator[str]:
    """What Slurm has, at the first look that tells it; then only whether it answers."""
    if after.scheduler is None or after.now is None:
        return
    earlier = before.scheduler if before else None
    if earlier is None or (earlier.answered and not after.scheduler.answered):
        yield f"{'' if after.scheduler.answered else '! '}{summary(after.scheduler, after.tasks, after.now)}"
    elif after.scheduler.answered and not earlier.answered:
        yield "Slurm answers again"


def _sessions(before: RunStatus | None, after: RunStatus) -> Iterator[str]:
    every = (*after.sessions, *((after.after,) if after.after else ()))
    earlier = (*before.sessions, *((before.after,) if before.after else ())) if before else ()
    known = {session.name: _mark(session) for session in earlier}
    told = after.host_event.sessions if after.host_event else ()
    for session in every:
        if session.name not in told and _mark(session) != known.get(session.name, (Life.QUEUED, None, 0)):
            yield _line(session)


def _mark(session: SessionStatus) -> tuple[object, ...]:
    return (session.life, session.outcome, session.attempt)


def _line(session: SessionStatus) -> str:
    name = visible(f"{session.policy} in {session.combo}") if session.policy else session.name
    parts = [f"{SYMBOLS[state(session)]} {name}: {state(session)}"]
    if session.attempt > 1:
        parts.append(f"attempt {session.attempt}")
    if session.done is not None and (session.done or session.life is Life.ENDED):
        parts.append(f"{session.done}/{session.planned}")
    if session.successes is not None and session.recorded:
        parts.append(f"{session.successes} of {session.recorded} successful")
    if session.life is Life.ENDED and session.seconds is not None:
        parts.append(duration(session.seconds))
    if remarked := remark(session):
        parts.append(remarked)
        said = session.life is Life.ENDED and session.outcome is not Outcome.SUCCEEDED
        parts += [f"last line: {session.last_line}"] if said and session.last_line else []
    return ", ".join(parts)


def _progress(before: RunStatus | None, after: RunStatus, zone: tzinfo | None) -> str:
    """The run as a whole, each time when another tenth of it is done."""
    if not after.planned or _part(before) == _part(after):
        return ""
    words = [f"{after.done}/{after.planned} done"]
    if after.recorded:
        words.append(f"{after.successes} of {after.recorded} successful")
    if after.expected and after.now is not None:
        words.append(expectation(after.expected, after.now, zone))
    return ", ".join(words)


def _host(before: RunStatus | None, after: RunStatus) -> str:
    """How full the host is: at the first look that tells it, and whenever progress is told."""
    told = before is not None and before.now is not None
    if after.now is None or (told and _part(before) == _part(after)):
        return ""
    facts = host_facts(after.use)
    return f"{visible(after.host)}: {', '.join(facts)}" if facts else ""


def _part(status: RunStatus | None) -> int:
    return status.done * _PARTS // status.planned if status and status.planned else 0
