"""One episode, from its seed to its result.

All randomness comes from `default_rng([seed, terrain index])`, drawn in this order: the terrain, the start
(with payload and shoves), then ten normals of sensor noise per control step. So an episode depends on nothing
but its seed, its terrain and its policy.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np
from policy import CONTROL_PERIOD, Array
from simulation import Simulation, sample_start
from terrain import TERRAINS, sample_terrain

GOAL = 8.0  # m along x
TIME_LIMIT = 16.0  # s
COURSE_HALF_WIDTH = 1.5  # m
FALL_UPRIGHTNESS = 0.5
CONTACT_CHECK_PERIOD = 5  # control steps between checks for the trunk on the ground

Termination = Literal["goal", "fell", "left_course", "timeout"]


class Controller(Protocol):
    """What drives the robot: a policy, or the gait that taught it."""

    def reset(self) -> None: ...

    def act(self, observation: Array) -> Array: ...


@dataclass(frozen=True)
class EpisodeResult:
    """How an episode went. `energy_j` is the absolute mechanical work of the joints."""

    termination: Termination
    distance_m: float
    time_s: float
    steps: int
    energy_j: float
    initial_state: str

    @property
    def success(self) -> bool:
        return self.termination == "goal"


def start_episode(environment: str, seed: int, level: float = 1.0) -> Simulation:
    """A robot standing on a terrain, both drawn from the seed."""
    rng = np.random.default_rng([seed, TERRAINS.index(environment)])
    terrain = sample_terrain(environment, rng, level)
    return Simulation(terrain, sample_start(rng), rng)


def run_episode(
    controller: Controller,
    environment: str,
    seed: int,
    level: float = 1.0,
    watch: Callable[[Simulation], None] | None = None,
) -> EpisodeResult:
    """Run until the goal, a fall, the edge of the course or the time limit. `watch` sees every step."""
    simulation = start_episode(environment, seed, level)
    initial_state = simulation.fingerprint()
    simulation.settle()
    controller.reset()
    steps = 0
    termination: Termination | None = None
    while termination is None:
        simulation.step(controller.act(simulation.observe()))
        steps += 1
        if watch is not None:
            watch(simulation)
        termination = judge(simulation, steps)
    return EpisodeResult(
        termination=termination,
        distance_m=round(simulation.x, 3),
        time_s=round(steps * CONTROL_PERIOD, 2),
        steps=steps,
        energy_j=round(simulation.work, 1),
        initial_state=initial_state,
    )


def judge(simulation: Simulation, steps: int) -> Termination | None:
    """Whether, and how, the episode has ended after this many control steps."""
    if simulation.uprightness() < FALL_UPRIGHTNESS:
        return "fell"
    if steps % CONTACT_CHECK_PERIOD == 0 and simulation.trunk_touches_ground():
        return "fell"
    if simulation.x >= GOAL:
        return "goal"
    if abs(simulation.y) > COURSE_HALF_WIDTH:
        return "left_course"
    if steps >= round(TIME_LIMIT / CONTROL_PERIOD):
        return "timeout"
    return None
