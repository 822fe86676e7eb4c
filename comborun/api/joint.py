"""A run on several hosts as one: what brings its parts up to date, and orders to all of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, TypeVar

from comborun.answers import orders
from comborun.api.moving import complete, restarted, unfinished
from comborun.errors import UserError
from comborun.model.work import process_of
from comborun.monitor.addressing import sessions_of
from comborun.monitor.watch import Source
from comborun.remote import boxes, run_orders
from comborun.remote.boxes import BoxState, at_once
from comborun.rules.deal import Deal, Stops, newest_known
from comborun.rules.host import Denial

if TYPE_CHECKING:
    from comborun.api.named import Target
    from comborun.model.plan import Plan

T = TypeVar("T")


def newest_of(states: Mapping[str, BoxState]) -> tuple[Deal, Stops]:
    """The deal with the highest number, with the moves that any of them knows, and all stops that are known."""
    stops = Stops()
    for state in states.values():
        stops = stops.joined(state.stops)
    return newest_known([state.deal for state in states.values()]), stops


def all_done(found: Mapping[str, T | UserError]) -> dict[str, T]:
    """The results. Raises the first error, with its host; the same command does the rest."""
    done = dict[str, T]()
    for host, one in found.items():
        if isinstance(one, UserError):
            rest = "once that is mended, the same command does the rest"
            raise type(one)(f"{host}: {one.message}", f"{one.hint}\n  {rest}".strip(), one.code)
        done[host] = one
    return done


# Orders to all hosts


def states(target: Target) -> dict[str, BoxState | UserError]:
    """What each host answers, or why it does not."""
    return at_once({one.transport.host: partial(boxes.look, one.transport, one.directory) for one in target.boxes})


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
    _tell(target, at_once(acts))
    if not stops.in_force:
        _complete(target, there, newest)
    return newest


def _tell(target: Target, done: Mapping[str, str | UserError]) -> None:
    for host, said in done.items():
        if said:
            target.listener.note(f"{host}: {said.message if isinstance(said, UserError) else said}")


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
    transport, directory, host = part.transport, part.directory, part.transport.host
    if state.deal.rank < newest.rank or state.stops.data != stops.data:
        state = boxes.take(transport, directory, newest, stops)
    if (host in newest.lost or stops.in_force) and (state.lives or not (state.stopped or state.done)):
        run_orders.stop(transport, directory)
        return "given up, so what still ran there is stopped" if host in newest.lost else "stopped, as the others"
    if (state.gained or state.due) and not state.lives and not stops.in_force and host not in newest.lost:
        return restarted(part, len(state.gained) or sum(one.taker == host for one in newest.moves.values()))
    return ""


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
            owners.setdefault(one.name, deal.at(host).box_of(process_of(one)))
    return whole, owners


def going(target: Target) -> list[Target]:
    """The parts of hosts that were not given up."""
    deal = settle(target, states(target))
    return [one for one in target.boxes if deal is None or one.transport.host not in deal.lost]


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
    there = {host: one for host, one in found.items() if isinstance(one, BoxState)}
    number = 1 + max((max(one.stops.stop, one.stops.resumed) for one in there.values()), default=0)
    noted = at_once({host: partial(_note, part_on(target, host), number) for host in there})
    torn = [host for host, one in found.items() if getattr(one, "code", "") == str(Denial.DEAL_UNREADABLE)]
    able = [*torn, *(host for host, one in noted.items() if not isinstance(one, UserError))]
    ended = at_once({host: partial(_end, part_on(target, host)) for host in able})
    replies = {host: one for host, one in ended.items() if isinstance(one, run_orders.Reply)}
    failed = {host: one for host, one in {**found, **noted, **ended}.items() if isinstance(one, UserError)}
    if not replies:
        raise next(iter(failed.values()))
    return orders.Stopped(
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


def _note(part: Target, number: int) -> BoxState:
    return boxes.note_stop(part.transport, part.directory, number)


def _end(part: Target) -> run_orders.Reply:
    return run_orders.stop(part.transport, part.directory)


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
