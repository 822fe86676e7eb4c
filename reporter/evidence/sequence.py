"""Whether equal verdicts follow one another more often than chance makes them. Then episodes are not independent, as
all intervals and tests take them to be: objects come one after another, say. And whether success rises or falls from
the first episodes to the last, as when a robot wears: then a policy that ran later met something else. Pure."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from itertools import pairwise
from math import comb, sqrt
from operator import attrgetter
from statistics import NormalDist

from comborun.model.attempt import EpisodeRecord, Verdict, having, held
from comborun.model.work import Combo
from comborun.reporter.evidence.runs import Runs
from comborun.rules.facts import Fact
from comborun.rules.results.episodes import COPY

IN_ORDER, DRIFT = "outcomes_go_with_order", "success_rises_or_falls"
LEVEL = 0.01
"""of all findings of either kind of a report together (Bonferroni)"""
EXACT = 500
"""most episodes of the rarer verdict for which the probabilities are summed; of more the normal ones are taken"""
FEWEST = 3
"""fewest episodes of either verdict: where one or two failures stand says nothing of others"""
SEEN, ENOUGH = 0.1, 20
"""least gap between both halves that matters, and fewest episodes for the normal distribution"""
_OF_TIME = re.compile(
    r"(?:.*_)?(?:date|day|session|batch|operator)s?(?:_?(?:id|name|idx|index|number))?", re.IGNORECASE
)
FAR = -2.0
"""in standard deviations: what is nearer to the expected number is no finding"""


def in_order(combos: Mapping[Combo, Sequence[EpisodeRecord]], runs: Mapping[Combo, Runs]) -> dict[Combo, Fact]:
    """Of which combos the verdicts go with their order, or else rise or fall; of several runs joined, those of any run.
    `runs`: by combo."""
    tested = [
        (combo, verdicts)
        for combo, records in combos.items()
        for verdicts in _in_order(records, runs.get(combo, {}))
        if FEWEST <= sum(verdicts) <= len(verdicts) - FEWEST
    ]
    found: dict[Combo, Fact] = {}
    for combo, verdicts in tested:
        successes, n = sum(verdicts), len(verdicts)
        stretches = 1 + sum(one is not other for one, other in pairwise(verdicts))
        if combo not in found and p_of(stretches, successes, n - successes) * len(tested) <= LEVEL:
            expected = round(_expected(successes, n - successes))
            found[combo] = Fact(IN_ORDER, stretches=stretches, expected=expected, episodes=n)
    for combo, verdicts in tested:
        halves = [sum(some) / len(some) for some in (verdicts[: len(verdicts) // 2], verdicts[len(verdicts) // 2 :])]
        seen = abs(halves[0] - halves[1]) >= SEEN and len(verdicts) >= ENOUGH
        if combo not in found and seen and p_of_drift(verdicts) * len(tested) <= LEVEL:
            found[combo] = Fact(DRIFT, rates=[round(one, 6) for one in halves], episodes=len(verdicts))
    return found


def p_of_drift(*parts: Sequence[bool]) -> float:
    """Of successes standing as far to one end of their part as they do, two-sided (rank sum, normal)."""
    away = sum(at - (len(own) - 1) / 2 for own in parts for at, success in enumerate(own) if success)
    spread = sqrt(sum(sum(own) * (len(own) - sum(own)) * (len(own) + 1) / 12 for own in parts))
    return 2 * NormalDist().cdf(-abs(away) / spread) if spread else 1.0


def by_setting(code: str, records: Sequence[EpisodeRecord], groups: Mapping[str, Mapping[str, Collection[int]]]) -> str:
    """The setting that explains what is found: its values follow one another, such as tasks from the easiest to the
    hardest, and within them nothing is found. Days and operators explain nothing, since they are what may differ.
    `groups`: by setting, the episodes of each value."""
    judged = _judged(records)
    for name, values in groups.items():
        of = {episode: value for value, own in values.items() for episode in own}
        met = [of.get(one.episode) for one in judged]
        turns = sum(one != other for one, other in pairwise(met))
        if not 0 < turns < 2 * len(values) or _OF_TIME.fullmatch(name):
            continue
        within = [[one.verdict is Verdict.SUCCESS for one in judged if one.episode in own] for own in values.values()]
        if (p_of_drift if code == DRIFT else _p_of_parts)(*within) > LEVEL:
            return name
    return ""


def _p_of_parts(*parts: Sequence[bool]) -> float:
    """Of at most so many stretches of equal verdicts in all parts together (normal)."""
    several = [own for own in parts if len({*own}) > 1]
    means = [_expected(sum(own), len(own) - sum(own)) for own in several]
    seen = sum(1 + sum(one is not other for one, other in pairwise(own)) for own in several)
    spread = sqrt(sum((mean - 1) * (mean - 2) / (len(own) - 1) for own, mean in zip(several, means, strict=True)))
    return NormalDist().cdf((seen + 0.5 - sum(means)) / spread) if spread else 1.0


def _judged(records: Sequence[EpisodeRecord]) -> list[EpisodeRecord]:
    """As they were written; those of one file for each episode by their indexes."""
    judged = having(records, Verdict.SUCCESS, Verdict.FAILURE)
    if len({*map(attrgetter("path"), judged)}) == 1:
        judged.sort(key=attrgetter("line"))
    return judged


def _in_order(records: Sequence[EpisodeRecord], runs: Runs) -> Iterator[list[bool]]:
    """The verdicts of each run. Of copies of an environment side by side, the successes end first."""
    judged = _judged(records)
    if any(COPY in some for names in held(judged) for some in names):
        return
    parts = [[one for one in judged if one.episode in episodes] for episodes in runs.values()] or [judged]
    yield from ([one.verdict is Verdict.SUCCESS for one in part] for part in parts)


def _expected(successes: int, failures: int) -> float:
    return 1 + 2 * successes * failures / (successes + failures)


def p_of(stretches: int, successes: int, failures: int) -> float:
    """The probability of at most so many stretches of equal verdicts, whatever the rate (Wald and Wolfowitz 1940)."""
    n, mean = successes + failures, _expected(successes, failures)
    spread = sqrt(max(0.0, (mean - 1) * (mean - 2) / (n - 1)))
    z = (stretches + 0.5 - mean) / spread if spread else 0.0
    if z > FAR:
        return 1.0
    if min(successes, failures) > EXACT:
        return NormalDist().cdf(z)
    ways = 0
    for half in range(1, stretches // 2 + 1):  # `half` stretches of each verdict, or one more of either
        both = comb(successes - 1, half - 1), comb(failures - 1, half - 1)
        ways += 2 * both[0] * both[1]
        if 2 * half < stretches:
            ways += comb(successes - 1, half) * both[1] + both[0] * comb(failures - 1, half)
    return ways / comb(n, successes)
