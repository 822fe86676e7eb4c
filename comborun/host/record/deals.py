"""The deal of a run that is a part of a grid run on several boxes: what this box runs of the plan.

A run without the file `boxes/deal.json` is a run on one box: all of its plan is its own.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator

from comborun.host.system import files
from comborun.host.verb_errors import BUSY, NO_RUN, Refusal, holding, must_write, unwritable
from comborun.rules import records
from comborun.rules.deal import Deal, Move, Stops, UnreadableDeal, parse, parse_move
from comborun.rules.host import Denial
from comborun.rules.names import MOVE, RunLayout

_MOST = 1 << 26
_LOCK_S = 20.0


def deal_of(run: RunLayout) -> Deal | None:
    """The deal in force, with the moves that are on record here; None for a run on one box."""
    there = os.path.exists(run.deal)  # asked first: it may come while it is read
    deal = parse(files.read_text(run.deal, _MOST))
    if not deal:
        return UnreadableDeal(run.deal) if there else None
    moves = _records(run)
    for name, move in moves.items():
        session, *number, _, kind = name.rsplit(".", 4)
        if not move and kind == "out" and (*map(int, number),) == deal.number:  # what has gone must not run
            return UnreadableDeal(f"{run.moves}/{name}", session)
    return deal.moved(filter(None, moves.values()))


def readable_deal_of(run: RunLayout) -> Deal:
    """The same. Raises Refusal for a run on one box, and for a record that can't be read."""
    deal = deal_of(run)
    if not deal:
        raise Refusal(NO_RUN, Denial.NO_GRID_RUN, path=run.directory)
    if isinstance(deal, UnreadableDeal):
        taken = deal.gone and f"moves/{os.path.basename(deal.path)[:-3]}in"
        raise Refusal(BUSY, Denial.DEAL_UNREADABLE, path=deal.path, session=deal.gone, taken=taken)
    return deal


def moves_of(run: RunLayout) -> Iterator[Move]:
    """The moves that are on record, in no order, under whatever deal."""
    return filter(None, _records(run).values())


def _records(run: RunLayout) -> dict[str, Move | None]:
    """None: one that can't be read."""
    names = filter(MOVE.fullmatch, files.entries(run.moves))
    return {name: parse_move(files.read_text(f"{run.moves}/{name}")) for name in names}


def runs_here(run: RunLayout, process: str) -> bool:
    deal = deal_of(run)
    return deal is None or deal.runs_here(process)


def stops_of(run: RunLayout) -> Stops:
    record = files.read(run.stops)
    return Stops(records.integer(record, "stop") or 0, records.integer(record, "resumed") or 0)


def refuse_ceded(run: RunLayout, process: str) -> None:
    """Raise Refusal for a session that runs on another box, whoever asks for it."""
    deal = readable_deal_of(run) if os.path.exists(run.deal) else None
    if deal and not deal.runs_here(process):
        raise Refusal(BUSY, Denial.DEALT_ELSEWHERE, session=process, box=deal.box_of(process))


def locked(run: RunLayout) -> contextlib.AbstractContextManager[None]:
    """Hold the lock under which orders of the grid run are taken, and attempts are claimed. Raises Refusal."""
    return holding(run.boxes_lock, _LOCK_S)


@contextlib.contextmanager
def claiming(run: RunLayout, process: str) -> Iterator[None]:
    """While an attempt is claimed the session can't be given to another box. Raises Refusal if it runs on another."""
    if not os.path.exists(run.deal):
        yield
        return
    with locked(run):
        refuse_ceded(run, process)
        yield


def refuse_stopped(run: RunLayout) -> None:
    """Raise Refusal if the grid run was stopped, and nobody has resumed it since."""
    if os.path.exists(run.deal) and stops_of(run).in_force:
        raise Refusal(BUSY, Denial.GRID_RUN_STOPPED)


def keep(path: str, text: str) -> None:
    """Replace a record, so that it outlives a power cut. Raises Refusal."""
    must_write(files.write_text(path, text, synced=True), path)
    to_disk(path)


def keep_first(path: str, text: str) -> bool:
    """Make a record that outlives a power cut; False if there is one. Raises Refusal."""
    try:
        os.makedirs(os.path.dirname(path), exist_ok=True)
        made = files.create_whole(path, text, synced=True)
    except OSError as error:
        raise unwritable(path, error) from None
    if made:
        to_disk(path)
    return made


def to_disk(path: str) -> None:
    """Sync a file and its name. Raises Refusal."""
    try:
        files.sync(path)
        files.sync(os.path.dirname(path))
        files.sync(os.path.dirname(os.path.dirname(path)))
    except OSError as error:
        raise unwritable(path, error) from None
