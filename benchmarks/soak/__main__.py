"""Random faults against real runs, and a count of the episodes that were lost.

    python benchmarks/soak [--rounds 240] [--seed 1] [--jobs 3] [--json]      some six minutes
    python benchmarks/soak --seed 1 --round 17                     one round again, with its story

A round draws a grid, a program with some bad manner for each policy, and one to five faults with their moments; it
launches, lets the faults happen, and brings the run to its end with the commands that a user has. Then every planned
episode must be in the report exactly once, with the outcome that the program computes, and nothing of the run may live.
Lost is an episode that the program has recorded, by a ledger of its own outside the run, and that the report lacks.
The same seed draws the same rounds; what is hit at a given moment is up to the machine. Ends with 1 when a round has a
flaw, and 130 after Ctrl-C, with the table of what there was until then.
"""

from __future__ import annotations

import argparse
import json
import os
import platform
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from faults import kinds
from rounds import Played, each_played
from scene import Scene, draw

# What the commands need is imported once, and not by each of some thousand.
import comborun.cli
import comborun.remote.program
import comborun.remote.transport
import comborun.reporter.report  # noqa: F401


def main() -> int:
    options = parsed()
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # as Ctrl-C, so that nothing is left behind
    numbers = [options.round] if options.round is not None else range(options.rounds)
    scenes = [draw(options.seed, number, kinds(), multiplexers()) for number in numbers]
    began, played, code = time.monotonic(), list[Played](), 0
    try:
        for one in each_played(scenes, options.jobs):
            played.append(one)
            tell(one, told=options.round is not None)
    except KeyboardInterrupt:
        print("interrupted", file=sys.stderr)
        code = 130
    sums = total_of(played)
    seconds = time.monotonic() - began
    if options.json:
        print(json.dumps({"seed": options.seed, "seconds": round(seconds, 1), **sums.document()}))
    else:
        machine = f"{os.cpu_count()} cores, {platform.system()} {platform.release()}"
        print("\n".join(table(sums, f"seed {options.seed}, {seconds:.0f} s, {machine}")))
    return code or int(bool(sums.flawed))


def parsed() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=240)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--round", type=int, help="play this round alone")
    parser.add_argument("--jobs", type=int, default=3, help="rounds at once: most of one is waiting")
    parser.add_argument("--json", action="store_true", help="totals as one JSON document")
    return parser.parse_args()


def multiplexers() -> list[str]:
    found = [name for name in ("tmux", "screen") if shutil.which(name)]
    return found or sys.exit("neither tmux nor screen is installed")


def tell(played: Played, *, told: bool) -> None:
    """A line of progress; for a round with a flaw all that there is to know."""
    scene, lines = played.scene, [progress(played)]
    if played.flaws or told:
        lines += [scene.describe(), *(f"  FLAW {flaw}" for flaw in played.flaws)]
        lines += [f"  again: {again(scene)}", *(f"    {line}" for line in played.story.splitlines())]
    print("\n".join(lines), file=sys.stderr, flush=True)


def progress(played: Played) -> str:
    planned, lost = (len(played.found.planned), len(played.found.lost)) if played.found else (0, 0)
    hit = ", ".join(played.hit) or "nothing was hit"
    return f"round {played.scene.number}: {planned} episodes, {lost} lost, {played.seconds:.1f} s: {hit}"


def again(scene: Scene) -> str:
    return f"python benchmarks/soak --seed {scene.seed} --round {scene.number}"


# The sum of many rounds, and its table


@dataclass(frozen=True)
class Total:
    rounds: int
    planned: int
    computed: int
    """by the ledgers, each episode once"""
    repeated: int
    """how often an episode was computed that had been, and was merged"""
    reported: int
    missing: int
    lost: int
    commands: int
    """that brought the runs to their ends"""
    faults: Counter[str]
    flawed: tuple[int, ...]
    """the numbers of the rounds that have a flaw"""

    def document(self) -> dict[str, Any]:
        return {**vars(self), "faults": dict(sorted(self.faults.items())), "flawed": list(self.flawed)}


def total_of(played: Sequence[Played]) -> Total:
    found = [one.found for one in played if one.found]
    openings = [one.scene.opening for one in played if one.scene.opening != "plain"]
    return Total(
        rounds=len(played),
        planned=sum(len(one.planned) for one in found),
        computed=sum(len(one.computed) for one in found),
        repeated=sum(one.repeated for one in found),
        reported=sum(len(one.told) for one in found),
        missing=sum(len(one.missing) for one in found),
        lost=sum(len(one.lost) for one in found),
        commands=sum(one.tries for one in played),
        faults=Counter(kind for one in played for kind in one.hit) + Counter(openings),
        flawed=tuple(one.scene.number for one in played if one.flaws),
    )


def table(sums: Total, heading: str) -> Iterator[str]:
    yield f"{heading}\n\n| what | number |\n|---|---|"
    for what, number in (
        ("rounds", sums.rounds),
        ("faults that hit something", sums.faults.total()),
        ("episodes planned", sums.planned),
        ("episodes computed, by the programs' own ledgers", sums.computed),
        ("episodes in the reports", sums.reported),
        ("episodes missing after all, and named", sums.missing),
        ("**episodes lost**", sums.lost),
        ("episodes computed again, and merged", sums.repeated),
        ("commands to bring the runs to their ends", sums.commands),
        ("rounds with a flaw", len(sums.flawed)),
    ):
        yield f"| {what} | {number} |"
    yield "\n| fault | times |\n|---|---|"
    for kind, times in sums.faults.most_common():
        yield f"| {kind} | {times} |"


if __name__ == "__main__":
    sys.exit(main())
