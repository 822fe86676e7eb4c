"""The input of a report, as values: the sessions of a run, their attempts and their records."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

from comborun.work import combo_of

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comborun.attempt import Aggregate, Begin, End, EpisodeRecord
    from comborun.plan import Plan, Session
    from comborun.reporter.comparing.canary import Canary
    from comborun.reporter.records.reading import Defect, Reading, Reject
    from comborun.stopping import StopRule
    from comborun.work import Combo


@dataclass(frozen=True)
class Attempt:
    number: int
    begin: Begin | None
    end: End | None
    log: tuple[str, ...] = ()
    """the last lines, where it failed"""

    @property
    def started(self) -> float | None:
        """On the host's clock. Failed launches have it only in their end record."""
        begin = self.begin.started if self.begin else None
        return begin or (self.end.started if self.end else None) or None

    @property
    def ended(self) -> float | None:
        """None without an end record or a start, or if the clock was set back in between."""
        known = self.end and self.started is not None and self.end.ended >= self.started
        return self.end.ended if self.end and known else None

    @property
    def seconds(self) -> float | None:
        return None if self.started is None or self.ended is None else self.ended - self.started


@dataclass(frozen=True)
class SessionHistory:
    session: Session
    attempts: tuple[Attempt, ...]
    """by number"""


@dataclass(frozen=True)
class Collected:
    name: str
    """the run's id, or the folder's name"""
    plan: Plan | None
    """None for a folder without a plan"""
    sessions: tuple[SessionHistory, ...]
    records: tuple[EpisodeRecord, ...]
    rejects: tuple[Reject, ...]
    defects: tuple[Defect, ...]
    files: tuple[Reading, ...]
    done: Mapping[str, str]
    """the dispatcher's last record; empty while the run lasts"""
    provenance: Mapping[str, str]
    aside: tuple[SessionHistory, ...] = ()
    """sessions whose records don't count: smoke tests, and sessions that a changed grid dropped"""
    aggregates: tuple[Aggregate, ...] = ()
    """counts of programs that report nothing else"""
    unpaired: Mapping[tuple[str, str], str] = field(default_factory=lambda: MappingProxyType({}))
    """(policy, environment) -> why neither index nor seed identifies the starts of its episodes"""
    stop_early: StopRule | None = None
    """as the manifest has it"""
    canary: Canary | None = None
    """how some episodes went when they were run alone once more"""

    @property
    def by_combo(self) -> dict[Combo, list[SessionHistory]]:
        """Its sessions, in the plan's order."""
        combos: defaultdict[Combo, list[SessionHistory]] = defaultdict(list)
        for history in self.sessions:
            combos[combo_of(history.session)].append(history)
        return dict(combos)
