"""Whether episodes had the same results beside others as alone: a run against its canary. Pure.

Parallel runs may silently give wrong results, such as images of another instance. Only running the same episodes alone
shows it.
"""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Self

from comborun.model.work import describe, spans
from comborun.reporter.comparing.pairing import same_start
from comborun.reporter.merge import merge
from comborun.reporter.text import combo_name
from comborun.text import several

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from comborun.model.attempt import EpisodeRecord
    from comborun.model.work import Combo
    from comborun.reporter.merge import MergedCombo
    from comborun.reporter.records.reading import Reject

SCHEMA = 1


@dataclass(frozen=True)
class CanaryCombo:
    policy: str
    environment: str
    compared: int
    verdicts: tuple[int, ...]
    starts: tuple[int, ...]
    """episodes whose initial state has another hash"""
    seeds: tuple[int, ...]
    """episodes with another seed, whose results can't be compared"""
    starts_compared: int
    """episodes with a hash of their start in both"""

    @property
    def differs(self) -> bool:
        return bool(self.verdicts or self.starts or self.seeds)

    @property
    def name(self) -> str:
        return combo_name(self.policy, self.environment)

    @property
    def words(self) -> str:
        found = (("another verdict", self.verdicts), ("another start", self.starts), ("another seed", self.seeds))
        texts = (f"{what} in {describe(spans(episodes))}" for what, episodes in found if episodes)
        if not self.compared:
            return "nothing was compared: the run has no record of the episodes that ran alone"
        unseen = ""
        if self.starts_compared < self.compared:
            seen = (
                f"starts compared in {self.starts_compared} of them" if self.starts_compared else "no start is recorded"
            )
            unseen = f" ({seen})"
        counted = several(self.compared, "episode")
        return f"{counted} run alone once more: {'; '.join(texts) or 'all went the same'}{unseen}"


@dataclass(frozen=True)
class Canary:
    run: str
    combos: tuple[CanaryCombo, ...]

    @property
    def differing(self) -> tuple[CanaryCombo, ...]:
        return tuple(combo for combo in self.combos if combo.differs)

    @property
    def silent(self) -> tuple[CanaryCombo, ...]:
        return tuple(combo for combo in self.combos if not combo.compared)

    def to_json(self) -> str:
        return json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Raises ValueError, KeyError or TypeError for other text."""
        data = json.loads(text)
        lists = [{key: tuple(entry[key]) for key in ("verdicts", "starts", "seeds")} for entry in data["combos"]]
        combos = (CanaryCombo(**{**entry, **own}) for entry, own in zip(data["combos"], lists, strict=True))
        return cls(data["run"], tuple(combos))


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
