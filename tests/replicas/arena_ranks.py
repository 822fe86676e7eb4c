"""Stands in for policy_runner.py of Isaac Lab-Arena under a launcher: every rank makes all episodes that it is told."""

from __future__ import annotations

import argparse
import os

ASKED = os.environ.get("REPLICA", "").split()


def main() -> None:
    parser = argparse.ArgumentParser(allow_abbrev=False)
    for name in ("policy_type", "output_base_dir"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("num_episodes", "num_envs"):
        parser.add_argument(f"--{name}", type=int, required=True)
    for flag in ("distributed", "headless"):
        parser.add_argument(f"--{flag}", action="store_true")
    parser.add_argument("environment")
    told = parser.parse_args()
    rank, ranks = int(os.environ["LOCAL_RANK"]), int(os.environ["WORLD_SIZE"])
    print(f"[isaaclab-arena] AppLauncher initialization complete (12.3s) on cuda:{rank}", flush=True)
    if "dies" in ASKED and rank == 1:
        os._exit(1)
    for done in range(1, told.num_episodes + 1):
        print(f"Episodes:  {done * 100 // told.num_episodes}%|██| {done}/{told.num_episodes} [00:10<00:10]", flush=True)
    metrics = {"success_rate": 0.75 if rank == 0 else 0.5, "object_moved_rate": 1.0, "num_episodes": told.num_episodes}
    print(f"[Rank {rank}/{ranks}] Metrics: {metrics}\nClosing simulation app", flush=True)


main()
