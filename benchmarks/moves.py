"""60 sessions on three hosts of unequal speed, with and without moves: how late the last one ends.

    python benchmarks/moves.py [--seconds 8 24] [--rounds 1]

Needs root, sshd and tmux: each host is a real sshd with a user and a home of its own, and stand-in GPUs; a session has
a GPU of its own. `alpha` has four GPUs, `beta` two, `gamma` two and is three times as slow, which nobody knows at the
launch. The best possible end is the work of all sessions over the speed of all slots. Sessions only sleep.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import secrets
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path[:0] = [str(CHECKOUT / "tests" / "integration"), str(CHECKOUT / "tests" / "testbed")]
GPUS, SLOWER = {"alpha": 4, "beta": 2, "gamma": 2}, {"alpha": 1.0, "beta": 1.0, "gamma": 3.0}
POLICIES, ENVIRONMENTS = 20, 3
EPISODES = 4
PROGRAM = """\
#!/bin/bash
# POLICY ENVIRONMENT OUT: as many seconds as ~/work says, times ~/slower
read -r slower <~/slower
read -r seconds < <(sed -n "s/^$2_$1 //p" ~/work)
for episode in 0 1 2 3; do
  sleep "$(awk "BEGIN { print $seconds * $slower / 4 }")"
  printf '{"episode": %d, "seed": %d, "success": true}\\n' "$episode" "$episode" >>"$3/episodes.jsonl"
done
"""
GRID = """\
name: unequal
hosts: [alpha, beta, gamma]
policies: [{policies}]
environments: [{environments}]
episodes: 4
command: bash ~/work.sh {{policy}} {{environment}} {{output_dir}}
workdir: ~/
poll: 5
limits: {{parallel: 8}}
resources: {{gpus: 1, gpu_memory: 20 GiB}}
"""


@dataclass(frozen=True)
class Row:
    way: str
    seconds: float
    best: float
    moves: int


class Bed:
    def __init__(self, stack: ExitStack, work: dict[str, float]) -> None:
        sshd: Any = import_module("sshd")
        self.work = work
        self.place = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="moves-", dir="/tmp")))
        self.place.chmod(0o755)
        self.homes = dict[str, Path]()
        config = []
        for name, count in GPUS.items():
            user = stack.enter_context(sshd.fresh_user())
            bin_ = user.home / "bin"
            (bin_ / "held").mkdir(parents=True)
            for program, source in import_module("nvidia").PROGRAMS.items():
                (bin_ / program).write_text((CHECKOUT / "tests" / "testbed" / source).read_text())
                (bin_ / program).chmod(0o755)
            (bin_ / "cards").write_text("".join(f"{index} 24000 0 5\n" for index in range(count)))
            (user.home / "work.sh").write_text(PROGRAM)
            (user.home / "work").write_text("".join(f"{one} {seconds}\n" for one, seconds in work.items()))
            (user.home / "slower").write_text(f"{SLOWER[name]}\n")
            subprocess.run(["chown", "-R", str(user.uid), str(user.home)], check=True)
            lines = (f"SetEnv PATH={bin_}:/usr/local/bin:/usr/bin:/bin",)
            server = stack.enter_context(sshd.running_sshd(self.place / name, user, *lines, alias=name))
            config.append(server.config.read_text())
            self.homes[name] = user.home
        (self.place / "config").write_text("".join(config))
        home = self.place / "home"
        home.mkdir()
        self.environment = {
            **{name: os.environ[name] for name in ("PATH",)},
            "HOME": str(home),
            "PYTHONPATH": str(CHECKOUT),
            "COMBORUN_SSH_CONFIG": str(self.place / "config"),
            "COMBORUN_TMUX_SOCKET": f"moves-{secrets.token_hex(4)}",
            "COMBORUN_KEEP_S": "0",
        }
        self.grid = home / "grid.yaml"
        names = [f"p{number}" for number in range(POLICIES)], [f"e{number}" for number in range(ENVIRONMENTS)]
        self.grid.write_text(GRID.format(policies=", ".join(names[0]), environments=", ".join(names[1])))

    def combo(self, *words: str) -> str:
        command = [sys.executable, "-m", "comborun", *words]
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"{' '.join(words)}: {done.stdout}{done.stderr}")
        return done.stdout

    def measured(self, way: str) -> Row:
        """From the first session's begin to the last one's end, by the records of the hosts."""
        self.combo("launch", str(self.grid), "--new")
        command = [sys.executable, "-m", "comborun", "keep", "--interval", "5"]
        if way == "with moves":
            subprocess.run(command, env=self.environment, check=True, stdout=sys.stderr)
        while not json.loads(self.combo("status", "--json"))["finished"]:
            time.sleep(5)
        runs = [
            max((home / "comborun").glob("unequal-*"), key=lambda one: one.stat().st_mtime)
            for home in self.homes.values()
        ]
        begins = [_field(path, "started") for run in runs for path in run.glob("sessions/*/attempt-*/begin")]
        ends = [_field(path, "ended") for run in runs for path in run.glob("sessions/*/attempt-*/end")]
        assert len(begins) == len(ends) == len(self.work), (len(begins), len(ends))
        best = sum(self.work.values()) / sum(count / SLOWER[host] for host, count in GPUS.items())
        return Row(way, max(ends) - min(begins), best, sum(len([*run.glob("moves/*.in")]) for run in runs))


def _field(path: Path, key: str) -> float:
    return float(json.loads(path.read_text())[key])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, nargs=2, default=(8.0, 24.0), help="shortest and longest session")
    parser.add_argument("--rounds", type=int, default=1)
    options = parser.parse_args()
    chance = random.Random(1)
    names = [f"e{e}_p{p}" for p in range(POLICIES) for e in range(ENVIRONMENTS)]
    work = {name: round(chance.uniform(*options.seconds), 1) for name in names}
    ways = ("without moves", "with moves")
    rows: dict[str, list[Row]] = {way: [] for way in ways}
    with ExitStack() as stack:
        bed = Bed(stack, work)
        for _ in range(options.rounds):
            for way in ways:
                rows[way].append(row := bed.measured(way))
                print(f"{way}: {row.seconds:.0f} s, {row.moves} moves", file=sys.stderr)
        tmux = ["tmux", "-L", bed.environment["COMBORUN_TMUX_SOCKET"], "kill-server"]
        subprocess.run(tmux, capture_output=True, check=False)
    print("| way | seconds | over the best possible | moves |\n|---|---|---|---|")
    for way in ways:
        seconds, moves = (statistics.median(getattr(one, key) for one in rows[way]) for key in ("seconds", "moves"))
        print(f"| {way} | {seconds:.0f} | {seconds / rows[way][0].best:.2f} | {moves:.0f} |")


if __name__ == "__main__":
    if shutil.which("tmux") is None or os.geteuid():
        sys.exit("this needs root, and tmux")
    main()
