"""Balance a pole: python cartpole.py pd|angle N FOLDER; a JSON object with return and length for each episode."""

import json
import sys
from pathlib import Path

import gymnasium as gym

controller, count, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
env = gym.wrappers.RecordEpisodeStatistics(gym.make("CartPole-v1"))
folder.mkdir(parents=True, exist_ok=True)
with (folder / "eval.jsonl").open("a") as file:
    for episode in range(count):
        state, _ = env.reset(seed=episode)
        done = False
        while not done:
            lean = state[2] + (0.3 * state[3] if controller == "pd" else 0.0)
            state, _, terminated, truncated, info = env.step(int(lean > 0))
            done = terminated or truncated
        told = info["episode"]
        file.write(json.dumps({"r": float(told["r"]), "l": int(told["l"])}) + "\n")
