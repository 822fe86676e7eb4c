"""Training, stage 2: distil a gait into a network by DAgger (Ross, Gordon and Bagnell, 2011).

The student drives, the teacher says at every step what it would have done, and the student learns from all
the steps so far: it is taught in the states that its own mistakes lead to.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace

import numpy as np
import numpy.typing as npt
from episode import Controller, run_episode
from gait import Gait, Trot
from policy import ACTION_SCALE, HIDDEN_SIZE, INPUT_SIZE, STANDING, Array, Network, Policy, clock
from robot import JOINT_COUNT
from search import training_seeds

ROUNDS = 7
TEACHER_EPISODES, STUDENT_EPISODES = 30, 10  # per terrain: in the first round, in each later one
TEACHER_SHARE = 0.2  # of the episodes in the later rounds
ACTION_NOISE = 0.03  # rad, in half of the episodes
UPDATES, LAST_UPDATES = 4_000, 12_000
BATCH = 1024
LEARNING_RATE = 2e-3

Batch = npt.NDArray[np.float32]
WEIGHTS = ("w0", "b0", "w1", "b1", "w2", "b2")


@dataclass
class Lesson:
    """A controller that lets `driver` drive, with noise, and writes down what the teacher would have done."""

    teacher: Trot
    driver: Controller
    noise: float
    rng: np.random.Generator
    inputs: list[Array] = field(default_factory=list)
    labels: list[Array] = field(default_factory=list)

    def reset(self) -> None:
        self.teacher.reset()
        self.driver.reset()

    def act(self, observation: Array) -> Array:
        self.inputs.append(np.concatenate((observation, clock(self.teacher.phase))))
        label = self.teacher.act(observation)
        self.labels.append(label)
        targets = label if self.driver is self.teacher else self.driver.act(observation)
        return targets + self.noise * self.rng.standard_normal(JOINT_COUNT)


def distil(gait: Gait, terrains: tuple[str, ...], seed: int) -> Network:
    """Train a network to act as the gait does on these terrains."""
    rng = np.random.default_rng([seed, 2])
    inputs, labels = collect(gait, None, terrains, rng)
    network = untrained(inputs, gait.freq, rng)
    for round_ in range(ROUNDS):
        if round_ > 0:
            more_inputs, more_labels = collect(gait, network, terrains, rng)
            inputs, labels = np.concatenate((inputs, more_inputs)), np.concatenate((labels, more_labels))
        network = fit(network, inputs, labels, LAST_UPDATES if round_ == ROUNDS - 1 else UPDATES, rng)
        error = ACTION_SCALE * math.sqrt(float(np.mean((network.forward(inputs) - labels) ** 2)))
        print(f"distil {round_ + 1}/{ROUNDS}  {len(inputs)} steps  RMSE {error:.5f} rad", flush=True)
    return network


def collect(
    gait: Gait, network: Network | None, terrains: tuple[str, ...], rng: np.random.Generator
) -> tuple[Batch, Batch]:
    """Inputs (n, 15) and the outputs (n, 12) the teacher wishes for; without a network the teacher drives."""
    inputs: list[Array] = []
    labels: list[Array] = []
    episodes = STUDENT_EPISODES if network else TEACHER_EPISODES
    for terrain in terrains:
        for episode, seed in enumerate(training_seeds(rng, episodes)):
            teacher = Trot(gait)
            teacher_drives = network is None or rng.random() < TEACHER_SHARE
            driver = teacher if teacher_drives or network is None else Policy(network)
            lesson = Lesson(teacher, driver, ACTION_NOISE * (episode % 2), rng)
            run_episode(lesson, terrain, seed)
            inputs.extend(lesson.inputs)
            labels.extend(lesson.labels)
    outputs = (np.array(labels) - STANDING) / ACTION_SCALE
    return np.array(inputs, dtype=np.float32), outputs.astype(np.float32)


def untrained(inputs: Batch, frequency: float, rng: np.random.Generator) -> Network:
    """Random weights, and inputs standardised by what the teacher's own driving shows."""

    def dense(rows: int, columns: int) -> Batch:
        return rng.normal(0.0, 1.0 / math.sqrt(rows), (rows, columns)).astype(np.float32)

    return Network(
        w0=dense(INPUT_SIZE, HIDDEN_SIZE),
        b0=np.zeros(HIDDEN_SIZE, np.float32),
        w1=dense(HIDDEN_SIZE, HIDDEN_SIZE),
        b1=np.zeros(HIDDEN_SIZE, np.float32),
        w2=dense(HIDDEN_SIZE, JOINT_COUNT),
        b2=np.zeros(JOINT_COUNT, np.float32),
        mu=inputs.mean(axis=0),
        sd=inputs.std(axis=0) + np.float32(1e-3),
        freq=np.asarray(frequency, np.float32),
    )


def fit(network: Network, inputs: Batch, labels: Batch, updates: int, rng: np.random.Generator) -> Network:
    """Least squares by Adam (Kingma and Ba, 2015), the learning rate falling along a half cosine."""
    weights = {name: getattr(network, name).copy() for name in WEIGHTS}
    first = {name: np.zeros_like(value) for name, value in weights.items()}
    second = {name: np.zeros_like(value) for name, value in weights.items()}
    standardised = (inputs - network.mu) / network.sd
    for update in range(1, updates + 1):
        rows = rng.integers(0, len(inputs), BATCH)
        rate = LEARNING_RATE * 0.5 * (1.0 + math.cos(math.pi * update / updates))
        rate *= math.sqrt(1.0 - 0.999**update) / (1.0 - 0.9**update)
        for name, slope in gradient(weights, standardised[rows], labels[rows]).items():
            first[name] += 0.1 * (slope - first[name])
            second[name] += 0.001 * (slope * slope - second[name])
            weights[name] -= np.float32(rate) * first[name] / (np.sqrt(second[name]) + np.float32(1e-8))
    return replace(network, **weights)


def gradient(weights: dict[str, Batch], inputs: Batch, labels: Batch) -> dict[str, Batch]:
    """Gradient of half the mean squared error, by back-propagation through the two tanh layers."""
    hidden0 = np.tanh(inputs @ weights["w0"] + weights["b0"])
    hidden1 = np.tanh(hidden0 @ weights["w1"] + weights["b1"])
    delta2 = (hidden1 @ weights["w2"] + weights["b2"] - labels) / np.float32(labels.size)
    delta1 = (delta2 @ weights["w2"].T) * (1.0 - hidden1 * hidden1)
    delta0 = (delta1 @ weights["w1"].T) * (1.0 - hidden0 * hidden0)
    return {
        "w0": inputs.T @ delta0,
        "b0": delta0.sum(axis=0),
        "w1": hidden0.T @ delta1,
        "b1": delta1.sum(axis=0),
        "w2": hidden1.T @ delta2,
        "b2": delta2.sum(axis=0),
    }
