"""What a large fleet costs before its first session runs: the product's own planner, deal and scripts; no real host.

    python benchmarks/fleet.py                       64 boxes and 100,000 sessions: minutes, and some GiB of memory
    python benchmarks/fleet.py 8 10000               fewer
    python benchmarks/fleet.py slurm 1000000         a plan for Slurm, with its job arrays
    python benchmarks/fleet.py moves 64 100000       who gives what to whom, and the records of moves at two boxes

No host is looked at. Each step is one line: its seconds of a core (other programs do not count), the memory of the
process by then, and what it made. Each box has 8 GPUs and 64 cores. Boxes of one shape share most of a plan. Real moves
are in `moves.py`.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

from comborun.generate.run_scripts import scripts
from comborun.generate.slurm_jobs import texts
from comborun.grid import Grid, parse_grid
from comborun.host.verbs.boxes import Box
from comborun.model.resources import HostFacts
from comborun.model.work import process_of
from comborun.planner.dealing import Candidate, deal, ends, least, rooms_of, same_work
from comborun.planner.knowledge import NOTHING_KNOWN
from comborun.planner.laying import Drafts, lay_out
from comborun.planner.moving import Place, steps
from comborun.remote.grids import laid_out
from comborun.remote.publish import RunContent, publish
from comborun.remote.transport import LocalTransport
from comborun.rules.deal import Deal, Move, parse
from comborun.rules.names import RunLayout
from comborun.rules.room.capacity import Card

T = TypeVar("T")
COMBOS = 10_000
"""a grid takes no more; each is cut into shards then"""
GRID = """
policies: [{policies}]
environments: [{environments}]
episodes: 500
shards: {shards}
command: eval --policy {{policy}} --env {{environment}} --from {{first_episode}} --n {{episodes}} --out {{output_dir}}
workdir: ~/
resources: {{gpus: 1, gpu_memory: 8 GiB}}
{more}
"""


def grid(sessions: int, more: str) -> Grid:
    combos = min(COMBOS, sessions)
    policies = max(1, int(combos**0.5) // 4)
    environments = combos // policies
    names = ", ".join(f"p{number}" for number in range(policies)), ", ".join(f"e{n}" for n in range(environments))
    return parse_grid(
        GRID.format(policies=names[0], environments=names[1], shards=sessions // combos, more=more), Path("grid.yaml")
    )


def host(number: int) -> HostFacts:
    gpus = 8
    cards = tuple(Card(index, f"GPU-{number}-{index}", "", 81_920, 0) for index in range(gpus))
    return HostFacts(
        f"box{number}", f"box{number}", 64, 256 << 30, tuple(range(gpus)), "5.2", {"tmux": "3.4"}, (), cards=cards
    )


def timed(what: str, act: Callable[[], T], made: Callable[[T], str] = lambda _: "") -> T:
    begun = sum(os.times()[:4])
    found = act()
    seconds = sum(os.times()[:4]) - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (1 << 20)
    print(f"{what:28} {seconds:8.1f} s  {peak:6.2f} GiB  {made(found)}", flush=True)
    return found


def size(text: str) -> str:
    return f"{len(text) / (1 << 20):.1f} MiB"


def boxes(count: int, sessions: int) -> None:
    names = [f"box{number}" for number in range(count)]
    whole = timed("grid", lambda: grid(sessions, f"hosts: [{', '.join(names)}]"))
    drafts = Drafts()
    plan = timed("plan of one box", lambda: lay_out(whole, host(3), drafts=drafts))
    timed("plan of another one", lambda: lay_out(whole, host(4), drafts=drafts))
    candidates = [Candidate(name, plan, host(number), NOTHING_KNOWN) for number, name in enumerate(names)]
    timed("same work", lambda: same_work(candidates))
    rooms = timed(
        "rooms", lambda: rooms_of(candidates), lambda rooms: f"{sum(one.slots for one in rooms.values())} slots"
    )
    dealt = timed("deal", lambda: deal([process_of(one) for one in plan.current], rooms))
    last = timed(
        "ends", lambda: ends(dealt, rooms), lambda found: f"{max(found.values()) / least(dealt, rooms):.3f} of the best"
    )
    assert last
    given = {"grid_run": "x", "box": names[0], "number": [0, 0], "boxes": names, "of": dealt, "lost": {}}
    text = timed("deal.json", lambda: Deal(given).text, size)
    timed("deal.json read", lambda: parse(text))
    timed("plan.json", plan.to_json, size)
    timed("scripts", lambda: sum(len(text) for _, text in scripts(plan)), lambda total: f"{total >> 20} MiB")
    mine = Deal(given)
    timed("own share marked", lambda: plan.without(lambda one: mine.runs_here(process_of(one))))


def slurm(sessions: int) -> None:
    whole = timed("grid", lambda: grid(sessions, "slurm: {time: 60}"))
    plan = timed("plan", lambda: laid_out(whole, host(0), "", slurm=True))
    timed("plan.json", plan.to_json, size)
    timed("job arrays", lambda: sum(len(text) for _, text in texts(plan)), lambda total: f"{total >> 20} MiB")
    timed("scripts", lambda: sum(len(text) for _, text in scripts(plan)), lambda total: f"{total >> 20} MiB")
    with tempfile.TemporaryDirectory() as folder:
        timed("run directory, written here", lambda: publish(LocalTransport(), RunContent(plan, "", folder, {})))


def moves(count: int, sessions: int) -> None:
    """Half of the boxes have done their share, and the others have all of it left."""
    slots, share = 64, 2 * sessions // count
    names = [f"s{number}" for number in range(sessions)]
    lengths = dict.fromkeys(names, 600.0)
    busy = [names[at : at + share] for at in range(0, sessions, share)]
    places = {
        f"box{number}": Place(lengths, lambda _: 0, (300.0,) * slots, tuple(own), frozenset(own))
        for number, own in enumerate(busy)
    }
    places |= {f"idle{number}": Place(lengths, lambda own: min(slots, len(own))) for number in range(count - len(busy))}
    timed("steps of one look", lambda: steps(places, soon=5.0, least=5.0), lambda found: f"{len(found)} moves")
    of = {name: f"box{number}" for number, own in enumerate(busy) for name in own}
    with tempfile.TemporaryDirectory() as folder:
        deal = Deal({"grid_run": "x", "box": "box0", "number": [0, 0], "boxes": [*places], "of": of, "lost": {}})
        giver, taker = (box_at(f"{folder}/{name}", deal.at(name), names) for name in ("box0", "idle0"))
        for number in range(share):
            order = deal.move(busy[0][number], "idle0")
            if number in {0, share // 2, share - 1}:
                size = sum(path.stat().st_size for path in Path(taker.layout.moves).glob("*"))
                timed(f"move number {number + 1}", partial(move, giver, taker, order), f"{size >> 10} KiB".format)
            else:
                for box, kind in ((giver, "out"), (taker, "in")):
                    path = Path(box.layout.move(order.session, order.number, order.epoch, kind))
                    path.parent.mkdir(exist_ok=True)
                    path.write_text(order.text)


def box_at(folder: str, deal: Deal, names: list[str]) -> Box:
    layout = RunLayout(folder)
    for path, text in (
        (layout.id, "x\n"),
        (layout.deal, deal.text),
        (layout.queue, "".join(f'{{"name": "{name}"}}\n' for name in names)),
    ):
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        Path(path).write_text(text)
    return Box(folder)


def move(giver: Box, taker: Box, order: Move) -> None:
    giver.release(order)
    taker.receive(order)


if __name__ == "__main__":
    words = sys.argv[1:]
    if words[:1] == ["slurm"]:
        slurm(int(words[1]))
    elif words[:1] == ["moves"]:
        moves(int(words[1]), int(words[2]))
    else:
        boxes(int((*words, "64")[0]), int((*words[1:], "100000")[0]))
