"""What was collected of a run, as values: its sessions with their attempts, its records, and its canary. Pure."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any, Self

from comborun.model.attempt import Aggregate, Begin, End, EpisodeRecord
from comborun.model.codec import decoded
from comborun.model.plan import Plan, Session
from comborun.model.stopping import StopRule
from comborun.model.work import Combo, combo_of, describe, grouped, spans
from comborun.reporter.json_types import Memory, Moment
from comborun.reporter.records.path_parts import stated
from comborun.reporter.records.reading import UNNAMED, Defect, Reading, Reject
from comborun.reporter.text import combo_name
from comborun.rules.events import Event
from comborun.rules.facts import Fact
from comborun.rules.results.fields import ENVIRONMENT, POLICY
from comborun.rules.vocabulary import Outcome
from comborun.text import natural, several

CANARY_SCHEMA = 1


@dataclass(frozen=True)
class CanaryCombo:
    """The episodes of a combo that ran alone once more, by what was not the same as in the run."""

    policy: str
    environment: str
    compared: int
    verdicts: tuple[int, ...]
    """episodes with another verdict"""
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
        return json.dumps({"schema": CANARY_SCHEMA, **asdict(self)}, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Raises ValueError or TypeError for other text."""
        found: Self = decoded(cls, json.loads(text))
        return found


@dataclass(frozen=True)
class AttemptRecord:
    number: int
    begin: Begin | None
    end: End | None
    log: tuple[str, ...] = ()
    judged: str = ""
    """what its results were when it was judged"""

    @property
    def started(self) -> float | None:
        """On the host's clock. Failed launches have it in their end record only."""
        begin = self.begin.started if self.begin else None
        return (self.end.started if self.end else None) or begin or None

    @property
    def ended(self) -> Moment | None:
        """None without an end record or a start, or if the clock was set back in between."""
        known = self.end and self.started is not None and self.end.ended >= self.started
        return self.end.ended if self.end and known else None

    @property
    def called_off(self) -> bool:
        """Whether it was ended before its program started, so that nothing ran."""
        return self.begin is None and self.end is not None and self.end.called_off

    @property
    def outcome(self) -> Outcome | None:
        return self.end.outcome if self.end else None

    @property
    def gpus(self) -> str:
        return self.begin.gpus if self.begin else ""

    @property
    def peak_memory(self) -> Memory | None:
        return self.end.peak_memory if self.end else None

    @property
    def seconds(self) -> float | None:
        if self.started is None or self.ended is None or not (self.end and self.end.timed):
            return None
        return self.ended - self.started


@dataclass(frozen=True)
class SessionHistory:
    session: Session
    attempts: tuple[AttemptRecord, ...]

    @property
    def end(self) -> End | None:
        return self.attempts[-1].end if self.attempts else None


@dataclass(frozen=True)
class SessionVideos:
    """The videos of a session's last attempt."""

    session: str
    policy: str
    environment: str
    whole: int
    """those that can be played"""
    found: int
    expected: int | None
    """as the grid's components say; None where they don't"""
    size: int
    """bytes of the whole ones"""
    apart: tuple[str, ...]
    """paths of whole ones that show no single episode, such as a worker's; the first few"""


@dataclass(frozen=True)
class Collected:
    name: str
    """the run's id, or the folder's name"""
    records: tuple[EpisodeRecord, ...]
    rejects: tuple[Reject, ...]
    defects: tuple[Defect, ...]
    files: tuple[Reading, ...]
    aggregates: tuple[Aggregate, ...] = ()
    unpaired: Mapping[Combo, str] = field(default_factory=dict)
    """why neither index nor seed identifies the starts of a combo's episodes"""
    plan: Plan | None = None
    sessions: tuple[SessionHistory, ...] = ()
    aside: tuple[SessionHistory, ...] = ()
    done: Mapping[str, str] = field(default_factory=dict)
    """the dispatcher's last record; empty while the run lasts"""
    provenance: Mapping[str, Any] = field(default_factory=dict)
    """as the run's manifest has it; a foreign one may hold anything"""
    environments: tuple[Mapping[str, str], ...] = ()
    """the variables of each start that differed, the first launch's first"""
    retuned: tuple[tuple[Event, str], ...] = ()
    """settings that a person changed, and GPUs that it lost; each with `stopped`, or its hold then"""
    moved: Fact | None = None
    """sessions that went from one host of the run to another"""
    part: Fact | None = None
    """whose part it is, if it is only a part of a run on several hosts"""
    followed: tuple[Fact, ...] = ()
    """of a training: which of its checkpoints were not evaluated, or do not count"""
    stop_early: StopRule | None = None
    videos: tuple[SessionVideos, ...] = ()
    trained: Mapping[str, Sequence[tuple[int, dict[str, Any]]]] = field(default_factory=dict)
    """session of a training -> its attempts' numbers and curves (rules/curves/record.py)"""
    canary: Canary | None = None
    """how some episodes went when they ran alone once more"""

    by_run: bool = False
    """whether it is a run's directory, not a folder of results"""

    @property
    def runs(self) -> dict[Combo, dict[str, range]]:
        """Of each combo with several runs side by side, their episodes."""
        found: dict[Combo, dict[str, range]] = {}
        for file in self.files:
            for combo, (run, episodes) in file.runs.items():
                found.setdefault(combo, {})[run] = episodes
        return {combo: dict(sorted(runs.items(), key=lambda one: one[1].start)) for combo, runs in found.items()}

    @property
    def of_unknown_level(self) -> tuple[str, ...]:
        """Of a folder without a grid: the names of environments, if paths alone name them, and nothing a policy. They
        may be policies, too."""
        files = [] if self.plan else [one for one in self.files if one.entries]
        pairs = [(file, combo) for file in files for combo in file.combos]
        if any(combo[0] != UNNAMED or (ENVIRONMENT, combo[1]) not in file.guessed for file, combo in pairs):
            return ()
        names = sorted({environment for _, (_, environment) in pairs}, key=natural)
        return tuple(names) if len(names) > 1 else ()

    @property
    def policies_of_paths(self) -> bool:
        """Whether nothing but paths tells policies apart: no grid, no record, and no folder such as `policy=pi0`."""
        files = [] if self.plan else [one for one in self.files if one.entries]
        pairs = {(file.path, combo[0]): file for file in files for combo in file.combos if combo[0] != UNNAMED}
        told = (
            name not in file.parted and ((POLICY, name) not in file.guessed or POLICY in stated(path))
            for (path, name), file in pairs.items()
        )
        ordered = any(file.order_told for file in files)
        return len({name for _, name in pairs}) > 1 and not ordered and not any(told)

    @property
    def origin(self) -> dict[str, str]:
        """The provenance as texts: `{"git": {"commit": ...}}` becomes `git.commit`; empty values are left out."""
        return dict(_flat(self.provenance))

    @property
    def by_combo(self) -> dict[Combo, list[SessionHistory]]:
        return grouped(self.sessions, lambda history: combo_of(history.session))


def _flat(value: Any, *keys: str) -> Iterator[tuple[str, str]]:
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from _flat(entry, *keys, str(key))
    elif value is not None and value not in ("", [], {}):
        yield ".".join(keys), value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
