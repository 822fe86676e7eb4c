"""The status of a run on several hosts: those of its parts side by side, on this machine's clock. Pure."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from comborun.monitor.snapshot import UNKNOWN_USE, HostUse
from comborun.monitor.states import beside_numbers
from comborun.monitor.status import ELSEWHERE, UP, Expected, HostStatus, RunStatus, SessionStatus
from comborun.monitor.waiting import advice
from comborun.rules.deal import sessions_moved
from comborun.rules.facts import Fact
from comborun.rules.holds import DRAINING
from comborun.rules.vocabulary import Life, Outcome

if TYPE_CHECKING:
    from comborun.monitor.snapshot import Attempt, Hold, Order
    from comborun.monitor.status import Outage
    from comborun.rules.deal import Deal, OnRecord
    from comborun.rules.results.counts import Verdicts


class PartStatus(NamedTuple):
    host: str
    status: RunStatus
    """with the sessions that the newest deal gives to this host"""


def joined(parts: Sequence[PartStatus], deal: Deal, order: Mapping[str, int]) -> RunStatus:
    """`order`: the place of each session in the plan."""
    there = [part for part in parts if part.host not in deal.lost]
    left = [part.status for part in there]
    every = [part.status for part in there or parts]
    first = next((one for one in every if one.link.reachable), every[0])
    sessions = sorted(
        (session for part in parts for session in _sessions(part)), key=lambda one: order.get(one.name, len(order))
    )
    starts = [one.started - one.ahead for one in every if one.started is not None]
    going = [part for part in there if not _is_over(part.status) or _waits(part.status)]
    held = all(part.status.hold for part in going)
    silent = [one.link for one in every if not one.link.gone] or [first.link]
    link = UP if any(one.link.reachable for one in every) else silent[0]
    status = replace(
        first,
        host=", ".join(part.host for part in parts),
        sessions=beside_numbers(sessions),
        hosts=tuple(map(_host, parts)),
        link=link,
        now=None if first.now is None else first.now - first.ahead,
        ahead=0.0,
        started=min(starts, default=None),
        seconds=max((one.seconds for one in every if one.seconds is not None), default=None),
        expected=_expected(every),
        finished=all(_is_over(one) for one in left) if left else False,
        stopped=all(one.stopped for one in every),
        hold=next((_hold(part.status) for part in going if held), None),
        ordered=_ordered(there or parts),
        dispatcher=next((one.dispatcher for one in every if one.dispatcher is not None), None),
        slots=sum(one.slots or 0 for one in every) or None,
        servers=tuple(server for one in every for server in one.servers),
        outage=next(filter(None, map(_outage, there or parts)), None),
        notify_problem=next((one.notify_problem for one in every if one.notify_problem), None),
        quarantine=(),
        part=None,
        use=HostUse(),
        moved=sessions_moved([name for name in deal.moves if deal.box_of(name) != deal.of.get(name)]),
    )
    told = [part for part in there or parts if held or not part.status.hold]
    return replace(status, advice=_advice(told, advice(status)) or _of_hold(going))


def with_kept(one: SessionStatus, own: Verdicts, former: Sequence[tuple[OnRecord, Verdicts]]) -> SessionStatus:
    """A session that had begun on hosts that were given up, with the episodes that count of these, as in the report.

    `own`: its verdicts where it runs now. `former`: of each host that was given up, in order, what counts, and the
    verdicts that are known here. A verdict that is not known is none, whatever the episode has brought since.
    """
    found, done = dict(own), {*own}
    if len(done) < (one.done or 0):
        done = {*range(one.first, one.first + (one.done or 0))}
    for on_record, verdicts in reversed(former):
        kept = [episode for first, stop in on_record.get(one.name, ()) for episode in range(first, stop)]
        found |= {episode: verdicts.get(episode) for episode in kept}
        done.update(kept)
    if not done:
        return one
    one = one._replace(done=min(len(done), one.planned) if one.planned else len(done))
    if one.recorded is None:
        return one
    judged = [verdict for verdict in found.values() if verdict is not None]
    return one._replace(recorded=len(judged), successes=sum(judged))


def as_last_seen(seen: RunStatus) -> RunStatus:
    """A host that is away: what runs there is quiet at least since its last answer, and nobody knows when it ends."""
    if seen.link.reachable:
        return seen
    passed = seen.link.last_seen or 0.0
    sessions = (
        one._replace(expected=None, idle=None if one.idle is None else one.idle + passed) for one in seen.sessions
    )
    return replace(seen, sessions=tuple(sessions), expected=None)


def given_up(seen: RunStatus, complete: Collection[str]) -> RunStatus:
    """A host that was given up: nothing runs, waits or ends there for this run any more. `complete`: the sessions that
    the deal leaves to it, because it had completed them, whatever the last look has shown.
    """
    sessions = tuple(
        one if one.life is Life.ENDED else _unseen_end(one, one.name in complete)
        for one in seen.sessions
        if one.part != ELSEWHERE
    )
    seen = replace(seen, expected=None, advice=None, outage=None, hold=None, slots=None, servers=(), use=UNKNOWN_USE)
    return replace(seen, sessions=sessions, link=seen.link._replace(lost=True), finished=True)


def _unseen_end(one: SessionStatus, complete: bool) -> SessionStatus:
    end, done = (Outcome.SUCCEEDED, one.planned) if complete else (Outcome.LOST, one.done)
    known = SessionStatus(one.name, one.policy, one.environment, one.unit, one.planned, done, first=one.first)
    return known._replace(life=Life.ENDED, outcome=end, attempt=one.attempt, part=one.part)


def _outage(part: PartStatus) -> Outage | None:
    found, ahead = part.status.outage, part.status.ahead
    sign = found and found.last_sign
    return found and found._replace(host=part.host, last_sign=sign if sign is None else sign - ahead)


def _advice(parts: Sequence[PartStatus], whole: Fact | None) -> Fact | None:
    """What to do: for the whole run if it is the same on all hosts with work left, else on one of them."""
    told = [(part.host, part.status.advice) for part in parts if not part.status.finished or part.status.advice]
    host, first = next((one for one in told if one[1]), ("", None))
    if first is None:
        return None
    if whole and all(one and one.code == whole.code for _, one in told):
        return whole
    return Fact(first.code, **{**first.fields, "on": host})


def _of_hold(going: Sequence[PartStatus]) -> Fact | None:
    """That nothing new starts on one of the hosts."""
    for host, seen in going:
        if seen.hold:
            because = {**seen.hold.because, "sessions_continue": seen.hold.kind == DRAINING}
            return Fact("host_held", run=seen.run, host=host, hold=seen.hold.kind, **because)
    return None


def _is_over(seen: RunStatus) -> bool:
    """Whether nothing comes any more. What a host has ended does not know of a session that is on its way to it."""
    return seen.finished and seen.link.reachable and (seen.hold is not None or not _waits(seen))


def _waits(seen: RunStatus) -> bool:
    return any(one.life is Life.QUEUED for one in seen.proper)


def _sessions(part: PartStatus) -> Iterator[SessionStatus]:
    ahead = part.status.ahead
    for one in part.status.sessions:
        if one.part == ELSEWHERE and (not one.alive or one.life is Life.STARTING):
            continue
        yield one._replace(
            host=part.host,
            started=None if one.started is None else one.started - ahead,
            stalled=None if one.stalled is None else one.stalled - ahead,
            expected=one.expected and Expected(*(moment - ahead for moment in one.expected)),
        )


def _host(part: PartStatus) -> HostStatus:
    seen = part.status
    ends = seen.expected and Expected(*(moment - seen.ahead for moment in seen.expected))
    hold = None if seen.stopped else _hold(seen)
    return HostStatus(part.host, seen.run, seen.link, seen.counts(), seen.use, ends, hold)


def _hold(seen: RunStatus) -> Hold | None:
    held = seen.hold
    return held._replace(since=held.since - seen.ahead) if held and held.since is not None else held


def _ordered(parts: Sequence[PartStatus]) -> Order | None:
    """The newest order, with its host if not all of them have one; else by the logins of all of them."""
    found = [
        given._replace(host=part.host, at=None if given.at is None else given.at - part.status.ahead)
        for part in parts
        if (given := part.status.ordered)
    ]
    newest = max(found, key=lambda one: one.at or 0.0, default=None)
    alike = len(found) == len(parts) and len({one.order for one in found}) == 1
    users = ", ".join(dict.fromkeys(one.user for one in found))
    return newest._replace(host="", user=users) if newest and alike else newest


def on_this_clock(attempts: Sequence[Attempt], ahead: float) -> tuple[Attempt, ...]:
    """The attempts of a host whose clock is so many seconds ahead."""
    return tuple(
        one._replace(
            begin=one.begin and replace(one.begin, started=one.begin.started - ahead),
            end=one.end and one.end._replace(ended=one.end.ended - ahead),
        )
        for one in attempts
    )


def _expected(every: Sequence[RunStatus]) -> Expected | None:
    """The latest of the hosts; None while one of them does not know its own."""
    going = [one for one in every if not one.finished and any(not session.done_with for session in one.proper)]
    if not going or not all(one.expected for one in going):
        return None
    ends = [(moment - one.ahead for moment in one.expected) for one in going if one.expected]
    return Expected(*(max(moments) for moments in zip(*ends, strict=True)))
