"""Evaluate the scripted expert of a Meta-World task, as it is or with noise; one JSON document at the end."""

import argparse
import json
from pathlib import Path

import gymnasium as gym
import metaworld  # noqa: F401  (registers its environments)
import numpy as np
from metaworld.policies import ENV_POLICY_MAP

parser = argparse.ArgumentParser()
parser.add_argument("--task", default="reach-v3")
parser.add_argument("--noise", type=float, default=0.0)
parser.add_argument("--num-trials", type=int, default=10)
parser.add_argument("--seed", type=int, default=0)
parser.add_argument("--save-dir", type=Path, default=Path("results"))
args = parser.parse_args()

env = gym.make("Meta-World/MT1", env_name=args.task, seed=args.seed)
expert, rng = ENV_POLICY_MAP[args.task](), np.random.default_rng(args.seed)
trials = []
for trial in range(1, args.num_trials + 1):
    observation, _ = env.reset()
    total, success, steps = 0.0, 0.0, 0
    while not success and steps < 150:
        action = expert.get_action(observation) + rng.normal(0, args.noise, 4)
        observation, reward, _, _, info = env.step(np.clip(action, -1, 1).astype(np.float32))
        total, success, steps = total + float(reward), float(info["success"]), steps + 1
    print(f"[{args.task}] trial {trial}/{args.num_trials} return {total:.1f}")
    trials.append({"trial": trial, "info": {"success": success}, "return": total, "steps": steps})
args.save_dir.mkdir(parents=True, exist_ok=True)
rate = sum(one["info"]["success"] for one in trials) / len(trials)
(args.save_dir / f"{args.task}.json").write_text(json.dumps({"task": args.task, "rate": rate, "trials": trials}))
