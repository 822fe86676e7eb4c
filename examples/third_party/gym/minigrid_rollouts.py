"""Roll out an agent in MiniGrid: python minigrid_rollouts.py ENV straight|random N FOLDER; a CSV file with rewards."""

import csv
import random
import sys
from pathlib import Path

import gymnasium as gym
import minigrid  # noqa: F401  (registers its environments)

name, agent, count, folder = sys.argv[1], sys.argv[2], int(sys.argv[3]), Path(sys.argv[4])
LEFT, RIGHT, FORWARD = 0, 1, 2
env = gym.make(name)
world = env.unwrapped
folder.mkdir(parents=True, exist_ok=True)
with (folder / "rollouts.csv").open("w", newline="") as file:
    table = csv.writer(file)
    table.writerow(["rollout", "env_seed", "reward", "length"])
    for rollout in range(count):
        env.reset(seed=1000 + rollout)
        rng, total, length, done = random.Random(rollout), 0.0, 0, False
        while not done and length < 200:
            ahead = world.grid.get(*world.front_pos)
            action = FORWARD if ahead is None or ahead.can_overlap() else RIGHT
            if agent == "random":
                action = rng.choice([LEFT, RIGHT, FORWARD])
            _, reward, terminated, truncated, _ = env.step(action)
            total, length, done = total + reward, length + 1, terminated or truncated
        table.writerow([rollout, 1000 + rollout, round(total, 4), length])
print("saved", count, "rollouts")
