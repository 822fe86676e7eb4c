"""What can be compared, and which episodes of two policies started the same. Pure.

Episodes have the same start if their initial states have the same hash, or else if their seeds are equal. A repeated
start is no new evidence: a deterministic program repeats what it did.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import chain
from math import fsum
from operator import attrgetter
from types import MappingProxyType
from typing import Any

from comborun.model.attempt import EpisodeRecord, Verdict, having
from comborun.model.work import Combo, Spans, combo_of, episodes_of, minus, size
from comborun.reporter.counting.combo import AggregateCounts, tallies
from comborun.reporter.evidence.context import (
    DAY,
    NO_CONTEXT,
    Context,
    ContextFact,
    alike,
    context_of,
    differing,
    parts_of_one,
    run_names,
    runs_in_names,
    varying,
)
from comborun.reporter.evidence.copies import copies
from comborun.reporter.evidence.horizons import Lengths, lengths_of, unlike_limits
from comborun.reporter.evidence.parts import with_parts
from comborun.reporter.evidence.replays import with_replays
from comborun.reporter.evidence.runs import RunFact, Runs, differing_runs, joined, run_rates
from comborun.reporter.evidence.sequence import DRIFT, IN_ORDER, by_setting, in_order
from comborun.reporter.evidence.settings import (
    NO_SETTINGS,
    SettingFact,
    Settings,
    clusters_of,
    nested,
    other_verdicts,
    settings_of,
    unlike_mixes,
)
from comborun.reporter.evidence.starts import NO_SEEDS, UNTOLD, Settled, StartFact, Starts, settle, starts_of
from comborun.reporter.merge import UNPLANNED, MergedCombo, merge
from comborun.reporter.records.collected import Collected
from comborun.reporter.statistics.difference import PairCounts
from comborun.reporter.statistics.pooled import Stratum
from comborun.rules.facts import Fact
from comborun.rules.results.fields import ResultRules

SEEN = 0.005
"""difference of rates that is told"""
_ENDED = (Verdict.SUCCESS, Verdict.FAILURE, Verdict.MEASURED)


@dataclass(frozen=True)
class Arm:
    policy: str
    completed: frozenset[int]
    successes: frozenset[int]
    starts: Starts = UNTOLD
    errored: frozenset[int] = frozenset()
    """ran, but gave no verdict"""
    missing: frozenset[int] = frozenset()
    """planned, and left no record"""
    contested: frozenset[int] = frozenset()
    """one record says success and another failure"""
    context: Context = field(default_factory=lambda: NO_CONTEXT)
    """the conditions that its records tell"""
    lengths: Lengths = field(default_factory=dict)
    """how long its episodes last, and at which length failures end"""
    settings: Settings = NO_SETTINGS
    """how often it had which setting"""
    runs: Runs = field(default_factory=dict)
    """its runs, as far as folders or fields name them"""
    runs_told: bool = True
    """whether files tell the runs; else equal seeds do, and they may be starts"""
    metric: str = ""
    """by which it is compared; empty: by success"""
    run_means: Mapping[str, float] = field(default_factory=dict)
    """of the metric, by run"""

    @property
    def run_rates(self) -> dict[str, float]:
        return run_rates(self.runs, self.completed, self.successes) if self.runs else {}

    @property
    def counts(self) -> tuple[int, int]:
        return len(self.successes), len(self.completed)

    @cached_property
    def by_start(self) -> tuple[float, int]:
        """The same, but a start with several episodes counts once, at its mean."""
        groups = self.starts.groups(self.completed)
        if groups is None:
            return self.counts
        return round(fsum(len(group & self.successes) / len(group) for group in groups), 9), len(groups)

    @cached_property
    def unknown(self) -> frozenset[int]:
        return self.errored | self.missing | self.contested

    @cached_property
    def met(self) -> dict[int, tuple[Side, Meeting]]:
        """The meetings with other sides so far, by their identity."""
        return {}

    def filled(self, *, success: bool) -> Arm:
        """The arm as if every unknown episode had succeeded, or had failed."""
        successes = self.successes | self.unknown if success else self.successes - self.unknown
        return replace(self, completed=self.completed | self.unknown, successes=successes)


@dataclass(frozen=True)
class CountsAlone:
    """A policy in an environment whose program only counts."""

    policy: str
    counts: tuple[int, int]
    absent: int = 0
    """planned episodes that are not among them"""

    @property
    def by_start(self) -> tuple[float, int]:
        return self.counts

    @property
    def unknown(self) -> range:
        return range(self.absent)

    def filled(self, *, success: bool) -> CountsAlone:
        return replace(self, counts=(self.counts[0] + self.absent * success, self.counts[1] + self.absent))


Side = Arm | CountsAlone


@dataclass(frozen=True)
class Results:
    merged: Mapping[Combo, MergedCombo]
    """of combos with a record per episode, over the planned episodes that were needed"""
    counts: Mapping[Combo, AggregateCounts]
    sides: Mapping[Combo, Side]
    settled: Mapping[Combo, Settled]
    """what the starts of each combo with records rest on"""


def results_of(collected: Collected, spare: Mapping[Combo, Spans] = MappingProxyType({})) -> Results:
    """`spare`: planned episodes that turned out not to be needed."""
    planned = {
        # None where the plan leaves their number to the program.
        combo: minus(episodes_of(one.session for one in histories), spare.get(combo, ())) or None
        for combo, histories in collected.by_combo.items()
        if histories[0].session.unit == "episode" and histories[0].session.results.has_records
    }
    merged = {combo.key: combo for combo in merge(collected.records, planned)}
    sessions = {history.session.name: history.session.count for history in collected.sessions}
    found = tallies(collected.aggregates, sessions)
    counts = {combo: one for combo, one in found.items() if not (combo in merged and merged[combo].accepted)}
    runs = collected.runs
    several = {combo for combo, found in runs.items() if len(found) > 1}
    accepted = {combo: one.accepted for combo, one in merged.items()}
    settled = settle(accepted, collected.unpaired, several)
    settled = with_replays(settled, {combo: having(some, *_ENDED) for combo, some in accepted.items()})
    settled = with_parts(settled, accepted)
    for combo, fact in copies(accepted).items():
        settled[combo] = replace(settled[combo], facts=(*settled[combo].facts, fact))
    for combo, own in settled.items():
        if combo in several or (combo in runs and not own.runs):
            settled[combo] = replace(own, runs=runs[combo], runs_told=True)
    usual = ResultRules().success
    named = {combo_of(one.session) for one in collected.sessions if one.session.results.success != usual}
    sides: dict[Combo, Side] = {}
    like: Arm | None = None
    for combo, records in merged.items():
        if combo not in counts:
            sides[combo] = like = arm(records, settled[combo], like, chosen=combo in named)
    for combo, fact in in_order(accepted, {combo: one.runs for combo, one in settled.items()}).items():
        side = sides.get(combo)
        # Objects one after another, or repeated starts, make such an order; they are told and counted as such.
        if isinstance(side, Arm) and not side.settings.clusters and side.by_start[1] == side.counts[1]:
            known = side.settings
            if name := by_setting(fact.code, accepted[combo], known.groups):
                told = clusters_of(name, known)
                sides[combo] = replace(side, settings=replace(known, clusters=told))
                continue
            sides[combo] = replace(side, settings=replace(known, marks=(*known.marks, fact)))
    for combo, one in counts.items():
        absent = sum(history.session.count for history in collected.by_combo.get(combo, ())) - one.episodes
        sides[combo] = CountsAlone(combo[0], (one.successes, one.episodes), max(0, absent))
    return Results(merged, counts, sides, settled)


def arm(combo: MergedCombo, settled: Settled | None = None, like: Arm | None = None, *, chosen: bool = False) -> Arm:
    """`like`: an arm that may have the same episodes and seeds. Equal ones are kept once, since a run can have
    millions. `chosen`: the grid names the field of the verdict."""
    judged = having(combo.accepted, Verdict.SUCCESS, Verdict.FAILURE)
    whole = len(judged) == len(combo.accepted)
    errored = () if whole else having(combo.accepted, Verdict.ERRORED, Verdict.MEASURED)
    # Without a plan a gap may be no missing episodes at all, and behind an index of 10^18 it has too many to list.
    missing = combo.missing if combo.planned is not None or size(combo.missing) <= UNPLANNED else ()
    completed, starts = _episodes(judged), starts_of(judged, settled)
    if like and completed == like.completed:
        completed = like.completed
    if like and starts.seeds == like.starts.seeds:
        starts = replace(starts, seeds=like.starts.seeds)
    return Arm(
        policy=combo.policy,
        completed=completed,
        successes=_episodes(having(judged, Verdict.SUCCESS)),
        starts=starts,
        errored=_episodes(errored),
        missing=frozenset(chain(*missing)),
        contested=frozenset(chain(*combo.contested)),
        context=context_of(combo.accepted),
        lengths=lengths_of(combo.accepted),
        settings=settings_of(judged, chosen=chosen),
        runs=settled.runs if settled else {},
        runs_told=settled.runs_told if settled else True,
    )


def _episodes(records: Iterable[EpisodeRecord]) -> frozenset[int]:
    return frozenset(map(attrgetter("episode"), records))


SHOWN = 0.9
"""share of the common episodes that must be shown to start the same, if of the others nothing is known"""


@dataclass(frozen=True)
class Meeting:
    environment: str
    a: Side
    b: Side
    paired: bool
    """whether the common episodes are shown to have started the same"""
    why: str
    """one clause: `equal seeds in all 100 common episodes`"""
    facts: tuple[Fact, ...] = ()
    """what limits the comparison"""

    @cached_property
    def seen(self) -> Stratum:
        return self._stratum(self.a, self.b)

    def against(self, sign: int) -> Stratum:
        """The stratum with every unknown episode counted against a (`sign` > 0), or against b."""
        return self._stratum(self.a.filled(success=sign < 0), self.b.filled(success=sign > 0))

    def _stratum(self, a: Side, b: Side) -> Stratum:
        if self.paired and isinstance(a, Arm) and isinstance(b, Arm):
            return Stratum.of_pairs(count_pairs(a, b))
        return Stratum(a.by_start, b.by_start)


def meet(environment: str, a: Side, b: Side) -> Meeting:
    if isinstance(a, CountsAlone) or isinstance(b, CountsAlone):
        return Meeting(environment, a, b, paired=False, why="counts alone, without episodes")
    known = a.met.get(id(b))  # two policies meet for their rates, for each metric and for their kinds of failure
    if known is None:
        known = a.met[id(b)] = b, _whole_meeting(environment, a, b)
    _, found = known
    return found if found.environment == environment else replace(found, environment=environment)


def _whole_meeting(environment: str, a: Arm, b: Arm) -> Meeting:
    found = _meet(environment, a, b)
    if not found.paired and (moved := _under_the_indexes_of(a, b)):
        again = _meet(environment, a, moved)
        if again.paired:
            found = replace(again, facts=(*again.facts, *_moved(a, b, _common(a, moved))))
    told = [*a.starts.facts, *(one for one in b.starts.facts if one not in a.starts.facts)]
    if found.paired:  # then by hashes, and the seeds don't matter
        told = [fact for fact in told if fact.code not in {StartFact.RUN_SEEDS, StartFact.RUN_OR_START}]
    conditions = [one for one in _conditions(a, b) if not (found.paired and _of_time(one))]
    facts = [*found.facts, *_each_once([*told, *repeated((a, b))]), *conditions]
    name = "" if found.paired or a.runs or b.runs else nested(a.settings, b.settings, (a.successes, b.successes))
    if name:  # as if each value were a run: the policies are told apart only beyond what the values differ by
        a, b = (replace(one, runs=one.settings.groups[name]) for one in (a, b))
        unit = Fact(SettingFact.NESTED, field=name, values=[len(one.runs) for one in (a, b)])
        facts = [unit, *(one for one in facts if one.text("field") != name and one.code not in {IN_ORDER, DRIFT})]
        found = replace(found, a=a, b=b)
    return replace(found, facts=(*facts,)) if facts else found


def _of_time(fact: Fact) -> bool:
    return fact.code == DRIFT or (fact.code == ContextFact.DIFFERS and bool(DAY.fullmatch(fact.text("field"))))


def repeated(arms: Iterable[Arm]) -> list[Fact]:
    """Which of them have several episodes of a start."""
    found = [
        Fact(
            StartFact.REPEATED, episodes=len(one.completed), starts=one.by_start[1], policy=one.policy, **_at_means(one)
        )
        for one in arms
        if one.by_start[1] < len(one.completed)
    ]
    return _each_once(found)


def _at_means(one: Arm) -> dict[str, Any]:
    """The mean over starts where that is another rate, because starts have not as many episodes each."""
    (summed, starts), (successes, n) = one.by_start, one.counts
    mean, rate = summed / starts, successes / n
    return {"of": one.policy, "mean": round(mean, 6), "rate": round(rate, 6)} if abs(mean - rate) >= SEEN else {}


def _moved(a: Arm, b: Arm, used: frozenset[int]) -> Iterable[Fact]:
    """Which pairs have another index, and how many completed episodes have no partner with the same start."""
    kept = sum(not a.starts.mismatch(b.starts, one) for one in used & _common(a, b))
    if kept < len(used):
        yield Fact(StartFact.BY_SEED, common=len(used) - kept)
    for one, when in ((a, " after"), (b, " before")):
        if left := len(one.completed) - len(used):
            name = f"{one.policy}{when * (a.policy == b.policy)}"
            yield Fact(StartFact.ALONE, of=name, episodes=left, completed=len(one.completed))


def _conditions(a: Arm, b: Arm) -> Iterable[Fact]:
    """What differs between two policies besides themselves, or inside one of them."""
    if a.policy != b.policy:
        yield from alike((a.policy, b.policy), "policies")
        yield from run_names((a.policy, b.policy))
        yield from parts_of_one((a.policy, b.policy), (a.completed, b.completed))
    same = a.policy == b.policy
    named = ((b, f"{b.policy} before"), (a, f"{a.policy} after")) if same else ((a, a.policy), (b, b.policy))
    rates = {name: one.run_means if one.metric else one.run_rates for one, name in named}
    several = [name for name, found in rates.items() if len(found) > 1]
    yield from (joined(name, rates[name], a.metric) for name in several)
    if len(several) > 1:
        yield Fact(RunFact.RANDOM)
    if len(several) == 1:
        yield Fact(RunFact.ONE_SIDE, policy=next(name for name in rates if name not in several), other=several[0])
    if not several and (single := one_each(a, b)):
        yield single
    yield from differing(a.context, b.context, one_policy=same)
    yield from unlike_limits(*((name, one.lengths) for one, name in named))
    for one, name in named:
        yield from (Fact(fact.code, **fact.fields, of_policy=name) for fact in one.settings.marks)
    sides = named[-same][1], named[1 - same][1]
    mixed = [*unlike_mixes(a.settings, b.settings, sides)]
    yield from _clusters(a, b, [fact.text("field") for fact in mixed])
    yield from (*mixed, *other_verdicts(a.settings, b.settings, sides))
    for one, other in ((a, b), (b, a)):
        yield from (Fact(fact.code, **fact.fields, policy=one.policy) for fact in varying(one.context, [other.context]))


def _clusters(a: Arm, b: Arm, mixed: Collection[str]) -> Iterable[Fact]:
    """Settings with which outcomes go, and the difference if the values were drawn from many others like them. `mixed`:
    those that one of both had more often."""
    for name, fact in {fact.text("field"): fact for one in (a, b) for fact in one.settings.clusters}.items():
        rates = [
            run_rates(one.settings.groups.get(name, {}), one.completed, one.successes) if not one.metric else {}
            for one in (a, b)
        ]
        common = [rates[0][value] - rates[1][value] for value in rates[0].keys() & rates[1].keys()]
        drawn = differing_runs(sorted(common), told=True) if len(common) > 2 and name not in mixed else None
        ends = {"difference": drawn[0], "half": drawn[1]} if drawn else {}
        yield Fact(fact.code, **fact.fields, **{key: round(value, 6) for key, value in ends.items()})


def one_each(a: Arm, b: Arm) -> Fact | None:
    """That two policies are of one run each, if a folder or a field of either says so."""
    named = [*dict.fromkeys(name for one in (a, b) if len(one.runs) == 1 for name in one.runs)]
    named = named or ([] if a.runs or b.runs else runs_in_names(a.policy, b.policy))
    return Fact(RunFact.ONE_EACH, runs=named) if named and (a.policy != b.policy or len(named) > 1) else None


def facts_of(sides: Iterable[Side]) -> tuple[Fact, ...]:
    """What limits rates of one policy alone."""
    arms = [one for one in sides if isinstance(one, Arm)]
    told = [fact for one in arms for fact in (*one.starts.facts, *one.settings.marks, *one.settings.clusters)]
    runs = (joined(one.policy, one.run_rates) for one in arms if len(one.run_rates) > 1)
    return (*_each_once([*told, *repeated(arms)]), *runs)


def _each_once(facts: Iterable[Fact]) -> list[Fact]:
    """Each fact once: what is true of both policies is said once."""
    found: list[Fact] = []
    for fact in facts:
        one = Fact(fact.code, **{key: value for key, value in fact.fields.items() if key != "policy"})
        found += [] if one in found else [one]
    return found


def _meet(environment: str, a: Arm, b: Arm) -> Meeting:
    common = _common(a, b)
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
    return Arm(
        policy=b.policy,
        completed=renumbered(b.completed),
        successes=renumbered(b.successes),
        starts=replace(b.starts, seeds=seeds, hashes=hashes),
        errored=renumbered(b.errored),
        missing=renumbered(b.missing),
        contested=renumbered(b.contested),
        context=b.context,
        lengths=b.lengths,
        settings=b.settings,
        runs=b.runs,
        runs_told=b.runs_told,
    )


def _common(a: Arm, b: Arm) -> frozenset[int]:
    return a.completed if a.completed is b.completed else a.completed & b.completed


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


def outcomes(a: Arm, b: Arm, episodes: Iterable[int]) -> tuple[int, ...]:
    """+1 if only a succeeded, -1 if only b did, else 0, also if a verdict is missing."""
    both = a.completed & b.completed
    return tuple((one in both) * ((one in a.successes) - (one in b.successes)) for one in episodes)


def count_pairs(a: Arm, b: Arm) -> PairCounts:
    """Of the episodes that both completed. A start with several episodes counts once, at its mean."""
    common = _common(a, b)
    groups = a.starts.groups(common, a.starts.shared(b.starts))
    if groups is None:
        return _counted(a, b, common)
    shares = [(len(group), _counted(a, b, group)) for group in groups]
    cells = zip(*((one.both / n, one.only_a / n, one.only_b / n, one.neither / n) for n, one in shares), strict=True)
    both, only_a, only_b, neither = (round(fsum(cell), 9) for cell in cells)
    return PairCounts(both, only_a, only_b, neither)


def _counted(a: Arm, b: Arm, episodes: frozenset[int]) -> PairCounts:
    first, second = (one.successes & episodes if one.completed is not episodes else one.successes for one in (a, b))
    both = len(first & second)
    only_a, only_b = len(first) - both, len(second) - both
    return PairCounts(both, only_a, only_b, len(episodes) - both - only_a - only_b)
