"""Compares policies by the kinds of their failures. Pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import combinations

from comborun.model.work import Combo, grouped
from comborun.reporter.comparing.comparison import Comparison, Overall, compared, corrected
from comborun.reporter.comparing.pairing import meet
from comborun.reporter.comparing.sides import Arm, Meeting, Side
from comborun.reporter.counting.measures import ERRORED, KINDS, EpisodeEnds
from comborun.reporter.evidence.context import ContextFact
from comborun.rules.facts import Fact

MOST = 200
"""most comparisons by failure kinds; of more, only the counts are shown"""


@dataclass(frozen=True)
class KindComparison:
    kind: str
    found: Comparison | Overall
    """of the share of episodes that ended so"""

    @property
    def shares(self) -> tuple[float, float]:
        """of a and of b"""
        found = self.found
        rates = (found.mean_a, found.mean_b) if isinstance(found, Overall) else (found.rate_a.rate, found.rate_b.rate)
        return rates[0] or 0.0, rates[1] or 0.0


def compare_kinds(ends: Mapping[Combo, EpisodeEnds], sides: Mapping[Combo, Side]) -> tuple[KindComparison, ...]:
    """Every pair of policies by every frequent kind, the smallest p first; none if they are too many. They have 5 % of
    the error of their own, so that they don't make success rates harder to tell apart."""
    arms = {
        # An episode without a verdict has ended, too, so how it ended is known.
        combo: replace(side, completed=side.completed | side.errored, errored=frozenset()) if side.errored else side
        for combo, side in sides.items()
        if isinstance(side, Arm) and combo in ends
    }
    kinds = _frequent_kinds(ends[combo] for combo in arms)
    pairs = [*combinations(dict.fromkeys(policy for policy, _ in arms), 2)]
    if not kinds or set(kinds) == {ERRORED} or len(kinds) * len(pairs) > MOST:
        return ()
    usable = dict.fromkeys(combo for combo, arm in arms.items() if arm.completed)
    places = dict.fromkeys(environment for _, environment in usable)
    met = [
        [(place, (a, place), (b, place)) for place in places if {(a, place), (b, place)} <= usable.keys()]
        for a, b in pairs
    ]
    found: list[KindComparison] = []
    for kind in kinds:
        of_kind = {combo: _of_kind(arm, ends[combo], kind) for combo, arm in arms.items()}
        for own in met:
            alike = [(place, a, b) for place, a, b in own if not _unlike(kind, ends[a], ends[b])]
            meetings = [_meet(place, (arms[a], of_kind[a]), (arms[b], of_kind[b])) for place, a, b in alike]
            found += [KindComparison(kind, compared(meetings))] if meetings else []
    adjusted = zip(found, corrected([one.found for one in found]), strict=True)
    told = _with_other_words([replace(one, found=own) for one, own in adjusted])
    return tuple(sorted(told, key=lambda one: one.found.p_holm))


def _with_other_words(compared: Sequence[KindComparison]) -> Iterator[KindComparison]:
    """Says of two policies that each of them never names a kind that the other often does: two words for one kind?"""
    alone = {
        (one.found.ahead, one.found.behind): one.kind
        for one in compared
        if one.found.decided and one.kind != ERRORED and not min(one.shares)
    }
    for one in compared:
        both = one.found.ahead, one.found.behind
        other = alone.get((both[1], both[0])) if one.found.decided and not min(one.shares) else None
        told = [Fact(ContextFact.OTHER_WORDS, policies=[*both], kinds=[one.kind, other])] if other else []
        yield replace(one, found=replace(one.found, facts=(*one.found.facts, *told)))


def _of_kind(arm: Arm, ends: EpisodeEnds, kind: str) -> Arm:
    """A failure whose record names no kind can be of each."""
    found = replace(arm, successes=ends.by(kind))
    unsaid = ends.by("") if kind != ERRORED and ends.field else frozenset[int]()
    return replace(found, contested=found.contested | unsaid) if unsaid else found


UNLIKE_KINDS = "unlike_kinds"


def unlike_kinds(ends: Mapping[Combo, EpisodeEnds]) -> Iterator[Fact]:
    """For each environment and two policies, why some kinds of failure are not compared."""
    for environment, combos in grouped(ends, lambda combo: combo[1]).items():
        failed = [combo for combo in combos if ends[combo].failed]
        spellings = {word for combo in failed for word in {*ends[combo].words}}
        frequent = _frequent_kinds(ends[combo] for combo in failed)
        alike = any(_holds(kind, word) for kind in frequent for word in spellings if kind != word)
        if len({ends[combo].field for combo in failed}) < 2 and not alike:
            continue
        for a, b in combinations(failed, 2):
            both = {combo: ends[combo] for combo in (a, b)}
            if kinds := [kind for kind in _frequent_kinds(both.values()) if _unlike(kind, *both.values())]:
                fields = {"policies": [a[0], b[0]], "fields": [one.field or "" for one in both.values()]}
                yield Fact(UNLIKE_KINDS, environment=environment, kinds=kinds, **fields)
                break


def _unlike(kind: str, a: EpisodeEnds, b: EpisodeEnds) -> bool:
    """Whether two policies don't say it alike: in other fields, in none, in another spelling, or with more words; also
    if one of both spells it in two ways."""
    if kind == ERRORED or not (a.failed and b.failed):  # who never failed never failed in this way
        return False
    return a.field != b.field or any(
        (kind not in one.words and any(_holds(kind, word) for word in {*one.words}))
        or any(kind != word and _plain(kind) == _plain(word) for word in {*one.words})
        for one in (a, b)
    )


def _holds(kind: str, word: str) -> bool:
    """Whether one of both is the other with more words, or in another spelling: `dropped` and `dropped at 3.2 s`."""
    shorter, longer = sorted((_plain(kind), _plain(word)), key=len)
    return bool(shorter) and shorter in longer


@lru_cache(maxsize=4096)
def _plain(kind: str) -> str:
    return "".join(filter(str.isalnum, kind.casefold()))


def _frequent_kinds(ends: Iterable[EpisodeEnds]) -> list[str]:
    counts = Counter[str]()
    for one in ends:
        counts.update(one.words)
        counts[ERRORED] += len(one.errored)
    return [kind for kind, count in counts.most_common() if kind and count][:KINDS]


def _meet(environment: str, a: tuple[Arm, Arm], b: tuple[Arm, Arm]) -> Meeting:
    """As the first arms of both meet, with the second ones instead."""
    met = meet(environment, a[0], b[0])
    # Facts may say that episodes were left out or have other indexes: then the meeting's arms are not the combos' own.
    return meet(environment, a[1], b[1]) if met.facts else replace(met, a=a[1], b=b[1])
