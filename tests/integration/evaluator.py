"""A small evaluation program, as a user's would be: an episode after the other, a record for each, flushed.

`--pace` seconds pass in an episode; the last one begins when the file `--gate` is there; `--fail` says how it goes
wrong. The outcome of an episode depends on policy, environment and seed alone.
"""

import argparse
import json
import os
import random
import signal
import sys
import time
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--policy", required=True)
    parser.add_argument("--env", required=True)
    parser.add_argument("--episodes", type=int, required=True)
    parser.add_argument("--first-episode", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output-dir", type=Path, required=True)
    parser.add_argument("--pace", type=float, default=0.0)
    parser.add_argument("--gate", type=Path)
    parser.add_argument("--fail", choices=["exit3", "half", "holes", "segfault", "silent", "misnamed"])
    options = parser.parse_args()
    if options.fail == "exit3":
        sys.exit(3)
    if options.fail == "silent":
        return
    count = options.episodes // 2 if options.fail == "half" else options.episodes
    with (options.output_dir / "episodes.jsonl").open("a") as file:
        for episode in range(options.first_episode, options.first_episode + count):
            while options.gate and episode == options.first_episode + count - 1 and not options.gate.exists():
                time.sleep(0.02)
            time.sleep(options.pace)
            if options.fail == "holes" and options.episodes > 3 and episode % 3 == 1:
                continue
            chance = random.Random(f"{options.policy} {options.env} {options.seed + episode}").random()
            record = {
                "policy": "another" if options.fail == "misnamed" else options.policy,
                "environment": options.env,
                "episode": episode,
                "seed": options.seed + episode,
                "success": chance < (0.9 if options.policy == "good" else 0.3),
                "score": round(chance, 6),
            }
            file.write(json.dumps(record) + "\n")
            file.flush()
            print(f"episode {episode}: {record['success']}", flush=True)
    if options.fail == "segfault":
        os.kill(os.getpid(), signal.SIGSEGV)


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        print("interrupted", flush=True)
        sys.exit(130)
