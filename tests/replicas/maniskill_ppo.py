"""Stands in for ManiSkill's ppo.py --evaluate: a rate and a number of episodes, and nothing of any one of them."""

from __future__ import annotations

import argparse
import os

ASKED = os.environ.get("REPLICA", "").split()


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--evaluate", action="store_true")
    for name in ("checkpoint", "env_id", "seed", "exp_name"):
        parser.add_argument(f"--{name}")
    parser.add_argument("--num_eval_envs", type=int, default=8)
    parser.add_argument("--num_eval_steps", type=int, default=50)
    told = parser.parse_args()
    episodes = told.num_eval_envs
    print("Running evaluation\nEvaluating", flush=True)
    if "killed" in ASKED:
        os.kill(os.getpid(), 9)
    print(f"Evaluated {told.num_eval_steps * episodes} steps resulting in {episodes} episodes")
    print(f"eval_success_once_mean={0.75}\neval_success_at_end_mean={0.5}\neval_return_mean=12.25")


main()
