"""Gives up hosts of a run on several: what they had not completed runs on the others.

The first host that is left is the arbiter: it writes down the next deal, once. What the lost host had on record by then
counts, and what it computes later does not, whatever the verdicts. If the first host itself is lost, the others first
promise to follow no deal of the former one, and say which one they have; the next deal starts from the newest of these.
"""

from __future__ import annotations

import secrets
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from comborun.api.joint import merged_plan, newest_of, part_on, settle, states
from comborun.errors import HostError, UserError
from comborun.model.work import process_of
from comborun.monitor.classify import classify
from comborun.monitor.observe import History, last_look
from comborun.monitor.status import UP
from comborun.monitor.watch import Clock, last_seen
from comborun.planner.dealing import Room, deal
from comborun.remote import boxes, run_orders
from comborun.remote.boxes import at_once
from comborun.remote.joint_copy import on_record
from comborun.remote.runs import copy_of
from comborun.rules.deal import Deal, Era, begins_era, redealt
from comborun.rules.vocabulary import Life, Outcome
from comborun.text import did_you_mean

if TYPE_CHECKING:
    from comborun.api.named import Target
    from comborun.model.plan import Plan
    from comborun.monitor.status import RunStatus
    from comborun.remote.boxes import BoxState
    from comborun.rules.deal import OnRecord


class Loss(NamedTuple):
    """What giving up hosts would do, or has done."""

    deal: Deal
    """before it"""
    lost: tuple[str, ...]
    arbiter: str
    era: Era
    """later than that of the deal if the first host is lost: the others have promised it"""
    moved: Mapping[str, str]
    """process -> host that gets it"""
    records: Mapping[str, OnRecord]
    """lost host -> what counts of it, by session"""
    uncopied: tuple[str, ...] = ()
    """lost hosts of which this machine has no records"""
    more: Mapping[str, int | None] = MappingProxyType({})
    """lost host -> episodes beside those that its last look from here has shown; None: not known"""
    away: tuple[str, ...] = ()
    """hosts that did not answer"""

    @property
    def episodes(self) -> int:
        return sum(_size(spans) for found in self.records.values() for spans in found.values())

    @property
    def again(self) -> int | None:
        """Episodes that were done and run again, since this machine has no copy of them; None if that is not known."""
        known = [one for one in self.more.values() if one is not None]
        return sum(known) if len(known) == len(self.more) else None


def _size(spans: Sequence[Sequence[int]]) -> int:
    return sum(stop - start for start, stop in spans)


def planned_loss(target: Target, lost: Sequence[str], *, stop: bool, ask: Callable[[str], bool] | None) -> Loss:
    """Look at all hosts, and say what would move. `ask` is asked before the first host is given up; without it nothing
    changes on any host, and nothing can be done with the answer.

    `stop`: hosts that still answer are stopped first. Raises UserError if they answer otherwise; then a loss that
    somebody has begun, and that was cut off, is called off.
    """
    hosts = [one.transport.host for one in target.boxes]
    for host in lost:
        if host not in hosts:
            raise UserError(f"{target.run} does not run on {host}", did_you_mean(host, hosts), code="unknown_host")
    found = states(target, lost)
    away = tuple(host for host, one in found.failed.items() if isinstance(one, HostError))
    _check_away(target, lost, found.done, stop=stop, changes=bool(ask))
    there = {host: one for host, one in found.done.items() if host not in lost}
    if not there:
        raise UserError("no other host of this run answers", "nothing can move: give the command again later")
    newest, _ = newest_of(found.done)
    if ask:
        settle(target, there)
    era = Era(newest.number[0], newest.maker)
    moving = any(one.moving for one in there.values())
    if ask and begins_era(newest, lost, [one.era for one in there.values()], moving=moving):
        newest, era = _new_era(target, newest, lost, there, ask)
    elif newest.arbiter not in there and newest.arbiter not in lost:
        raise UserError(
            f"{newest.arbiter}, the first host of this run, does not answer: it has to write down what moves",
            f"give the command again later, or give up both: combo hosts lost {' '.join((newest.arbiter, *lost))}",
            code="arbiter_away",
        )
    if {*newest.left} <= {*lost}:
        raise UserError("no host would be left", "combo stop ends the run")
    return _loss(target, newest, era, lost, [*there], away)


def _loss(
    target: Target, newest: Deal, era: Era, lost: Sequence[str], there: Sequence[str], away: tuple[str, ...]
) -> Loss:
    """What the lost hosts have on record, and who of the others gets the rest."""
    lost = [host for host in lost if host not in newest.lost]  # of the others the deal says already what counts
    left = [host for host in newest.left if host not in lost]
    sources = at_once({host: part_on(target, host).source for host in there}).all()
    plan, owners = merged_plan({host: one.view.plan for host, one in sources.items()}, newest)
    records = {host: _records(part_on(target, host), plan, away=host in away) for host in lost}
    complete = {name for one in records.values() for name in one.complete}
    rooms = {
        host: _room(classify(one.view, one.fold(History())), plan) for host, one in sources.items() if host in left
    }
    names = [name for name, host in newest.owners.items() if host in lost and name not in complete]
    moved = redealt(newest, lost, complete, deal(names, rooms) if rooms else {})
    taken = {one.name for one in plan.sessions if process_of(one) in moved}
    kept = {
        host: {name: spans for name, spans in one.spans.items() if name in taken and owners.get(name) == host}
        for host, one in records.items()
    }
    uncopied = tuple(host for host, one in records.items() if not one.copied)
    more = {host: 0 if one.current else _more(part_on(target, host), kept[host]) for host, one in records.items()}
    return Loss(newest, (*records,), left[0], era, moved, kept, uncopied, more, away)


def _more(part: Target, kept: OnRecord) -> int | None:
    look = last_look(part.transport.host, part.run, part.directory)
    if look is None:
        return None
    shown = [one for one in last_seen(look, UP, Clock()).sessions if one.name in kept and one.unit == "episode"]
    return sum(max(0, (one.done or 0) - _size(kept[one.name])) for one in shown)


def _check_away(
    target: Target, lost: Sequence[str], there: Mapping[str, BoxState], *, stop: bool, changes: bool
) -> None:
    """Stop those that answer, if that was asked for. Raises UserError if one answers otherwise."""
    for host in lost:
        if host not in there or host in there[host].deal.lost:
            continue
        if not stop:
            off = ": what was begun to give it up is called off" if changes and call_off(target, there) else ""
            raise UserError(
                f"{host} answers, so it is not lost{off}",
                f"`combo stop {target.run} --host {host}` stops its sessions; to give it up all the same: --stop",
                code="host_answers",
            )
        if changes:
            run_orders.stop(*part_on(target, host).place)


def call_off(target: Target, there: Mapping[str, BoxState]) -> bool:
    """End the era that somebody has begun, without a loss. False if nobody has begun one. Raises UserError."""
    newest, _ = newest_of(there)
    if all(one.era.number <= newest.number[0] for one in there.values()):
        return False
    there = {host: one for host, one in there.items() if host not in newest.lost}
    newest, era = _new_era(target, newest, (), there, lambda _: False)
    give_up(target, Loss(newest, (), newest.arbiter, era, {}, {}))
    return True


def _new_era(
    target: Target, newest: Deal, lost: Sequence[str], there: Mapping[str, BoxState], ask: Callable[[str], bool]
) -> tuple[Deal, Era]:
    """The newest deal that any of the others has, once all of them have promised to follow no other of that era."""
    silent = [host for host in newest.left if host not in lost and host not in there]
    if silent:
        raise UserError(
            f"{', '.join(silent)} may have followed {newest.arbiter}, the first host, or have taken sessions of others:"
            " all hosts that are left must answer",
            f"give the command again later, or give up these, too: combo hosts lost {' '.join((*lost, *silent))}",
            code="arbiter_away",
        )
    question = f"{newest.arbiter} is the first host of this run, which decides for all. Give it up?"
    if newest.arbiter in lost and not ask(question):
        raise UserError("nothing was changed", "--yes answers for a script")
    number = max(newest.number[0], *(one.era.number for one in there.values())) + 1
    era = Era(number, secrets.token_hex(4))
    promised = at_once({host: partial(boxes.fence, *part_on(target, host).place, era, lost) for host in there}).all()
    return newest_of(promised)[0], era


class _Records(NamedTuple):
    complete: frozenset[str]
    """processes with nothing left to do"""
    spans: OnRecord
    copied: bool
    current: bool = False
    """whether the copy is of now"""


def _records(part: Target, plan: Plan, *, away: bool) -> _Records:
    """What a host had on record: what it still gives, unless it is away, else what this machine has copied."""
    from comborun.reporter.collect import collect_run

    names = [one.name for one in plan.sessions]
    current = False
    if not away:
        with suppress(HostError):
            part.bring()
            current = True
    folder = copy_of(part.transport.host, part.run, part.directory)
    try:
        collected = collect_run(folder)
    except UserError:
        return _Records(frozenset(), on_record([], names), copied=False)
    ended = {
        one.session.name
        for one in collected.sessions
        if one.attempts and (end := one.attempts[-1].end) and end.outcome is Outcome.SUCCEEDED
    }
    incomplete = {process_of(one.session) for one in collected.sessions if one.session.name not in ended}
    complete = {process_of(one.session) for one in collected.sessions} - incomplete
    spans = on_record([(one.session, one.episode) for one in collected.records], names)
    return _Records(frozenset(complete), spans, copied=True, current=current)


def _room(seen: RunStatus, plan: Plan) -> Room:
    """What a host can hold beside what it still has to do."""
    lengths = {process_of(one): float(one.expected_s or one.count or 1) for one in plan.sessions}
    known = {one.name: one.expected_s for one in plan.sessions}
    busy = [float(known.get(one.name) or one.planned) for one in seen.proper if one.life is not Life.ENDED]
    return Room(seen.slots or plan.limits.parallel, lengths, tuple(busy))


def give_up(target: Target, loss: Loss) -> Deal:
    """Write it down at the arbiter, and hand it to the other hosts. Returns the deal that is in force then."""
    made = loss.deal.renewed(loss.moved, loss.records, loss.era)
    state = boxes.lose(*part_on(target, loss.arbiter).place, made)
    if not state.made and not (loss.lost and {*loss.lost} <= {*state.deal.lost}):
        raise UserError(
            "another command has just changed which hosts this run has", "give the command again", code="overtaken"
        )
    settle(target, states(target, away=loss.away).done)
    return state.deal
