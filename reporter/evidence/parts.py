"""Rows of one group that end alike more often than by chance: parts of an episode, or trials of one start. Pure.

Stages of a rollout, agents of a game, two tries of a trial: nothing but their outcomes tells that they are no
independent episodes. So each group counts once, at its mean.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from comborun.model.attempt import EpisodeRecord, Verdict, field_column, having, held
from comborun.model.work import Combo, grouped
from comborun.reporter.evidence.settings import EACH, SURE
from comborun.reporter.evidence.starts import RUN, Settled, StartFact, starts_of
from comborun.reporter.evidence.states import plain
from comborun.rules.facts import Fact

FEWEST = 10
"""fewest groups"""
_WHOLE = re.compile(
    r"(?:.*_)?(?:rollout|game|match|parent|source_episode)s?(?:_?(?:id|idx|index|number|no))?", re.IGNORECASE
)
"""names of what has parts, however many"""
_GROUP = re.compile(
    r"(?:.*_)?(?:group|trial|batch|block|session|start|init\w*)s?(?:_?(?:id|idx|index|number|no))?", re.IGNORECASE
)
"""names of what may be one start: with many rows each, outcomes are of these starts, and of independent episodes"""


def with_parts(
    settled: Mapping[Combo, Settled], combos: Mapping[Combo, Sequence[EpisodeRecord]]
) -> dict[Combo, Settled]:
    """What was settled of the starts, and the groups of a field of all policies in an environment, if outcomes go with
    it."""
    done = dict(settled)
    for some in grouped(combos, lambda combo: combo[1]).values():
        rows = {combo: having(combos[combo], Verdict.SUCCESS, Verdict.FAILURE) for combo in some}
        if not (name := next(_fields([*rows.values()]), "")):
            continue
        for combo, records in rows.items():
            own, values = settled[combo], [*map(plain, field_column(records, name))]
            known = starts_of(records, own).groups([one.episode for one in records])
            if own.runs or (known is not None and len(known) <= len({*values})):
                continue
            groups = {one.episode: value for one, value in zip(records, values, strict=True)}
            fact = Fact(StartFact.PARTS, field=name, groups=len({*values}), episodes=len(records), policy=combo[0])
            done[combo] = replace(own, parts=groups, facts=(*own.facts, fact))
    return done


def _fields(arms: Sequence[Sequence[EpisodeRecord]]) -> Iterator[str]:
    named = [{name for both in held(records) for some in both for name in some} for records in arms]
    for name in sorted(set[str].intersection(*named)) if named else ():
        whole = _WHOLE.fullmatch(name)
        grouping = whole or _GROUP.fullmatch(name)
        if grouping and not RUN.fullmatch(name) and _go_together(name, arms, math.inf if whole else EACH):
            yield name


def _go_together(name: str, arms: Sequence[Sequence[EpisodeRecord]], most: float) -> bool:
    """Whether few rows have each value, and their outcomes agree (chi-square over all policies)."""
    from scipy.special import chdtrc

    chi, degrees = 0.0, 0
    for records in arms:
        values = [*map(plain, field_column(records, name))]
        sizes = Counter(values)
        if None in sizes or len(sizes) < FEWEST or not 2 * len(sizes) <= len(records) < most * len(sizes):
            return False
        wins = Counter(value for value, one in zip(values, records, strict=True) if one.success)
        if 0 < (rate := wins.total() / len(records)) < 1:
            chi += sum((wins[one] - n * rate) ** 2 / (n * rate * (1 - rate)) for one, n in sizes.items())
            degrees += len(sizes) - 1
    return degrees > 0 and float(chdtrc(degrees, chi)) < SURE
