"""The comparisons of a run that may stop early: how far they have come, which sessions are not needed any more, and
what the report says of them.

A decision is taken on the longest run of pairs from the first one on that both policies have a record of. What has
arrived beyond a gap is not looked at. So a decision depends on neither the order in which episodes arrive, nor the
number of sessions, nor on when somebody looks: the records alone give it again.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING

from comborun.reporter.collect import collect_run
from comborun.reporter.comparing.comparisons import Comparison, Sequential, comparison_of
from comborun.reporter.comparing.pairing import Arm, count_pairs, merged_of, paired_outcomes, sides_of
from comborun.reporter.statistics.proportion import proportion
from comborun.reporter.statistics.sequential import decide, interval_after_stopping, levels, sequential_p
from comborun.rules.words import Cause, Outcome
from comborun.stopping import StopRule
from comborun.work import Spans, combo_of, minus, spans, union, within

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from pathlib import Path

    from comborun.attempt import End
    from comborun.plan import Session
    from comborun.reporter.collected import Collected, SessionHistory
    from comborun.reporter.comparing.pairing import Side
    from comborun.stopping import PlannedComparison
    from comborun.work import Combo


@dataclass(frozen=True)
class Standing:
    """How far one comparison has come."""

    planned: PlannedComparison
    outcomes: tuple[int, ...] = ()
    """of the pairs up to the decision: +1 where only a succeeded, -1 where only b did, else 0"""
    winner: str | None = None
    final: bool = False
    """decided, or all pairs are there and it never will be"""
    unpaired: str = ""
    """why the next pair can't be one: the records don't show that both episodes started the same"""

    @property
    def pairs(self) -> int:
        """Used; the pairs after a decision are not."""
        return len(self.outcomes)

    @property
    def stopped_early(self) -> bool:
        return self.final and self.pairs < self.planned.n_max

    def as_data(self) -> dict[str, object]:
        planned = self.planned
        told = {"environment": planned.environment, "a": planned.a, "b": planned.b}
        return {**told, "better": self.winner, "pairs": self.pairs, "n_max": planned.n_max}


def side_level(rule: StopRule) -> float:
    """The error that one side of one comparison may spend: two-sided `alpha`, shared among the family."""
    return min(levels(rule.alpha, rule.family))


def standings(rule: StopRule, arms: Mapping[Combo, Arm]) -> tuple[Standing, ...]:
    """One for each comparison of the rule. Errored episodes of an arm must be those that are not run again."""
    return tuple(_standing(planned, side_level(rule), arms) for planned in rule.comparisons)


def _standing(planned: PlannedComparison, level: float, arms: Mapping[Combo, Arm]) -> Standing:
    a, b = (arms.get(combo) for combo in planned.combos)
    if a is None or b is None:
        return Standing(planned)
    outcomes, unpaired = paired_outcomes(a, b, planned.episodes)
    decision = decide(outcomes, planned.n_max, level)
    winner = {1: planned.a, -1: planned.b}.get(decision.winner)
    return Standing(planned, outcomes[: decision.pairs], winner, decision.final, "" if decision.final else unpaired)


@dataclass(frozen=True)
class Stopping:
    """The rule of a run, and how far each of its comparisons has come."""

    rule: StopRule
    standings: tuple[Standing, ...]
    not_needed: tuple[str, ...] = ()
    """names of sessions that need not begin any more"""

    def lines(self) -> str:
        """A JSON object on a line for each comparison that is over: the same for whoever makes it."""
        told = (standing for standing in self.standings if standing.final)
        return "".join(json.dumps(standing.as_data(), ensure_ascii=False) + "\n" for standing in told)

    def comparisons(self, environment: str, sides: Iterable[Side]) -> tuple[Comparison, ...]:
        """Those that were planned and whose policies both have completed episodes."""
        found = {side.policy: side for side in sides if side.counts[1]}
        return tuple(
            self._comparison(standing, found[standing.planned.a], found[standing.planned.b])
            for standing in self.standings
            if standing.planned.environment == environment and {standing.planned.a, standing.planned.b} <= found.keys()
        )

    def _comparison(self, standing: Standing, a: Side, b: Side) -> Comparison:
        """Of all episodes where no pair can be made, since then none was decided early either."""
        whole = comparison_of(standing.planned.environment, a, b)
        if not (isinstance(a, Arm) and isinstance(b, Arm)):
            return replace(whole, prevented=whole.pairing)
        if standing.unpaired or not standing.pairs:
            return replace(whole, prevented=standing.unpaired or "no record of its first episode of both policies")
        used = frozenset(standing.planned.episodes[: standing.pairs])
        pairs = count_pairs(
            *(replace(one, completed=one.completed & used, successes=one.successes & used) for one in (a, b))
        )
        if not pairs.n:
            return replace(whole, prevented="no pair of episodes without an errored one")
        rate_a, rate_b = proportion(*pairs.counts_a), proportion(*pairs.counts_b)
        p = sequential_p(
            standing.outcomes,
            standing.planned.n_max,
            levels(self.rule.alpha, self.rule.family),
        )
        return replace(
            whole,
            rate_a=rate_a,
            rate_b=rate_b,
            pairing=f"equal starts in all {pairs.n} pairs",
            pairs=pairs,
            difference=(pairs.only_a - pairs.only_b) / pairs.n,
            interval=interval_after_stopping(rate_a, rate_b),
            p=p,
            p_holm=p,
            sequential=Sequential(standing.planned.n_max, standing.stopped_early, self.rule.alpha),
        )


def stopping_of(collected: Collected, sides: Mapping[Combo, Side]) -> Stopping | None:
    """None for a run all of whose episodes were to run."""
    rule = collected.stop_early
    return None if rule is None else Stopping(rule, standings(rule, last_arms(collected, sides)))


def last_arms(collected: Collected, sides: Mapping[Combo, Side]) -> dict[Combo, Arm]:
    """The episodes of every combo that has records, without errored ones that may still be run again."""
    histories = collected.by_combo
    arms = {}
    for combo, side in sides.items():
        if isinstance(side, Arm):
            last = union(
                history.session.episodes
                for history in histories.get(combo, ())
                if collected.done or ((end := _last_end(history)) and end.outcome is Outcome.SUCCEEDED)
            )
            errored = frozenset(episode for episode in side.errored if within(last, episode))
            arms[combo] = replace(side, errored=errored)
    return arms


def decide_run(directory: Path, unread: Mapping[PurePosixPath, str] = MappingProxyType({})) -> Stopping:
    """From a run's directory, or from a copy of it. Of a run without such comparisons: nothing."""
    collected = collect_run(directory, unread)
    found = collected.stop_early and stopping_of(collected, sides_of(collected, merged_of(collected), {}))
    if not found:
        return Stopping(StopRule(0.05, 0, ()), ())
    return replace(found, not_needed=not_needed(found, (history.session for history in collected.sessions)))


def not_needed(found: Stopping, sessions: Iterable[Session]) -> tuple[str, ...]:
    """Sessions of combos all of whose comparisons are over; those that have begun go on all the same."""
    over = {standing.planned for standing in found.standings if standing.final}
    return tuple(
        session.name
        for session in sessions
        if not session.flag and (planned := found.rule.of(combo_of(session))) and over.issuperset(planned)
    )


def spared(histories: Iterable[SessionHistory], recorded: Iterable[int]) -> Spans:
    """Episodes that were not needed, and have no record of an earlier attempt either."""
    unneeded = union(history.session.episodes for history in histories if _was_not_needed(history))
    return minus(unneeded, spans(recorded))


def as_run(histories: Sequence[SessionHistory]) -> tuple[SessionHistory, ...]:
    """What ran of a combo: without sessions, and attempts, that were not needed."""
    kept = (replace(one, attempts=one.attempts[:-1]) if _was_not_needed(one) else one for one in histories)
    return tuple(one for one, before in zip(kept, histories, strict=True) if one.attempts or not before.attempts)


def _was_not_needed(history: SessionHistory) -> bool:
    end = _last_end(history)
    return end is not None and end.cause is Cause.NOT_NEEDED


def _last_end(history: SessionHistory) -> End | None:
    return history.attempts[-1].end if history.attempts else None
