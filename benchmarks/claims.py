"""Whether the report's claims hold: how often equal policies are told apart, intervals cover, and a gap is found.

    python benchmarks/claims.py [--runs 2000]

Every case is simulated with the very functions that make the report, from a fixed seed, and printed with its Monte
Carlo error (two standard errors) beside what is promised. docs/benchmarks.md has the results.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from math import sqrt

import numpy as np

from comborun.reporter.comparing.comparisons import ALPHA, Comparison, compare
from comborun.reporter.comparing.pairing import Arm
from comborun.reporter.comparing.stopping import Stopping, standings
from comborun.reporter.counting.starts import Starts
from comborun.reporter.statistics.difference import PairCounts
from comborun.reporter.statistics.means import mean_interval
from comborun.reporter.statistics.proportion import proportion
from comborun.reporter.statistics.sequential import decide, interval_after_stopping
from comborun.stopping import PlannedComparison, StopRule

Draw = Callable[[np.random.Generator], bool]


@dataclass(frozen=True)
class Case:
    name: str
    promise: float | None
    """None for a power, of which nothing is promised"""
    hit: Draw
    at_least: bool = False
    """of a coverage; else at most"""


@dataclass(frozen=True)
class Found:
    case: Case
    rate: float
    error: float
    """two standard errors, of the promised rate where there is one"""

    @property
    def holds(self) -> bool:
        if self.case.promise is None:
            return True
        away = self.rate - self.case.promise
        return (-away if self.case.at_least else away) <= 1.5 * self.error


def simulate(case: Case, runs: int) -> Found:
    rng = np.random.default_rng([runs, *case.name.encode()])
    rate = sum(case.hit(rng) for _ in range(runs)) / runs
    spread = rate if case.promise is None else case.promise
    return Found(case, rate, 2 * sqrt(spread * (1 - spread) / runs))


def arm(policy: str, outcomes: Sequence[bool | None], seeds: Sequence[int] | None = None) -> Arm:
    """None for an episode that crashed."""
    done = frozenset(index for index, outcome in enumerate(outcomes) if outcome is not None)
    return Arm(
        policy,
        completed=done,
        successes=frozenset(index for index in done if outcomes[index]),
        starts=Starts({index: seeds[index] for index in done} if seeds is not None else {}, None, {}),
        errored=frozenset(range(len(outcomes))) - done,
    )


def only(a: Arm, b: Arm, stopping: Stopping | None = None) -> Comparison:
    (found,) = compare({"stairs": [a, b]}, stopping).all
    return found


def drawn(rng: np.random.Generator, rate: float, n: int) -> list[bool]:
    return [bool(one) for one in rng.random(n) < rate]


def joined(rng: np.random.Generator, rates: tuple[float, float], n: int, how: str) -> tuple[list[bool], list[bool]]:
    """Outcomes of two policies whose episodes go alike, opposite, independently, or partly alike."""
    first = rng.random(n)
    second = rng.random(n)
    if how == "half alike":
        second = np.where(rng.random(n) < 0.5, first, second)
    second = {"alike": first, "opposite": 1 - first}.get(how, second)
    return [bool(one) for one in first < rates[0]], [bool(one) for one in second < rates[1]]


# -- equal policies ---------------------------------------------------------------------------------------------------


def crashing(n: int, *, completed: bool = False) -> Draw:
    """Failures of one policy crash with probability .3. `completed`: the weaker sentence, that says so."""

    def hit(rng: np.random.Generator) -> bool:
        crashed = [None if not one and rng.random() < 0.3 else one for one in drawn(rng, 0.5, n)]
        one = only(arm("a", crashed), arm("b", drawn(rng, 0.5, n)))
        return one.only_completed if completed else one.decided

    return hit


def repeating(starts: int) -> Draw:
    """100 episodes on few seeds, deterministic; equal policies, that differ from seed to seed."""

    def hit(rng: np.random.Generator) -> bool:
        seeds = [index % starts for index in range(100)]
        a, b = (drawn(rng, 0.5, starts) for _ in range(2))
        first, second = (arm(name, [went[seed] for seed in seeds], seeds) for name, went in (("a", a), ("b", b)))
        return only(first, second).decided

    return hit


def looking(*, paired: bool) -> Draw:
    """A report after every 10 of 100 episodes; whether any of them makes a claim."""
    planned = PlannedComparison("stairs", "a", "b", 0, 100)
    rule = StopRule(ALPHA, 1, (planned,))

    def hit(rng: np.random.Generator) -> bool:
        a, b = drawn(rng, 0.5, 100), drawn(rng, 0.5, 100)
        for n in range(10, 101, 10):
            seeds = range(n) if paired else None
            first, second = arm("a", a[:n], seeds), arm("b", b[:n], seeds)
            found = standings(rule, {("a", "stairs"): first, ("b", "stairs"): second}, alike=False)
            if only(first, second, Stopping(rule, found, so_far=True)).decided:
                return True
        return False

    return hit


def overall(rates: tuple[float, float], how: str = "independent", *, any_environment: bool = False) -> Draw:
    """10 environments of 50 episodes; whether the overall comparison, or one within an environment, makes a claim."""

    def hit(rng: np.random.Generator) -> bool:
        environments = {}
        for index, shift in enumerate(np.linspace(-0.3, 0.3, 10)):
            went = joined(rng, (rates[0] + shift, rates[1] + shift), 50, how)
            seeds = None if how == "independent" else range(50)
            environments[f"e{index}"] = [arm(name, one, seeds) for name, one in zip("ab", went, strict=True)]
        found = compare(environments)
        return any(one.decided for one in (found.all if any_environment else found.overall))

    return hit


# -- stop and report, pairs, intervals --------------------------------------------------------------------------------


def disagreeing(rng: np.random.Generator) -> bool:
    """Six environments that may stop: whether the report claims another winner than the monitor in one of them."""
    planned = tuple(PlannedComparison(f"e{index}", "a", "b", 0, 60) for index in range(6))
    rule = StopRule(ALPHA, 6, planned)
    arms = {(name, one.environment): arm(name, drawn(rng, rate, 60), range(60))
            for one in planned for name, rate in (("a", 0.75), ("b", 0.5))}  # fmt: skip
    found = standings(rule, arms)
    report = compare({one.environment: [arms[combo] for combo in one.combos] for one in planned}, Stopping(rule, found))
    return [one.winner for one in found] != [one.better for one in report.all]


def mispaired(rng: np.random.Generator) -> bool:
    """99 of 100 hashes of the initial state differ, and all seeds are equal."""
    a, b = (arm(name, drawn(rng, 0.5, 100), range(100)) for name in "ab")
    hashed = {index: f"{index}" for index in range(100)}
    first, second = Starts(a.starts.seeds, "init_hash", hashed), Starts(b.starts.seeds, "init_hash", {99: "99"} | {
        index: f"other {index}" for index in range(99)})  # fmt: skip
    return only(Arm("a", a.completed, a.successes, first), Arm("b", b.completed, b.successes, second)).paired


def rate_covered(starts: int) -> Draw:
    def hit(rng: np.random.Generator) -> bool:
        went = drawn(rng, 0.7, starts)
        low, high = proportion(sum(went) * (100 // starts), 100, starts).interval or (0, 1)
        return low <= 0.7 <= high

    return hit


def mean_covered(n: int, *, skewed: bool) -> Draw:
    def hit(rng: np.random.Generator) -> bool:
        values = rng.exponential(size=n) if skewed else rng.normal(1, 1, size=n)
        found = mean_interval(values.tolist())
        return found is None or found[0] <= 1 <= found[1]

    return hit


def stop_covered(rates: tuple[float, float], how: str) -> Draw:
    def hit(rng: np.random.Generator) -> bool:
        a, b = joined(rng, rates, 100, how)
        outcomes = [one - other for one, other in zip(a, b, strict=True)]
        used = outcomes[: decide(outcomes, 100, ALPHA / 2).pairs]
        low, high = interval_after_stopping(PairCounts(0, used.count(1), used.count(-1), used.count(0)))
        return low <= rates[0] - rates[1] <= high

    return hit


def cases() -> Iterator[Case]:
    for n in (100, 500):
        yield Case(f"false claim, failures of one crash, n = {n}", ALPHA, crashing(n))
        yield Case(f"told as `only among completed`, n = {n}", None, crashing(n, completed=True))
    for starts in (5, 20, 50):
        yield Case(f"false claim, 100 episodes on {starts} seeds", ALPHA, repeating(starts))
        yield Case(f"interval of the rate covers, {starts} seeds", 0.95, rate_covered(starts), at_least=True)
    yield Case("monitor and report disagree, 6 environments", 0.0, disagreeing)
    for paired in (True, False):
        yield Case(
            f"false claim, looking every 10 of 100, {'' if paired else 'un'}paired", ALPHA, looking(paired=paired)
        )
    yield Case("paired, though 99 of 100 hashes differ", 0.0, mispaired)
    for n in (5, 10):
        yield Case(f"interval of a mean covers, n = {n}, normal", 0.95, mean_covered(n, skewed=False), at_least=True)
        yield Case(f"interval of a mean covers, n = {n}, exponential", None, mean_covered(n, skewed=True))
    for how in ("independent", "alike", "opposite"):
        for rates in ((0.7, 0.5), (0.55, 0.45), (0.95, 0.85)):
            name = f"interval after a stop covers, {rates[0]} v {rates[1]}, {how}"
            yield Case(name, 0.95, stop_covered(rates, how), at_least=True)
    for how in ("independent", "half alike", "opposite"):
        yield Case(f"false overall claim, 10 x 50, {how}", ALPHA, overall((0.5, 0.5), how))
        yield Case(f"any false claim within, 10 x 50, {how}", ALPHA, overall((0.5, 0.5), how, any_environment=True))
    for how in ("independent", "half alike"):
        yield Case(f"gap of 6 points found overall, 10 x 50, {how}", None, overall((0.53, 0.47), how))
        within = overall((0.53, 0.47), how, any_environment=True)
        yield Case(f"gap of 6 points found in any environment, {how}", None, within)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    runs = parser.parse_args().runs
    print("| case | promised | found | two standard errors |\n|---|---|---|---|")
    for case in cases():
        found = simulate(case, runs)
        promise = "" if case.promise is None else f"{'at least' if case.at_least else 'at most'} {case.promise:g}"
        rate = f"{found.rate:.4f}{'' if found.holds else ' !'}"
        print(f"| {case.name} | {promise} | {rate} | {found.error:.4f} |", flush=True)


if __name__ == "__main__":
    main()
