"""A run on several hosts as one: how all of its parts are now, what brings them up to date, and orders to all."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from threading import Lock
from typing import TYPE_CHECKING, NamedTuple, TypeVar

from comborun.answers import runs
from comborun.errors import HostError, UserError
from comborun.model.work import process_of
from comborun.monitor.addressing import sessions_of
from comborun.monitor.classify import classify
from comborun.monitor.joint import PartStatus, joined, on_this_clock
from comborun.monitor.observe import History, RunView, last_look
from comborun.monitor.status import UP, Link
from comborun.monitor.watch import Clock, Look, Source, last_seen
from comborun.remote import boxes, program
from comborun.remote.boxes import BoxState, at_once
from comborun.remote.joint_copy import Part, joint_folder, newest_deal
from comborun.remote.runs import copy_of
from comborun.rules.deal import Deal, Stops
from comborun.text import several

if TYPE_CHECKING:
    from pathlib import Path

    from comborun.api.named import Target
    from comborun.model.plan import Plan
    from comborun.monitor.status import RunStatus
    from comborun.monitor.watch import Watched
    from comborun.remote.fetch import FetchOptions
    from comborun.remote.transport import Transport

T = TypeVar("T")


def newest_of(states: Mapping[str, BoxState]) -> tuple[Deal, Stops]:
    """The deal with the highest number, and all stops that are known."""
    stops = Stops()
    for state in states.values():
        stops = stops.joined(state.stops)
    return max((state.deal for state in states.values()), key=lambda one: one.rank), stops


def all_done(found: Mapping[str, T | UserError]) -> dict[str, T]:
    """The results. Raises the first error, with its host; the same command does the rest."""
    done = dict[str, T]()
    for host, one in found.items():
        if isinstance(one, UserError):
            raise type(one)(f"{host}: {one.message}", f"{one.hint}\n  the same command again does the rest", one.code)
        done[host] = one
    return done


# How it is now


class _Answer(NamedTuple):
    """An answer of one host."""

    state: BoxState
    source: Source
    history: History


class JointSource:
    """Looks at all parts of a run on several hosts, at once. A host that is away is shown as it was last seen.

    Watchers, and so the page, look at it as at a run on one host.
    """

    def __init__(self, target: Target, clock: Clock | None = None) -> None:
        self.target = target
        self._clock = clock or Clock()
        self._seen: dict[str, tuple[_Answer, float]] = {}
        """the last answer of each host, and when it came"""
        self._deal: Deal | None = None
        self._last: Look | None = None
        self._copying = Lock()

    def status(self) -> RunStatus:
        """Look once. Raises HostError if nothing is known of any host."""
        found = at_once({one.transport.host: partial(self._ask, one) for one in self.target.boxes})
        now = self._clock.elapsed()
        self._seen |= {host: (one, now) for host, one in found.items() if isinstance(one, _Answer)}
        states = {host: one if isinstance(one, UserError) else one.state for host, one in found.items()}
        self._deal = settle(self.target, states) or self._deal or _remembered_deal(self.target)
        if self._deal is None:
            raise next(one for one in found.values() if isinstance(one, UserError))
        parts = dict[str, Look]()
        for one in self.target.boxes:
            host = one.transport.host
            if part := self._part(one, found[host], self._deal.at(host)):
                parts[host] = part
        first, plans = next(iter(parts.values())), {host: one.view.plan for host, one in parts.items()}
        plan, _ = merged_plan(plans, self._deal)
        order = {session.name: place for place, session in enumerate(plan.sessions)}
        status = joined([PartStatus(host, one.status) for host, one in parts.items()], self._deal, order)
        view = first.view._replace(id=self.target.run, plan=plan)
        attempts = {
            one.name: on_this_clock(parts[one.host].history.of(one.name), parts[one.host].status.ahead)
            for one in status.sessions
        }
        history = History(first.history.snapshot, attempts)
        self._last = Look(0, view, history, replace(status, run=self.target.run), parts=parts)
        return self._last.status

    @property
    def deal(self) -> Deal | None:
        return self._deal

    @property
    def poll(self) -> float:
        return next((look.source.view.plan.poll for look, _ in self._seen.values()), 60.0)

    # For a watcher

    @property
    def transport(self) -> Transport:
        return self.target.transport

    @property
    def view(self) -> RunView:
        return self._known.view

    @property
    def folder(self) -> Path:
        return joint_folder(self.target.run)

    def records(self, options: FetchOptions | None = None) -> Path:
        with self._copying:
            return self.target.bring(options)[0]

    def by_host(self) -> dict[str, Source]:
        parts = self._known.parts
        found = {one.transport.host: one for one in self.target.boxes}
        return {host: Source(found[host].transport, part.view) for host, part in parts.items()}

    def at(self, session: str) -> Source:
        every = self.by_host()
        host = next((one.host for one in self._known.status.sessions if one.name == session), "")
        return every.get(host) or next(iter(every.values()))

    def end(self) -> None:
        return None

    def fold(self, history: History) -> History:  # noqa: ARG002 - it keeps its own
        """Raises HostError while no host answers."""
        seen = self.status()
        if not seen.link.reachable:
            raise HostError(seen.link.complaint or "no host answers")
        return self._known.history

    def renewed(self, history: History) -> JointSource:  # noqa: ARG002 - it keeps its own
        return self

    def look(self, number: int, history: History, link: Link = UP) -> Look:  # noqa: ARG002 - it keeps its own
        return self._known._replace(number=number)

    @property
    def _known(self) -> Look:
        if self._last is None:
            self.status()
        assert self._last
        return self._last

    def _ask(self, one: Target) -> _Answer:
        before = self._seen.get(one.transport.host)
        state = boxes.look(one.transport, one.directory)
        source = before[0].source if before else one.source()
        history = source.fold(before[0].history if before else History())
        return _Answer(state, source.renewed(history), history)

    def _part(self, one: Target, found: _Answer | UserError, deal: Deal) -> Look | None:
        """What is known of one host; None if nothing is."""
        seen = self._seen.get(one.transport.host)
        if not isinstance(found, UserError):
            return _part_look(found.source.view, deal, found.history)
        link = Link(reachable=False, since=self._clock.now(), failures=1, complaint=found.headline)
        if seen:
            link = link._replace(last_seen=self._clock.elapsed() - seen[1])
            return _part_look(seen[0].source.view, deal, seen[0].history, link)
        kept = last_look(one.transport.host, one.run, one.directory)
        if kept:
            view = _dealt(kept.view, deal)
            return Look(0, view, History(), last_seen(kept._replace(view=view), found.headline, self._clock))
        plans = [look.source.view.plan for look, _ in self._seen.values()]
        if not plans:
            return None
        part = _part_look(RunView(one.run, one.transport.host, one.directory, plans[0]), deal, History())
        return part._replace(status=replace(part.status, link=link))


def watched(target: Target) -> Watched:
    """What a watcher looks at: the run, or all parts of one on several hosts."""
    return JointSource(target) if target.boxes else target.source()


def _part_look(view: RunView, deal: Deal, history: History, link: Link = UP) -> Look:
    view = _dealt(view, deal)
    return Look(0, view, history, classify(view, history, link=link))


def _dealt(view: RunView, deal: Deal) -> RunView:
    return view._replace(plan=view.plan.whole.without(lambda one: deal.runs_here(process_of(one))))


def _remembered_deal(target: Target) -> Deal | None:
    copies = [(one, copy_of(one.transport.host, one.run, one.directory)) for one in target.boxes]
    return newest_deal([Part(one.transport.host, one.run, (copy, ())) for one, copy in copies])


# Orders to all hosts


def states(target: Target) -> dict[str, BoxState | UserError]:
    """What each host answers, or why it does not."""
    return at_once({one.transport.host: partial(boxes.look, one.transport, one.directory) for one in target.boxes})


def part_on(target: Target, host: str) -> Target:
    return next(one for one in target.boxes if one.transport.host == host)


def settle(target: Target, found: Mapping[str, BoxState | UserError]) -> Deal | None:
    """Bring hosts up to date that were away: the newest deal, a stop that they missed, an end if they were given up.

    Returns the newest deal that is known; None if no host answers.
    """
    there = {host: one for host, one in found.items() if isinstance(one, BoxState)}
    if not there:
        return None
    newest, stops = newest_of(there)
    acts = {
        host: partial(_bring_up, part_on(target, host), state, newest.at(host), stops) for host, state in there.items()
    }
    for host, said in at_once(acts).items():
        if said:
            target.listener.note(f"{host}: {said.message if isinstance(said, UserError) else said}")
    return newest


def _bring_up(part: Target, state: BoxState, newest: Deal, stops: Stops) -> str:
    """Returns what was done."""
    transport, directory, host = part.transport, part.directory, part.transport.host
    if state.deal.rank < newest.rank or state.stops.data != stops.data:
        state = boxes.take(transport, directory, newest, stops)
    if (host in newest.lost or stops.in_force) and (state.lives or not (state.stopped or state.done)):
        program.stop(transport, directory)
        return "given up, so what still ran there is stopped" if host in newest.lost else "stopped, as the others"
    if state.gained and not state.lives and not stops.in_force and host not in newest.lost:
        return _restarted(part, state)
    return ""


def _restarted(part: Target, state: BoxState) -> str:
    plan = part.source().view.plan
    program.restart_dispatcher(part.transport, part.directory, plan)
    return f"{several(len(state.gained), 'session')} of other hosts run there now"


def by_host(
    target: Target, words: Sequence[str], tell: Callable[[str], object], *, guess: bool = False
) -> list[tuple[Target, tuple[str, ...]]]:
    """The parts on which the sessions run that the words name, each with its sessions. Raises UserError."""
    sources = at_once({one.transport.host: one.source for one in target.boxes})
    there = {host: one for host, one in sources.items() if isinstance(one, Source)}
    deal = settle(target, states(target))
    if deal is None or not there:
        raise next(one for one in sources.values() if isinstance(one, UserError))
    plan, owners = merged_plan({host: one.view.plan for host, one in there.items()}, deal)
    first = next(iter(there.values()))
    names = sessions_of(first._replace(view=first.view._replace(plan=plan)), words, tell, guess=guess)
    found: dict[str, list[str]] = {}
    for name in names:
        found.setdefault(owners.get(name, deal.arbiter), []).append(name)
    return [(part_on(target, host), tuple(own)) for host, own in found.items()]


def merged_plan(plans: Mapping[str, Plan], deal: Deal) -> tuple[Plan, dict[str, str]]:
    """The plan of all hosts, with what `resume` has added on some, and the host of each session."""
    whole, owners = next(iter(plans.values())).whole, dict[str, str]()
    for host, plan in plans.items():
        known = {one.name for one in whole.sessions}
        whole = replace(
            whole, sessions=(*whole.sessions, *(one for one in plan.whole.sessions if one.name not in known))
        )
        for one in plan.sessions:
            owners.setdefault(one.name, deal.of.get(process_of(one), host))
    return whole, owners


def going(target: Target) -> list[Target]:
    """The parts of hosts that were not given up."""
    deal = settle(target, states(target))
    return [one for one in target.boxes if deal is None or one.transport.host not in deal.lost]


def on_each(
    target: Target, words: Sequence[str], act: Callable[[Target, tuple[str, ...]], runs.Steered]
) -> runs.Steered:
    """The answer to an order; of a run on several hosts, that of all of them, or of those that run the named sessions.

    A host that is away is named: the order does not reach it later.
    """
    if not target.boxes:
        return act(target, tuple(words))
    parts = by_host(target, words, target.listener.note) if words else [(one, ()) for one in going(target)]
    found = at_once({one.transport.host: partial(act, one, own) for one, own in parts})
    done = {host: one for host, one in found.items() if not isinstance(one, UserError)}
    failed = {host: one for host, one in found.items() if isinstance(one, UserError)}
    if not done:
        raise next(iter(failed.values()))
    notes = dict.fromkeys(one.note for one in done.values() if one.note)
    return replace(
        next(iter(done.values())),
        run=target.run,
        done=not failed and all(one.done for one in done.values()),
        lines=(
            *(f"{host}: {line}" for host, one in done.items() for line in one.lines),
            *(f"! {host}: {one.headline}; give the same command again for it" for host, one in failed.items()),
        ),
        note="; ".join(notes) or None,
    )


def stop_all(target: Target) -> runs.Stopped:
    """Stop the run on all hosts: first the number of the stop, then the sessions. Hosts that are away follow later."""
    found = states(target)
    there = {host: one for host, one in found.items() if isinstance(one, BoxState)}
    number = 1 + max((max(one.stops.stop, one.stops.resumed) for one in there.values()), default=0)
    noted = at_once({host: partial(_note, part_on(target, host), number) for host in there})
    ended = at_once({host: partial(_end, part_on(target, host)) for host, one in noted.items() if _is_done(one)})
    replies = {host: one for host, one in ended.items() if isinstance(one, program.Reply)}
    failed = {host: one for host, one in {**found, **noted, **ended}.items() if isinstance(one, UserError)}
    if not replies:
        raise next(iter(failed.values()))
    return runs.Stopped(
        target.run,
        tuple(name for reply in replies.values() for name in reply.facts("session")),
        not failed and all(reply.done for reply in replies.values()),
        (
            *(f"{host}: {line}" for host, reply in replies.items() for line in reply.texts),
            *(
                f"! {host}: {one.headline}; it is stopped by the next look that reaches it"
                for host, one in failed.items()
            ),
        ),
    )


def _is_done(one: object) -> bool:
    return not isinstance(one, UserError)


def _note(part: Target, number: int) -> BoxState:
    return boxes.note_stop(part.transport, part.directory, number)


def _end(part: Target) -> program.Reply:
    return program.stop(part.transport, part.directory)


def lift_stops(target: Target) -> Deal:
    """Let starts through again, on all hosts that answer: those that are away follow at their next look."""
    found = states(target)
    there = {host: one for host, one in found.items() if isinstance(one, BoxState)}
    if not there:
        raise next(one for one in found.values() if isinstance(one, UserError))
    newest, stops = newest_of(there)
    lifted = stops.joined(Stops(0, stops.stop))
    all_done(at_once({host: partial(_take, part_on(target, host), newest.at(host), lifted) for host in there}))
    return newest


def _take(part: Target, given: Deal, stops: Stops) -> BoxState:
    return boxes.take(part.transport, part.directory, given, stops)
