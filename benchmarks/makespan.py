"""The example grid one after another, with GNU parallel, and with comborun, in one run side by side.

    python benchmarks/makespan.py [--episodes 100] [--jobs 2 8] [--rounds 3]

Prints wall seconds and their ratio to the bound, which is the work of all sessions divided by the number of cores.
Needs the example's dependencies in the environment that runs it, and tmux. Leaves GNU parallel out where it is missing.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
EXAMPLE = CHECKOUT / "examples" / "quadruped"
POLICIES = ("flat", "rough")
TERRAINS = ("friction", "grass", "boulder", "stairs")
LONGEST_S, LOOK_S = 1800.0, 0.02


@dataclass(frozen=True)
class Row:
    way: str
    seconds: float
    episodes: int


def commands(episodes: int, output: Path) -> list[list[str]]:
    """The evaluation program's command for every combo, each with an output folder of its own."""
    return [
        [
            *(sys.executable, "evaluate.py", "--policy", policy, "--env", terrain),
            *("--checkpoint", f"checkpoints/{policy}.npz", "--episodes", str(episodes), "--seed", "1000"),
            *("--output-dir", str(output / f"{terrain}_{policy}")),
        ]
        for policy, terrain in itertools.product(POLICIES, TERRAINS)
    ]


def environment() -> dict[str, str]:
    return {**os.environ, "OMP_NUM_THREADS": "1"}


def one_after_another(episodes: int, output: Path) -> float:
    before = time.monotonic()
    for command in commands(episodes, output):
        subprocess.run(command, cwd=EXAMPLE, env=environment(), check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - before


def gnu_parallel(episodes: int, output: Path, jobs: int) -> float:
    lines = "\n".join(map(shlex.join, commands(episodes, output)))
    before = time.monotonic()
    subprocess.run(
        ["parallel", f"-j{jobs}"],
        input=lines,
        text=True,
        cwd=EXAMPLE,
        env=environment(),
        check=True,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    return time.monotonic() - before


def comborun(episodes: int, output: Path, jobs: int) -> float:
    """From the launch command to the end of the last session, as the run directory tells it."""
    grid = output / "quadruped.yaml"
    text = (EXAMPLE / "grid.yaml").read_text()
    text = text.replace("episodes: 100", f"episodes: {episodes}").replace("workdir: .", f"workdir: {EXAMPLE}")
    grid.write_text(text + f"root: {output}\n")
    launch = [sys.executable, "-m", "comborun", "launch", str(grid), "--parallel", str(jobs), "--json"]
    before = time.monotonic()
    launched = subprocess.run(launch, cwd=CHECKOUT, check=True, capture_output=True)
    told = json.loads(launched.stdout.splitlines()[0])  # a line for the launch; what follows it are notes
    done = Path(told["directory"], "dispatch", "done")
    while not done.exists():
        if time.monotonic() - before > LONGEST_S:
            sys.exit("the run did not end within half an hour")
        time.sleep(LOOK_S)
    return time.monotonic() - before


def written(output: Path) -> int:
    """Episodes in all result files below a folder; links are passed over."""
    files = (path for path in output.rglob("*episodes.jsonl") if not path.is_symlink())
    return sum(len(path.read_text().splitlines()) for path in files)


def measured(way: str, run: Callable[[Path], float]) -> Row:
    with tempfile.TemporaryDirectory(prefix="makespan-") as folder:
        row = Row(way, run(Path(folder)), written(Path(folder)))
    print(f"{way}: {row.seconds:.1f} s, {row.episodes} episodes", file=sys.stderr)
    return row


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--jobs", type=int, nargs="+", default=[os.cpu_count() or 1, 8])
    parser.add_argument("--rounds", type=int, default=3, help="of all but the first way, in turn; medians are printed")
    options = parser.parse_args()
    episodes = options.episodes
    ways: dict[str, Callable[[Path], float]] = {}
    for jobs in options.jobs:
        if shutil.which("parallel"):
            ways[f"GNU parallel -j {jobs}"] = partial(gnu_parallel, episodes, jobs=jobs)
        ways[f"comborun --parallel {jobs}"] = partial(comborun, episodes, jobs=jobs)
    rows = [measured("one after another", partial(one_after_another, episodes))]
    rounds = [[measured(way, run) for way, run in ways.items()] for _ in range(options.rounds)]
    rows += [sorted(of_way, key=lambda row: row.seconds)[len(of_way) // 2] for of_way in zip(*rounds, strict=True)]
    cores = os.cpu_count() or 1
    bound = rows[0].seconds / cores
    print(f"bound: {rows[0].seconds:.1f} s of work on {cores} cores = {bound:.1f} s\n")
    print("| way | episodes | wall seconds | ratio to the bound |\n|---|---|---|---|")
    for row in rows:
        print(f"| {row.way} | {row.episodes} | {row.seconds:.1f} | {row.seconds / bound:.2f} |")


if __name__ == "__main__":
    main()
