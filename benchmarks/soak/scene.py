"""What a round consists of: a grid, and faults with their moments. Drawn whole from (seed, round) before it begins."""

from __future__ import annotations

import random
import shlex
import sys
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

EVALUATOR = Path(__file__).with_name("evaluator.py")
POLICIES = ("policy1", "policy10", "policy100")
"""each a prefix of the next"""
ENVIRONMENTS = ("maze", "maze_2")
TRAITS = ("steady", "late", "halves", "stubborn", "family", "crashes", "faults", "lies", "lingers", "sticks")
WEIGHTS = (3, 3, 3, 3, 3, 2, 2, 2, 1, 1)
OPENINGS = ("plain", "plain", "plain", "plain", "launched twice", "launch killed")

GROWN = "grid grown"
"""more episodes, asked for while it runs: the fault that changes what is planned"""
RETRY = """\
retry:
  crashed: {times: 2, wait: 100 ms}
  killed: {times: 2, wait: 100 ms}
  stalled: {times: 2, wait: 100 ms}
  lost: {times: 2, wait: 100 ms}
"""


@dataclass(frozen=True)
class Fault:
    kind: str
    at: float
    """seconds after the launch"""
    draw: float
    """which of those that may be hit, 0..1"""
    span: float
    """seconds that it lasts, where it lasts"""

    def __str__(self) -> str:
        return f"{self.kind} at {self.at:.2f} s (draw {self.draw:.3f}, span {self.span:.2f} s)"


@dataclass(frozen=True)
class Scene:
    seed: int
    number: int
    traits: tuple[str, ...]
    """one per policy"""
    environments: int
    episodes: int
    pace: float
    parallel: int
    ranged: bool
    """whether the program takes the first episode"""
    multiplexer: str
    opening: str
    faults: tuple[Fault, ...]

    @property
    def combos(self) -> tuple[tuple[str, str], ...]:
        policies = POLICIES[: len(self.traits)]
        return tuple((policy, name) for policy in policies for name in ENVIRONMENTS[: self.environments])

    @property
    def work(self) -> float:
        """Seconds that all its sessions take when nothing goes wrong."""
        sessions = len(self.combos)
        return sessions * (0.1 + self.episodes * self.pace) / min(sessions, self.parallel)

    def grown(self, more: int = 4) -> Scene:
        return replace(self, episodes=self.episodes + more)

    def grid(self, ledger: Path) -> str:
        """The text of the grid file."""
        policies = (f"{name}: {{trait: {trait}}}" for name, trait in zip(POLICIES, self.traits, strict=False))
        return (
            f"name: soak\npolicies: {{{', '.join(policies)}}}\n"
            f"environments: [{', '.join(ENVIRONMENTS[: self.environments])}]\nepisodes: {self.episodes}\n"
            f"command: >-\n  {self._command(ledger)}\n"
            f"limits: {{parallel: {self.parallel}, attempts: 5, stall_after: 2 s}}\nevidence: {{grace: 1 s}}\n{RETRY}"
        )

    def _command(self, ledger: Path) -> str:
        first = " --first-episode {first_episode}" if self.ranged else ""
        return (
            f"{shlex.join([sys.executable, '-S', str(EVALUATOR)])} --policy {{policy}} --env {{environment}} "
            f"--trait {{policy.trait}} --episodes {{episodes}}{first} --attempt {{attempt}} --pace {self.pace} "
            f"--output-dir {{output_dir}} --ledger {shlex.quote(str(ledger))}"
        )

    def describe(self) -> str:
        form = "ranged" if self.ranged else "from the first episode on"
        head = (
            f"  {self.multiplexer}, {self.parallel} at once, {self.environments} environments, {self.episodes} episodes"
            f" of {1000 * self.pace:.0f} ms, {form}; policies: {', '.join(self.traits)}; {self.opening}"
        )
        return "\n".join([head, *(f"  {fault}" for fault in self.faults)])


def draw(seed: int, number: int, kinds: Sequence[str], multiplexers: Sequence[str]) -> Scene:
    """The round `number` of a seed. `kinds` are the faults that can be made here, `multiplexers` what is installed."""
    chance = random.Random(f"soak {seed} {number}")
    ranged = chance.random() < 0.6
    scene = Scene(
        seed=seed,
        number=number,
        traits=tuple(chance.choices(TRAITS, weights=WEIGHTS, k=chance.randint(1, 3))),
        environments=chance.randint(1, 2),
        episodes=chance.randint(5, 30),
        pace=round(chance.uniform(0.01, 0.05), 3),
        parallel=chance.randint(1, 4),
        ranged=ranged,
        multiplexer=chance.choice(multiplexers),
        opening=chance.choice(OPENINGS),
        faults=(),
    )
    able = [kind for kind in kinds if ranged or kind != GROWN]
    faults = (_fault(chance, able, scene.work) for _ in range(chance.randint(1, 5)))
    return replace(scene, faults=tuple(sorted(faults, key=lambda fault: fault.at)))


def _fault(chance: random.Random, kinds: Sequence[str], work: float) -> Fault:
    """Within the time that the work should take, so that most find something to hit."""
    return Fault(chance.choice(kinds), chance.uniform(0.0, work), chance.random(), chance.uniform(0.05, 0.5))
