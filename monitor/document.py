"""The answer about a run at one moment, from its status. Times are seconds since 1970 on the host's clock."""

from __future__ import annotations

from dataclasses import fields
from typing import TYPE_CHECKING, Any, TypeVar, cast

from comborun import answers
from comborun.answers.status import (
    ClosedEnvironment,
    ClosedGpu,
    Hold,
    HostEvent,
    HostOfRun,
    Server,
    Session,
    Slurm,
    Status,
    Task,
    Waiting,
)
from comborun.answers.status import Space as SpaceAnswer
from comborun.words import say
from comborun.words.endings import in_words

if TYPE_CHECKING:
    from comborun.monitor.snapshot import Hold as Held
    from comborun.monitor.snapshot import ServerStatus, Space
    from comborun.monitor.status import HostStatus, RunStatus, SessionStatus
    from comborun.rules.facts import Fact

SCHEMA = 1
"""version of the document"""
T = TypeVar("T")


def answer_of(kind: type[T], source: object, **others: Any) -> T:
    """An answer: `others`, and each further field that `source` has under the same name."""
    absent, answer_type = object(), cast("Any", kind)
    found = {one.name: getattr(source, one.name, absent) for one in fields(answer_type) if one.name not in others}
    return kind(**{name: value for name, value in found.items() if value is not absent}, **others)


def answer(status: RunStatus) -> Status:
    link, use, scheduler, outage, end = status.link, status.use, status.scheduler, status.outage, status.expected
    return answer_of(
        Status,
        status,
        schema=SCHEMA,
        reachable=link.reachable,
        unreachable_since=None if link.reachable else link.since,
        complaint=link.complaint or None,
        last_seen_seconds=link.last_seen,
        hold=_hold(status.hold),
        quarantine=tuple(ClosedGpu(*one) for one in status.quarantine),
        closed=tuple(ClosedEnvironment(*one) for one in status.closed),
        servers=tuple(_server(status, one) for one in status.servers),
        slurm=Slurm(scheduler.answered, scheduler.at, scheduler.complaint or None) if scheduler else None,
        load=use.load,
        cpus=use.cpus,
        memory=_space(use.memory),
        disk=_space(use.disk),
        gpus=use.gpus,
        host_event=outage and HostEvent(*outage),
        estimated_end=end and end.likeliest,
        estimated_end_range=end and (end.earliest, end.latest),
        episodes_done=status.done,
        episodes_recorded=status.recorded,
        episodes_planned=status.planned,
        counts=status.counts(),
        smoke=status.smoke(),
        sessions=tuple(map(_session, status.sessions)),
        after=_session(status.after) if status.after else None,
        multiplexer=status.multiplexer or None,
        undecided=status.undecided or None,
        hint=say(status.advice) if status.advice else None,
        unheard=say(status.notify_problem) if status.notify_problem else None,
        facts=_facts(status),
        folder_gone=link.gone,
        hosts=tuple(map(_host, status.hosts)),
    )


def _facts(status: RunStatus) -> tuple[Fact, ...]:
    ordered, advice = status.ordered and status.ordered.fact, status.advice
    found = (status.part, ordered, advice, status.would_move, status.notify_problem, *status.back)
    return tuple(filter(None, (*found, status.moved, status.following)))


def _host(one: HostStatus) -> HostOfRun:
    return answer_of(
        HostOfRun,
        one,
        reachable=one.link.reachable,
        complaint=one.link.complaint or None,
        last_seen_seconds=one.link.last_seen,
        counts=dict(one.counts),
        load=one.use.load,
        gpus=one.use.gpus,
        folder_gone=one.link.gone,
        hold=_hold(one.hold),
    )


def _hold(found: Held | None) -> Hold | None:
    return Hold(found.kind, found.since, found.words, found.reason) if found else None


def _space(found: Space | None) -> SpaceAnswer | None:
    return SpaceAnswer(found.total, found.free) if found else None


def _session(one: SessionStatus) -> Session:
    waits, end, task = one.waiting, one.latest.end, one.task
    return answer_of(
        Session,
        one,
        failure=one.failure and str(one.failure),
        stalled_since=one.stalled,
        part=one.part or None,
        window=one.window or None,
        uncounted=one.uncounted or None,
        state=one.life,
        episodes_done=one.done,
        episodes_planned=one.planned,
        episodes_recorded=one.recorded,
        idle_seconds=one.idle,
        estimated_end=one.likely_end,
        estimated_end_range=one.likely_ends,
        node=one.node or None,
        host=one.host or None,
        progressed=one.latest.progressed,
        peak_memory=end and end.peak_memory,
        task=task and Task(task.job, task.attempt, task.state, task.reason or None, task.node or None, task.start),
        facts=(*one.reasons, *one.facts, *((one.trained,) if one.trained else ())),
        waiting=waits and Waiting(waits.until, waits.fact, waits.waits_for, waits.words),
        ending=end.facts if end else (),
    )


def _server(status: RunStatus, one: ServerStatus) -> Server:
    waits = status.server_waits.get(one.name)
    return answer_of(
        Server,
        one,
        cause=one.cause or None,
        why=in_words(one.why, one.ending) or None,
        waits=waits and waits.words,
        fact=waits and waits.fact,
    )


def to_json(status: RunStatus, *, indent: int | None = 1) -> str:
    return answers.to_json(answer(status), indent=indent)
