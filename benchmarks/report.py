"""Reading, merging and reporting a large run, beside pandas that does the reading alone.

    python benchmarks/report.py [--combos 200] [--episodes 1000] [--others PYTHON]

A run directory is made in a scratch folder: one session per combo, one line per episode. Every way runs in a process of
its own: wall and CPU seconds with the interpreter's start and the imports in them, and its highest memory (resident).
`--others` names the interpreter that has pandas, where the one that runs this has not.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path

CHECKOUT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(CHECKOUT))

from comborun.model.plan import Limits, Plan, Session  # noqa: E402
from comborun.rules import records  # noqa: E402
from comborun.rules.names import RUN  # noqa: E402 - after the path to it
from comborun.rules.results.fields import ResultRules  # noqa: E402

POLICIES = 8
REPORT = (
    "import sys, pathlib; from comborun.reporter.report import report_run;"
    " report_run(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[2]))"
)
READ = "import sys, pathlib; from comborun.reporter.collect import collect_run; collect_run(pathlib.Path(sys.argv[1]))"
JSON = (
    "import sys, pathlib, json\n"
    "for path in pathlib.Path(sys.argv[1]).rglob('*.jsonl'):\n"
    "    rows = [json.loads(line) for line in path.open()]"
)
PANDAS = (
    "import sys, pathlib, pandas\n"
    "files = pathlib.Path(sys.argv[1]).rglob('*.jsonl')\n"
    "rows = pandas.concat([pandas.read_json(path, lines=True) for path in files])\n"
    "rows.groupby(['policy', 'environment']).success.agg(['sum', 'count'])"
)
WAYS = {
    "comborun: read, merge, report": REPORT,
    "comborun: read": READ,
    "json.loads on every line, kept per file only": JSON,
    "pandas: read, count": PANDAS,
}


@dataclass(frozen=True)
class Cost:
    seconds: float
    cpu: float
    mebibytes: float


def session(policy: str, environment: str, episodes: int) -> Session:
    return Session(
        name=f"{environment}_{policy}",
        policy=policy,
        environment=environment,
        unit="episode",
        first=0,
        count=episodes,
        seed=1000,
        command=(),
        setup="",
        workdir=None,
        variables=(),
        gpus=0,
        results=ResultRules(metrics=("distance_m", "return", "time_s")),
        digest=f"{environment}-{policy}",
    )


def row(planned: Session, episode: int, chance: random.Random) -> str:
    success = chance.random() < 0.6
    fields = {
        "policy": planned.policy,
        "environment": planned.environment,
        "episode": episode,
        "seed": 1000 + episode,
        "success": success,
        "distance_m": round(chance.uniform(0, 8), 4),
        "return": round(chance.gauss(100, 20), 3),
        "time_s": round(chance.uniform(2, 20), 3),
        "steps": chance.randrange(100, 1000),
        "termination": "goal" if success else chance.choice(("fall", "timeout", "stuck")),
    }
    return json.dumps(fields) + "\n"


def make_run(directory: Path, combos: int, episodes: int) -> None:
    """A finished run as the host leaves it; the same for the same arguments."""
    chance = random.Random(1)
    names = [(f"policy{index % POLICIES}", f"environment{index // POLICIES}") for index in range(combos)]
    sessions = tuple(session(policy, environment, episodes) for policy, environment in names)
    plan = Plan("large", sessions, Limits(8, 8, 0.0, 2), (), None, 60.0, "digest")
    put(directory / RUN.id, "large-20260509T073525-1a2b\n")
    put(directory / RUN.plan(1), plan.to_json())
    put(directory / RUN.manifest, json.dumps({"schema": 1, "grid": "large", "provenance": {}}))
    put(directory / RUN.done, records.render({"at": 1778312125, "succeeded": combos}.items()))
    for index, planned in enumerate(sessions):
        attempt = RUN.attempt(planned.name, 1)
        times = {"attempt": 1, "started": 1778312125 + index // 8 * 600}
        begin = {**times, "pid": 77, "boot": "b", "host": "gpubox", "multiplexer": "tmux"}
        ended = 1778312725 + index // 8 * 600 - index % 8
        end = {"ended": ended, "code": 0, "cause": "exited", "completeness": "complete", "records": episodes}
        put(directory / attempt.begin, records.render(begin.items()))
        put(directory / attempt.end, records.render({**times, **end}.items()))
        rows = "".join(row(planned, episode, chance) for episode in range(episodes))
        put(directory / attempt.output / "episodes.jsonl", rows)


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def measure(python: str, code: str, run: Path, scratch: Path) -> Cost:
    """Of a fresh process."""
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "MPLCONFIGDIR": str(scratch)}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed package is compiled once
    before = time.monotonic()
    command = [python, "-c", code, str(run), str(scratch / "report")]  # not where another checkout could be imported
    child = subprocess.Popen(command, env=environment, cwd=scratch)
    _, status, used = os.wait4(child.pid, 0)
    if status:
        raise SystemExit(f"benchmarks/report.py: a way ended with status {status}")
    return Cost(time.monotonic() - before, used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def middle(costs: list[Cost]) -> Cost:
    """The median time; the highest memory."""
    return replace(
        costs[0],
        seconds=statistics.median(cost.seconds for cost in costs),
        cpu=statistics.median(cost.cpu for cost in costs),
        mebibytes=max(cost.mebibytes for cost in costs),
    )


def pandas_version(python: str) -> str:
    """Empty where it is not installed."""
    command = [python, "-c", "import pandas; print(pandas.__version__)"]
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout.strip()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--combos", type=int, default=200)
    parser.add_argument("--episodes", type=int, default=1000, help="per combo")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--others", default=sys.executable, help="the Python that has pandas")
    options = parser.parse_args()
    installed = pandas_version(options.others)
    ways = {name: code for name, code in WAYS.items() if code != PANDAS or installed}
    with tempfile.TemporaryDirectory() as name:
        run, scratch = Path(name) / "run", Path(name) / "scratch"
        scratch.mkdir()
        make_run(run, options.combos, options.episodes)
        files = list(run.rglob("*.jsonl"))
        size = sum(path.stat().st_size for path in files) / 2**20
        print(f"{options.combos * options.episodes:,} episodes in {options.combos} combos, {size:.0f} MiB\n")
        found: dict[str, list[Cost]] = {name: [] for name in ways}
        for _ in range(options.rounds):  # round by round, so that a busy minute hits every way
            for way, code in ways.items():
                python = options.others if code == PANDAS else sys.executable
                found[way].append(measure(python, code, run, scratch))
    print("| way | seconds | CPU seconds | MiB |\n|---|---|---|---|")
    for way in ways:
        cost = middle(found[way])
        told = f"{way} ({installed})" if WAYS[way] == PANDAS else way
        print(f"| {told} | {cost.seconds:.1f} | {cost.cpu:.1f} | {cost.mebibytes:.0f} |")
    if not installed:
        print(f"\nNot measured: pandas is not installed in {options.others}.")


if __name__ == "__main__":
    main()
