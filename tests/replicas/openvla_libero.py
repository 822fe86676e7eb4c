"""Stands in for openvla's run_libero_eval.py: a text file flushed per episode, and no total at the end."""

from __future__ import annotations

import argparse
import os
import sys
from pathlib import Path
from typing import TextIO

ASKED = os.environ.get("REPLICA", "").split()
TASKS = 2


def main() -> None:
    parser = argparse.ArgumentParser()
    names = ("model_family", "pretrained_checkpoint", "task_suite_name", "center_crop", "run_id_note", "local_log_dir")
    for name in (*names, "seed", "use_wandb"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--num_trials_per_task", type=int, default=50)
    told = parser.parse_args()
    run = f"EVAL-{told.task_suite_name}-{told.model_family}-2026_01_02-03_04_05--{told.run_id_note}"
    with Path(told.local_log_dir, f"{run}.txt").open("w") as file:
        evaluate(told.num_trials_per_task, file)


def evaluate(trials: int, file: TextIO) -> None:
    def say(text: str) -> None:
        print(text, flush=True)
        print(text, file=file, flush=True)

    say("Task suite: libero_spatial")
    done = successes = 0
    for task in range(TASKS):
        for trial in range(trials):
            if "short" in ASKED and done == TASKS * trials // 2:
                sys.exit(0)
            say(f"\nTask: put object {task} away\nStarting episode {trial + 1}...")
            caught = "caught" in ASKED and done % 2 == 0
            success = done % 4 != 0 and not caught
            if caught:
                say("Caught exception: CUDA error: an illegal memory access was encountered")
            done, successes = done + 1, successes + success
            say(f"Success: {success}\n# episodes completed so far: {done}")
            say(f"# successes: {successes} ({successes / done * 100:.1f}%)")
        say(f"Current task success rate: 0.75\nCurrent total success rate: {successes / done}")


main()
