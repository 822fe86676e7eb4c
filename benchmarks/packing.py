"""The example grid packed onto this machine, in one run side by side: one after another, with GNU parallel, and with
comborun without and with thread caps, in shards, and by a calibration.

    python benchmarks/packing.py [--episodes 100] [--jobs N]

Prints wall seconds and their ratio to the bound, which is the work of all sessions, measured one after another, divided
by the cores. A second table does the same for a program that thread caps are about: its library starts a thread for
each core (the example's does not). Needs the example's dependencies in the environment that runs, and tmux. Leaves GNU
parallel out where it is missing.
"""

from __future__ import annotations

import argparse
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
from pathlib import Path

from timed_launch import seconds_to_the_end

CHECKOUT = Path(__file__).resolve().parents[1]
EXAMPLE = CHECKOUT / "examples" / "quadruped"
POLICIES = ("flat", "rough")
TERRAINS = ("friction", "grass", "boulder", "stairs")
THREADED = """
import json, sys
import numpy as np
first, count, output = int(sys.argv[1]), int(sys.argv[2]), sys.argv[3]
weights = np.random.default_rng(0).normal(size=(384, 384)) / 20
with open(f"{output}/episodes.jsonl", "a") as file:
    for episode in range(first, first + count):
        state = np.random.default_rng(episode).normal(size=(384, 384))
        for _ in range(10):
            state = np.tanh(state @ weights)
        print(json.dumps({"episode": episode, "success": bool(state.sum() > 0)}), file=file, flush=True)
"""
"""what a policy of torch or numpy does on a CPU: products that are large enough for several threads"""


@dataclass(frozen=True)
class Program:
    """A grid's command for every combo, as bash words in which {policy}, {environment} ... are to be filled."""

    name: str
    words: tuple[str, ...]
    workdir: Path
    episodes: int

    def commands(self, output: Path) -> list[list[str]]:
        """With an output folder of its own for each combo."""
        found = []
        for policy in POLICIES:
            for terrain in TERRAINS:
                folder = output / f"{terrain}_{policy}"
                folder.mkdir(parents=True)
                values = {"policy": policy, "environment": terrain, "episodes": str(self.episodes)}
                values |= {"first_episode": "0", "output_dir": str(folder)}
                found.append([_filled(word, values) for word in self.words])
        return found

    def grid(self, folder: Path, *lines: str) -> Path:
        path = folder / "packing.yaml"
        command = json.dumps(shlex.join(self.words))
        keys = [
            *("name: packing", f"policies: [{', '.join(POLICIES)}]", f"environments: [{', '.join(TERRAINS)}]"),
            *(f"episodes: {self.episodes}", f"workdir: {self.workdir}", f"command: {command}", f"root: {folder}/runs"),
            *lines,
        ]
        path.write_text("\n".join([*keys, ""]))
        return path


def _filled(word: str, values: dict[str, str]) -> str:
    for name, value in values.items():
        word = word.replace(f"{{{name}}}", value)
    return word


@dataclass(frozen=True)
class Row:
    way: str
    seconds: float
    episodes: int


def environment(folder: Path) -> dict[str, str]:
    """With the laptop's memory in a folder of its own."""
    return {**os.environ, "XDG_STATE_HOME": str(folder / "state"), "PYTHONPATH": str(CHECKOUT)}


def one_after_another(program: Program, folder: Path) -> float:
    commands = program.commands(folder)
    before = time.monotonic()
    for command in commands:
        subprocess.run(command, cwd=program.workdir, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - before


def gnu_parallel(program: Program, folder: Path, jobs: int) -> float:
    lines = "\n".join(map(shlex.join, program.commands(folder)))
    command = ["parallel", "--will-cite", f"-j{jobs}"]
    before = time.monotonic()
    subprocess.run(command, input=lines, text=True, cwd=program.workdir, check=True, stdout=subprocess.DEVNULL)
    return time.monotonic() - before


def comborun(program: Program, folder: Path, *lines: str, calibrated: bool = False) -> float:
    """From the launch command to the end of the last session, as the run directory tells it."""
    grid = program.grid(folder, *lines)
    combo = [sys.executable, "-m", "comborun"]
    if calibrated:
        measured = subprocess.run(
            [*combo, "calibrate", str(grid), "--json"], env=environment(folder), check=True, capture_output=True
        )
        steps = {step["at_once"]: step["speed"] for step in json.loads(measured.stdout)["steps"]}
        print(f"  calibrated: {steps}", file=sys.stderr)
    return seconds_to_the_end([*combo, "launch", str(grid), "--json"], Path.cwd(), environment(folder))


def written(folder: Path) -> int:
    """Episodes in all result files below a folder; links are passed over."""
    files = (path for path in folder.rglob("*.jsonl") if not path.is_symlink() and path.name == "episodes.jsonl")
    return sum(len(path.read_text().splitlines()) for path in files)


def ways(program: Program, jobs: int) -> dict[str, Callable[[Path], float]]:
    slots, free = f"limits: {{parallel: {jobs}}}", "threads: none"
    return {
        "one after another": lambda folder: one_after_another(program, folder),
        f"GNU parallel -j {jobs}": lambda folder: gnu_parallel(program, folder, jobs),
        f"comborun, {jobs} at once, no caps": lambda folder: comborun(program, folder, slots, free),
        f"comborun, {jobs} at once, thread caps": lambda folder: comborun(program, folder, slots),
        f"comborun, {jobs} at once, caps, 4 shards": lambda folder: comborun(program, folder, slots, "shards: 4"),
        "comborun, calibrated, caps, shards: auto": lambda folder: comborun(
            program, folder, "shards: auto", calibrated=True
        ),
    }


def compare(program: Program, jobs: int) -> None:
    rows = []
    for way, run in ways(program, jobs).items():
        if way.startswith("GNU parallel") and not shutil.which("parallel"):
            continue
        with tempfile.TemporaryDirectory(prefix="packing-", ignore_cleanup_errors=True) as folder:
            rows.append(Row(way, run(Path(folder)), written(Path(folder))))
        print(f"{way}: {rows[-1].seconds:.1f} s, {rows[-1].episodes} episodes", file=sys.stderr)
    cores = len(os.sched_getaffinity(0))
    bound = rows[0].seconds / cores
    print(f"\n{program.name}: {rows[0].seconds:.1f} s of work on {cores} cores; bound {bound:.1f} s\n")
    print("| way | episodes | wall seconds | ratio to the bound |\n|---|---|---|---|")
    for row in rows:
        print(f"| {row.way} | {row.episodes} | {row.seconds:.1f} | {row.seconds / bound:.2f} |")
    sys.stdout.flush()


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--episodes", type=int, default=100)
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options = parser.parse_args()
    print(f"load {os.getloadavg()[0]:.1f} before the first round", file=sys.stderr)
    example = (
        *(sys.executable, "evaluate.py", "--policy", "{policy}", "--env", "{environment}"),
        *("--episodes", "{episodes}", "--first-episode", "{first_episode}", "--output-dir", "{output_dir}"),
    )
    compare(Program("the example grid", example, EXAMPLE, options.episodes), options.jobs)
    with tempfile.TemporaryDirectory(prefix="packing-", ignore_cleanup_errors=True) as folder:
        script = Path(folder, "threaded.py")
        script.write_text(THREADED)
        threaded = (sys.executable, str(script), "{first_episode}", "{episodes}", "{output_dir}")
        compare(Program("a program with threads", threaded, Path(folder), options.episodes), options.jobs)


if __name__ == "__main__":
    main()
