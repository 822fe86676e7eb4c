"""Whether the report's claims hold: how often equal policies are told apart, intervals cover, and a gap is found.

    python benchmarks/claims.py [--runs 2000]

Every case is simulated with the very functions that make the report, from a fixed seed, and printed with its Monte
Carlo error (two standard errors) beside what is promised. docs/benchmarks.md has the results.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from typing import Concatenate, ParamSpec

import numpy as np

from comborun.model.attempt import EpisodeRecord, Verdict, packed
from comborun.model.stopping import PlannedComparison, StopRule
from comborun.model.work import Combo
from comborun.reporter.comparing.comparison import ALPHA, Comparison
from comborun.reporter.comparing.factors import factors
from comborun.reporter.comparing.family import Comparisons, compare
from comborun.reporter.comparing.graded import compare_graded, scores
from comborun.reporter.comparing.kinds import compare_kinds
from comborun.reporter.comparing.margins import check, parse_gate
from comborun.reporter.comparing.orders import Trend, fit, steps_of, strengths, trend_of
from comborun.reporter.comparing.pairing import meet
from comborun.reporter.comparing.sides import Arm, Results, with_absent
from comborun.reporter.comparing.sides import arm as side_of
from comborun.reporter.comparing.stopping import EarlyStopping, standings
from comborun.reporter.comparing.units import p_of_runs
from comborun.reporter.counting.measures import ends_of, time_field, time_to_success
from comborun.reporter.evidence.fields import Fields
from comborun.reporter.evidence.starts import Starts, settle
from comborun.reporter.merge import merge
from comborun.reporter.statistics.difference import PairCounts
from comborun.reporter.statistics.pooled import Stratum, heterogeneity
from comborun.reporter.statistics.proportion import mean_interval, mean_of_rates, proportion
from comborun.reporter.statistics.sequential import decide, interval_after_stopping

P = ParamSpec("P")
Draw = Callable[[np.random.Generator], bool]


def draw(simulated: Callable[Concatenate[np.random.Generator, P], bool]) -> Callable[P, Draw]:
    """A simulation with parameters, as a function of these that gives a draw."""

    def of(*args: P.args, **keys: P.kwargs) -> Draw:
        return lambda rng: simulated(rng, *args, **keys)

    return of


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
        starts=Starts({index: seeds[index] for index in done} if seeds is not None else {}),
        errored=frozenset(range(len(outcomes))) - done,
    )


def pair(outcomes: Iterable[Sequence[bool | None]], seeds: Sequence[int] | None = None) -> list[Arm]:
    return [arm(policy, one, seeds) for policy, one in zip("ab", outcomes, strict=True)]


def only(sides: Iterable[Arm], stopping: EarlyStopping | None = None) -> Comparison:
    (found,) = compare({"stairs": [*sides]}, stopping).all
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


@draw
def crashing(rng: np.random.Generator, n: int) -> bool:
    """Failures of one policy crash with probability .3."""
    crashed = [None if not one and rng.random() < 0.3 else one for one in drawn(rng, 0.5, n)]
    return only(pair((crashed, drawn(rng, 0.5, n)))).decided


@draw
def repeating(rng: np.random.Generator, starts: int) -> bool:
    """100 episodes on few seeds, deterministic; equal policies, that differ from seed to seed."""
    seeds = [index % starts for index in range(100)]
    by_seed = [drawn(rng, 0.5, starts) for _ in range(2)]
    return only(pair([[went[seed] for seed in seeds] for went in by_seed], seeds)).decided


@draw
def seeded(
    rng: np.random.Generator, seeds: Sequence[int | str], spread: float, noise: float = 0.0, side_by_side: int = 0
) -> bool:
    """Equal policies whose records have these seeds. Each policy's rate has this spread between seeds, and each start
    goes the same way but for a share `noise` of its episodes. `side_by_side`: that many runs, with the run as unit."""
    found = {}
    for policy in "ab":
        rate = {seed: float(np.clip(rng.normal(0.5, spread), 0, 1)) for seed in dict.fromkeys(seeds)}
        went = {seed: bool(rng.random() < rate[seed]) for seed in rate}
        found[policy, "stairs"] = [
            EpisodeRecord(policy, "stairs", at, _verdict(went[seed], rate[seed], rng, noise), seed, **packed())
            for at, seed in enumerate(seeds)
        ]
    runs = _ranges(side_by_side, len(seeds))
    sides = settled_sides(found, runs=found if runs else ())
    return only(replace(side, runs=runs, runs_told=True) if runs else side for side in sides).decided


def settled_sides(found: dict[Combo, list[EpisodeRecord]], runs: Collection[Combo] = ()) -> list[Arm]:
    settled = settle(found, runs=runs)
    return [side_of(merge(records, {})[0], settled[combo]) for combo, records in found.items()]


def _verdict(went: bool, rate: float, rng: np.random.Generator, noise: float) -> Verdict:
    success = rng.random() < rate if rng.random() < noise else went
    return Verdict.SUCCESS if success else Verdict.FAILURE


def _ranges(runs: int, episodes: int) -> dict[str, range]:
    length = episodes // max(1, runs)
    return {f"seed{run}": range(run * length, (run + 1) * length) for run in range(runs)}


@draw
def mean_of_starts(rng: np.random.Generator, starts: int) -> bool:
    """Whether the interval of a mean over 3 environments covers, with 100 episodes on few starts in each."""
    by_start = [(float(sum(drawn(rng, 0.5, starts))), starts) for _ in range(3)]
    low, high = mean_of_rates(by_start)
    return low <= 0.5 <= high


@draw
def looking(rng: np.random.Generator, *, paired: bool) -> bool:
    """A report after every 10 of 100 episodes; whether any of them makes a claim."""
    rule = StopRule(ALPHA, 1, (PlannedComparison("stairs", "a", "b", 0, 100),))
    a, b = drawn(rng, 0.5, 100), drawn(rng, 0.5, 100)
    for n in range(10, 101, 10):
        sides = pair((a[:n], b[:n]), range(n) if paired else None)
        found = standings(rule, {(one.policy, "stairs"): one for one in sides}, alike=False)
        if only(sides, EarlyStopping(rule, found, so_far=True)).decided:
            return True
    return False


@draw
def overall(
    rng: np.random.Generator, rates: tuple[float, float], how: str = "independent", *, any_environment: bool = False
) -> bool:
    """10 environments of 50 episodes; whether the overall comparison, or one within an environment, makes a claim."""
    environments = {}
    for index, shift in enumerate(np.linspace(-0.3, 0.3, 10)):
        went = joined(rng, (rates[0] + shift, rates[1] + shift), 50, how)
        seeds = None if how == "independent" else range(50)
        environments[f"e{index}"] = pair(went, seeds)
    found = compare(environments)
    return any(one.decided for one in (found.all if any_environment else found.overall))


# -- stop and report, pairs, intervals --------------------------------------------------------------------------------


def disagreeing(rng: np.random.Generator) -> bool:
    """Six environments that may stop: whether the report claims another winner than the monitor in one of them."""
    planned = tuple(PlannedComparison(f"e{index}", "a", "b", 0, 60) for index in range(6))
    rule = StopRule(ALPHA, 6, planned)
    arms = {(name, one.environment): arm(name, drawn(rng, rate, 60), range(60))
            for one in planned for name, rate in (("a", 0.75), ("b", 0.5))}  # fmt: skip
    found = standings(rule, arms)
    report = compare(
        {one.environment: [arms[combo] for combo in one.combos] for one in planned}, EarlyStopping(rule, found)
    )
    return [one.winner for one in found] != [one.better for one in report.all]


def mispaired(rng: np.random.Generator) -> bool:
    """99 of 100 hashes of the initial state differ, and all seeds are equal."""
    a, b = (arm(name, drawn(rng, 0.5, 100), range(100)) for name in "ab")
    hashed = {index: f"{index}" for index in range(100)}
    first, second = Starts(a.starts.seeds, {"init_hash": hashed}), Starts(b.starts.seeds, {"init_hash": {99: "99"} | {
        index: f"other {index}" for index in range(99)}})  # fmt: skip
    return only([replace(a, starts=first), replace(b, starts=second)]).paired


@draw
def rate_covered(rng: np.random.Generator, starts: int) -> bool:
    went = drawn(rng, 0.7, starts)
    low, high = proportion(sum(went) * (100 // starts), 100, (float(sum(went)), starts)).interval or (0, 1)
    return low <= 0.7 <= high


@draw
def mean_covered(rng: np.random.Generator, n: int, *, skewed: bool) -> bool:
    values = rng.exponential(size=n) if skewed else rng.normal(1, 1, size=n)
    found = mean_interval(values.tolist())
    return found is None or found[0] <= 1 <= found[1]


@draw
def stop_covered(rng: np.random.Generator, rates: tuple[float, float], how: str) -> bool:
    a, b = joined(rng, rates, 100, how)
    outcomes = [one - other for one, other in zip(a, b, strict=True)]
    used = outcomes[: decide(outcomes, 100, ALPHA / 2).pairs]
    low, high = interval_after_stopping(PairCounts(0, used.count(1), used.count(-1), used.count(0)))
    return low <= rates[0] - rates[1] <= high


# -- metrics, failure kinds, checkpoints, axes ------------------------------------------------------------------------


def valued(policy: str, values: Sequence[float], seeds: Sequence[int] | None = None) -> Arm:
    numbers = [float(one) for one in values]
    return replace(arm(policy, [False] * len(numbers), seeds), values=dict(enumerate(numbers)))


def by_metric(sides: Sequence[Arm]) -> Comparisons:
    return compare({}, None, compare_graded("progress", {"stairs": [*sides]}))


def progress(rng: np.random.Generator, n: int, shift: float, kind: str) -> list[Arm]:
    """Values of two policies; `paired` ones share a part, many `capped` ones are equal, `unlike` spreads differ."""
    noise = rng.normal(size=(2, n)) + (rng.normal(size=n) if kind == "paired" else 0)
    first, second = noise[0] + shift, noise[1] * (3 if kind == "unlike" else 1)
    values = [np.minimum(one, 0.5) if kind == "capped" else one for one in (first, second)]
    return [
        valued(name, one.tolist(), range(n) if kind == "paired" else None)
        for name, one in zip("ab", values, strict=True)
    ]


@draw
def metric_claimed(rng: np.random.Generator, n: int, kind: str, *, means: bool) -> bool:
    found = by_metric(progress(rng, n, 0.0, kind))
    return (found.mean_differences if means else found.graded)[0].decided


@draw
def chance_covered(rng: np.random.Generator, n: int, kind: str) -> bool:
    """Of a policy that is higher by half a standard deviation."""
    true = {"plain": 0.6382, "unlike": 0.5628, "paired": 0.6382}[kind]  # P(N(.5, s) > 0), s² = 2 or 10
    low, high = by_metric(progress(rng, n, 0.5, kind)).graded[0].chance_interval
    return low <= true <= high


def kind_claimed(rng: np.random.Generator) -> bool:
    """Two equal policies in two environments, failures of three kinds: whether any kind is said to be more frequent."""
    records = [
        EpisodeRecord(policy, environment, index, Verdict.FAILURE, seed=index, **packed(extra={"failure": str(kind)}))
        for policy in "ab"
        for environment in ("grass", "stairs")
        for index, kind in enumerate(rng.choice(["fell", "stuck", "timeout"], size=50))
    ]
    merged = {one.key: one for one in merge(records, {})}
    ends = {key: ends_of(one.accepted) for key, one in merged.items()}
    return any(one.found.decided for one in compare_kinds(ends, {key: side_of(one) for key, one in merged.items()}))


def checkpoints(rng: np.random.Generator, rates: Sequence[float]) -> Trend:
    sides = {(f"ckpt_{step}", "stairs"): arm(f"ckpt_{step}", drawn(rng, rate, 100)) for step, rate in enumerate(rates)}
    found = trend_of(steps_of([policy for policy, _ in sides], {})[0], sides)
    assert found
    return found


def band_covered(rng: np.random.Generator) -> bool:
    rates = [0.3 + 0.6 * step / 7 for step in range(8)]
    found = checkpoints(rng, rates)
    return all(one.interval[0] <= rate <= one.interval[1] for one, rate in zip(found.checkpoints, rates, strict=True))


@draw
def strengths_covered(rng: np.random.Generator, n: int) -> bool:
    """Five policies in four environments, each in three of them, with paired episodes."""
    shift = np.linspace(-0.2, 0.2, 5)
    cells = [(policy, place) for policy in range(5) for place in range(4) if (policy + place) % 4]
    wins = np.zeros((5, 5))
    for (one, place), (other, beside) in itertools.permutations(cells, 2):
        wins[one, other] += (place == beside) * (1 + shift[one] - shift[other]) / 2
    true = fit(wins)
    luck = rng.random((4, n))
    sides = {}
    for policy, place in cells:
        own = np.where(rng.random(n) < 0.5, luck[place], rng.random(n))
        went = [bool(one) for one in own < 0.5 + shift[policy] + 0.05 * place]
        sides[f"p{policy}", f"e{place}"] = arm(f"p{policy}", went, range(n))
    found = strengths(sides)
    return (
        bool(found)
        and true is not None
        and all(one.interval[0] <= true[0][int(one.policy[1])] <= one.interval[1] for one in found)
    )


def crashed_half(rng: np.random.Generator) -> bool:
    """50 successes and 50 crashes against 63 of 100, in any order of the episodes."""
    a, b = [*[True] * 50, *[None] * 50], [index < 63 for index in range(100)]
    rng.shuffle(a)
    rng.shuffle(b)
    return only(pair((a, b))).better == "a"


def mixed_axis(rng: np.random.Generator) -> bool:
    """Combos with seconds, with steps, and with a fraction that is called steps: whether one axis takes two of them."""
    named = (("time_s", 2.5), ("steps", 40.0), ("steps", 2.5))
    combos = [[EpisodeRecord("a", "s", 0, Verdict.SUCCESS, **packed({name: value}))] for name, value in named]
    rng.shuffle(combos)
    chosen = time_field(combos)
    return sum(time_to_success(one, chosen) is not None for one in combos) > 1 and chosen != "steps"


# -- what is not there, looks, margins --------------------------------------------------------------------------------


@draw
def unrecorded(rng: np.random.Generator, share: float, n: int) -> bool:
    """A folder without a plan: this share of one policy's failures leaves no record, at the end of its episodes."""
    went = [one for one in drawn(rng, 0.5, n) if one or rng.random() >= share]
    sides = {("a", "stairs"): arm("a", went), ("b", "stairs"): arm("b", drawn(rng, 0.5, n))}
    found, _ = with_absent(Results({}, {}, sides, {}))
    return compare({"stairs": [*found.sides.values()]}).all[0].decided


@draw
def folder_looks(rng: np.random.Generator, looks: int, *, paired: bool) -> bool:
    """A folder of 100 episodes that is reported while it grows: whether any report makes a claim."""
    a, b = drawn(rng, 0.5, 100), drawn(rng, 0.5, 100)
    counts = [round(100 * (look + 1) / looks) for look in range(looks)]
    return any(only(pair((a[:n], b[:n]), range(n) if paired else None)).decided for n in counts)


@draw
def margin_claimed(
    rng: np.random.Generator, rates: tuple[float, float], margin: float, n: int, how: str, environments: int = 1
) -> bool:
    """Whether the first policy is said to be not worse by the margin."""
    sides = {}
    for name in range(environments):
        went = joined(rng, rates, n, how)
        sides[f"e{name}"] = pair(went, None if how == "independent" else range(n))
    return compare(sides, margin=margin).not_worse[0].decided


@draw
def unequal_claimed(rng: np.random.Generator, environments: int, n: int) -> bool:
    """Equal policies, unpaired: whether the difference is said to be not the same everywhere."""
    strata = [Stratum((sum(drawn(rng, 0.5, n)), n), (sum(drawn(rng, 0.5, n)), n)) for _ in range(environments)]
    return heterogeneity(strata) < ALPHA


@draw
def clustered_metric(rng: np.random.Generator, starts: int, *, means: bool) -> bool:
    """100 values of each policy from few starts, with the same value whenever a start is repeated."""
    seeds = [at % starts for at in range(100)]
    a, b = (rng.normal(size=starts) for _ in range(2))
    sides = [valued(name, [one[seed] for seed in seeds], seeds) for name, one in (("a", a), ("b", b))]
    found = by_metric(sides)
    return any(one.decided for one in (found.mean_differences if means else found.graded))


def more_cases() -> Iterator[Case]:
    for share in (0.3, 1.0):
        name = f"{100 * share:g} % of one's failures leave no record, n = 100"
        yield Case(f"false claim, {name}", ALPHA, unrecorded(share, 100))
    for looks in (2, 10):
        for paired in (True, False):
            name = f"a folder of 100 is reported {looks} times, {'' if paired else 'un'}paired"
            yield Case(f"any false claim, {name} (told, not prevented)", None, folder_looks(looks, paired=paired))
    for how in ("independent", "half alike", "alike"):
        for rate, margin, n in ((0.9, 0.05, 200), (0.5, 0.1, 50)):
            name = f"worse by {100 * margin:g} points at {rate:g}, said not to be, n = {n}, {how}"
            yield Case(name, ALPHA / 2, margin_claimed((rate - margin, rate), margin, n, how))
        name = f"worse by 5 points at 0.8, said not to be, 10 x 20, {how}"
        yield Case(name, ALPHA / 2, margin_claimed((0.75, 0.8), 0.05, 20, how, 10))
    equal = margin_claimed((0.9, 0.9), 0.05, 500, "half alike")
    yield Case("equal at 0.9 said not worse by 5 points, n = 500, half alike", None, equal)
    for environments, n in ((10, 5), (30, 5), (10, 20)):
        name = f"equal policies said not to differ alike everywhere (Q), {environments} x {n}, unpaired"
        yield Case(name, ALPHA, unequal_claimed(environments, n))
    for starts in (5, 10, 20):
        for means in (False, True):
            name = f"false claim by {'a mean' if means else 'signs'}, 100 values of {starts} starts"
            yield Case(name, ALPHA, clustered_metric(starts, means=means))
    for n, kind in ((20, "plain"), (20, "unlike"), (20, "capped"), (50, "paired")):
        yield Case(f"false claim by a mean, {kind}, n = {n}", ALPHA, metric_claimed(n, kind, means=True))


@draw
def factor_claimed(rng: np.random.Generator, episodes: int, starts: int) -> bool:
    """Two policies on the same starts, which differ in how hard they are, and three factors that don't matter."""
    hard, mass, light = rng.random(starts), rng.random(starts), rng.integers(0, 3, starts)
    records = [
        EpisodeRecord(
            *(policy, environment, at, Verdict.SUCCESS if rng.random() < hard[at % starts] else Verdict.FAILURE),
            at % starts,
            **packed(
                {"mass": float(mass[at % starts]), "offset": float(at % starts)}, {"light": str(light[at % starts])}
            ),
        )
        for policy in "ab"
        for environment in ("grass", "stairs")
        for at in range(episodes)
    ]
    merged = {one.key: one for one in merge(records, {})}
    settled = settle({combo: one.accepted for combo, one in merged.items()})
    sides = {combo: side_of(one, settled[combo]) for combo, one in merged.items()}
    found = factors(Results(merged, {}, sides, settled), ("mass", "offset", "light"), Fields())
    return any(one.decided for one in found)


EACH = 20
"""episodes of a run"""


def of_runs(policy: str, rates: Sequence[float], rng: np.random.Generator, *, told: bool) -> Arm:
    """`told`: else the seed of each may be that of a start, which goes one way."""
    went = [drawn(rng, rate if told else float(rng.random() < rate), EACH) for rate in rates]
    runs = {f"seed{run}": range(EACH * run, EACH * run + EACH) for run in range(len(rates))}
    return replace(arm(policy, [one for some in went for one in some]), runs=runs, runs_told=told)


@draw
def one_sided(
    rng: np.random.Generator, gate: str, runs: int, rates: tuple[float, float], spread: float, *, told: bool = True
) -> bool:
    """Policies whose runs' rates lie around these, with this spread: whether a condition that is not true is shown."""
    parsed = parse_gate(gate, ("a", "b"), ("stairs",))
    drawn_rates = (np.clip(rng.normal(rate, spread, runs), 0, 1).tolist() for rate in rates)
    sides = [of_runs(name, some, rng, told=told) for name, some in zip("ab", drawn_rates, strict=True)]
    if parsed.b and p_of_runs([meet("stairs", *sides)], parsed.share, 1) > ALPHA:
        return False  # p is the larger one of episodes and of runs
    return check([parsed], {"stairs": sides})[0].holds


def run_cases() -> Iterator[Case]:
    not_worse, least = "a not worse than b by 10 points", "a at least 50 %"
    for runs in (2, 3, 4, 5):
        for spread in (0.0, 0.15):
            name = f"{runs} runs of {EACH} a side, {100 * spread:g} points between runs"
            worse = one_sided(not_worse, runs, (0.45, 0.55), spread)
            yield Case(f"worse by 10 points, said not to be, {name}", ALPHA / 2, worse)
            alone = one_sided(least, runs, (0.5, 0.5), spread)
            yield Case(f"a rate of 50 % said to be above, {name}", ALPHA / 2, alone)
        skewed = one_sided("a at least 85 %", runs, (0.85, 0.85), 0.15)
        yield Case(f"a rate of at most 85 % said to be above, {name}, cut at 100 %", None, skewed)
    for seeds in (3, 5, 10):
        name = f"{seeds} seeds in a row of {EACH} that are those of starts"
        worse = one_sided(not_worse, seeds, (0.45, 0.55), 0.0, told=False)
        yield Case(f"worse by 10 points, said not to be, {name}", ALPHA / 2, worse)
        alone = one_sided(least, seeds, (0.5, 0.5), 0.0, told=False)
        yield Case(f"a rate of 50 % said to be above, {name}", ALPHA / 2, alone)


@draw
def numbered_starts(rng: np.random.Generator, starts: int, *, seeded: bool) -> bool:
    """100 episodes of each policy on few starts that a field numbers; deterministic, or with a seed for each."""
    found = {}
    for policy in "ab":
        went = drawn(rng, 0.5, 100 if seeded else starts)
        found[policy, "stairs"] = [
            EpisodeRecord(
                *(policy, "stairs", at, Verdict.SUCCESS if went[at % len(went)] else Verdict.FAILURE),
                at if seeded else None,
                **packed({"init_state_id": float(at % starts)}),
            )
            for at in range(100)
        ]
    return only(settled_sides(found)).decided


def start_cases() -> Iterator[Case]:
    for starts in (5, 20):
        yield Case(
            f"false claim, 100 episodes on {starts} numbered starts", ALPHA, numbered_starts(starts, seeded=False)
        )
        with_seeds = numbered_starts(starts, seeded=True)
        yield Case(f"false claim, 100 seeds on {starts} numbered starts", ALPHA, with_seeds)
    for episodes, starts in ((50, 50), (50, 25), (200, 200)):
        name = f"any false claim by one of 3 factors, 2 x {episodes} episodes of {starts} starts"
        yield Case(name, ALPHA, factor_claimed(episodes, starts))

    for kind in ("plain", "unlike", "paired", "verdicts"):
        name = f"graded, after every pair of 100, {kind}"
        yield Case(f"false claim, {name}", ALPHA, graded_stop(100, 0.0, kind))
        yield Case(
            f"interval after a stop covers, {name}", 0.95, graded_stop(100, 0.2, kind, covered=True), at_least=True
        )
        yield Case(f"gap found, {name}", None, graded_stop(100, 0.2, kind))


@draw
def graded_stop(rng: np.random.Generator, n: int, gap: float, kind: str, *, covered: bool = False) -> bool:
    """Values from 0 to 1 compared after every pair, by betting: whether a claim is made, or the interval covers."""
    rule = StopRule(ALPHA, 1, (PlannedComparison("stairs", "a", "b", 0, n),), metric="progress")
    shared, values = rng.random(n), {}
    for name, mean, size in (("a", 0.5 + gap, 2.0), ("b", 0.5, 20.0 if kind == "unlike" else 2.0)):
        own = rng.beta(mean * size, (1 - mean) * size, n)
        if kind == "verdicts":
            own = np.where(rng.random(n) < mean, 1.0, 0.0)
        used = (own + shared) / 2 if kind == "paired" else own
        values[name, "stairs"] = valued(name, used.tolist(), range(n))
    found = EarlyStopping(rule, standings(rule, values), values=values)
    (one,) = compare({"stairs": [*values.values()]}, found).mean_differences
    true = gap / 2 if kind == "paired" else gap
    return one.interval[0] <= true <= one.interval[1] if covered else one.decided


def seed_cases() -> Iterator[Case]:
    for count in (5, 10):
        texts = [f"s{at % count}" for at in range(100)]
        blocks = [at // (100 // count) for at in range(100)]
        yield Case(f"false claim, {count} text seeds, 100 episodes", ALPHA, seeded(texts, 0.0))
        yield Case(f"false claim, {count} starts in a row of {100 // count}, alike", ALPHA, seeded(blocks, 0.0))
        half = seeded(blocks, 0.0, noise=0.5)
        yield Case(f"false claim, {count} starts in a row of {100 // count}, half alike", ALPHA, half)
    of_runs = [at // 100 for at in range(300)]
    yield Case("false claim, 3 run seeds of 100, runs alike", ALPHA, seeded(of_runs, 0.0, noise=1.0))
    for spread in (0.05, 0.2):
        name = f"false claim, 3 run seeds of 100, runs differ by {100 * spread:g} points"
        yield Case(name, ALPHA, seeded(of_runs, spread, noise=1.0))
    for spread in (0.0, 0.05, 0.2):
        beside = seeded(of_runs, spread, noise=1.0, side_by_side=3)
        yield Case(f"false claim, 3 runs side by side, {100 * spread:g} points between runs", ALPHA, beside)
    for starts in (3, 5, 10, 20):
        name = f"interval of a mean over 3 environments covers, {starts} starts of 100 episodes"
        yield Case(name, 0.95, mean_of_starts(starts), at_least=True)


DAYS: dict[str, tuple[dict[str, int], dict[str, int]]] = {
    "1 and 1 other days": ({"w": 40}, {"x": 40}),
    "1 and 3 other days": ({"w": 60}, {"x": 20, "y": 20, "z": 20}),
    "2 and 2 other days": ({"v": 20, "w": 20}, {"x": 20, "y": 20}),
    "3 and 3 other days": ({"u": 20, "v": 20, "w": 20}, {"x": 20, "y": 20, "z": 20}),
    "days in part the same (xy, yz)": ({"x": 30, "y": 30}, {"y": 30, "z": 30}),
    "days in part the same, few episodes (xy, yz)": ({"x": 55, "y": 5}, {"y": 5, "z": 55}),
    "days in part the same, one episode (xyz, zvw)": ({"x": 30, "y": 29, "z": 1}, {"z": 1, "v": 29, "w": 30}),
    "two common days, not alike (xyz, yzw)": ({"x": 20, "y": 10, "z": 30}, {"y": 30, "z": 10, "w": 20}),
    "the same days, not alike": ({"x": 50, "y": 10}, {"x": 10, "y": 50}),
}
"""by how the days of two policies differ, the episodes of each on each day"""


@draw
def other_days(rng: np.random.Generator, days: tuple[dict[str, int], dict[str, int]], spread: float) -> bool:
    """Equal policies, not paired, whose rate has this spread between days."""
    rate = {day: float(np.clip(rng.normal(0.5, spread), 0, 1)) for own in days for day in own}
    found = {
        (policy, "stairs"): [
            EpisodeRecord(
                *(policy, "stairs", at, _drawn_verdict(rng, rate[day])),
                **packed(extra={"day": day, "operator": "ann"}),
            )
            for at, day in enumerate(day for day, count in own.items() for _ in range(count))
        ]
        for policy, own in zip("ab", days, strict=True)
    }
    return only(settled_sides(found)).decided


@draw
def values_on_other_days(
    rng: np.random.Generator, days: tuple[dict[str, int], dict[str, int]], spread: float, *, means: bool
) -> bool:
    """The same by a metric that spreads by 1 within a day."""
    level = {day: float(rng.normal(0, spread)) for own in days for day in own}
    found = {
        (policy, "stairs"): [
            EpisodeRecord(
                *(policy, "stairs", at, Verdict.MEASURED),
                **packed({"progress": float(rng.normal(level[day]))}, {"day": day, "operator": "ann"}),
            )
            for at, day in enumerate(day for day, count in own.items() for _ in range(count))
        ]
        for policy, own in zip("ab", days, strict=True)
    }
    settled = settle(found)
    sides = [scores(merge(records, {})[0], "progress", settled[combo]) for combo, records in found.items()]
    made = by_metric(sides)
    return any(one.decided for one in (made.mean_differences if means else made.graded))


def _drawn_verdict(rng: np.random.Generator, rate: float) -> Verdict:
    return Verdict.SUCCESS if rng.random() < rate else Verdict.FAILURE


def day_cases() -> Iterator[Case]:
    for name, days in DAYS.items():
        for spread in (0.0, 0.2):
            by = f"{name}, {100 * spread:g} points between days"
            yield Case(f"false claim, {by}", ALPHA, other_days(days, spread))
        for means in (False, True):
            by = f"by {'a mean' if means else 'signs'}, {name}, days differ as much as episodes"
            yield Case(f"false claim {by}", ALPHA, values_on_other_days(days, 1.0, means=means))


def cases() -> Iterator[Case]:
    yield Case("A beats B claimed, 50 of 50 and 50 crashed v 63 of 100", 0.0, crashed_half)
    for n in (100, 500):
        yield Case(f"false claim, failures of one crash, n = {n}", ALPHA, crashing(n))
    for starts in (5, 20, 50):
        yield Case(f"false claim, 100 episodes on {starts} seeds", ALPHA, repeating(starts))
        yield Case(f"interval of the rate covers, {starts} seeds", 0.95, rate_covered(starts), at_least=True)
    yield from seed_cases()
    yield Case("monitor and report disagree, 6 environments", 0.0, disagreeing)
    for paired in (True, False):
        yield Case(
            f"false claim, looking every 10 of 100, {'' if paired else 'un'}paired", ALPHA, looking(paired=paired)
        )
    yield Case("paired, though 99 of 100 hashes differ", 0.0, mispaired)
    yield Case("seconds and steps in one figure, or a fraction as steps", 0.0, mixed_axis)
    for n in (2, 5, 10):
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

    yield from graded_cases()
    yield from more_cases()
    yield from run_cases()
    yield from start_cases()
    yield from day_cases()


def graded_cases() -> Iterator[Case]:
    for n, kind in ((20, "plain"), (20, "unlike"), (20, "capped"), (50, "paired")):
        yield Case(f"false claim by a metric, {kind}, n = {n}", ALPHA, metric_claimed(n, kind, means=False))
    for n, kind in ((20, "plain"), (20, "unlike"), (50, "paired")):
        yield Case(f"interval of the chance covers, {kind}, n = {n}", 0.95, chance_covered(n, kind), at_least=True)
    yield Case("any false claim by failure kind, 3 kinds, 2 x 50", ALPHA, kind_claimed)
    yield Case("band covers all of 8 checkpoints", 0.95, band_covered, at_least=True)
    for n in (10, 50):
        name = f"intervals cover all Bradley-Terry strengths, 5 policies, 4 x {n}"
        yield Case(name, 0.95, strengths_covered(n), at_least=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--only", default="", help="cases with this in their name")
    options = parser.parse_args()
    chosen = [one for one in cases() if options.only in one.name]
    if not chosen:
        parser.error(f"no case has {options.only!r} in its name")
    print("| case | promised | found | two standard errors |\n|---|---|---|---|")
    for case in chosen:
        found = simulate(case, options.runs)
        promise = "" if case.promise is None else f"{'at least' if case.at_least else 'at most'} {case.promise:g}"
        rate = f"{found.rate:.4f}{'' if found.holds else ' !'}"
        print(f"| {case.name} | {promise} | {rate} | {found.error:.4f} |", flush=True)


if __name__ == "__main__":
    main()
