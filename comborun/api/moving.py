"""Moves sessions of a run on several hosts to one with room, and completes moves that somebody else has begun.

A session moves in steps, each a record that its host writes once: the arbiter lets sessions move under the deal, the
giver releases the session to one other host, and that one receives it. Whoever dies in between leaves a session that
its taker has not received; any look completes it. Two who move at once agree by the records.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from comborun.api.room import Seen, may_move, rooms_of
from comborun.clock import elapsed
from comborun.errors import HostError, UserError
from comborun.planner.moving import Step, steps
from comborun.remote import boxes, run_orders
from comborun.remote.boxes import BoxState, at_once
from comborun.rules.host import Denial
from comborun.text import several

if TYPE_CHECKING:
    from comborun.api.named import Target
    from comborun.monitor.watch import Look
    from comborun.rules.deal import Deal, Move

LEAST_S = 5.0
"""seconds that a move gains at least: it takes one or two itself"""
DEAD_S = 20.0
"""seconds without a dispatcher after which a host is not just starting one"""
SOON_S = 5.0
"""seconds until the next look at a host that will have room then"""
_MOST_STEPS = 64
"""moves between two looks"""


class Moved(NamedTuple):
    session: str
    giver: str
    taker: str


def useful(
    parts: Mapping[str, Look],
    states: Mapping[str, BoxState],
    deal: Deal,
    soon: float = 0.0,
    abandoned: Collection[str] = (),
) -> list[Step]:
    """What should move now, by the looks at all hosts that have just answered. Of those without a dispatcher only the
    abandoned ones give: the others may just be starting one.
    """
    if any(one.stops.in_force or one.era.number > deal.number[0] for one in states.values()):
        return []
    seen = {
        host: Seen(part, states[host])
        for host, part in parts.items()
        if host in deal.left and host in states and states[host].deal.rank == deal.rank and part.status.link.reachable
    }
    if len(seen) < 2 or not may_move({host: one.look for host, one in seen.items()}):
        return []
    rooms, silent = rooms_of(seen, deal), {*without_dispatcher(states)} - {*abandoned}
    begun = frozenset(move.session for move in unfinished(states, deal))
    places = {
        host: replace(place, movable=frozenset() if host in silent else place.movable - begun)
        for host, place in rooms.places.items()
    }
    return steps(places, soon=soon if rooms.timed else 0.0, least=LEAST_S if rooms.timed else 0.0)


def may_go_on(parts: Mapping[str, Look], states: Mapping[str, BoxState], deal: Deal) -> bool:
    """Whether a session that waits on a drained host could go to another one, though nothing moves now."""
    if any(one.stops.in_force for one in states.values()):
        return False
    seen = {host: Seen(parts[host], states[host]) for host in deal.left if host in parts and host in states}
    places = rooms_of(seen, deal).places
    takers = [host for host, one in seen.items() if one.look.status.hold is None and not one.state.stopped]
    return any(
        name in places[taker].lengths
        for giver in seen.keys() - {*takers}
        for name in places[giver].movable
        for taker in takers
    )


def without_dispatcher(states: Mapping[str, BoxState]) -> list[str]:
    return [host for host, one in states.items() if not (one.lives or one.done or one.stopped)]


def unfinished(states: Mapping[str, BoxState], deal: Deal) -> list[Move]:
    """The moves that a giver has on record, and the taker has not. `states`: of the hosts that answer."""
    found = []
    for move in deal.moves.values():
        taker = states.get(move.taker)
        if (
            taker
            and move.giver in states
            and taker.deal.rank == deal.rank
            and not {move.giver, move.taker} & {*deal.lost}
        ):
            known = taker.deal.moves.get(move.session)
            if known is None or known.epoch < move.epoch:
                found.append(move)
    return found


def complete(parts: Mapping[str, Target], move: Move) -> BoxState:
    """Let the giver confirm that its record is on the disk, then the taker take the session. Raises UserError."""
    confirmed = boxes.release(*parts[move.giver].place, move)
    return boxes.receive(*parts[move.taker].place, confirmed)


def restarted(part: Target, sessions: int) -> str:
    """Start the dispatcher of a host that has got sessions after its own were done. Returns what was done."""
    run_orders.start_for_moves(*part.place, part.source().view.plan)
    return f"{several(sessions, 'session')} of other hosts {'runs' if sessions == 1 else 'run'} there now"


class Mover:
    """Moves sessions after each look. `tell` gets each move; `note` a sentence about a host that can't take part."""

    def __init__(
        self, parts: Mapping[str, Target], tell: Callable[[Moved], object], note: Callable[[str], object]
    ) -> None:
        self._parts = parts
        self._tell = tell
        self._note = note
        self._dead = dict[str, float]()
        """host -> since when it was seen without a dispatcher, by this machine's own clock"""
        self._old = set[str]()
        """hosts whose program is of a version that moves nothing"""
        self._let = set[tuple[int, int, str]]()
        """the deals under which the arbiter has let sessions move"""

    def __call__(
        self, looks: Mapping[str, Look], states: Mapping[str, BoxState], deal: Deal, soon: float
    ) -> list[Moved]:
        """Returns what has moved. Nothing here is an error: the next look tries again."""
        able = {host: one for host, one in states.items() if host not in self._old}
        if deal.arbiter in self._old:
            return []
        wanted = useful(looks, able, deal, soon, self._abandoned(able))[:_MOST_STEPS]
        if not wanted or not self._may_move(states, deal):
            return []
        by_giver: dict[str, list[Step]] = {}
        for step in wanted:
            by_giver.setdefault(step.giver, []).append(step)
        done = at_once({giver: partial(self._give, own, deal) for giver, own in by_giver.items()})
        moved = [one for own in done.done.values() for one in own]
        for one, _ in moved:
            self._tell(one)
        self._restart([(one.taker, state) for one, state in moved])
        return [one for one, _ in moved]

    def _abandoned(self, states: Mapping[str, BoxState]) -> list[str]:
        """The hosts that have had no dispatcher for long, at each look since."""
        now = elapsed()
        self._dead = {host: self._dead.get(host, now) for host in without_dispatcher(states)}
        return [host for host, since in self._dead.items() if now >= since + DEAD_S]

    def _may_move(self, states: Mapping[str, BoxState], deal: Deal) -> bool:
        """Let the arbiter write down that sessions move under this deal, unless it has told that it has.

        A look does not show whether its record is on the disk.
        """
        if deal.moves or deal.rank in self._let:  # what has moved under a deal has moved after that
            return True
        if deal.arbiter not in states:
            return False
        try:
            boxes.let_move(*self._parts[deal.arbiter].place, deal)
        except UserError as error:
            self._refused(deal.arbiter, error)
            return False
        self._let.add(deal.rank)
        return True

    def _give(self, wanted: Sequence[Step], deal: Deal) -> list[tuple[Moved, BoxState]]:
        """The moves from one host, one after the other."""
        done = []
        for step in wanted:
            try:
                state = complete(self._parts, deal.move(step.session, step.taker))
            except HostError:
                break
            except UserError as error:  # it has begun, or somebody else was faster
                self._refused(step.giver, error)
                continue
            done.append((Moved(*step), state))
        return done

    def _refused(self, host: str, error: UserError) -> None:
        if error.code == str(Denial.UNWRITABLE):
            self._note(f"{error.message}; no session moves from there or to it")
        if error.code == str(Denial.USAGE) and host not in self._old:
            self._old.add(host)
            self._note(f"{host}: the run there is of an older comborun, and its sessions do not move")

    def _restart(self, got: Sequence[tuple[str, BoxState]]) -> None:
        dead = {host for host, state in got if not state.lives}
        counts = {host: sum(taker == host for taker, _ in got) for host in dead}
        found = at_once({host: partial(restarted, self._parts[host], counts[host]) for host in dead})
        for host, error in found.failed.items():
            self._note(f"{host}: {error.message}")
