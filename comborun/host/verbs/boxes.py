"""`boxes RUN ACTION`: the deal of a grid run on several boxes. Each action answers with one JSON document.

  root            RUN is a folder of runs: its random id, made once
  look            the deal in force here, the stops, the era that was promised, what holds the run here, what it may use
  take            standard input: a deal with its moves, and the stops that the caller knows. A lower number than here
                  is refused
  stop N          stop number N of the grid run; nothing starts until somebody resumes it
  fence ERA MAKER [BOX ...]   promise to take no deal of an earlier era, nor of another maker in this era; then as
                  look. BOX: those that are given up in this era
  lose            standard input: the next deal, without boxes that are lost. The arbiter writes it down, once
  moving          standard input: a deal. The arbiter writes down that sessions may move under it
  release         standard input: a move. The box that gives the session writes it down; again: the same answer
  receive         standard input: a move that was released. The box that takes the session writes it down

64: usage. 66: no run directory, or one that is no part of a grid run. 73: can't write. 75: refused.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence

from comborun.host.record import deals
from comborun.host.record.events import Events
from comborun.host.record.holds import Holds, over
from comborun.host.system import files, process
from comborun.host.verb_errors import BUSY, USAGE, Refusal, answered, must_write, run_directory, unusable, unwritable
from comborun.rules import records, settings
from comborun.rules.deal import (
    Deal,
    Era,
    Move,
    Stale,
    Stops,
    parse,
    parse_move,
    why_not_given,
    why_not_taken,
    why_stale,
)
from comborun.rules.events import Kind
from comborun.rules.host import Denial
from comborun.rules.names import RunLayout
from comborun.rules.run_files import attempts_of


def main(arguments: list[str]) -> int:
    action, words = "".join(arguments[1:2]), arguments[2:]
    if action == "root":
        return answered("boxes", lambda: root(files.home(arguments[0])))
    acts: dict[str, Callable[[Box], object]] = {
        "look": lambda box: box.look(),
        "take": lambda box: box.take(*_received()),
        "stop": lambda box: box.stop(int(words[0])),
        "fence": lambda box: box.fence(Era(int(words[0]), words[1]), words[2:]),
        "lose": lambda box: box.lose(_received()[0]),
        "moving": lambda box: box.let_move(_received()[0]),
        "release": lambda box: box.release(_received_move()),
        "receive": lambda box: box.receive(_received_move()),
    }

    def act() -> object:
        given = len(words) if words and words[0].isdecimal() else 0
        if action not in acts or given < {"stop": 1, "fence": 2}.get(action, 0):
            usage = "RUN root|look|take|stop N|fence ERA MAKER [BOX ...]|lose|moving|release|receive"
            raise Refusal(USAGE, Denial.USAGE, usage=usage, given=action)
        box = Box(run_directory(arguments))
        with deals.locked(box.layout):
            return acts[action](box)

    return answered("boxes", act)


def root(folder: str) -> dict[str, object]:
    """The id of a folder of runs. Two machines with one home have one id; names and boot ids would not show it."""
    path = f"{folder}/.id"
    try:
        os.makedirs(folder, exist_ok=True)
        if not files.read_line(path):
            files.create_whole(path, f"{os.urandom(8).hex()}\n", synced=True)
            files.sync(path)
    except OSError as error:
        raise unusable(folder, error) from None
    return {"id": files.read_line(path), "now": round(time.time(), 3)}


def _received() -> tuple[Deal, Stops]:
    text = sys.stdin.read()
    deal = parse(text)
    if not deal:
        raise Refusal(USAGE, Denial.DATA_CUT)
    told = json.loads(text)
    return deal, Stops(int(told.get("stop") or 0), int(told.get("resumed") or 0))


def _received_move() -> Move:
    move = parse_move(sys.stdin.read())
    if not move:
        raise Refusal(USAGE, Denial.DATA_CUT)
    return move


class Box:
    """This box's part in a grid run. Everything is done under a lock, so orders that come at once follow each other."""

    def __init__(self, run: str) -> None:
        self.layout = RunLayout(run)
        deals.readable_deal_of(self.layout)

    def look(self) -> dict[str, object]:
        layout = self.layout
        has, planned = self._deal(), files.read(layout.policy)
        policy = {**planned, **settings.in_force(files.read(layout.settings), planned)}
        hold, stopped = Holds(layout).look().kind, os.path.exists(layout.stopped)
        lives = process.named(files.read(layout.dispatcher)) and not os.path.exists(layout.leaving)
        return {
            **has.seen,
            **deals.stops_of(layout).data,
            "run": os.path.basename(layout.directory),
            "era": self._era().number,
            "promised": self._era().maker,
            "loses": self._loses(has),
            "moving": self._may_move(has),
            "lives": lives,
            "stopped": stopped,
            "done": over(layout),
            "due": not (lives or stopped or hold) and self._has_waiting(has),
            "uses": {field: policy.get(field, "") for field in settings.FIELDS.values()},
        }

    def _has_waiting(self, has: Deal) -> bool:
        """Whether a session that moved here, or that a lost box had, has not begun."""
        moves = deals.moves_of(self.layout)  # under former deals, too
        came = {move.session for move in moves if move.taker == has.box}
        came.update(name for found in has.lost.values() for name in found)
        here = (name for name in came if name in has.of and has.runs_here(name))
        return any(not attempts_of(self.layout, name) for name in here)

    def take(self, given: Deal, stops: Stops) -> dict[str, object]:
        """Take a deal, and the stops that the caller knows. `gained`: what this box has to run beside the rest."""
        has = self._deal()
        given = given.at(has.box)
        if why := why_stale(has, given, self._era()):
            raise Refusal(BUSY, why[0], **why[1])
        self._know(stops)
        gained = self._put(has, given)
        self._recall(given)
        return {**gained, **self.look()}

    def _recall(self, given: Deal) -> None:
        """Write down again which sessions went from here, where a removed and relaunched run has lost these records."""
        has = self._deal()
        for session, move in given.moves.items():
            goes = has.runs_here(session) and not has.moved([move]).runs_here(session)
            if goes and not self._has_begun(session):
                self._record(self.layout.move(session, move.number, move.epoch, "out"), move, Kind.GIVEN, move.taker)

    def _has_begun(self, session: str) -> bool:
        from comborun.host.record.queue import rows  # slow to load, and a look needs none

        together = next((row.sessions for row in rows(self.layout.queue) if row.name == session), ())
        return any(attempts_of(self.layout, name) for name in (session, *together))

    def stop(self, number: int) -> dict[str, object]:
        self._know(Stops(number))
        return self.look()

    def fence(self, era: Era, loses: Sequence[str] = ()) -> dict[str, object]:
        if not era.follows(self._era()):
            raise Refusal(BUSY, Stale.FENCED, era=self._era().number)
        for name in files.entries(self.layout.moves):  # the next deal is made of what is told here
            deals.to_disk(f"{self.layout.moves}/{name}")
        promise = {"era": era.number, "maker": era.maker, "loses": " ".join(loses)}
        deals.keep(self.layout.fence, json.dumps(promise) + "\n")
        return self.look()

    def lose(self, given: Deal) -> dict[str, object]:
        """Write down the next deal, whole, once. `made` is false if another one was faster; then that is in force."""
        has = self._deal()
        given = given.at(has.box)
        first, second = has.number
        follows = has.arbiter == has.box and given.number == (first, second + 1) and not self._may_move(has)
        begins = given.number == (self._era().number, 0) and given.number[0] > first and given.arbiter == has.box
        if not (follows or begins) or why_stale(has, given, self._era()):
            return {"made": False, **self.look()}
        gone = [box for box in given.lost if box not in has.lost]
        path = self.layout.lost_box("+".join(gone) or "none", given.number)
        must_write(deals.keep_first(path, given.text), path)
        return {"made": True, **self._put(has, given), **self.look()}

    # Sessions that move under a deal

    def let_move(self, given: Deal) -> dict[str, object]:
        """From now on a loss needs the answers of all boxes that are left: they know the moves."""
        has = self._deal()
        if has.box != has.arbiter or not given.same_as(has) or has.number[0] < self._era().number:
            raise Refusal(BUSY, Stale.OTHER_TIME, has=list(has.number), given=list(given.number))
        deals.keep(self.layout.moving, json.dumps({"deal": _rank_text(has)}) + "\n")
        return self.look()

    def _may_move(self, has: Deal) -> bool:
        return files.read(self.layout.moving).get("deal") == _rank_text(has)

    def release(self, move: Move) -> dict[str, object]:
        """Give a session away that has not begun here. The answer comes when the record is on the disk."""
        has = self._deal()
        path = self.layout.move(move.session, move.number, move.epoch, "out")
        if not self._is_on_record(path, move):
            if why := why_not_given(has, move, self._era()):
                raise Refusal(BUSY, why[0], **why[1])
            deals.refuse_stopped(self.layout)
            if self._has_begun(move.session):
                raise Refusal(BUSY, Stale.HAS_BEGUN, session=move.session)
            self._record(path, move, Kind.GIVEN, move.taker)
        return {"move": move.data, **self.look()}

    def receive(self, move: Move) -> dict[str, object]:
        """Take a session that another box has released to this one."""
        has = self._deal()
        path = self.layout.move(move.session, move.number, move.epoch, "in")
        if not self._is_on_record(path, move):
            if why := why_not_taken(has, move, self._era()):
                raise Refusal(BUSY, why[0], **why[1])
            deals.refuse_stopped(self.layout)
            files.remove(self.layout.done)
            self._record(path, move, Kind.TAKEN, move.giver)
        return {"gained": [move.session], **self.look()}

    def _is_on_record(self, path: str, move: Move) -> bool:
        """Whether that very move is on the disk. Raises Refusal for another one of that number."""
        known = parse_move(files.read_text(path))
        if known and known.data != move.data:
            raise Refusal(BUSY, Stale.OTHER_MOVE, session=move.session, box=known.taker)
        if known:
            deals.to_disk(path)  # whoever wrote it may have died before
        return known is not None

    def _record(self, path: str, move: Move, kind: Kind, other: str) -> None:
        if not deals.keep_first(path, move.text):
            if parse_move(files.read_text(path)):
                raise unwritable(path)
            deals.keep(path, move.text)  # it can't be read: this move is what it must say
        Events(self.layout).write(kind, move.session, box=other, epoch=move.epoch)
        files.tell(self.layout.fifo, "reread run 0")

    def _deal(self) -> Deal:
        """The deal in force.

        A newer one in a record of a loss was not put into force, since its writer was killed: this does it.
        """
        has = deals.readable_deal_of(self.layout)
        paths = (f"{self.layout.lost}/{name}" for name in files.entries(self.layout.lost) if not name.startswith("."))
        found = [deal for path in paths if (deal := parse(files.read_text(path, 1 << 26)))]
        newest = max(found, key=lambda one: one.rank, default=has)
        if newest.rank > has.rank:
            self._put(has, newest.at(has.box))
            return newest.at(has.box).moved(deals.moves_of(self.layout))
        return has

    def _put(self, has: Deal, given: Deal) -> dict[str, object]:
        """Put a deal into force, and tell the dispatcher. Returns what is new here."""
        gained = [name for name, box in given.of.items() if box == given.box and has.box_of(name) != given.box]
        if given.rank > has.rank:
            if gained:
                files.remove(self.layout.done)
            deals.keep(self.layout.deal, given.text)
            Events(self.layout).write(Kind.DEALT, number=list(given.number), gained=len(gained), lost=[*given.lost])
            files.tell(self.layout.fifo, "reread run 0")
        return {"gained": gained}

    def _era(self) -> Era:
        promised = files.read(self.layout.fence)
        return Era(records.integer(promised, "era") or 0, promised.get("maker", ""))

    def _loses(self, has: Deal) -> list[str]:
        """The boxes for whose loss this one has made a promise from which no deal has followed."""
        return files.read(self.layout.fence).get("loses", "").split() if self._era().number > has.number[0] else []

    def _know(self, stops: Stops) -> None:
        before = deals.stops_of(self.layout)
        after = before.joined(stops)
        if after.data != before.data:
            deals.keep(self.layout.stops, json.dumps(after.data) + "\n")


def _rank_text(deal: Deal) -> str:
    return ".".join(map(str, deal.rank))
