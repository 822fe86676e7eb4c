"""Stands in for EmbodiedBench's main.py: a file per episode, and a step that fails is tried again for ever."""

from __future__ import annotations

import json
import os
import sys
import time
from pathlib import Path

ASKED = os.environ.get("REPLICA", "").split()
EPISODES = 8


def main() -> None:
    told = dict(word.lstrip("+").split("=", 1) for word in sys.argv[1:])
    selected = json.loads(told.get("selected_indexes", "[]")) or range(EPISODES)
    assert Path("embodiedbench/configs", f"{told['env']}.yaml").is_file(), "not in the repository's root"
    assert dict(os.environ)["remote_url"].startswith("http")
    Path("data").symlink_to("embodiedbench")
    for eval_set in told["eval_sets"].strip("[]").split(","):
        folder = Path("running/eb_alfred", f"{told['model_name']}_{told['exp_name']}", eval_set, "results")
        folder.mkdir(parents=True)
        say(f"Current eval set: {eval_set}")
        for number, index in enumerate(selected):
            say(f"Evaluating episode {number} ...")
            episode(folder, index)
        (folder / "summary.json").write_text(json.dumps({"task_progress": 0.9}))
    Path("data").unlink()
    say("Evaluation completed")


def episode(folder: Path, index: int) -> None:
    while "retrying" in ASKED and index == EPISODES // 2:
        print("Error communicating with the server: Connection refused", flush=True)
        time.sleep(0.2)
    success = index % 4 != 0
    record = {"instruction": "Put it away.", "reward": 0.5, "task_success": float(success), "task_progress": 0.25}
    record |= {"num_steps": 9, "planner_steps": 3, "empty_plan": 0, "episode_elapsed_seconds": 81.5}
    (folder / f"episode_{index + 1}_final_res.json").write_text(json.dumps(record, indent=1))


def say(text: str) -> None:
    print(f"[2026-01-02 03:04:05,678][INFO] - {text}", flush=True)


main()
