"""Failure kinds compared: whether episodes of one policy end in a certain way more often than those of another. Pure.

They are a family of their own, with its own 5 %: which kinds there are is known from the records only, and they must
not make it harder to tell success rates apart.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

from comborun.attempt import Verdict
from comborun.reporter.comparing.comparisons import Comparison, Overall, comparison_of, overall_of
from comborun.reporter.comparing.pairing import Arm
from comborun.reporter.counting.measures import KINDS, kinds_of
from comborun.reporter.statistics.difference import holm

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comborun.reporter.comparing.pairing import Side
    from comborun.reporter.merge import MergedCombo
    from comborun.work import Combo

ERRORED = "no verdict (errored)"
MOST = 200
"""comparisons; of more the tables alone tell"""


@dataclass(frozen=True)
class KindComparison:
    kind: str
    found: Comparison | Overall
    """of the share of episodes that ended so; over all environments that both policies have, if there are several"""


def compare_kinds(merged: Mapping[Combo, MergedCombo], sides: Mapping[Combo, Side]) -> tuple[KindComparison, ...]:
    """Every pair of policies by every frequent kind, the smallest p first; nothing where that would be too many."""
    kinds = {combo: _kinds(merged[combo]) for combo, side in sides.items() if isinstance(side, Arm)}
    frequent = Counter(kind for one in kinds.values() for kind in one.values())
    frequent.pop("", None)
    most_common = [kind for kind, _ in frequent.most_common(KINDS)]
    pairs = list(combinations(dict.fromkeys(policy for policy, _ in kinds), 2))
    if not most_common or len(most_common) * len(pairs) > MOST or set(most_common) == {ERRORED}:
        return ()
    environments = list(dict.fromkeys(environment for _, environment in kinds))
    found = []
    for a, b in pairs:
        both = [name for name in environments if {(a, name), (b, name)} <= kinds.keys()]
        for kind in most_common:
            arms = [[_arm(sides[policy, name], kinds[policy, name], kind) for policy in (a, b)] for name in both]
            usable = [
                (name, first, second)
                for name, (first, second) in zip(both, arms, strict=True)
                if first.completed and second.completed
            ]
            if len(usable) > 1:
                found.append(KindComparison(kind, overall_of([one[1:] for one in usable])))
            elif usable:
                found.append(KindComparison(kind, comparison_of(*usable[0])))
    return _corrected(found)


def _kinds(combo: MergedCombo) -> dict[int, str]:
    """By episode; also those that gave no verdict."""
    errored = (record.episode for record in combo.accepted if record.verdict is Verdict.ERRORED)
    return {**kinds_of(combo.accepted)[1], **dict.fromkeys(errored, ERRORED)}


def _arm(side: Side, kinds: Mapping[int, str], kind: str) -> Arm:
    """With the episodes that ended so for successes. An episode that gave no verdict has ended, and is known."""
    assert isinstance(side, Arm)
    ended = frozenset(episode for episode, one in kinds.items() if one == kind)
    return replace(side, completed=side.completed | side.errored, successes=ended, errored=frozenset())


def _corrected(found: Sequence[KindComparison]) -> tuple[KindComparison, ...]:
    plain, worst = holm([one.found.p for one in found]), holm([one.found.worst_p for one in found])
    adjusted = [
        KindComparison(one.kind, replace(one.found, p_holm=p, worst_holm=q))
        for one, p, q in zip(found, plain, worst, strict=True)
    ]
    return tuple(sorted(adjusted, key=lambda one: one.found.p_holm))
