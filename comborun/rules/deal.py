"""Which box of a grid run runs what: the deal, its number, lost boxes, stops. Pure.

A grid run is an ordinary run of the whole plan on each of its boxes. Each box keeps the deal with the highest number,
and starts only what this deal gives to it. A deal changes only when a person gives up a box. Then the others get what
that box had not completed; of what it had begun, those episodes count that were on record by then.

Under a deal a session that has not begun may move: the box that gives it writes down to which other box, and only that
one may take it. Its moves are numbered by epochs. A deal of a higher number begins without moves.
"""

from __future__ import annotations

import json
import re
from contextlib import suppress

from comborun.rules.facts import Fact
from comborun.rules.names import NAME
from comborun.rules.vocabulary import Word

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Collection, Dict, Iterable, List, Mapping, Sequence, Tuple

    Number = Tuple[int, int]
    """era, and number within it; an era begins when the arbiter is lost"""
    OnRecord = Dict[str, List[List[int]]]
    """session -> ranges [first, stop] of the episodes that a lost box had on record"""


_MOST_NAMED = 20
_TORN = (KeyError, TypeError, ValueError, AttributeError, IndexError, RecursionError)
"""what the text of a foreign or torn record raises"""


class Stale(Word):
    """Why a box does not take a deal, or does not give or take a session that moves."""

    OTHER_RUN = "deal_of_another_grid_run"
    OLDER = "deal_is_older"  # has, given: numbers of deals
    FENCED = "deal_of_a_past_era"  # era: that was promised
    OTHER_DEAL = "another_deal_of_that_number"  # number
    TAKES_AWAY = "deal_takes_what_runs_here"  # session
    OTHER_TIME = "move_under_another_deal"  # has, given: numbers of deals
    EPOCH = "move_out_of_order"  # session, has: its last epoch, given
    OTHER_MOVE = "session_went_elsewhere"  # session, box
    NO_PLACE = "move_to_no_box"  # box: that can't take it
    HAS_BEGUN = "moved_session_has_begun"  # session


class Move:
    """A session that goes from one box to another under a deal: an order, and the record of both boxes."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        """Raises KeyError, TypeError or ValueError for what is no move."""
        self.grid_run, self.session = str(data["grid_run"]), str(data["session"])
        self.giver, self.taker = str(data["from"]), str(data["to"])
        self.epoch = int(data["epoch"])
        """the first move of a session is 1"""
        self.number: Number = (int(data["number"][0]), int(data["number"][1]))
        self.maker = str(data["maker"])
        """number and maker of the deal under which it moves"""
        if self.epoch < 1 or not re.fullmatch(NAME, self.session):
            raise ValueError

    @property
    def data(self) -> dict[str, Any]:
        places = {"from": self.giver, "to": self.taker}
        deal = {"number": list(self.number), "maker": self.maker}
        return {"grid_run": self.grid_run, "session": self.session, **places, "epoch": self.epoch, **deal}

    @property
    def text(self) -> str:
        return json.dumps(self.data) + "\n"


class Deal:
    """A deal as one box has it. It never changes; `renewed` makes another one."""

    def __init__(self, data: Mapping[str, Any]) -> None:
        """Raises KeyError, TypeError or ValueError for what is no deal."""
        self.grid_run = str(data["grid_run"])
        self.box = str(data["box"])
        self.number: Number = (int(data["number"][0]), int(data["number"][1]))
        self.boxes: list[str] = [str(one) for one in data["boxes"]]
        self.of: dict[str, str] = {str(name): str(box) for name, box in data["of"].items()}
        """process -> box; what is not named runs on the box whose plan has it"""
        self.maker = str(data.get("maker", ""))
        """whoever began the era: a random word; empty in the first one"""
        self.lost: dict[str, OnRecord] = {str(box): dict(found) for box, found in data.get("lost", {}).items()}
        """lost box -> what it had on record of the sessions that were taken from it, in the order of the losses"""
        self.moves: dict[str, Move] = {}
        """process -> its last move under this deal, as far as it is known; no part of the deal"""
        self._add_moves(map(Move, data.get("moves", ())))

    def _add_moves(self, moves: Iterable[Move]) -> None:
        for one in moves:
            mine = one.grid_run == self.grid_run and (*one.number, one.maker) == self.rank
            if mine and (one.session not in self.moves or one.epoch > self.moves[one.session].epoch):
                self.moves[one.session] = one

    @property
    def data(self) -> dict[str, Any]:
        keys = ("grid_run", "box", "number", "maker", "boxes", "of", "lost")
        return {**{key: getattr(self, key) for key in keys}, "number": list(self.number)}

    @property
    def seen(self) -> dict[str, Any]:
        """The data of the deal, with those of the moves that are known."""
        return {**self.data, "moves": [one.data for one in self.moves.values()]}

    @property
    def text(self) -> str:
        return json.dumps(self.data, sort_keys=False) + "\n"

    @property
    def rank(self) -> tuple[int, int, str]:
        """The deal with the highest one is in force."""
        return (*self.number, self.maker)

    @property
    def left(self) -> list[str]:
        """The boxes that are not lost."""
        return [box for box in self.boxes if box not in self.lost]

    @property
    def arbiter(self) -> str:
        """The box that makes the next deal."""
        return self.left[0] if self.left else self.boxes[0]

    def box_of(self, process: str) -> str:
        """Where it runs: where its last move went, else where the deal has it."""
        move = self.moves.get(process)
        return move.taker if move else self.of.get(process, self.box)

    @property
    def owners(self) -> dict[str, str]:
        """The same for each process that the deal names."""
        return {name: self.box_of(name) for name in self.of}

    def runs_here(self, process: str) -> bool:
        return self.box_of(process) == self.box

    def at(self, box: str) -> Deal:
        """The same deal for another box."""
        return Deal({**self.seen, "box": box})

    def moved(self, moves: Iterable[Move]) -> Deal:
        """The same deal with more moves. Those under another deal say nothing."""
        found = Deal(self.seen)
        found._add_moves(moves)
        return found

    def move(self, process: str, to: str) -> Move:
        """The next move of a process under this deal."""
        last = self.moves.get(process)
        places = {"session": process, "from": self.box_of(process), "to": to, "epoch": last.epoch + 1 if last else 1}
        return Move({"grid_run": self.grid_run, **places, "number": self.number, "maker": self.maker})

    def renewed(self, of: Mapping[str, str], lost: Mapping[str, OnRecord], era: Era) -> Deal:
        """The next deal, of this era or of a later one. Moved sessions stay where they are."""
        first, second = self.number
        number, maker = ([era.number, 0], era.maker) if era.number > first else ([first, second + 1], self.maker)
        changes = {"number": number, "maker": maker, "of": {**self.owners, **of}, "lost": {**self.lost, **lost}}
        return Deal({**self.data, **changes})

    def same_as(self, other: Deal) -> bool:
        return {**self.data, "box": ""} == {**other.data, "box": ""}


class UnreadableDeal(Deal):
    """Stands in for a deal while a record can't be read: that of the deal, or that of the move of the session `gone`.

    Nobody knows then what runs here, so nothing starts.
    """

    def __init__(self, path: str = "", gone: str = "") -> None:
        super().__init__({"grid_run": "", "box": "", "number": (0, 0), "boxes": (), "of": {}})
        self.path = path
        self.gone = gone

    def runs_here(self, process: str) -> bool:  # noqa: ARG002 - whatever it is
        return False

    def moved(self, moves: Iterable[Move]) -> Deal:  # noqa: ARG002 - whatever they are
        return self


def parse(text: str) -> Deal | None:
    """The deal of a text; None for what is none, such as the empty text of a run on one box."""
    with suppress(*_TORN):
        return Deal(json.loads(text))
    return None


def newest_known(deals: Sequence[Deal]) -> Deal:
    """The deal with the highest number, with the moves that any of them knows."""
    return max(deals, key=lambda one: one.rank).moved(move for one in deals for move in one.moves.values())


def sessions_moved(names: Sequence[str]) -> Fact | None:
    """That sessions have gone to another box; None if none has."""
    return Fact("sessions_moved", moved=len(names), sessions=list(names[:_MOST_NAMED])) if names else None


def parse_move(text: str) -> Move | None:
    """The move of a record; None for what is none."""
    with suppress(*_TORN):
        return Move(json.loads(text))
    return None


class Era:
    """A time in which one box makes all deals. A box that has promised an era takes no deal of an earlier one."""

    def __init__(self, number: int = 0, maker: str = "") -> None:
        self.number = number
        self.maker = maker

    def follows(self, promised: Era) -> bool:
        """Whether a box that has promised an era may promise this one: only one of two at once can get all promises."""
        return self.number > promised.number or (self.number, self.maker) == (promised.number, promised.maker)


def begins_era(newest: Deal, lost: Collection[str], promised: Iterable[Era], *, moving: bool) -> bool:
    """Whether these losses need a new era: the arbiter is lost, or somebody has begun an era and made no deal in it, or
    sessions may move under this deal: then all boxes that are left say what they have, and promise to take no more.
    """
    return newest.arbiter in lost or moving or any(era.number > newest.number[0] for era in promised)


def why_stale(has: Deal, given: Deal, era: Era) -> tuple[str, dict[str, Any]] | None:
    """Why a box that has a deal, and has promised an era, does not take the given one; None if it does."""
    if given.grid_run != has.grid_run:
        return Stale.OTHER_RUN, {}
    other = given.number[0] == era.number and given.maker != era.maker
    if given.number[0] < era.number or (other and has.box not in given.lost):
        return Stale.FENCED, {"era": era.number}
    if given.rank < has.rank:
        return Stale.OLDER, {"has": list(has.number), "given": list(given.number)}
    if given.rank == has.rank:
        return None if given.same_as(has) else (Stale.OTHER_DEAL, {"number": list(given.number)})
    if has.box not in given.lost:
        for name, box in given.of.items():
            if box != has.box and name in has.of and has.runs_here(name):
                return Stale.TAKES_AWAY, {"session": name}
    return None


def why_not_given(has: Deal, move: Move, era: Era) -> tuple[str, dict[str, Any]] | None:
    """Why the box that has this deal does not give a session away. The caller knows whether it has begun."""
    if why := _wrong_time(has, move, era):
        return why
    if move.giver != has.box or move.session not in has.of or not has.runs_here(move.session):
        return Stale.OTHER_MOVE, {"session": move.session, "box": has.box_of(move.session)}
    if move.taker == has.box or not {move.taker, has.box} <= {*has.left}:
        return Stale.NO_PLACE, {"box": move.taker}
    last = has.moves.get(move.session)
    epoch = last.epoch if last else 0
    if move.epoch != epoch + 1:
        return Stale.EPOCH, {"session": move.session, "has": epoch, "given": move.epoch}
    return None


def why_not_taken(has: Deal, move: Move, era: Era) -> tuple[str, dict[str, Any]] | None:
    """Why the box that has this deal does not take a session."""
    if why := _wrong_time(has, move, era):
        return why
    if move.taker != has.box or has.box not in has.left:
        return Stale.NO_PLACE, {"box": move.taker}
    last = has.moves.get(move.session)
    if last and last.epoch >= move.epoch:
        return Stale.EPOCH, {"session": move.session, "has": last.epoch, "given": move.epoch}
    return None


def _wrong_time(has: Deal, move: Move, era: Era) -> tuple[str, dict[str, Any]] | None:
    if move.grid_run != has.grid_run:
        return Stale.OTHER_RUN, {}
    if (*move.number, move.maker) != has.rank:
        return Stale.OTHER_TIME, {"has": list(has.number), "given": list(move.number)}
    if (has.number[0], has.maker) != (era.number, era.maker) and has.number[0] <= era.number:
        return Stale.FENCED, {"era": era.number}
    return None


class Stops:
    """Two numbers that only grow: the last stop of the grid run, and the last stop that a person has lifted."""

    def __init__(self, stop: int = 0, resumed: int = 0) -> None:
        self.stop = stop
        self.resumed = resumed

    @property
    def in_force(self) -> bool:
        return self.stop > self.resumed

    def joined(self, other: Stops) -> Stops:
        return Stops(max(self.stop, other.stop), max(self.resumed, other.resumed))

    @property
    def data(self) -> dict[str, int]:
        return {"stop": self.stop, "resumed": self.resumed}


def redealt(deal: Deal, lost: Sequence[str], complete: Collection[str], shares: Mapping[str, str]) -> dict[str, str]:
    """Process -> the box that gets it, for all that the lost boxes have not completed.

    `shares` names the box. What it does not name goes to the boxes that are left, to each in turn.
    """
    left = [box for box in deal.left if box not in lost]
    moved = [name for name, box in deal.owners.items() if box in lost and name not in complete]
    return {
        name: shares[name] if shares.get(name) in left else left[place % len(left)] for place, name in enumerate(moved)
    }


def counting(deal: Deal, session: str, process: str) -> list[tuple[str, list[list[int]] | None]]:
    """The boxes whose records of a session count, in order, each with the ranges of episodes; None: all.

    Of an episode the first box that has it on record in its ranges counts.
    """
    found: list[tuple[str, list[list[int]] | None]] = [
        (box, on_record[session]) for box, on_record in deal.lost.items() if session in on_record
    ]
    return [*found, (deal.box_of(process), None)]
