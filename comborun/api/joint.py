"""A run on several hosts as one: what brings its parts up to date, and orders to all of them."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from comborun.answers import orders
from comborun.api.moving import complete, restarted, unfinished
from comborun.errors import HostError, UserError
from comborun.model.work import process_of
from comborun.monitor.addressing import sessions_of
from comborun.remote import boxes, run_orders
from comborun.remote.boxes import Answered, BoxState, at_once
from comborun.rules.deal import Deal, Stops, newest_known
from comborun.rules.host import Denial

if TYPE_CHECKING:
    from comborun.api.named import Target
    from comborun.model.plan import Plan


def newest_of(states: Mapping[str, BoxState]) -> tuple[Deal, Stops]:
    """The deal with the highest number, with the moves that any of them knows, and all stops that are known."""
    stops = Stops()
    for state in states.values():
        stops = stops.joined(state.stops)
    return newest_known([state.deal for state in states.values()]), stops


# Orders to all hosts


def states(target: Target, hurried: Collection[str] = (), away: Collection[str] = ()) -> Answered[BoxState]:
    """What each host answers, or why it does not. Of hosts that may be gone, `hurried`, not much time is spent on an
    answer; those that are known to be `away` are not asked.
    """
    parts = [one for one in target.boxes if one.transport.host not in away]

    def asking() -> bool:
        return any(getattr(one.transport, "asking", False) for one in parts)

    return at_once({one.transport.host: partial(boxes.look, *one.place) for one in parts}, hurried, asking)


def part_on(target: Target, host: str) -> Target:
    """Raises UserError for a host of the run that this machine does not know: another one has launched it there."""
    for one in target.boxes:
        if one.transport.host == host:
            return one
    raise UserError(
        f"{host} has a part of {target.run}, and this machine does not know where",
        f"`combo launch` of the same grid with {host} tells it, and starts nothing twice",
        code="unknown_part",
    )


def settle(target: Target, there: Mapping[str, BoxState], changed: set[str] | None = None) -> Deal | None:
    """Bring hosts up to date that were away: the newest deal, a stop that they missed, an end if they were given up.

    `there`: the hosts that answer; those that were stopped or started again are added to `changed`. Returns the newest
    deal that is known; None if no host answers.
    """
    if not there:
        return None
    newest, stops = newest_of(there)
    acts = {
        host: partial(_bring_up, part_on(target, host), state, newest.at(host), stops) for host, state in there.items()
    }
    found = at_once(acts)
    _tell(target, found)
    if changed is not None:
        changed |= {host for host, said in found.done.items() if said}
    if not stops.in_force:
        _complete(target, there, newest)
    return newest


def _tell(target: Target, found: Answered[str]) -> None:
    for host, said in {**found.done, **{host: one.message for host, one in found.failed.items()}}.items():
        if said:
            target.listener.note(f"{host}: {said}")


def _complete(target: Target, there: Mapping[str, BoxState], newest: Deal) -> None:
    """Let takers have what was released to them by somebody who died then, or is just about to do the same."""
    parts = {one.transport.host: one for one in target.boxes}
    for move in unfinished(there, newest):
        try:
            state = complete(parts, move)
        except UserError as error:  # the next look tries again
            if error.code == str(Denial.UNWRITABLE):
                target.listener.note(f"{error.message}; {move.session} goes there, and starts nowhere until it can")
            continue
        if not state.lives:
            _tell(target, at_once({move.taker: partial(restarted, parts[move.taker], 1)}))


def _bring_up(part: Target, state: BoxState, newest: Deal, stops: Stops) -> str:
    """Returns what was done."""
    host = part.transport.host
    if state.deal.rank < newest.rank or state.stops.data != stops.data:
        state = boxes.take(*part.place, newest, stops)
    if (host in newest.lost or stops.in_force) and (state.lives or not (state.stopped or state.done)):
        run_orders.stop(*part.place)
        return "given up, so what still ran there is stopped" if host in newest.lost else "stopped, as the others"
    if (state.gained or state.due) and not state.lives and not stops.in_force and host not in newest.lost:
        return restarted(part, len(state.gained) or sum(one.taker == host for one in newest.moves.values()))
    return ""


def parts_of(target: Target, words: Sequence[str], *, guess: bool = False) -> list[tuple[Target, tuple[str, ...]]]:
    """The run with the words; of a run on several hosts the parts with the sessions that the words name, or, without
    words, those of hosts that were not given up. Raises UserError.
    """
    if not target.boxes:
        return [(target, tuple(words))]
    if not words:
        deal = settle(target, states(target).done)
        return [(one, ()) for one in target.boxes if deal is None or one.transport.host not in deal.lost]
    sources = at_once({one.transport.host: one.source for one in target.boxes})
    there, away = sources.some(), {host for host, one in sources.failed.items() if isinstance(one, HostError)}
    # a host that hangs was waited for once
    found = states(target, away=away)
    deal = settle(target, found.done)
    if deal is None:
        raise next(iter(found.failed.values()))
    plan, owners = merged_plan({host: one.view.plan for host, one in there.items()}, deal)
    first = next(iter(there.values()))
    whole = first._replace(view=first.view._replace(plan=plan))
    names = sessions_of(whole, words, target.listener.note, guess=guess)
    by_host: dict[str, list[str]] = {}
    for name in names:
        by_host.setdefault(owners.get(name, deal.arbiter), []).append(name)
    return [(part_on(target, host), tuple(own)) for host, own in by_host.items()]


def merged_plan(plans: Mapping[str, Plan], deal: Deal) -> tuple[Plan, dict[str, str]]:
    """The plan of all hosts, with what `resume` has added on some, and the host of each session."""
    whole, owners = next(iter(plans.values())).whole, dict[str, str]()
    for host, plan in plans.items():
        known = {one.name for one in whole.sessions}
        whole = replace(
            whole, sessions=(*whole.sessions, *(one for one in plan.whole.sessions if one.name not in known))
        )
        for one in plan.sessions:
            owners.setdefault(one.name, deal.at(host).box_of(process_of(one)))
    return whole, owners


def on_each(
    target: Target,
    words: Sequence[str],
    act: Callable[[Target, tuple[str, ...]], orders.Steered],
    *,
    some: bool = False,
) -> orders.Steered:
    """The answer to an order; of a run on several hosts, that of all of them, or of those that run the named sessions.

    A host that is away is named: the order does not reach it later. With `some`, it is done if a host has done it: the
    others have nothing that it means.
    """
    if not target.boxes:
        return act(target, tuple(words))
    found = at_once({one.transport.host: partial(act, one, own) for one, own in parts_of(target, words)})
    done, failed = found.some(), found.failed
    notes = dict.fromkeys(one.note for one in done.values() if one.note)
    return replace(
        next(iter(done.values())),
        run=target.run,
        done=not failed and (any if some else all)(one.done for one in done.values()),
        lines=(
            *(f"{host}: {line}" for host, one in done.items() for line in one.lines),
            *(f"! {host}: {one.headline}; give the same command again for it" for host, one in failed.items()),
        ),
        note="; ".join(notes) or None,
    )


def stop_all(target: Target) -> orders.Stopped:
    """Stop the run on all hosts: first the number of the stop, then the sessions. Hosts that are away follow later.

    A host that answers, and can't read its deal, ends its sessions, too.
    """
    found = states(target)
    number = 1 + max((max(one.stops.stop, one.stops.resumed) for one in found.done.values()), default=0)
    noted = at_once({host: partial(boxes.note_stop, *part_on(target, host).place, number) for host in found.done})
    torn = [host for host, one in found.failed.items() if one.code == str(Denial.DEAL_UNREADABLE)]
    ended = at_once({host: partial(run_orders.stop, *part_on(target, host).place) for host in (*torn, *noted.done)})
    failed = {**found.failed, **noted.failed, **ended.failed}
    if not ended.done:
        raise next(iter(failed.values()))
    away = (f"! {host}: {one.headline}; it is stopped by the next look that reaches it" for host, one in failed.items())
    return orders.Stopped(
        target.run,
        tuple(name for reply in ended.done.values() for name in reply.facts("session")),
        not failed and all(reply.done for reply in ended.done.values()),
        (*(f"{host}: {line}" for host, reply in ended.done.items() for line in reply.texts), *away),
    )


def lift_stops(target: Target) -> Deal:
    """Let starts through again, on all hosts that answer: those that are away follow at their next look."""
    there = states(target).some()
    newest, stops = newest_of(there)
    lifted = stops.joined(Stops(0, stops.stop))
    takes = {host: partial(boxes.take, *part_on(target, host).place, newest.at(host), lifted) for host in there}
    at_once(takes).all()
    return newest
