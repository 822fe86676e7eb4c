"""Which episodes of two policies started the same. Pure.

Episodes have the same start if their initial states have the same hash, or else if their seeds are equal.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from comborun.reporter.comparing.limits import conditions, each_once, repeated
from comborun.reporter.comparing.sides import Arm, CountsAlone, Meeting, Side, by_occasion, common_episodes
from comborun.reporter.evidence.context import DAY, ContextFact
from comborun.reporter.evidence.occasions import Occasion, occasion_of
from comborun.reporter.evidence.sequence import DRIFT, IN_ORDER
from comborun.reporter.evidence.settings import SettingFact
from comborun.reporter.evidence.starts import NO_SEEDS, StartFact
from comborun.rules.facts import Fact

SHOWN = 0.9
"""share of the common episodes that must be shown to start the same, if of the others nothing is known"""


def meet(environment: str, a: Side, b: Side) -> Meeting:
    if isinstance(a, CountsAlone) or isinstance(b, CountsAlone):
        return Meeting(environment, a, b, paired=False, why="counts alone, without episodes")
    known = a.met.get(id(b))  # two policies meet for their rates, for each metric and for their kinds of failure
    if known is None:
        known = a.met[id(b)] = b, _new_meeting(environment, a, b)
    _, found = known
    return found if found.environment == environment else replace(found, environment=environment)


def _new_meeting(environment: str, a: Arm, b: Arm) -> Meeting:
    found, renumbered = _meet_by_index(environment, a, b), False
    if not found.paired and (moved := _under_the_indexes_of(a, b)):
        again = _meet_by_index(environment, a, moved)
        if renumbered := again.paired:
            found = replace(again, facts=(*again.facts, *_facts_of_renumbered(a, b, common_episodes(a, moved))))
    told = [*a.starts.facts, *(one for one in b.starts.facts if one not in a.starts.facts)]
    if found.paired:  # then by hashes, and the seeds don't matter
        told = [fact for fact in told if fact.code not in {StartFact.RUN_SEEDS, StartFact.RUN_OR_START}]
    differ = [one for one in conditions(a, b) if not (found.paired and _of_time(one))]
    facts = [*found.facts, *each_once([*told, *repeated((a, b))]), *differ]
    met = (
        None
        if renumbered
        else occasion_of(
            (a.settings, b.settings),
            (a.completed, b.completed),
            (a.successes, b.successes),
            paired=found.paired,
            runs=min(len(a.runs), len(b.runs)),
            one_policy=a.policy == b.policy,
        )
    )
    if met:
        facts = [one for one in facts if one.text("field") != met.field and one.code not in {IN_ORDER, DRIFT}]
        facts = [_told_of(met, a, b), *facts]
        found = by_occasion(found, met)
    return replace(found, facts=(*facts,)) if facts else found


def _told_of(met: Occasion, a: Arm, b: Arm) -> Fact:
    fields = {"field": met.field, "values": [*met.values], "policies": [a.policy, b.policy]}
    if met.common:
        used = [
            sum(len(one.settings.groups[met.field][value] & one.completed) for value in met.common) for one in (a, b)
        ]
        left = [len(one.completed) - count for one, count in zip((a, b), used, strict=True)]
        apart = {"episodes": left, "of": [len(a.completed), len(b.completed)]} if any(left) else {}
        return Fact(SettingFact.WITHIN, **{**fields, "values": [*met.common]}, **apart)
    if max(met.values) == 1:
        each = [value for one in (a, b) for value in one.settings.groups[met.field]]
        return Fact(SettingFact.ALONE, **{**fields, "values": each})
    return Fact(SettingFact.NESTED, **fields, **({"in_common": True} if met.shared else {}))


def _of_time(fact: Fact) -> bool:
    """Whether a fact is about when episodes ran. What changed with time changed for both of a pair."""
    return fact.code == DRIFT or (fact.code == ContextFact.DIFFERS and bool(DAY.fullmatch(fact.text("field"))))


def _facts_of_renumbered(a: Arm, b: Arm, used: frozenset[int]) -> Iterable[Fact]:
    """Which pairs have another index, and how many completed episodes have no partner with the same start."""
    kept = sum(not a.starts.mismatch(b.starts, one) for one in used & common_episodes(a, b))
    if kept < len(used):
        yield Fact(StartFact.BY_SEED, common=len(used) - kept)
    for one, when in ((a, " after"), (b, " before")):
        if left := len(one.completed) - len(used):
            name = f"{one.policy}{when * (a.policy == b.policy)}"
            yield Fact(StartFact.ALONE, of=name, episodes=left, completed=len(one.completed))


def _meet_by_index(environment: str, a: Arm, b: Arm) -> Meeting:
    """The meeting if episodes of one index are taken for a pair."""
    common = common_episodes(a, b)
    if not common:
        return Meeting(environment, a, b, paired=False, why="no episode index in common")
    if len(a.runs) != len(b.runs) and max(len(a.runs), len(b.runs)) > 1:
        # The same indexes are then of the first run alone.
        return Meeting(environment, a, b, paired=False, why="not as many runs of both")
    reasons = a.starts.mismatches(b.starts, common)
    alike, facts = reasons.pop(None, 0), []
    name, count = a.starts.one_sided(b.starts, common)
    if count and not any(one and one.kind == "states" for one in reasons):
        facts.append(Fact(StartFact.ONE_SIDED_HASH, field=name, episodes=count, common=len(common)))
    if not reasons:
        name = a.starts.field_of_all(b.starts, common)
        what = f"initial states ({name})" if name else "seeds"
        if not name and len(a.starts.shared(b.starts)) > 1:
            what = "initial states or seeds"
        return Meeting(environment, a, b, True, f"equal {what} in all {len(common)} common episodes", (*facts,))
    if {*reasons} == {NO_SEEDS} and alike >= SHOWN * len(common):
        lost = frozenset(one for one in common if a.starts.mismatch(b.starts, one))
        a, b = (_without_verdict(one, lost) for one in (a, b))
        facts.append(Fact(StartFact.UNKNOWN_STARTS, episodes=len(lost), common=len(common)))
        why = f"equal starts in {alike} of {len(common)} common episodes, no seeds in the records of the others"
        return Meeting(environment, a, b, True, why, (*facts,))
    reason, count = reasons.most_common(1)[0]
    why = reason.words if reason else ""
    why += f" in {count} of {len(common)} common episodes" if alike else ""
    return Meeting(environment, a, b, False, why, (*facts,))


def _without_verdict(side: Arm, episodes: frozenset[int]) -> Arm:
    """As if these episodes had given no verdict, so that a claim must also hold if they count against it."""
    return replace(
        side,
        completed=side.completed - episodes,
        successes=side.successes - episodes,
        errored=side.errored | (episodes & side.completed),
        values={episode: value for episode, value in side.values.items() if episode not in episodes},
    )


def _under_the_indexes_of(a: Arm, b: Arm) -> Arm | None:
    """Arm b under the indexes that its starts have in a; None unless no start repeats and most are in both."""
    among = a.starts.shared(b.starts)
    own, theirs = ({one.starts.of(episode, among): episode for episode in one.completed} for one in (a, b))
    if None in own or None in theirs or len(own) < len(a.completed) or len(theirs) < len(b.completed):
        return None
    if len(own.keys() & theirs.keys()) < SHOWN * min(len(own), len(theirs)):
        return None
    beyond = max((*a.completed, *a.unknown, *b.completed, *b.unknown), default=0) + 1
    # What one of both did not complete may have had any start that only the other one has.
    free = iter(sorted(a.unknown))
    moved = {episode: own[start] if start in own else next(free, beyond + episode) for start, episode in theirs.items()}
    free = iter(sorted(own[start] for start in own.keys() - theirs.keys()))
    moved |= {episode: next(free, beyond + episode) for episode in sorted(b.unknown)}

    def renumbered(episodes: Iterable[int]) -> frozenset[int]:
        return frozenset(moved[episode] for episode in episodes)

    hashes = {
        name: {moved[episode]: value for episode, value in values.items() if episode in moved}
        for name, values in b.starts.hashes.items()
    }
    seeds = {moved[episode]: seed for episode, seed in b.starts.seeds.items() if episode in moved}
    return replace(
        b,
        completed=renumbered(b.completed),
        successes=renumbered(b.successes),
        starts=replace(b.starts, seeds=seeds, hashes=hashes),
        errored=renumbered(b.errored),
        missing=renumbered(b.missing),
        contested=renumbered(b.contested),
        values={moved[episode]: value for episode, value in b.values.items()},
    )


def pairs_in_order(a: Arm, b: Arm, episodes: Iterable[int], *, alike: bool = True) -> tuple[tuple[int, ...], str]:
    """The episodes that both have, up to the first that is missing or is not a pair; and in the latter case, why.

    `alike`: a pair must be shown to start the same. Each pair is judged by itself and by those before it, so that later
    episodes change nothing.
    """
    known_a, known_b = a.completed | a.unknown, b.completed | b.unknown
    seen: set[object] = set()
    found: list[int] = []
    for episode in episodes:
        if episode not in known_a or episode not in known_b:
            break
        if episode in a.completed and episode in b.completed:
            starts = {(side, one.starts.of(episode)) for side, one in enumerate((a, b))} - {(0, None), (1, None)}
            reason = a.starts.mismatch(b.starts, episode) if alike else None
            if reason or starts & seen:
                return tuple(found), f"{reason.words if reason else 'the start of an earlier one'} (episode {episode})"
            seen |= starts
        found.append(episode)
    return tuple(found), ""
