"""Failure kinds compared: whether episodes of one policy end in a certain way more often than those of another. Pure.

They are a family of their own, with its own 5 %: which kinds there are is known from the records only, and they must
not make it harder to tell success rates apart.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from itertools import combinations
from typing import TYPE_CHECKING

from comborun.reporter.comparing.comparisons import Comparison, Overall, comparison_of, overall_of
from comborun.reporter.comparing.pairing import Arm, meet
from comborun.reporter.counting.measures import ERRORED, KINDS
from comborun.reporter.statistics.difference import holm

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comborun.reporter.comparing.pairing import Meeting, Side
    from comborun.reporter.counting.measures import Ends
    from comborun.work import Combo

MOST = 200
"""comparisons; of more the tables alone tell"""


@dataclass(frozen=True)
class KindComparison:
    kind: str
    found: Comparison | Overall
    """of the share of episodes that ended so; over all environments that both policies have, if there are several"""


def compare_kinds(ends: Mapping[Combo, Ends], sides: Mapping[Combo, Side]) -> tuple[KindComparison, ...]:
    """Every pair of policies by every frequent kind, the smallest p first; nothing where that would be too many."""
    # An episode without a verdict has ended, too, so how it ended is known.
    arms = {
        combo: replace(side, completed=side.completed | side.errored, errored=frozenset()) if side.errored else side
        for combo, side in sides.items()
        if isinstance(side, Arm) and combo in ends
    }
    frequent = Counter[str]()
    for combo in arms:
        frequent.update(ends[combo].words)
        frequent[ERRORED] += len(ends[combo].errored)
    kinds = [kind for kind, count in frequent.most_common() if kind and count][:KINDS]
    pairs = list(combinations(dict.fromkeys(policy for policy, _ in arms), 2))
    if not kinds or len(kinds) * len(pairs) > MOST or set(kinds) == {ERRORED}:
        return ()
    met = [_meetings(pair, {combo: arm for combo, arm in arms.items() if arm.completed}) for pair in pairs]
    found = []
    for kind in kinds:
        ended = {combo: replace(arm, successes=ends[combo].by(kind)) for combo, arm in arms.items()}
        for meetings in met:
            own = [
                replace(one, a=ended[one.a.policy, one.environment], b=ended[one.b.policy, one.environment])
                for one in meetings
            ]
            if own:
                found.append(KindComparison(kind, overall_of(own) if len(own) > 1 else comparison_of(own[0])))
    return _corrected(found)


def _meetings(pair: tuple[str, str], arms: Mapping[Combo, Arm]) -> list[Meeting]:
    a, b = pair
    both = [name for name in dict.fromkeys(name for _, name in arms) if {(a, name), (b, name)} <= arms.keys()]
    return [meet(name, arms[a, name], arms[b, name]) for name in both]


def _corrected(found: Sequence[KindComparison]) -> tuple[KindComparison, ...]:
    plain, worst = holm([one.found.p for one in found]), holm([one.found.worst_p for one in found])
    adjusted = [
        KindComparison(one.kind, replace(one.found, p_holm=p, worst_holm=q))
        for one, p, q in zip(found, plain, worst, strict=True)
    ]
    return tuple(sorted(adjusted, key=lambda one: one.found.p_holm))
