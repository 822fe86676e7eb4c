"""Episodes that repeat another one to the last digit, because the environment ignored their seeds. Pure.

A seed says that episodes start differently; equal measurements say that they did not. Only numbers that do not recur by
chance are taken: with four digits after the point or more, and no simple fractions, such as shares of subgoals.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from comborun.model.attempt import EpisodeRecord, Verdict, field_column, held
from comborun.model.work import Combo, grouped
from comborun.reporter.evidence.starts import Settled, StartFact, starts_of
from comborun.rules.facts import Fact

FEWEST = 10
"""fewest episodes that show it"""
TIMES = 3
"""how often each different episode comes at least, and five times on average"""
EVEN = 4
"""how much more often the most frequent one may come: starts in turn come equally often, quick solutions don't"""
DIGITS = 1e-4
SIMPLE = 64
"""largest denominator of a simple fraction"""
_MEASURED = re.compile(
    r"reward|return|score|progress|dist|time|duration|length|energy|force|error|effort|torque|jerk|speed|velocity|cost"
    r"|pos|height|angle|path",
    re.IGNORECASE,
)
"""names of results: other numbers that never vary may be settings"""

Replays = Mapping[int, Hashable]
"""by episode, what is equal for episodes that repeat one another"""


def replays(combos: Mapping[Combo, Sequence[EpisodeRecord]]) -> dict[Combo, Replays]:
    """The combos whose episodes repeat one another, settled over all policies of an environment.

    Policies that repeat themselves share the starts: those of an episode differ if any of them went differently.
    """
    found: dict[Combo, Replays] = {}
    for some in grouped(combos, lambda combo: combo[1]).values():
        own = {combo: one for combo in some if (one := _repeated(combos[combo]))}
        # Failures alone may all end at the horizon.
        if any(one.verdict is not Verdict.FAILURE for combo in own for one in combos[combo]):
            found |= {combo: {at: _joint(own, at) for at in own[combo]} for combo in own}
    return found


def with_replays(
    settled: Mapping[Combo, Settled], combos: Mapping[Combo, Sequence[EpisodeRecord]]
) -> dict[Combo, Settled]:
    """What was settled of the starts, and which episodes repeat others, where seeds and hashes don't tell it."""
    done = dict(settled)
    for combo, again in replays(combos).items():
        known, own = starts_of(combos[combo], settled[combo]), settled[combo]
        different = len({*again.values()})
        groups = known.groups([*again])
        if own.runs or (groups is not None and len(groups) <= different):
            continue
        fact = Fact(StartFact.REPLAYS, policy=combo[0], episodes=len(again), different=different)
        done[combo] = replace(own, replays=again, facts=(*own.facts, fact))
    return done


def _joint(own: Mapping[Combo, Replays], episode: int) -> Hashable:
    return tuple(one.get(episode) for one in own.values())


def _repeated(records: Sequence[EpisodeRecord]) -> Replays:
    if len(records) < FEWEST:
        return {}
    names = set[str].intersection(*({*metrics} for metrics, _ in held(records)))
    columns = [field_column(records, name) for name in sorted(filter(_MEASURED.search, names))]
    rows = [*zip(*filter(_recurs, columns), strict=True)]
    ends = dict(zip((one.episode for one in records), rows, strict=True)) if rows else {}
    judged = {(one.verdict, ends[one.episode]) for one in records} if ends else set()
    return ends if ends and len(judged) == len({*rows}) and _often(Counter(rows)) else {}


def _recurs(values: Sequence[object]) -> bool:
    counts = Counter(one for one in values if isinstance(one, int | float))
    return counts.total() == len(values) and _often(counts) and sum(map(_irregular, counts)) * 2 > len(counts)


def _often(counts: Counter[Any]) -> bool:
    least, most = min(counts.values()), max(counts.values())
    return counts.total() >= 5 * len(counts) and least >= TIMES and most <= EVEN * least


def _irregular(value: float) -> bool:
    return abs(value - float(Fraction(value).limit_denominator(SIMPLE))) > DIGITS
