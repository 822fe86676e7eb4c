"""Whether episodes had the same results beside others as alone: a run against its canary. Pure.

Parallel runs may silently give wrong results, such as images of another instance. Only running the same episodes alone
shows it.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from comborun.model.attempt import EpisodeRecord
from comborun.model.work import Combo
from comborun.reporter.evidence.states import same_start
from comborun.reporter.merge import MergedCombo, merge
from comborun.reporter.records.collected import Canary, CanaryCombo
from comborun.reporter.records.reading import Reject
from comborun.text import several


def compare_canary(run: str, parallel: Iterable[EpisodeRecord], alone: Iterable[EpisodeRecord]) -> Canary:
    before = {combo.key: combo for combo in merge(parallel, {})}
    canary = {combo.key: combo for combo in merge(alone, {})}
    return Canary(run, tuple(_compare(key, before.get(key), combo) for key, combo in sorted(canary.items())))


def told_rejects(canary: Canary, rejects: Sequence[Reject]) -> str:
    """Which of a recheck's records were rejected; `rejects` has at least one."""
    count, first = len(rejects), rejects[0]
    records = f"{several(count, 'record')} of the recheck {'were' if count != 1 else 'was'} rejected"
    nothing = "" if canary.combos else " and none is left, so nothing can be said"
    return f"{records}{nothing}; the first, {first.path}:{first.line}: {first.reason}"


def _compare(key: Combo, before: MergedCombo | None, canary: MergedCombo) -> CanaryCombo:
    then = {record.episode: record for record in before.accepted} if before else {}
    now = {record.episode: record for record in canary.accepted}
    common = sorted(then.keys() & now.keys())
    alike = {episode: same_start(then[episode], now[episode]) for episode in common}
    seeds = {episode: (then[episode].seed, now[episode].seed) for episode in common}
    return CanaryCombo(
        policy=key[0],
        environment=key[1],
        compared=len(common),
        verdicts=tuple(episode for episode in common if then[episode].verdict is not now[episode].verdict),
        starts=tuple(episode for episode in common if alike[episode] is False),
        seeds=tuple(episode for episode, pair in seeds.items() if None not in pair and pair[0] != pair[1]),
        starts_compared=sum(same is not None for same in alike.values()),
    )
