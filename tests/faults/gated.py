"""An evaluation program whose last episode waits for a gate: a file that the test makes when it has seen enough."""

import argparse
import json
import random
import time
from pathlib import Path


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--gate", type=Path, required=True)
    parser.add_argument("--policy", required=True)
    parser.add_argument("--env", required=True)
    parser.add_argument("--episodes", type=int, required=True)
    parser.add_argument("--first-episode", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--output-dir", type=Path, required=True)
    parser.add_argument("--pace", type=float, default=0.0)
    options = parser.parse_args()
    last = options.first_episode + options.episodes - 1
    with (options.output_dir / "episodes.jsonl").open("a", buffering=1) as file:
        for episode in range(options.first_episode, last + 1):
            time.sleep(0 if options.gate.exists() else options.pace)
            while episode == last and not options.gate.exists():
                time.sleep(0.05)
            success = random.Random(f"{options.policy} {options.env} {options.seed + episode}").random() < 0.5
            row = {"policy": options.policy, "environment": options.env, "episode": episode}
            file.write(json.dumps({**row, "seed": options.seed + episode, "success": success}) + "\n")
            print(f"episode {episode}", flush=True)


if __name__ == "__main__":
    main()
