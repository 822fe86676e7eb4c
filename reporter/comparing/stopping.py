"""The comparisons of a run that may stop early: how far they are, and which sessions are not needed any more.

A decision uses the pairs from the first one up to the first pair that lacks a record. So it does not depend on the
order in which episodes arrive, on the number of sessions, or on the time of the look.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath
from statistics import fmean
from types import MappingProxyType

from comborun.model.plan import Session
from comborun.model.stopping import PlannedComparison, StopRequest, StopRule, stop_rule
from comborun.model.work import Combo, Spans, combo_of, episodes_by_combo, minus, spans, union, within
from comborun.reporter.collect import collect_run
from comborun.reporter.comparing.comparison import ALPHA, Comparison, Sequential, comparison_of, rates
from comborun.reporter.comparing.graded import MeanDifference, mean_difference_of, scores
from comborun.reporter.comparing.pairing import meet, pairs_in_order
from comborun.reporter.comparing.sides import Arm, Results, Side, count_pairs, outcomes, results_of
from comborun.reporter.records.collected import Collected, SessionHistory
from comborun.reporter.statistics.sequential import (
    Decision,
    decide,
    decide_both,
    decide_mean,
    interval_after_stopping,
    interval_by_betting,
    pointless_after,
)
from comborun.rules.vocabulary import Cause, Outcome


@dataclass(frozen=True)
class ComparisonProgress:
    planned: PlannedComparison
    episodes: tuple[int, ...] = ()
    winner: str | None = None
    """the winner even if every episode without a verdict counts against it"""
    final: bool = False
    """nothing can change any more"""
    unpaired: str = ""
    """why the next two episodes are no pair"""
    completed_winner: str | None = None
    """the winner if pairs without both verdicts count as equal"""

    @property
    def pairs(self) -> int:
        return len(self.episodes)

    @property
    def stopped_early(self) -> bool:
        return self.final and self.pairs < self.planned.n_max


def standings(rule: StopRule, arms: Mapping[Combo, Arm], *, alike: bool = True) -> tuple[ComparisonProgress, ...]:
    """One for each comparison of the rule. Episodes without a verdict, or without a value where values are compared,
    must be final: not run again."""
    return tuple(_standing(planned, rule, arms, alike=alike) for planned in rule.comparisons)


def _standing(
    planned: PlannedComparison, rule: StopRule, arms: Mapping[Combo, Arm], *, alike: bool
) -> ComparisonProgress:
    level = rule.alpha / 2 / max(1, rule.family)
    a, b = (arms.get(combo) for combo in planned.combos)
    if a is None or b is None:
        return ComparisonProgress(planned)
    episodes, unpaired = pairs_in_order(a, b, planned.episodes, alike=alike)
    if rule.metric:
        return _standing_by_mean(planned, level, (episodes, unpaired), (a.values, b.values))
    least_for_a = outcomes(a.filled(success=False), b.filled(success=True), episodes)
    most_for_a = outcomes(a.filled(success=True), b.filled(success=False), episodes)
    decision = decide_both(least_for_a, most_for_a, planned.n_max, level)
    equal_if_unknown = outcomes(a, b, episodes)
    ended = pointless_after(equal_if_unknown[: decision.pairs], (planned.n_max, level), rule.futility, rule.width)
    if ended is not None and not (decision.winner and ended == decision.pairs):
        decision = Decision(ended, 0, final=True)
    completed = decide(equal_if_unknown[: decision.pairs], planned.n_max, level)
    return _progress(planned, episodes, unpaired, decision, completed)


def _standing_by_mean(
    planned: PlannedComparison, level: float, pairs: tuple[tuple[int, ...], str], values: Sequence[Mapping[int, float]]
) -> ComparisonProgress:
    """By the values of a and of b. One that is not known counts as 0 or as 1, against the claim."""
    (episodes, unpaired), (own, theirs) = pairs, values
    for_a = [own.get(one, 0.0) - theirs.get(one, 1.0) for one in episodes]
    for_b = [own.get(one, 1.0) - theirs.get(one, 0.0) for one in episodes]
    decision = decide_mean(for_a, for_b, planned.n_max, level)
    both = [own[one] - theirs[one] if one in own and one in theirs else 0.0 for one in episodes[: decision.pairs]]
    return _progress(planned, episodes, unpaired, decision, decide_mean(both, both, planned.n_max, level))


def _progress(
    planned: PlannedComparison, episodes: tuple[int, ...], unpaired: str, decision: Decision, completed: Decision
) -> ComparisonProgress:
    names = {1: planned.a, -1: planned.b}
    return ComparisonProgress(
        planned,
        episodes[: decision.pairs],
        names.get(decision.winner),
        decision.final,
        "" if decision.final else unpaired,
        names.get(completed.winner),
    )


@dataclass(frozen=True)
class EarlyStopping:
    """The rule of a run, and how far each of its comparisons has come."""

    rule: StopRule
    standings: tuple[ComparisonProgress, ...]
    not_needed: tuple[str, ...] = ()
    so_far: bool = False
    """the run is not over, and its grid does not let it stop early"""
    values: Mapping[Combo, Arm] = field(default_factory=dict)
    """of the rule's metric"""

    def lines(self) -> str:
        """A line with a JSON object for each comparison that is over."""
        final = (
            {
                "environment": progress.planned.environment,
                "a": progress.planned.a,
                "b": progress.planned.b,
                "better": progress.winner,
                "pairs": progress.pairs,
                "n_max": progress.planned.n_max,
                **({"metric": self.rule.metric} if self.rule.metric else {}),
            }
            for progress in self.standings
            if progress.final
        )
        return "".join(json.dumps(one, ensure_ascii=False) + "\n" for one in final)

    def comparisons(self, environment: str, sides: Iterable[Side]) -> tuple[Comparison, ...]:
        """The planned comparisons of an environment for which both policies have completed episodes."""
        found = {side.policy: side for side in sides if side.counts[1]}
        return tuple(
            self._comparison(standing, found[standing.planned.a], found[standing.planned.b])
            for standing in self.standings
            if standing.planned.environment == environment and {standing.planned.a, standing.planned.b} <= found.keys()
        )

    def by_metric(self, environment: str) -> Iterator[MeanDifference]:
        """The planned comparisons of an environment by the rule's metric, where both policies have values."""
        for standing in self.standings:
            a, b = (self.values.get(combo) for combo in standing.planned.combos)
            if standing.planned.environment != environment or not (a and b):
                continue
            used = frozenset(standing.episodes).intersection(a.values, b.values)
            if used and not standing.unpaired:
                yield self._by_betting(standing, (a, b), sorted(used))
            elif whole := mean_difference_of(self.rule.metric, [meet(environment, a, b)]):
                yield replace(whole, prevented=standing.unpaired or "no pair of episodes with a value of both policies")

    def _by_betting(self, standing: ComparisonProgress, sides: tuple[Arm, Arm], used: Sequence[int]) -> MeanDifference:
        a, b = ([one.values[episode] for episode in used] for one in sides)
        differences = [own - other for own, other in zip(a, b, strict=True)]
        level, unknown = self._level, [len(one.unknown.intersection(standing.episodes)) for one in sides]
        planned = standing.planned
        return MeanDifference(
            a=planned.a,
            b=planned.b,
            metric=self.rule.metric,
            environments=(planned.environment,),
            facts=meet(planned.environment, *sides).facts,
            difference=fmean(differences),
            interval=interval_by_betting(differences),
            p=level if standing.completed_winner or standing.winner else 1.0,
            worst_p=level if standing.winner else 1.0,
            n=(len(used), len(used)),
            means=(fmean(a), fmean(b)),
            paired=True,
            unknown=(unknown[0], unknown[1]),
            sequential=Sequential(planned.n_max, standing.stopped_early, self.rule.alpha),
        )

    @property
    def _level(self) -> float:
        """Of one comparison; Holm's product must not round above alpha."""
        return self.rule.alpha / max(1, self.rule.family) * (1 - 1e-12)

    def _comparison(self, standing: ComparisonProgress, a: Side, b: Side) -> Comparison:
        """Uses the pairs of episodes. If there are none, nothing was decided early, and it uses all episodes."""
        whole = comparison_of(meet(standing.planned.environment, a, b))
        if not (isinstance(a, Arm) and isinstance(b, Arm)):
            return self._without_pairs(whole, whole.pairing)
        if standing.unpaired or not standing.pairs:
            return self._without_pairs(whole, standing.unpaired or "no record of its first episode of both policies")
        used = frozenset(standing.episodes)
        first, second = (replace(one, completed=one.completed & used, successes=one.successes & used) for one in (a, b))
        pairs = count_pairs(first, second)
        if not pairs.n:
            return self._without_pairs(whole, "no pair of episodes without an errored one")
        level = self._level
        rate_a, rate_b = rates(first, second, pairs)
        difference = (pairs.only_a - pairs.only_b) / pairs.n
        return replace(
            whole,
            rate_a=rate_a,
            rate_b=rate_b,
            pairing=f"equal starts in all {pairs.n} pairs" if not self.so_far else whole.pairing,
            pairs=pairs,
            difference=difference,
            interval=interval_after_stopping(pairs),
            p=level if standing.completed_winner or standing.winner else 1.0,
            worst_p=level if standing.winner else 1.0,
            unknown=(len(a.unknown & used), len(b.unknown & used)),
            sequential=Sequential(standing.planned.n_max, standing.stopped_early, self.rule.alpha),
            so_far=self.so_far,
        )

    def _without_pairs(self, whole: Comparison, why: str) -> Comparison:
        """Uses all episodes if the run is over; until then it is undecided."""
        if self.so_far:
            return replace(whole, prevented=why, so_far=True, p=1.0, worst_p=1.0)
        return replace(whole, prevented=why)


def stopping_of(collected: Collected, results: Results) -> EarlyStopping | None:
    """By the rule of the grid. Without a rule, comparisons of an unfinished run are tested as if they could stop it,
    so that a claim holds however often the run is reported. None for a finished run without a rule."""
    rule, so_far = collected.stop_early, under_way(collected) if collected.stop_early is None else ()
    if so_far and collected.plan:
        counted = [one for one in collected.plan.sessions if one.unit == "episode" and one.count]
        rule = stop_rule(StopRequest(ALPHA, None, so_far, None), episodes_by_combo(counted))
    if rule is None:
        return None
    values = _values(rule.metric, results) if rule.metric else {}
    found = standings(rule, last_arms(collected, values if rule.metric else results.sides), alike=not so_far)
    return EarlyStopping(rule, found, so_far=bool(so_far), values=values)


def _values(metric: str, results: Results) -> dict[Combo, Arm]:
    """By combo, its values from 0 to 1. An episode with another one counts as one without."""
    found = {}
    for combo, records in results.merged.items():
        own = scores(records, metric, results.settled.get(combo))
        values = {episode: value for episode, value in own.values.items() if 0 <= value <= 1}
        errored = own.errored | (own.completed - values.keys())
        found[combo] = replace(own, completed=frozenset(values), errored=errored, values=values)
    return found


def under_way(collected: Collected) -> tuple[str, ...]:
    """Environments with episodes that may still be run."""
    counted = (history for history in collected.sessions if history.session.unit == "episode")
    may_go_on = (
        history for history in counted if (history.end.cause is Cause.STOPPED if history.end else not collected.done)
    )
    return tuple(dict.fromkeys(history.session.environment for history in may_go_on))


def last_arms(collected: Collected, sides: Mapping[Combo, Side]) -> dict[Combo, Arm]:
    """The episodes of every combo with records, without those that lack a verdict and may run again."""
    histories = collected.by_combo
    arms = {}
    for combo, side in sides.items():
        if isinstance(side, Arm):
            of_combo = histories.get(combo, ())
            last = union(history.session.episodes for history in of_combo if _is_last(history, collected))
            errored, missing = (
                frozenset(episode for episode in some if within(last, episode)) for some in (side.errored, side.missing)
            )
            arms[combo] = replace(side, errored=errored, missing=missing)
    return arms


def _is_last(history: SessionHistory, collected: Collected) -> bool:
    over = bool(collected.done)
    if not (end := history.end):
        return over
    return end.cause not in {Cause.STOPPED, Cause.NOT_NEEDED} and (over or end.outcome is Outcome.SUCCEEDED)


def decide_run(directory: Path, unread: Mapping[PurePosixPath, str] = MappingProxyType({})) -> EarlyStopping:
    """From a run's directory or a copy of it; empty for a run that can't stop early."""
    collected = collect_run(directory, unread)
    found = collected.stop_early and stopping_of(collected, results_of(collected))
    if not found:
        return EarlyStopping(StopRule(0.05, 0, ()), ())
    return replace(found, not_needed=not_needed(found, (history.session for history in collected.sessions)))


def not_needed(found: EarlyStopping, sessions: Iterable[Session]) -> tuple[str, ...]:
    """Sessions of combos whose comparisons are all over."""
    over = {standing.planned for standing in found.standings if standing.final}
    return tuple(
        session.name
        for session in sessions
        if not session.flag and (planned := found.rule.of(combo_of(session))) and over.issuperset(planned)
    )


def spared(histories: Iterable[SessionHistory], recorded: Iterable[int]) -> Spans:
    """Episodes that were not needed and have no record."""
    unneeded = union(history.session.episodes for history in histories if _was_not_needed(history))
    return minus(unneeded, spans(recorded))


def as_run(histories: Sequence[SessionHistory]) -> tuple[SessionHistory, ...]:
    """The histories of a combo without sessions and attempts that were not needed."""
    kept = []
    for history in histories:
        if not _was_not_needed(history):
            kept.append(history)
        elif earlier := history.attempts[:-1]:
            kept.append(replace(history, attempts=earlier))
    return tuple(kept)


def _was_not_needed(history: SessionHistory) -> bool:
    return history.end is not None and history.end.cause is Cause.NOT_NEEDED
