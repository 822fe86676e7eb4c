"""Orders to the boxes of a grid run (`host/verbs/boxes.py`), a round trip each, and work on all of them at once."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from comborun.clock import elapsed
from comborun.errors import HostError, UserError
from comborun.remote import program, run_orders
from comborun.rules.deal import Deal, Era, Move, Stops

if TYPE_CHECKING:
    from collections.abc import Callable

    from comborun.remote.transport import Transport

HURRY_S = 5.0
"""enough for a login over a slow link"""
_STEP_S = 0.1
T = TypeVar("T")


class BoxState(NamedTuple):
    """What a box says of its part."""

    deal: Deal
    stops: Stops
    run: str
    era: Era
    """that it has promised"""
    lives: bool
    """whether its dispatcher lives"""
    stopped: bool
    done: bool
    gained: tuple[str, ...] = ()
    """sessions that the deal has just given to it"""
    made: bool = True
    """False: another deal was made first, and that one is in force"""
    moving: bool = False
    """whether it has written down, as the arbiter, that sessions may move under its deal"""
    due: bool = False
    """whether sessions that moved there wait, and nothing starts them"""
    loses: tuple[str, ...] = ()
    """the boxes that somebody has begun to give up: it has promised that, and no deal has followed"""
    uses: Mapping[str, str] = MappingProxyType({})
    """the fields of the policy that `combo set` changes, as they are now; empty from a former version"""

    @classmethod
    def of(cls, answer: Mapping[str, Any]) -> BoxState:
        told = {key: answer[key] for key in cls._fields if key in answer}  # a former version does not say all of it
        stops = Stops(int(answer["stop"]), int(answer["resumed"]))
        era = Era(int(answer["era"]), str(answer["promised"]))
        return cls(**{**told, "deal": Deal(answer), "stops": stops, "era": era})


class Root(NamedTuple):
    id: str
    now: float
    """the host's clock, in seconds since 1970"""


def root_of(transport: Transport, root: str, python: str = "") -> Root:
    """The random id of a folder of runs, made now if it has none."""
    done = program.run_packed(transport, "boxes", root, "root", python=program.Python(known=python))
    answer = program.answer(transport, done, f"{root} on {transport.host} can't be written")
    return Root(answer["id"], answer["now"])


def look(transport: Transport, directory: str) -> BoxState:
    return BoxState.of(run_orders.ask(transport, directory, "boxes", "look"))


def take(transport: Transport, directory: str, deal: Deal, stops: Stops) -> BoxState:
    """Give a box a deal with its moves, and what is known of stops. Raises UserError if it has a newer one."""
    return BoxState.of(run_orders.ask(transport, directory, "boxes", "take", stdin=_order(deal, stops)))


def note_stop(transport: Transport, directory: str, number: int) -> BoxState:
    return BoxState.of(run_orders.ask(transport, directory, "boxes", "stop", str(number)))


def fence(transport: Transport, directory: str, era: Era, loses: Sequence[str]) -> BoxState:
    """Let a box promise an era, in which others are given up. Raises UserError if it has promised a later one, or this
    one to another maker.
    """
    return BoxState.of(run_orders.ask(transport, directory, "boxes", "fence", str(era.number), era.maker, *loses))


def lose(transport: Transport, directory: str, deal: Deal) -> BoxState:
    """Let the arbiter write down the next deal."""
    return BoxState.of(run_orders.ask(transport, directory, "boxes", "lose", stdin=_order(deal, Stops())))


def let_move(transport: Transport, directory: str, deal: Deal) -> BoxState:
    """Let the arbiter write down that sessions may move under this deal. Raises UserError if another is in force."""
    return BoxState.of(run_orders.ask(transport, directory, "boxes", "moving", stdin=_order(deal, Stops())))


def release(transport: Transport, directory: str, move: Move) -> Move:
    """Let a box give a session away. Raises UserError if it has begun there, or the order is too old."""
    return Move(run_orders.ask(transport, directory, "boxes", "release", stdin=move.text.encode())["move"])


def receive(transport: Transport, directory: str, move: Move) -> BoxState:
    """Let a box take a session that was released to it."""
    return BoxState.of(run_orders.ask(transport, directory, "boxes", "receive", stdin=move.text.encode()))


def _order(deal: Deal, stops: Stops) -> bytes:
    return json.dumps({**deal.seen, **stops.data}).encode()


class Answered(NamedTuple, Generic[T]):
    """What several hosts have answered."""

    done: dict[str, T]
    failed: dict[str, UserError]

    def some(self) -> dict[str, T]:
        """The results that there are. Raises the first error if there are none."""
        if self.failed and not self.done:
            raise next(iter(self.failed.values()))
        return self.done

    def all(self) -> dict[str, T]:
        """The results. Raises the first error, with its host; the same command does the rest."""
        for host, one in self.failed.items():
            rest = "once that is mended, the same command does the rest"
            raise type(one)(f"{host}: {one.message}", f"{one.hint}\n  {rest}".strip(), one.code)
        return self.done


def at_once(
    acts: Mapping[str, Callable[[], T]], hurried: Collection[str] = (), asking: Callable[[], bool] = lambda: False
) -> Answered[T]:
    """The result of each act, or why there is none. All are done at the same time, each in a thread of its own.

    `hurried`: hosts that are not waited for beyond HURRY_S once the others have answered, unless the user is `asking`.
    """
    answers: SimpleQueue[tuple[str, T | BaseException]] = SimpleQueue()

    def work(host: str) -> None:
        try:
            answers.put((host, acts[host]()))
        except BaseException as error:  # noqa: BLE001  raised below, in the thread of the caller
            answers.put((host, error))

    for host in acts:
        Thread(target=work, args=(host,), name=f"order to {host}", daemon=True).start()
    found, until = dict[str, T | BaseException](), elapsed() + HURRY_S
    while left := acts.keys() - found.keys():
        try:
            host, answer = answers.get(timeout=max(_STEP_S, until - elapsed()) if left <= {*hurried} else None)
        except Empty:
            if asking():
                continue
            found |= {host: HostError(f"{host} has not answered within {HURRY_S:g} s") for host in left}
        else:
            found[host] = answer
    return _sorted({host: found[host] for host in acts})


def _sorted(found: Mapping[str, T | BaseException]) -> Answered[T]:
    answered = Answered[T]({}, {})
    for host, answer in found.items():
        if isinstance(answer, UserError):
            answered.failed[host] = answer
        elif isinstance(answer, BaseException):
            raise answer
        else:
            answered.done[host] = answer
    return answered
