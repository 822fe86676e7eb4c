"""Stands in for cosmos_agent.py: a list of steps per episode, and an exception ends its loop with exit code 0."""

from __future__ import annotations

import argparse
import json
import os
from pathlib import Path
from typing import Any

ASKED = os.environ.get("REPLICA", "").split()
STEPS = 3


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("env", "model_path", "output_dir"):
        parser.add_argument(f"--{name}")
    for name in ("num_episodes", "start_episode"):
        parser.add_argument(f"--{name}", type=int)
    told = parser.parse_args()
    folder = Path(told.output_dir, f"EB-{told.env.capitalize()}")
    try:
        for index in range(told.start_episode, told.start_episode + told.num_episodes):
            episode(
                folder / f"episode_{index + 1}", index, halfway=index == told.start_episode + told.num_episodes // 2
            )
    except RuntimeError as error:
        print(f"Error running {told.env.upper()}: {error}\nTraceback (most recent call last):", flush=True)
        return
    print(f"EB-{told.env.capitalize()} complete. Logs: {folder}")


def episode(folder: Path, index: int, *, halfway: bool) -> None:
    folder.mkdir(parents=True)
    print(f"--- Starting Episode {index} ---")
    steps: list[dict[str, Any]] = []
    for number in range(STEPS):
        print(f"--- Step {number} ---\nCalling VLM...\nVLM responded.", flush=True)
        if "caught" in ASKED and halfway and number:
            raise RuntimeError("CUDA out of memory")
        info = {"task_success": float(index % 4 != 0), "task_progress": 0.5, "env_step": number}
        step = {
            "step": number,
            "vlm_output": {"answer": "pick"},
            "reward": 0.0,
            "done": number == STEPS - 1,
            "info": info,
        }
        steps.append(step)
        (folder / "cosmos_log.json").write_text(json.dumps(steps, indent=2))
    print(f"Episode {index} complete.", flush=True)


main()
