"""Training, stage 1: CMA-ES over the 19 parameters of a trot."""

from __future__ import annotations

import time

import numpy as np
from episode import GOAL, TIME_LIMIT, Controller, EpisodeResult, run_episode
from gait import BOUNDS, Gait, Trot, from_unit_box

POPULATION = 16
STEP_SIZE = 0.6  # in the box [-1, 1]
EPISODES_PER_TERRAIN = 5
VALIDATION_PERIOD, VALIDATION_EPISODES = 5, 20
# Training draws its seeds from here up, so that evaluations with smaller seeds see new episodes.
FIRST_TRAINING_SEED = 1_000_000


def training_seeds(rng: np.random.Generator, count: int) -> list[int]:
    return [int(seed) for seed in rng.integers(FIRST_TRAINING_SEED, 2**31, count)]


def score(result: EpisodeResult) -> float:
    """About 0 for a robot that falls at once, 2.3 for one that reaches the goal fast and with little work."""
    points = result.distance_m / GOAL - 0.0003 * result.energy_j / max(result.distance_m, 1.0)
    if result.success:
        points += 1.0 + 0.5 * (1.0 - result.time_s / TIME_LIMIT)
    if result.termination == "fell":
        points -= 0.1
    return points


def mean_score(controller: Controller, terrains: tuple[str, ...], seeds: list[int]) -> float:
    """Mean score over all terrains and seeds."""
    results = [run_episode(controller, terrain, seed) for terrain in terrains for seed in seeds]
    return float(np.mean([score(result) for result in results]))


def search_gait(terrains: tuple[str, ...], generations: int, seed: int) -> Gait:
    """The best gait by validation. Candidates of one generation meet the same episodes."""
    import cma  # the distillation, and tests of it, do without

    rng = np.random.default_rng([seed, 1])
    validation = training_seeds(rng, VALIDATION_EPISODES)
    options = {"popsize": POPULATION, "bounds": [-1.0, 1.0], "seed": seed + 1, "verbose": -9}
    strategy = cma.CMAEvolutionStrategy([0.0] * len(BOUNDS), STEP_SIZE, options)
    best_score, best_gait = -np.inf, from_unit_box(np.zeros(len(BOUNDS)))
    began = time.monotonic()
    for generation in range(1, generations + 1):
        points = strategy.ask()
        seeds = training_seeds(rng, EPISODES_PER_TERRAIN)
        scores = [mean_score(Trot(from_unit_box(point)), terrains, seeds) for point in points]
        strategy.tell(points, [-value for value in scores])
        line = f"gait {generation:3d}/{generations}  best {max(scores):6.3f}  mean {np.mean(scores):6.3f}"
        if generation % VALIDATION_PERIOD == 0 or generation == generations:
            favourite = from_unit_box(strategy.result.xfavorite)
            validated = mean_score(Trot(favourite), terrains, validation)
            line += f"  validated {validated:6.3f}"
            if validated > best_score:
                best_score, best_gait = validated, favourite
        print(f"{line}  {time.monotonic() - began:5.0f} s", flush=True)
    return best_gait
