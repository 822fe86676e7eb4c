"""Stands in for lerobot-eval: a progress bar that overwrites itself, and one document at the very end."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

ASKED = os.environ.get("REPLICA", "").split()
TASKS = 2


def main() -> None:
    told = dict(word.removeprefix("--").split("=", 1) for word in sys.argv[1:])
    trials, batch = int(told["eval.n_episodes"]), int(told["eval.batch_size"])
    group, output = told["env.task"], Path(told["output_dir"])
    print(f"Output dir:  {output}")
    tasks = [evaluate(group, task, trials, batch) for task in range(TASKS)]
    if "killed" in ASKED:
        os.kill(os.getpid(), 9)
    successes = [success for task in tasks for success in task["metrics"]["successes"]]
    overall = {"pc_success": 100 * sum(successes) / len(successes), "n_episodes": len(successes), "eval_s": 70.0}
    document = {"per_task": tasks, "per_group": {group: overall}, "overall": overall}
    (output / "eval_info.json").write_text(json.dumps(document, indent=2))
    print(f"Overall Aggregated Metrics:\n{overall}\nEnd of eval")


def evaluate(group: str, task: int, trials: int, batch: int) -> dict[str, Any]:
    successes = [(task * trials + index) % 4 != 0 for index in range(trials)]
    batches = -(-trials // batch)
    for number in range(1, batches + 1):
        bar = f"{number}/{batches} [00:0{number}<00:01, 1.5s/it, running_success_rate=75.0%]"
        share = 100 * number // batches
        print(f"\rStepping through eval batches:  {share}%|███▌   | {bar}", end="", flush=True)
    print()
    rewards = [float(success) for success in successes]
    metrics = {"sum_rewards": rewards, "max_rewards": rewards, "successes": successes, "video_paths": []}
    return {"task_group": group, "task_id": task, "metrics": metrics}


main()
