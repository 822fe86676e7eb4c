"""Swing up a pole of the DeepMind Control Suite: python swingup.py random|still N; it only prints."""

import sys

import numpy as np
from dm_control import suite

agent, count = sys.argv[1], int(sys.argv[2])
for episode in range(1, count + 1):
    env = suite.load("cartpole", "swingup", task_kwargs={"random": episode})
    step, total, rng = env.reset(), 0.0, np.random.default_rng(episode)
    while not step.last():
        step = env.step(rng.uniform(-1, 1, 1) if agent == "random" else np.zeros(1))
        total += step.reward
    print(f"Episode {episode} finished: return={total:.2f} -> {'SOLVED' if total > 30 else 'not solved'}", flush=True)
