"""How far the comparisons of a run that may stop early have come, and what is not needed any more. Pure.

A decision is taken on the longest run of pairs from the first one on that both policies have a record of. What has
arrived beyond a gap is not looked at, so it depends on neither the order in which episodes arrive, nor the number of
sessions, nor on when somebody looks: the records alone give it again.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from comborun.reporter.comparing.pairing import Arm
from comborun.reporter.statistics.sequential import Rule, decide, levels
from comborun.rules.words import Outcome
from comborun.work import Spans, combo_of, union, within

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from comborun.plan import Session
    from comborun.reporter.collected import SessionHistory
    from comborun.stopping import PlannedComparison, StopRule
    from comborun.work import Combo


@dataclass(frozen=True)
class Standing:
    """How far one comparison has come."""

    planned: PlannedComparison
    outcomes: tuple[int, ...]
    """of the pairs up to the decision: +1 where only a succeeded, -1 where only b did, else 0"""
    winner: str | None
    final: bool
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

    @property
    def episodes(self) -> range:
        """Those that were used."""
        return self.planned.episodes[: self.pairs]


def side_level(rule: StopRule) -> float:
    """The error that one side of one comparison may spend: two-sided `alpha`, shared among the family."""
    return min(levels(rule.alpha, rule.family))


def standings(rule: StopRule, arms: Mapping[Combo, Arm]) -> tuple[Standing, ...]:
    """One for each comparison of the rule. An errored episode of an arm is taken for its last word."""
    return tuple(_standing(planned, side_level(rule), arms) for planned in rule.comparisons)


def _standing(planned: PlannedComparison, level: float, arms: Mapping[Combo, Arm]) -> Standing:
    a, b = (arms.get(combo) for combo in planned.combos)
    if a is None or b is None:
        return Standing(planned, (), None, final=False)
    outcomes, unpaired = paired_outcomes(a, b, planned.episodes)
    decision = decide(outcomes, Rule(planned.n_max, level))
    winner = {1: planned.a, -1: planned.b}.get(decision.winner)
    return Standing(planned, outcomes[: decision.pairs], winner, decision.final, "" if decision.final else unpaired)


def paired_outcomes(a: Arm, b: Arm, episodes: Iterable[int]) -> tuple[tuple[int, ...], str]:
    """Pair by pair, up to the first that is not there yet or is no pair; and, for the latter, why.

    A pair with an errored episode says nothing and is 0. Each pair is judged by itself and by those before it, so that
    what comes later takes nothing back.
    """
    known_a, known_b = a.completed | a.errored, b.completed | b.errored
    seeds: set[int] = set()
    found: list[int] = []
    for episode in episodes:
        if episode not in known_a or episode not in known_b:
            break
        if episode in a.completed and episode in b.completed:
            if reason := _no_pair(a, b, episode, seeds):
                return tuple(found), reason
            seeds.update({a.seeds[episode]} if episode in a.seeds else ())
            found.append((episode in a.successes) - (episode in b.successes))
        else:
            found.append(0)
    return tuple(found), ""


def _no_pair(a: Arm, b: Arm, episode: int, seeds: set[int]) -> str:
    """Why two episodes are not shown to have started the same; empty where they are."""
    hashes = a.hashes.get(episode), b.hashes.get(episode)
    if a.hash_field is not None and a.hash_field == b.hash_field and None not in hashes:
        return "" if hashes[0] == hashes[1] else f"the initial states of episode {episode} differ ({a.hash_field})"
    if reason := a.unpaired or b.unpaired:
        return reason
    own, other = a.seeds.get(episode), b.seeds.get(episode)
    if own is None or other is None:
        return f"no seed in the records of episode {episode}"
    if own != other:
        return f"the seeds of episode {episode} differ"
    return f"episode {episode} has the seed of an earlier one" if own in seeds else ""


def not_needed(rule: StopRule, found: Sequence[Standing], sessions: Iterable[Session]) -> tuple[str, ...]:
    """Sessions of combos all of whose comparisons are over; those that have begun go on all the same."""
    over = {standing.planned for standing in found if standing.final}
    return tuple(
        session.name
        for session in sessions
        if not session.flag and (planned := rule.of(combo_of(session))) and over.issuperset(planned)
    )


def settled(histories: Iterable[SessionHistory], *, run_over: bool) -> Spans:
    """Episodes of which no other attempt will be made: an errored one among them is its last word."""
    return union(history.session.episodes for history in histories if run_over or _complete(history))


def _complete(history: SessionHistory) -> bool:
    end = history.attempts[-1].end if history.attempts else None
    return end is not None and end.outcome is Outcome.SUCCEEDED


def with_last_words(arm: Arm, last: Spans) -> Arm:
    """`arm` without the errored episodes that may still be run again."""
    return replace(arm, errored=frozenset(episode for episode in arm.errored if within(last, episode)))
