"""What an adapter gathers while it reads one file."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from comborun.attempt import Aggregate
from comborun.reporter.adapters import Caution, CautionKind, Defect, Reading, Reject, RejectKind, Training, places
from comborun.reporter.adapters.row import RowError, parse_row

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comborun.attempt import EpisodeRecord
    from comborun.reporter.adapters import Context
    from comborun.reporter.adapters.rates import Count


@dataclass
class Findings:
    context: Context
    records: list[EpisodeRecord] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    defects: list[Defect] = field(default_factory=list)
    aggregates: list[Aggregate] = field(default_factory=list)
    cautions: list[Caution] = field(default_factory=list)
    trainings: list[Training] = field(default_factory=list)

    def reject(self, line: int, kind: RejectKind, reason: str) -> None:
        self.rejects.append(Reject(self.context.path, line, kind, reason))

    def defect(self, line: int, reason: str) -> None:
        self.defects.append(Defect(self.context.path, line, reason))

    def caution(self, kind: CautionKind, reason: str, num_envs: int | None = None) -> None:
        self.cautions.append(Caution(self.context.path, kind, reason, num_envs))

    def take_row(self, line: int, value: Any) -> None:
        """The record in a decoded object, or the reject that it is."""
        try:
            row = parse_row(value, self.context, line)
        except RowError as error:
            self.reject(line, error.kind, str(error))
            return
        self.records.append(row.record)
        for reason in row.defects:
            self.defect(line, reason)

    def take_episode(self, line: int, index: int, fields: Mapping[str, Any]) -> None:
        """A record from an object that does not hold its own index: it is known from the file's name or the order."""
        key = self.context.rules.episode
        held = {f"record.{name}" if name == key else name: value for name, value in fields.items()}
        self.take_row(line, {**held, key: index})

    def take_count(self, line: int, context: Context, counted: Count, metrics: Mapping[str, float]) -> None:
        """An aggregate of a combo that `context` names. Which episodes succeeded is not told: nothing can be paired."""
        if counted.complaint:
            self.defect(line, counted.complaint)
        if not self.aggregates:
            self.caution(CautionKind.UNPAIRED, "its program tells how many episodes succeeded, not which")
        self.aggregates.append(
            Aggregate(
                policy=context.policy or places.UNNAMED,
                environment=context.environment or places.UNNAMED,
                successes=counted.successes,
                episodes=counted.episodes,
                metrics=MappingProxyType(dict(metrics)),
                session=context.session,
                attempt=context.attempt,
                source=f"{context.path}:{line}" if line else context.path,
            )
        )

    def reading(self) -> Reading:
        """Everything, in its order; a file in which there was nothing at all is told as that."""
        if not (self.records or self.rejects or self.defects or self.aggregates or self.trainings):
            self.defect(0, "the file holds no records")
        return Reading(
            tuple(self.records),
            tuple(self.rejects),
            tuple(self.defects),
            tuple(self.aggregates),
            tuple(self.cautions),
            tuple(self.trainings),
        )


def refused(context: Context, reason: str, kind: RejectKind = RejectKind.UNREADABLE) -> Reading:
    """A file that gives nothing as a whole."""
    return Reading(rejects=(Reject(context.path, 0, kind, reason),))


def named(context: Context, policy: str, environment: str | None) -> Context:
    """The context with these names where it has none of its own."""
    return replace(context, policy=context.policy or policy, environment=context.environment or environment)
