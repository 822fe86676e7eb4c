"""Which axis of a grid goes where: the shorter one across, so that a large grid grows downwards. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from comborun.reporter.summary import Summary


@dataclass(frozen=True)
class Axes:
    columns: tuple[str, ...]
    rows: tuple[str, ...]
    policies_across: bool

    @classmethod
    def of(cls, summary: Summary) -> Axes | None:
        """Of the combos that are counted in episodes; None without any."""
        combos = [combo for combo in summary.combos if combo.counts]
        if not combos:
            return None
        policies = tuple(name for name in summary.policies if any(combo.policy == name for combo in combos))
        environments = tuple(
            name for name in summary.environments if any(combo.environment == name for combo in combos)
        )
        if len(policies) <= len(environments):
            return cls(policies, environments, policies_across=True)
        return cls(environments, policies, policies_across=False)

    def combo(self, column: int, row: int) -> tuple[str, str]:
        """(policy, environment) of a cell."""
        across, down = self.columns[column], self.rows[row]
        return (across, down) if self.policies_across else (down, across)
