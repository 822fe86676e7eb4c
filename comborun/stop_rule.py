"""Which comparisons may stop early, and how sure they must be: fixed before the first episode. Pure."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, Self


@dataclass(frozen=True)
class PlannedComparison:
    """Policy `a` against policy `b`, over the episodes first .. first + n_max - 1 of one environment."""

    environment: str
    a: str
    b: str
    first: int
    n_max: int

    @property
    def combos(self) -> tuple[tuple[str, str], tuple[str, str]]:
        """Policy and environment of each."""
        return (self.a, self.environment), (self.b, self.environment)

    @property
    def episodes(self) -> range:
        return range(self.first, self.first + self.n_max)


@dataclass(frozen=True)
class StopRule:
    """What the run's manifest holds. A look is taken after every pair."""

    alpha: float
    """two-sided, for the whole family"""
    family: int
    """comparisons that the report prints, those of environments without the rule among them"""
    comparisons: tuple[PlannedComparison, ...]

    @property
    def environments(self) -> frozenset[str]:
        return frozenset(planned.environment for planned in self.comparisons)

    def of(self, combo: tuple[str, str]) -> tuple[PlannedComparison, ...]:
        return tuple(planned for planned in self.comparisons if combo in planned.combos)

    def as_data(self) -> dict[str, Any]:
        return {**asdict(self), "method": "CASM", "looks": "every pair", "spending": "linear"}

    @classmethod
    def from_data(cls, data: Any) -> Self:
        """Raises KeyError, TypeError or ValueError for what is none."""
        planned = tuple(PlannedComparison(**entry) for entry in data["comparisons"])
        return cls(float(data["alpha"]), int(data["family"]), planned)
