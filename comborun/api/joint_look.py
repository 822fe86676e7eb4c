"""A run on several hosts as one that can be watched: each look is at all of its parts at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import replace
from functools import partial
from threading import Condition, Lock, Thread
from typing import TYPE_CHECKING, Generic, NamedTuple, TypeVar

from comborun.api.joint import merged_plan, newest_of, settle
from comborun.api.listener import Listener
from comborun.api.moving import SOON_S, Moved, Mover, may_go_on, useful
from comborun.errors import HostError, RunGoneError, UserError
from comborun.model.work import process_of
from comborun.monitor.classify import classify
from comborun.monitor.joint import PartStatus, as_last_seen, given_up, joined, on_this_clock
from comborun.monitor.observe import History, RunView, last_look
from comborun.monitor.status import UP, Link
from comborun.monitor.watch import Clock, Look, Source, last_seen, missed
from comborun.remote import boxes
from comborun.remote.boxes import BoxState, at_once
from comborun.remote.joint_copy import Part, joint_folder, newest_deal
from comborun.remote.runs import copy_of
from comborun.rules.deal import Deal
from comborun.rules.facts import Fact

if TYPE_CHECKING:
    from pathlib import Path

    from comborun.api.named import Target
    from comborun.monitor.status import RunStatus
    from comborun.monitor.watch import Watched
    from comborun.remote.fetch import FetchOptions
    from comborun.remote.transport import Transport

LOGIN_S = 3.0
"""seconds for a login over a slow link; a command that looks once would else never see such a host"""
PATIENCE_S = 2.0
"""seconds that hosts have for their answers once one of them has answered"""
_SLOWER = 1.5
"""a host that once took longer has so many times as long as then"""
_STEP_S = 0.1
"""seconds between two questions whether the user still types a password"""
T = TypeVar("T")


class _Answer(NamedTuple):
    """An answer of one host."""

    state: BoxState
    source: Source
    history: History


class JointSource:
    """Looks at all parts of a run on several hosts, at once. A host that is away is shown as it was last seen.

    Watchers, and so the page, look at it as at a run on one host. With `moved`, which gets each move, sessions move
    after each look of a watcher.
    """

    def __init__(
        self, target: Target, clock: Clock | None = None, moved: Callable[[Moved], object] | None = None
    ) -> None:
        self.target = target._replace(listener=_Once(target.listener))
        self._clock = clock or Clock()
        parts = {one.transport.host: one for one in target.boxes}
        self._mover = Mover(parts, moved, self.target.listener.note) if moved else None
        self._states: dict[str, BoxState] = {}
        """of the hosts that have answered the last look"""
        self._seen: dict[str, tuple[_Answer, float]] = {}
        """the last answer of each host, and when it came"""
        self._links: dict[str, Link] = {}
        """of the hosts that have not answered the last look"""
        asks = {one.transport.host: partial(self._ask, one) for one in target.boxes}
        self._looks = LateLooks(asks, self._clock, self._asking, gone=_given_up)
        self._deal: Deal | None = None
        self._last: Look | None = None
        self._copying = Lock()

    def status(self, more: float = 0.0) -> RunStatus:
        """Look once. Raises HostError if nothing is known of any host. `more`: seconds that a late host may take."""
        for host, late in self._looks.begin().items():
            self._take(host, late)
        found = self._looks.end(more)
        for host, answered in found.items():
            self._take(host, answered)
        self._states = {host: one.state for host, one in found.items() if isinstance(one, _Answer)}
        self._tell_refusals(found.values())
        changed = set[str]()
        self._deal = settle(self.target, self._states, changed) or self._deal or _remembered_deal(self.target)
        found |= self._again(changed)
        if self._deal is None:
            raise next(one for one in found.values() if isinstance(one, UserError))
        parts = dict[str, Look]()
        for one in self.target.boxes:
            host = one.transport.host
            if part := self._part(one, found[host], self._deal.at(host)):
                parts[host] = _as_it_is(part, self._deal)
        first, plans = next(iter(parts.values())), {host: one.view.plan for host, one in parts.items()}
        plan, _ = merged_plan(plans, self._deal)
        order = {session.name: place for place, session in enumerate(plan.sessions)}
        status = joined([PartStatus(host, one.status) for host, one in parts.items()], self._deal, order)
        if status.finished and status.hold and may_go_on(parts, self._states, self._deal):
            status = replace(status, finished=False)
        view = first.view._replace(id=self.target.run, plan=plan)
        attempts = {
            one.name: on_this_clock(parts[one.host].history.of(one.name), parts[one.host].status.ahead)
            for one in status.sessions
        }
        history = History(first.history.snapshot, attempts)
        status = replace(status, run=self.target.run)
        unmoved = half_lost(self._states, self._deal, status.run)
        if not unmoved and self._mover is None and (wanted := useful(parts, self._states, self._deal)):
            unmoved = Fact("sessions_would_move", sessions=len(wanted), hosts=sorted({one.taker for one in wanted}))
        if not status.finished:
            status = replace(status, would_move=unmoved)
        self._last = Look(0, view, history, status, parts=parts)
        return status

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
        """Look, and let sessions move. Raises HostError while no host answers."""
        seen = self.status()
        if not seen.link.reachable:
            kind = RunGoneError if seen.link.gone else HostError
            raise kind(seen.link.complaint or "no host answers")
        if self._mover and self._deal and not seen.finished:
            self._mover(self._known.parts, self._states, self._deal, SOON_S)
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

    def _tell_refusals(self, found: Iterable[_Answer | UserError]) -> None:
        """Say in whole why a host that answers can't take part: a table has no room for what mends that."""
        for one in found:
            if isinstance(one, UserError) and not isinstance(one, HostError):
                self.target.listener.note(one.message)

    def _asking(self) -> bool:
        return any(getattr(one.transport, "asking", False) for one in self.target.boxes)

    def _take(self, host: str, found: _Answer | UserError) -> None:
        before = self._links.pop(host, UP)
        if isinstance(found, _Answer):
            self._seen[host] = found, self._clock.elapsed()
        elif isinstance(found, LateError) and not before.reachable:
            self._links[host] = before  # why it did not answer before
        else:
            self._links[host] = missed(before, found, self._clock)._replace(late=isinstance(found, LateError))

    def _again(self, hosts: Collection[str]) -> dict[str, _Answer]:
        """The answers of hosts that have just been stopped or started: what they answered was before that."""
        asks = {one.transport.host: partial(self._ask, one) for one in self.target.boxes if one.transport.host in hosts}
        found = at_once(asks).done
        for host, answer in found.items():
            self._take(host, answer)
            self._states[host] = answer.state
        return found

    def _ask(self, one: Target) -> _Answer:
        before = self._seen.get(one.transport.host)
        state = boxes.look(*one.place)
        source = before[0].source if before else _first(one)
        history = source.fold(before[0].history if before else History())
        return _Answer(state, source.renewed(history), history)

    def _part(self, one: Target, found: _Answer | UserError, deal: Deal) -> Look | None:
        """What is known of one host; None if nothing is."""
        seen = self._seen.get(one.transport.host)
        if not isinstance(found, UserError):
            return _part_look(found.source.view, deal, found.history)
        link = self._links[one.transport.host]
        if seen:
            link = link._replace(last_seen=self._clock.elapsed() - seen[1])
            return _part_look(seen[0].source.view, deal, seen[0].history, link)
        kept = last_look(one.transport.host, one.run, one.directory)
        if kept:
            view = _dealt(kept.view, deal)
            return Look(0, view, History(), last_seen(kept._replace(view=view), link, self._clock))
        plans = [look.source.view.plan for look, _ in self._seen.values()]
        if not plans:
            return None
        part = _part_look(RunView(one.run, one.transport.host, one.directory, plans[0]), deal, History())
        return part._replace(status=replace(part.status, link=link))


def _first(one: Target) -> Source:
    """With the plan of the last look from this machine, if there was one: looks tell whether there is a newer plan."""
    kept = last_look(one.transport.host, one.run, one.directory)
    return Source(one.transport, kept.view) if kept else one.source()


def watched(target: Target, *, moves: bool = False) -> Watched:
    """What a watcher looks at: the run, or all parts of one on several hosts, whose sessions may move then."""
    if not target.boxes:
        return target.source()
    return JointSource(target, moved=(lambda one: target.listener.note(said(one))) if moves else None)


def said(one: Moved) -> str:
    return f"{one.session} goes from {one.giver} to {one.taker}, where it begins earlier"


def _given_up(found: Iterable[_Answer]) -> Collection[str]:
    states = {str(place): one.state for place, one in enumerate(found)}
    return newest_of(states)[0].lost if states else ()


class _Once(Listener):
    """Hands each note on once: looks come again and again."""

    def __init__(self, listener: Listener) -> None:
        self._listener = listener
        self._noted = set[str]()
        self.program, self.forks = listener.program, listener.forks

    def note(self, sentence: str) -> None:
        if sentence not in self._noted:
            self._noted.add(sentence)
            self._listener.note(sentence)


def half_lost(states: Mapping[str, BoxState], deal: Deal, run: str) -> Fact | None:
    """That somebody has begun to give up hosts, and was cut off after a promise; None if nobody has."""
    begun = [one for one in states.values() if one.era.number > deal.number[0]]
    if not begun:
        return None
    hosts = max(begun, key=lambda one: one.era.number).loses
    return Fact("loss_not_ended", run=run, hosts=[*hosts], answer=[one for one in hosts if one in states])


def _part_look(view: RunView, deal: Deal, history: History, link: Link = UP) -> Look:
    view = _dealt(view, deal)
    return Look(0, view, history, classify(view, history, link=link))


def _as_it_is(part: Look, deal: Deal) -> Look:
    """Without what a host that is away, or was given up, can't show."""
    if part.view.host not in deal.lost:
        return part._replace(status=as_last_seen(part.status))
    complete = {one.name for one in part.view.plan.sessions if process_of(one) in deal.of}
    return part._replace(status=given_up(part.status, complete))


def _dealt(view: RunView, deal: Deal) -> RunView:
    return view._replace(plan=view.plan.whole.without(lambda one: deal.runs_here(process_of(one))))


def _remembered_deal(target: Target) -> Deal | None:
    """The newest deal in the copies of the records here; without copies, who had what at the last looks from here."""
    copies = [(one, copy_of(one.transport.host, one.run, one.directory)) for one in target.boxes]
    if found := newest_deal([Part(one.transport.host, one.run, (copy, ())) for one, copy in copies]):
        return found
    looks = {one.transport.host: last_look(one.transport.host, one.run, one.directory) for one in target.boxes}
    of = {process_of(own): host for host, look in looks.items() if look for own in look.view.plan.current}
    whole = {"grid_run": target.run, "box": next(iter(looks)), "number": [0, 0], "boxes": [*looks], "of": of}
    return Deal(whole) if of else None


# Rounds of looks, in which no host waits long for another


class LateError(HostError):
    """A host has not answered yet. The look at it goes on."""


class LateLooks(Generic[T]):
    """Rounds of looks at hosts. A look that is late goes on beyond its round; another round takes what it brings."""

    def __init__(
        self,
        asks: Mapping[str, Callable[[], T]],
        clock: Clock,
        asking: Callable[[], bool],
        patience: float = PATIENCE_S,
        gone: Callable[[Iterable[T]], Collection[str]] = lambda _: (),
    ) -> None:
        """`asking`: whether the user is asked something for a login, which takes its time. `gone`: the hosts that
        were given up, by the answers of others: they get no more than their patience.
        """
        self._asks, self._clock, self._asking = asks, clock, asking
        self._patience = dict.fromkeys(asks, patience)
        self._gone = gone
        self._news = Condition()
        self._begun: dict[str, float] = {}
        """the hosts with a look that goes on, or whose result nobody has taken"""
        self._found: dict[str, T | Exception] = {}

    def begin(self) -> dict[str, T | UserError]:
        """Begin a round. Returns what came late, after the round before."""
        late = self._taken()
        for host in self._asks:
            if host not in self._begun:
                self._begun[host] = self._clock.elapsed()
                Thread(target=self._look, args=(host,), name=f"look at {host}", daemon=True).start()
            else:
                self._begun[host] = float("-inf")  # it had its time in the round before
        return late

    def end(self, more: float = 0.0) -> dict[str, T | UserError]:
        """The answer of each host, or why there is none; LateError for one that takes so much longer than the first.

        `more`: seconds beyond its patience, where nobody looks again and a login has to come first.
        """
        first: float | None = None
        with self._news:
            while True:
                now = self._clock.elapsed()
                if first is None and any(not isinstance(one, Exception) for one in self._found.values()):
                    first = now
                gone = self._gone([one for one in self._found.values() if not isinstance(one, Exception)])
                awaited = [host for host in self._begun if host not in self._found]
                left = [self._left(host, now if host in gone else now - more, first) for host in awaited]
                if max(left, default=0.0) <= 0 and not self._asking():
                    break
                self._news.wait(_STEP_S if first is not None else None)
        found = self._taken()
        return {host: found.get(host) or LateError("no answer yet") for host in self._asks}

    def _left(self, host: str, now: float, first: float | None) -> float:
        if self._begun[host] == float("-inf"):
            return 0.0
        return 1.0 if first is None else first + self._patience[host] - now

    def _taken(self) -> dict[str, T | UserError]:
        with self._news:
            found, self._found = self._found, {}
        taken = dict[str, T | UserError]()
        for host, one in found.items():
            del self._begun[host]
            if isinstance(one, Exception) and not isinstance(one, UserError):
                raise one
            taken[host] = one
        return taken

    def _look(self, host: str) -> None:
        begun = self._clock.elapsed()
        found: T | Exception
        try:
            found = self._asks[host]()
            took = _SLOWER * (self._clock.elapsed() - begun)
            self._patience[host] = max(self._patience[host], took)
        except Exception as error:  # noqa: BLE001  whoever takes it raises what is no answer of a host
            found = error
        with self._news:
            self._found[host] = found
            self._news.notify_all()
