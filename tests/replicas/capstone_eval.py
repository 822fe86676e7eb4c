"""Stands in for run_capstone_eval.py of 4_env_test: rows in append mode, written every 50 episodes and at the end."""

from __future__ import annotations

import argparse
import json
import os
import time
from pathlib import Path

ASKED = os.environ.get("REPLICA", "").split()


def main() -> None:
    parser = argparse.ArgumentParser()
    for name in ("robot", "env", "policy", "checkpoint", "output_dir"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--num_episodes", type=int, default=1000)
    told, _ = parser.parse_known_args()
    print("\x1b[3g\r\x1bH[gpu.foundation] Failed to create any GPU devices", flush=True)
    file = Path(told.output_dir, f"{told.env}_{told.policy}_episodes.jsonl")
    unsaved: list[str] = []
    for index in range(told.num_episodes):
        name, success = f"{told.env}_{told.policy}_ep{index:04d}", index % 4 != 0
        status = "COMPLETE" if success else "FELL"
        print(f"    step {500 * index}/30000  x=1.2m  cmd=[0.50,0.00,0.00]")
        counter = f"[{index + 1:4d}/{told.num_episodes}]"
        print(f"  {counter} {name}  {status:8}  progress= 12.3m  zone=2  time=98.7s", flush=True)
        unsaved.append(row(told, name, success))
        if len(unsaved) == 50:
            save(file, unsaved)
        if index + 1 == told.num_episodes // 2:
            fail_halfway(file, unsaved)
    save(file, unsaved)
    print("  Evaluation complete!")
    print(
        f"  Total episodes: {told.num_episodes}\n  Total time:     9.5s (0.2min)\n  Results saved to: {told.output_dir}"
    )
    print("Exiting (skipping SimulationApp.close to avoid GPU hang).", flush=True)
    if "hang" in ASKED:
        time.sleep(3600)
    os._exit(0)


def fail_halfway(file: Path, unsaved: list[str]) -> None:
    if "killed" in ASKED:
        os.kill(os.getpid(), 9)
    if "stopped" in ASKED:
        print("[SHUTDOWN] Caught SIGTERM, saving metrics")
        save(file, unsaved)
        print("[SHUTDOWN] Metrics saved.", flush=True)
        os._exit(0)


def row(told: argparse.Namespace, name: str, success: bool) -> str:
    fields = {"episode_id": name, "policy": told.policy, "environment": told.env, "completion": success}
    fields |= {
        "progress": 20.0 if success else 12.345,
        "zone_reached": 2,
        "time_to_complete": 31.5 if success else None,
    }
    fields |= {"stability_score": 0.89, "fall_detected": not success, "flip_detected": False, "episode_length": 31.5}
    return json.dumps(fields) + "\n"


def save(file: Path, unsaved: list[str]) -> None:
    with file.open("a") as stream:
        stream.writelines(unsaved)
    print(f"Saved {len(unsaved)} episodes to {file}\n  >> Saved checkpoint", flush=True)
    unsaved.clear()


main()
