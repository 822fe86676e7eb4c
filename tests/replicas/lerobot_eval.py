"""Stands in for lerobot-eval: bars of tqdm inside each other, anew for each task, and one document at the very end."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

ASKED = os.environ.get("REPLICA", "").split()
GATE = Path(os.environ.get("REPLICA_GATE", "."))
"""where `gated` waits, before each batch, until a file has its number: 0, 1 ... through all tasks"""
TASKS = 2
MOST_STEPS, STEPS = 280, 6
WAIT_S = 60.0
WIDTH = 10
UP = "\x1b[A"
IN_SLURM = "SLURM_JOB_ID" in os.environ


@dataclass
class Bar:
    """As tqdm draws it into a file; one that is inside another lies a line below."""

    what: str
    total: int
    inside: bool = False
    done: int = 0
    rate: str = ""
    drawn: int = 0

    def draw(self) -> None:
        filled = "█" * (WIDTH * self.done // self.total)
        speed = f"00:00<00:00, {6.6:5.2f}it/s" if self.done else "00:00<?, ?it/s"
        counts = f"{self.done}/{self.total} [{speed}{self.rate}]"
        self._write(f"{self.what}: {100 * self.done // self.total:3d}%|{filled:{WIDTH}}| {counts}")

    def close(self) -> None:
        """`leave=False` for the inner one: blanks over what it was."""
        if self.inside:
            self._write(" " * self.drawn)
        elif not IN_SLURM:
            self.draw()
            print(file=sys.stderr, flush=True)

    def _write(self, text: str) -> None:
        self.drawn = len(text)
        if not IN_SLURM:
            around = f"\n\r{text}{UP}" if self.inside else f"\r{text}"
            print(around, end="", file=sys.stderr, flush=True)


def main() -> None:
    told = dict(word.removeprefix("--").split("=", 1) for word in sys.argv[1:])
    trials, batch = int(told["eval.n_episodes"]), int(told["eval.batch_size"])
    groups, output = told["env.task"].split(","), Path(told["output_dir"])
    numbers = json.loads(told.get("env.task_ids", json.dumps([*range(TASKS)])))
    print(f"Output dir:  {output}")
    tasks = [evaluate(group, task, trials, batch) for group in groups for task in numbers]
    if "killed" in ASKED:
        os.kill(os.getpid(), 9)
    totals = {group: total([task for task in tasks if task["task_group"] == group]) for group in groups}
    overall = total(tasks)
    document = {"per_task": tasks, "per_group": totals, "overall": overall}
    (output / "eval_info.json").write_text(json.dumps(document, indent=2))
    print(f"Overall Aggregated Metrics:\n{overall}\nEnd of eval")


def total(tasks: list[dict[str, Any]]) -> dict[str, float]:
    successes = [success for task in tasks for success in task["metrics"]["successes"]]
    return {"pc_success": 100 * sum(successes) / len(successes), "n_episodes": len(successes), "eval_s": 70.0}


def evaluate(group: str, task: int, trials: int, batch: int) -> dict[str, Any]:
    successes = [(task * trials + index) % 4 != 0 for index in range(trials)]
    bar = Bar("Stepping through eval batches", -(-trials // batch))
    bar.draw()
    for number in range(bar.total):
        if "gated" in ASKED:
            wait_for(GATE / str(task * bar.total + number))
        roll_out()
        bar.rate = ", running_success_rate=75.0%"
        bar.draw()
        bar.done += 1
        bar.draw()
    bar.close()
    rewards = [float(success) for success in successes]
    metrics = {"sum_rewards": rewards, "max_rewards": rewards, "successes": successes, "video_paths": []}
    return {"task_group": group, "task_id": task, "metrics": metrics}


def roll_out() -> None:
    bar = Bar(f"Running rollout with at most {MOST_STEPS} steps", MOST_STEPS, inside=True)
    bar.draw()
    for _ in range(STEPS):
        bar.rate = ", running_success_rate=25.0%"
        bar.draw()
        bar.done += 1
        bar.draw()
    bar.close()


def wait_for(gate: Path) -> None:
    deadline = time.monotonic() + WAIT_S
    while not gate.exists() and time.monotonic() < deadline:
        time.sleep(0.01)


main()
