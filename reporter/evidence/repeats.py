"""Episodes and rows that are no evidence of their own: they repeat others, are parts of one, or stand under two names.
Pure."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fractions import Fraction
from itertools import islice
from math import comb
from operator import attrgetter
from typing import Any

from comborun.model.attempt import EpisodeRecord, Verdict, field_column, having, held
from comborun.model.work import Combo, grouped
from comborun.reporter.counting.measures import FAILURE_FIELDS
from comborun.reporter.evidence.settings import EACH, SURE, chance, uneven
from comborun.reporter.evidence.starts import RUN, Settled, StartFact, starts_of
from comborun.reporter.evidence.states import field_names, plain
from comborun.rules.facts import Fact

Combos = Mapping[Combo, Sequence[EpisodeRecord]]
FEWEST = 10
"""fewest episodes that show that they repeat others, and fewest groups"""


def _tell_more(groups: Mapping[int, Hashable], own: Settled, records: Sequence[EpisodeRecord]) -> bool:
    """Whether fewer episodes are different by these groups, of each episode, than by seeds and hashes."""
    known = starts_of(records, own).groups([*groups])
    return not own.runs and (known is None or len(known) > len({*groups.values()}))


# -- replays: episodes that repeat another one to the last digit ------------------------------------------------------

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


def with_replays(settled: Mapping[Combo, Settled], combos: Combos) -> dict[Combo, Settled]:
    """With the episodes that repeat one another because the environment ignored their seeds.

    A seed says that episodes start differently; equal measurements say that they did not. Policies that repeat
    themselves share the starts: those of an episode differ if any of them went differently.
    """
    done = dict(settled)
    for some in grouped(combos, lambda combo: combo[1]).values():
        own = {combo: one for combo in some if (one := _repeated(combos[combo]))}
        if all(one.verdict is Verdict.FAILURE for combo in own for one in combos[combo]):
            continue  # failures alone may all end at the horizon
        for combo, repeated in own.items():
            again = {at: tuple(one.get(at) for one in own.values()) for at in repeated}
            different = len({*again.values()})
            if _tell_more(again, settled[combo], combos[combo]):
                fact = Fact(StartFact.REPLAYS, policy=combo[0], episodes=len(again), different=different)
                done[combo] = replace(settled[combo], replays=again, facts=(*settled[combo].facts, fact))
    return done


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
    """Only numbers that do not recur by chance: with four digits after the point or more, and no simple fractions, such
    as shares of subgoals."""
    counts = Counter(one for one in values if isinstance(one, int | float))
    if counts.total() < len(values) or not _often(counts):
        return False
    return 2 * sum(abs(one - float(Fraction(one).limit_denominator(SIMPLE))) > DIGITS for one in counts) > len(counts)


def _often(counts: Counter[Any]) -> bool:
    least, most = min(counts.values()), max(counts.values())
    return counts.total() >= 5 * len(counts) and least >= TIMES and most <= EVEN * least


# -- parts: rows of one group that end alike more often than by chance ------------------------------------------------

_WHOLE = re.compile(
    r"(?:.*_)?(?:rollout|game|match|parent|source_episode)s?(?:_?(?:id|idx|index|number|no))?", re.IGNORECASE
)
"""names of what has parts, however many"""
_GROUP = re.compile(
    r"(?:.*_)?(?:group|trial|batch|block|session|start|init\w*)s?(?:_?(?:id|idx|index|number|no))?", re.IGNORECASE
)
"""names of what may be one start: with many rows each, outcomes are of these starts, and of independent episodes"""


def with_parts(settled: Mapping[Combo, Settled], combos: Combos) -> dict[Combo, Settled]:
    """With the groups of a field of all policies in an environment, if outcomes go with it: stages of a rollout, agents
    of a game, two tries of a trial. Nothing but their outcomes tells that they are no independent episodes, so each
    group counts once, at its mean."""
    done = dict(settled)
    for some in grouped(combos, lambda combo: combo[1]).values():
        rows = {combo: having(combos[combo], Verdict.SUCCESS, Verdict.FAILURE) for combo in some}
        if not (name := next(_fields([*rows.values()]), "")):
            continue
        for combo, records in rows.items():
            values = map(plain, field_column(records, name))
            groups = {one.episode: value for one, value in zip(records, values, strict=True)}
            if _tell_more(groups, settled[combo], records):
                count = len({*groups.values()})
                fact = Fact(StartFact.PARTS, field=name, groups=count, episodes=len(records), policy=combo[0])
                done[combo] = replace(settled[combo], parts=groups, facts=(*settled[combo].facts, fact))
    return done


def _fields(arms: Sequence[Sequence[EpisodeRecord]]) -> Iterator[str]:
    for name in sorted(set[str].intersection(*({*field_names(one)} for one in arms))) if arms else ():
        whole = _WHOLE.fullmatch(name)
        grouping = whole or _GROUP.fullmatch(name)
        if grouping and not RUN.fullmatch(name) and _go_together(name, arms, math.inf if whole else EACH):
            yield name


def _go_together(name: str, arms: Sequence[Sequence[EpisodeRecord]], most: float) -> bool:
    """Whether few rows have each value, and their outcomes agree (chi-square over all policies)."""
    chi, degrees = 0.0, 0
    for records in arms:
        values = [*map(plain, field_column(records, name))]
        sizes = Counter(values)
        if None in sizes or len(sizes) < FEWEST or not 2 * len(sizes) <= len(records) < most * len(sizes):
            return False
        wins = Counter(value for value, one in zip(values, records, strict=True) if one.success)
        if 0 < wins.total() < len(records):
            chi += uneven((wins[one], n) for one, n in sizes.items())
            degrees += len(sizes) - 1
    return degrees > 0 and chance(chi, degrees) < SURE


# -- copies: the results of one policy under the name of another one too, or of one environment -----------------------

COPY, AGAIN = "rows_of_another_name", "rows_of_another_run"
LOOKED_AT = 64
CHANCE = 1_000_000
"""two policies that know nothing of each other have the same verdicts in fewer than one of so many cases"""
VALUES = 5
"""fewest different values of a measurement that tells as much"""
_MEASUREMENT = re.compile(
    r"time|steps?|length|duration|frames|return|reward|score|progress|distance|energy|error", re.IGNORECASE
)


def copies(combos: Combos) -> dict[Combo, Fact]:
    """For each combo that has the rows of an earlier one, of the same environment or else of the same policy."""
    found: dict[Combo, Fact] = {}
    beginnings = {
        combo: (len(records), *map(attrgetter("verdict"), islice(records, LOOKED_AT)))
        for combo, records in combos.items()
        if len(records) > 1
    }
    for some in grouped(beginnings, beginnings.__getitem__).values():
        for at, own in enumerate(some):
            others = [one for one in some[:at] if one not in found]
            if fact := next(_of_any(own, others, combos), None):
                found[own] = fact
    return found


def repeated_run(before: Sequence[EpisodeRecord], after: Sequence[EpisodeRecord], runs: tuple[str, str]) -> Fact | None:
    """The fact that a combo has the same rows in a second run, or the one begins with all rows of the other. A program
    that takes nothing from chance gives them again, and so do a folder that was copied and a run that went on."""
    n = min(len(before), len(after))
    if not n or (apart := _apart(before[:n], after[:n])) is None:
        return None
    of, other = runs if len(before) < len(after) else runs[::-1]
    return Fact(AGAIN, of=of, other=other, rows=n, apart=apart, more=max(len(before), len(after)) - n)


def _of_any(own: Combo, others: Iterable[Combo], combos: Combos) -> Iterator[Fact]:
    for axis, kind in enumerate(("policy", "environment")):
        for other in others:
            if own[1 - axis] == other[1 - axis] and (apart := _apart(combos[other], combos[own])) is not None:
                yield Fact(COPY, kind=kind, of=own[axis], other=other[axis], rows=len(combos[own]), apart=apart)


def _apart(a: Sequence[EpisodeRecord], b: Sequence[EpisodeRecord]) -> list[str] | None:
    """The fields besides the name that are not the same; None if the rows are not those of one evaluation."""
    for one, other in zip(a, b, strict=True):
        if one.verdict is not other.verdict or (one.episode, one.seed) != (other.episode, other.seed):
            return None
    apart, telling = [], comb(len(a), sum(one.verdict is Verdict.SUCCESS for one in a)) >= CHANCE
    for name in dict.fromkeys([*field_names(a), *field_names(b)]):
        first, second = field_column(a, name), field_column(b, name)
        if first == second:
            telling = telling or bool(_MEASUREMENT.search(name) and len({*map(plain, first)}) >= VALUES)
        elif name in FAILURE_FIELDS or not (_constant(first) and _constant(second)):
            return None
        else:
            apart.append(name)
    return apart if telling else None


def _constant(column: Sequence[object]) -> bool:
    """Or of texts: a path, or a time of the day."""
    return all(isinstance(one, str) for one in column) or all(one == column[0] for one in column)
