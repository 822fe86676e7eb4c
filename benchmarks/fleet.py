"""What a large fleet costs before its first session runs: the product's own planner, deal and scripts; no real host.

    python benchmarks/fleet.py                       64 boxes and 100,000 sessions: minutes, and some GiB of memory
    python benchmarks/fleet.py 8 10000               fewer
    python benchmarks/fleet.py slurm 1000000         a plan for Slurm, with its job arrays

No host is looked at. Each step is one line: its seconds of a core (other programs do not count), the memory of the
process by then, and what it made. Each box has 8 GPUs and 64 cores. Boxes of one shape share most of a plan. Moves are
in `moves.py`.
"""

from __future__ import annotations

import os
import resource
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from comborun.generate.script import scripts
from comborun.generate.slurm_jobs import texts
from comborun.grid import Grid, parse_grid
from comborun.model.resources import HostFacts
from comborun.model.work import process_of
from comborun.planner.dealing import Candidate, deal, ends, least, rooms_of, same_work
from comborun.planner.knowledge import NOTHING_KNOWN
from comborun.planner.laying import Drafts, lay_out
from comborun.remote.grids import laid_out
from comborun.remote.publish import RunContent, publish
from comborun.remote.transport import LocalTransport
from comborun.rules.deal import Deal, parse
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


if __name__ == "__main__":
    words = sys.argv[1:]
    if words[:1] == ["slurm"]:
        slurm(int(words[1]))
    else:
        boxes(int((*words, "64")[0]), int((*words[1:], "100000")[0]))
