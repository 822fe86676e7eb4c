"""What it costs to hand a grid to Slurm and to look at it there; beside it the loop around sbatch that people write.

    python benchmarks/slurm.py [--sessions 1000] [--rounds 3]      about a minute; needs root and Debian's slurmctld

A real Slurm on this machine (tests/testbed/slurm_setup.sh), with accounting off. Nothing runs: the tasks ask for a
start in an hour, so that only planning, publishing, submitting and asking is measured. Seconds are wall clock, the
commands' own start included; each is the median of the rounds. Prints a markdown table; asserts nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import platform
import random
import shutil
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

CHECKOUT = Path(__file__).parents[1]
LATER = "--begin=now+1hour"
GRID = """\
name: cells
root: {root}
policies: [{policies}]
environments: [{environments}]
episodes: 100
command: "true {{episodes}} {{output_dir}}"
resources: {{gpus: 1}}
limits: {{max_time: 1 h}}
slurm: {{partition: main, options: ["{later}"]}}
"""


@contextlib.contextmanager
def cluster() -> Iterator[dict[str, str]]:
    """The environment in which Slurm's commands find a Slurm of our own; it ends with this."""
    places = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin", "/sbin"])
    if not shutil.which("slurmctld", path=places) or os.geteuid() != 0:
        sys.exit("needs root, and: apt-get install -y --no-install-recommends slurmctld slurmd slurm-client munge")
    with tempfile.TemporaryDirectory(prefix="cb-slurm-") as name:
        folder = Path(name)
        folder.chmod(0o755)
        environment = {**os.environ, "PATH": places, "SLURM_CONF": f"{name}/etc/slurm.conf"}
        environment |= {"XDG_STATE_HOME": f"{name}/laptop", "PYTHONPATH": str(CHECKOUT)}
        words = ["bash", str(CHECKOUT / "tests/testbed/slurm_setup.sh"), name, "2", "4", str(_port())]
        try:
            subprocess.run(words, env=environment, check=True, capture_output=True, timeout=60)
            yield environment
        finally:
            for file in (folder / "run").glob("*.pid"):
                with contextlib.suppress(OSError, ValueError):
                    os.kill(int(file.read_text()), signal.SIGKILL)


def _port() -> int:
    return random.SystemRandom().randrange(20000, 30000)


def timed(environment: dict[str, str], *words: str) -> float:
    """Seconds that a command takes. Raises CalledProcessError, with what it said, where it fails."""
    start = time.perf_counter()
    done = subprocess.run(words, env=environment, capture_output=True, text=True, timeout=300, check=False)
    if done.returncode:
        sys.exit(f"{words}: {done.stdout}{done.stderr}")
    return time.perf_counter() - start


def by_hand(environment: dict[str, str], folder: Path, sessions: int) -> float:
    """A loop around sbatch, as people write it."""
    script = folder / "job.sh"
    script.write_text("#!/bin/bash\nexec true\n")
    loop = 'for ((i = 0; i < $1; i++)); do sbatch --gres=gpu:1 --time=60 --output=/dev/null "$2" "$3" >/dev/null; done'
    return timed(environment, "bash", "-c", loop, "loop", str(sessions), LATER, str(script))


def measure(environment: dict[str, str], sessions: int, rounds: int) -> dict[str, list[float]]:
    combo = (sys.executable, "-m", "comborun")
    spent: dict[str, list[float]] = {}
    for number in range(rounds):
        with tempfile.TemporaryDirectory(prefix="cb-grid-") as name:
            folder = Path(name)
            grid = folder / "grid.yaml"
            axes = {"policies": _names("p", max(1, sessions // 10)), "environments": _names("e", 10)}
            grid.write_text(GRID.format(root=folder / "runs", later=LATER, **axes))
            for what, words in {
                "plan": ("plan", str(grid), "--slurm"),
                "launch: plan, publish, submit": ("launch", str(grid), "--slurm", "--new"),
                "launch again: nothing is due": ("launch", str(grid), "--slurm"),
                "look at it": ("status",),
            }.items():
                spent.setdefault(what, []).append(timed(environment, *combo, *words))
            (run,) = (folder / "runs").glob("cells-*")
            if not number:
                arrays = len((run / "slurm/jobs").read_text().splitlines())
                tasks = subprocess.run(
                    ["squeue", "-h", "-r", "-o", "%j"], env=environment, capture_output=True, text=True, check=True
                )
                told = sum(line.startswith(run.name) and "settle" not in line for line in tasks.stdout.splitlines())
                print(f"{told} tasks in Slurm's queue; lines of slurm/jobs: {arrays}")
            spent.setdefault("stop", []).append(timed(environment, *combo, "stop"))
            if not number:  # minutes, else
                spent["by hand: one sbatch for each"] = [by_hand(environment, folder, sessions)]
            subprocess.run(["scancel", "--partition=main"], env=environment, check=False)
    return spent


def _names(letter: str, count: int) -> str:
    return ", ".join(f"{letter}{number:03}" for number in range(count))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sessions", type=int, default=1000)
    parser.add_argument("--rounds", type=int, default=3)
    options = parser.parse_args()
    print(f"{os.cpu_count()} cores, {platform.system()} {platform.release()}, load {os.getloadavg()[0]:.1f}")
    with cluster() as environment:
        spent = measure(environment, options.sessions, options.rounds)
    print(f"\n| {options.sessions} sessions | seconds |\n|---|---|")
    for what, seconds in spent.items():
        print(f"| {what} | {statistics.median(seconds):.2f} |")


if __name__ == "__main__":
    main()
