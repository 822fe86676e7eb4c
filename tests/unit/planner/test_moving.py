"""Sessions go to hosts with room: which ones, and that the end of a grid run comes close to the best that there is."""

from __future__ import annotations

import math
import random
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rounds import rounds

from comborun.planner.moving import Place, Step, steps


def slots(free: int) -> object:
    return lambda names: min(free, len(names))


def place(waiting: str = "", free: int = 0, running: Sequence[float] = (), pace: float = 10.0, **more: object) -> Place:
    """A host that holds sessions a to z, each as long as the others there."""
    names = tuple(waiting)
    usual = {"movable": frozenset(names), **more}
    lengths = dict.fromkeys("abcdefghijklmnopqrstuvwxyz", pace)
    return Place(lengths, slots(free), tuple(running), names, **usual)  # type: ignore[arg-type]


BUSY = place("abcd", running=(5.0,))


def test_a_host_with_room_takes_the_last_of_the_queue_that_ends_last() -> None:
    longer = place("efghij", running=(5.0,))
    assert steps({"x": BUSY, "y": longer, "z": place(free=1)}) == [Step("j", "y", "z")]


def test_each_free_slot_takes_one_and_no_more_than_gains() -> None:
    taken = steps({"x": BUSY, "z": place(free=9)})
    assert [one.session for one in taken] == ["d", "c", "b", "a"], "even the first begins in 5 s only"
    assert steps({"x": place("a", running=(1.0,)), "z": place(free=1)}) == []
    assert steps({"x": BUSY, "z": place(free=9)}, least=20.0) == [Step("d", "x", "z"), Step("c", "x", "z")]


def test_what_begins_at_once_or_has_begun_stays() -> None:
    assert steps({"x": place("ab", free=2), "z": place(free=2, pace=1.0)}) == []
    assert steps({"x": replace(BUSY, movable=frozenset("b")), "z": place(free=2)}) == [Step("b", "x", "z")]


@pytest.mark.parametrize(
    "taker",
    [
        place("z", running=(3.0,)),
        place(free=0),
        place(free=2, takes=False),
        place(free=2, stuck=True),
        place(free=2, pace=50.0),
        Place({}, len),
    ],
    ids=["has sessions that wait", "full", "held", "stuck", "slow", "can never hold it"],
)
def test_who_takes_nothing(taker: Place) -> None:
    assert steps({"x": BUSY, "z": taker}) == []


def test_a_host_that_has_room_before_the_next_look_takes_then() -> None:
    taker = place("z", running=(1.0, 2.0))
    assert steps({"x": BUSY, "z": taker}, soon=1.0) == []
    assert steps({"x": BUSY, "z": taker}, soon=2.0) == [Step("d", "x", "z")]


def test_a_slow_host_takes_what_still_ends_earlier_there() -> None:
    queue = place("abcdefgh", running=(5.0,))
    taken = steps({"x": queue, "z": place(free=9, pace=40.0)})
    assert [one.session for one in taken] == ["h", "g", "f", "e"], "d would end 5 s earlier, which is too little"


def test_what_starts_nothing_any_more_gives_all_for_which_there_is_room() -> None:
    stuck = place("abcd", stuck=True)
    assert len(steps({"x": stuck, "z": place(free=3)})) == 3
    assert stuck.ends("ab") == [(math.inf, math.inf)] * 2


class World:
    """Hosts that run sessions, each at its own speed, which nobody knows exactly. A look comes every few seconds."""

    def __init__(self, chance: random.Random, sessions: int, hosts: dict[str, tuple[int, float]]) -> None:
        names = [f"s{number}" for number in range(sessions)]
        self.work = {name: chance.uniform(20, 60) for name in names}
        self.hosts = hosts
        self.queues = {host: names[place :: len(hosts)] for place, host in enumerate(hosts)}
        self.running: dict[str, dict[str, float]] = {host: {} for host in hosts}
        self.now, self.moved = 0.0, dict.fromkeys(names, 0)
        self.guess = {host: speed * chance.uniform(0.8, 1.2) for host, (_, speed) in hosts.items()}

    def start(self) -> None:
        for host, (count, speed) in self.hosts.items():
            while self.queues[host] and len(self.running[host]) < count:
                name = self.queues[host].pop(0)
                self.running[host][name] = self.now + self.work[name] * speed

    def places(self) -> dict[str, Place]:
        return {
            host: Place(
                {name: length * self.guess[host] for name, length in self.work.items()},
                slots(count - len(self.running[host])),  # type: ignore[arg-type]
                tuple(max(0.0, end - self.now) for end in self.running[host].values()),
                tuple(self.queues[host]),
                frozenset(self.queues[host]),
            )
            for host, (count, _) in self.hosts.items()
        }

    def ended(self, every: float, *, moves: bool) -> float:
        """When the last session has ended."""
        last = 0.0
        while any(self.queues.values()) or any(self.running.values()):
            self.start()
            for one in steps(self.places(), soon=every) if moves else ():
                self.queues[one.giver].remove(one.session)
                self.queues[one.taker].append(one.session)
                self.moved[one.session] += 1
            look = self.now + every
            while ends := [end for own in self.running.values() for end in own.values() if end <= look]:
                self.now = last = min(ends)
                for own in self.running.values():
                    for name in [name for name, end in own.items() if end <= self.now]:
                        del own[name]
                self.start()
            self.now = look
        return last


def best(world: World) -> float:
    """No order of them ends earlier."""
    return sum(world.work.values()) / sum(count / speed for count, speed in world.hosts.values())


@settings(max_examples=rounds(60), deadline=None)
@given(seed=st.integers(0, 10_000), speeds=st.lists(st.sampled_from((0.5, 1.0, 2.0, 4.0)), min_size=3, max_size=3))
def test_moves_never_make_it_later_and_come_to_an_end(seed: int, speeds: list[float]) -> None:
    hosts = {host: (2, speed) for host, speed in zip("abc", speeds, strict=True)}
    without = World(random.Random(seed), 60, hosts)
    late = without.ended(5.0, moves=False)
    world = World(random.Random(seed), 60, hosts)
    early = world.ended(5.0, moves=True)
    longest = 60 * max(speeds)
    assert early <= late + 0.25 * longest
    assert early <= best(world) + longest
    assert max(world.moved.values()) <= 4, "nothing goes to and fro"


def test_hosts_that_turn_out_to_be_unequal_end_together() -> None:
    hosts = {"a": (4, 1.0), "b": (2, 1.0), "c": (2, 3.0)}
    world = World(random.Random(1), 60, hosts)
    late = World(random.Random(1), 60, hosts).ended(5.0, moves=False)
    assert late > 2.0 * best(world)
    assert world.ended(5.0, moves=True) < 1.3 * best(world), "one that has begun on the slow host stays there"
