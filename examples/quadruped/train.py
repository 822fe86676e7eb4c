"""Train one policy: find a gait by CMA-ES, then distil it into a network.

    OPENBLAS_NUM_THREADS=1 python train.py flat --seed 7 --output checkpoints/flat.npz

Needs `cma` beside the evaluator's own dependencies. One core, 10 to 20 minutes.
"""

from __future__ import annotations

import argparse
import json
import platform
import time
from dataclasses import asdict
from pathlib import Path

import cma
import mujoco
import numpy as np
from distil import distil
from episode import run_episode
from policy import Policy, save
from search import search_gait, training_seeds

# The policies differ in nothing but what they have met. This split is what makes their ranking cross.
TRAINING_TERRAINS = {"flat": ("flat", "friction"), "rough": ("grass", "boulder", "stairs")}


def main() -> None:
    parser = argparse.ArgumentParser(description="Train one policy and write its checkpoint.")
    parser.add_argument("policy", choices=TRAINING_TERRAINS)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--output", type=Path, required=True, metavar="FILE")
    parser.add_argument("--generations", type=int, default=40, help="of the search (default 40)")
    options = parser.parse_args()

    terrains = TRAINING_TERRAINS[options.policy]
    packages = ", ".join(f"{package.__name__} {package.__version__}" for package in (mujoco, np, cma))
    print(f"python {platform.python_version()}, {packages}", flush=True)
    began = time.process_time()
    gait = search_gait(terrains, options.generations, options.seed)
    print(json.dumps({name: round(value, 4) for name, value in asdict(gait).items()}), flush=True)
    network = distil(gait, terrains, options.seed)
    save(network, options.output)
    print(f"{options.output}  {time.process_time() - began:.0f} s of CPU time")
    report(Policy(network), terrains, options.seed)


def report(policy: Policy, terrains: tuple[str, ...], seed: int, episodes: int = 50) -> None:
    """Successes on fresh episodes of the training terrains."""
    seeds = training_seeds(np.random.default_rng([seed, 3]), episodes)
    for terrain in terrains:
        successes = sum(run_episode(policy, terrain, seed).success for seed in seeds)
        print(f"{terrain}: {successes}/{episodes}", flush=True)


if __name__ == "__main__":
    main()
