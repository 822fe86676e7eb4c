"""The comparisons of a run that may have stopped early, as the report tells them. Pure."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from comborun.reporter.comparing.comparison import Comparison, Sequential, comparison_of, count_pairs
from comborun.reporter.comparing.pairing import Arm, Pairing
from comborun.reporter.comparing.stopping import side_level, standings
from comborun.reporter.statistics.proportion import proportion
from comborun.reporter.statistics.sequential import Rule, interval_after_stopping, levels, sequential_p
from comborun.rules.words import Cause
from comborun.work import Spans, minus, spans, union

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from comborun.reporter.collected import SessionHistory
    from comborun.reporter.comparing.comparison import Side
    from comborun.reporter.comparing.stopping import Standing
    from comborun.reporter.statistics.paired import PairCounts
    from comborun.stopping import StopRule
    from comborun.work import Combo


@dataclass(frozen=True)
class Early:
    """The rule of a run, and how far each of its comparisons has come."""

    rule: StopRule
    standings: tuple[Standing, ...]

    @property
    def environments(self) -> frozenset[str]:
        return self.rule.environments

    @property
    def family(self) -> int:
        return self.rule.family

    def pairs(self, environment: str, arms: Sequence[Side]) -> tuple[Comparison, ...]:
        """The planned comparisons of one environment, as far as both policies have completed episodes."""
        found = {side.policy: side for side in arms if side.counts[1]}
        return tuple(
            self._comparison(standing, found[standing.planned.a], found[standing.planned.b])
            for standing in self.standings
            if standing.planned.environment == environment and {standing.planned.a, standing.planned.b} <= found.keys()
        )

    def _comparison(self, standing: Standing, a: Side, b: Side) -> Comparison:
        """Of all episodes where no pair can be made, since then none was decided early either."""
        whole = comparison_of(standing.planned.environment, a, b)
        if not (isinstance(a, Arm) and isinstance(b, Arm)):
            return replace(whole, prevented=whole.pairing.why)
        if standing.unpaired or not standing.pairs:
            return replace(whole, prevented=standing.unpaired or "no record of its first episode of both policies")
        used_a, used_b = _within(a, standing.episodes), _within(b, standing.episodes)
        pairs = count_pairs(used_a, used_b)
        if not pairs.n:
            return replace(whole, prevented="no pair of episodes without an errored one")
        return self._sequential(standing, pairs, used_a, used_b)

    def _sequential(self, standing: Standing, pairs: PairCounts, a: Arm, b: Arm) -> Comparison:
        rate_a, rate_b = proportion(*pairs.counts_a), proportion(*pairs.counts_b)
        rule = Rule(standing.planned.n_max, side_level(self.rule))
        p = sequential_p(standing.outcomes, rule, levels(self.rule.alpha, self.rule.family))
        return Comparison(
            environment=standing.planned.environment,
            a=a.policy,
            b=b.policy,
            rate_a=rate_a,
            rate_b=rate_b,
            pairing=Pairing(paired=True, why=f"equal starts in all {pairs.n} pairs", common=pairs.n, matched=pairs.n),
            pairs=pairs,
            difference=(pairs.only_a - pairs.only_b) / pairs.n,
            interval=interval_after_stopping(rate_a, rate_b),
            p=p,
            p_holm=p,
            sequential=Sequential(standing.planned.n_max, standing.stopped_early, self.rule.alpha),
        )


def early(rule: StopRule | None, arms: Mapping[Combo, Arm]) -> Early | None:
    """None for a run all of whose episodes were to run. `arms` have only errored episodes that stay so."""
    return None if rule is None else Early(rule, standings(rule, arms))


def _within(arm: Arm, episodes: range) -> Arm:
    """The episodes of an arm that a decision stands on."""
    used = frozenset(episodes)
    return replace(arm, completed=arm.completed & used, successes=arm.successes & used, errored=arm.errored & used)


def spared(histories: Iterable[SessionHistory], recorded: Iterable[int]) -> Spans:
    """Episodes that were not needed, and have no record of an earlier attempt either."""
    unneeded = union(history.session.episodes for history in histories if _not_needed(history))
    return minus(unneeded, spans(recorded))


def as_run(histories: Sequence[SessionHistory]) -> tuple[SessionHistory, ...]:
    """What ran of a combo: without sessions, and attempts, that were not needed."""
    kept = (
        replace(history, attempts=history.attempts[:-1]) if _not_needed(history) else history for history in histories
    )
    return tuple(
        history for history, before in zip(kept, histories, strict=True) if history.attempts or not before.attempts
    )


def _not_needed(history: SessionHistory) -> bool:
    end = history.attempts[-1].end if history.attempts else None
    return end is not None and end.cause is Cause.NOT_NEEDED
