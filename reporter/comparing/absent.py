"""Episodes that a folder without a plan may lack: another policy in the same environment has more of them. Pure.

Failures may leave no record. So what is not there counts against the better policy, as planned episodes without a
verdict do.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from comborun.model.work import Combo, grouped
from comborun.reporter.comparing.sides import Arm, Results, Side
from comborun.reporter.merge import UNPLANNED
from comborun.rules.facts import Fact

FEWER = "fewer_records"
LACKS = "lacks_episodes_of_others"


def with_absent(results: Results) -> tuple[Results, Mapping[Combo, Fact]]:
    """The results with these episodes as missing ones, and a fact for each combo that has fewer records."""
    sides, facts = dict(results.sides), {}
    for environment, combos in grouped(results.sides, lambda combo: combo[1]).items():
        most_of = max(combos, key=lambda combo: _recorded(results.sides[combo]))
        most = results.sides[most_of]
        longest = max(len(run) for combo in combos for run in _runs(results.sides[combo]))
        for combo in combos:
            own = results.sides[combo]
            lacking = _recorded(most) - (len(_known(own)) if isinstance(own, Arm) else own.counts[1])
            lacking = min(lacking, sum(longest - len(run) for run in _runs(own)))
            elsewhere = _elsewhere(own, [results.sides[other] for other in combos if other != combo])
            fields = {"policy": combo[0], "environment": environment, "records": _recorded(own)}
            if isinstance(own, Arm) and max(lacking, 0) < len(elsewhere) <= UNPLANNED:
                facts[combo] = Fact(LACKS, **fields, episodes=len(elsewhere))
                sides[combo] = replace(own, missing=own.missing | elsewhere)
            elif lacking > 0:
                facts[combo] = Fact(FEWER, **fields, other=most_of[0], of=_recorded(most))
                sides[combo] = _lacking(own, most, lacking)
    return replace(results, sides=sides), facts


def _elsewhere(own: Side, others: Sequence[Side]) -> frozenset[int]:
    """The episodes that others have and this one lacks, where all indexes that both have are shown to mean the same."""
    found = frozenset[int]()
    for other in others:
        if isinstance(own, Arm) and isinstance(other, Arm) and max(len(own.runs), len(other.runs)) < 2:
            lacking, common = _known(other) - _known(own), own.completed & other.completed
            if lacking and common and {*own.starts.mismatches(other.starts, common)} == {None}:
                found |= lacking
    return found


def _recorded(side: Side) -> int:
    return len(side.completed | side.errored) if isinstance(side, Arm) else side.counts[1]


def _runs(side: Side) -> Sequence[Collection[int]]:
    """The episodes of each run, where folders or fields name several: fewer runs are not missing episodes."""
    if not isinstance(side, Arm):
        return [range(side.counts[1])]
    known = _known(side)
    named = [known.intersection(run) for run in side.runs.values()] if side.runs_told else []
    return named if len(named) > 1 else [known]


def _known(arm: Arm) -> frozenset[int]:
    return arm.completed | arm.errored | arm.missing


def _lacking(own: Side, most: Side, count: int) -> Side:
    if not isinstance(own, Arm):
        return replace(own, absent=own.absent + count)
    if count > UNPLANNED:
        return own
    # New indexes if the other one's are not known: then nothing is paired, and only their number matters.
    others = sorted(_known(most) - _known(own)) if isinstance(most, Arm) else ()
    last = max(_known(own), default=0)
    indices = others[-count:] if len(others) >= count else range(last + 1, last + 1 + count)
    return replace(own, missing=own.missing | {*indices})
