"""The grid as a map: a row for each policy, a cell for each environment, and the mean of each row. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from comborun.monitor.status import RunStatus, SessionStatus
from comborun.monitor.wording import urgency


class MapCell(NamedTuple):
    """A combo in the map: the sums of its sessions, and the most urgent of them."""

    urgent: SessionStatus
    done: int
    planned: int
    successes: int | None
    recorded: int

    @property
    def rate(self) -> str:
        return f"{100 * self.successes / self.recorded:.0f}" if self.successes is not None and self.recorded else ""


class MapRow(NamedTuple):
    policy: str
    cells: tuple[MapCell | None, ...]
    mean: float | None
    """of the success rates of its environments; its interval is in the report, which knows of starts and runs"""
    environments: int = 0
    """how many of them have a rate"""


class GridMap(NamedTuple):
    environments: tuple[str, ...]
    rows: tuple[MapRow, ...]
    """one for each policy"""

    def place(self, session: SessionStatus) -> tuple[int, int]:
        """Row and column of a session; the first cell for one that is not in the grid."""
        row = next((at for at, one in enumerate(self.rows) if one.policy == session.policy), None)
        if row is None or session.environment not in self.environments:
            return 0, 0
        return row, self.environments.index(session.environment)

    def at(self, row: int, column: int) -> SessionStatus | None:
        """The most urgent session of a cell."""
        cell = self.rows[row].cells[column]
        return cell.urgent if cell else None


def the_map(status: RunStatus) -> GridMap:
    shown = [one for one in status.sessions if not one.extra]
    environments = tuple(dict.fromkeys(one.environment for one in shown))
    combos: dict[tuple[str, str], list[SessionStatus]] = {}
    for one in shown:
        combos.setdefault((one.policy, one.environment), []).append(one)
    rows = []
    for policy in dict.fromkeys(one.policy for one in shown):
        cells = [_cell(combos[policy, name]) if (policy, name) in combos else None for name in environments]
        rows.append(_row(policy, cells))
    return GridMap(environments, tuple(rows))


def _cell(sessions: Sequence[SessionStatus]) -> MapCell:
    counted = [one for one in sessions if one.successes is not None]
    return MapCell(
        min(sessions, key=lambda one: urgency(one.word)),
        sum(one.done or 0 for one in sessions),
        sum(one.due for one in sessions),
        sum(one.successes or 0 for one in counted) if counted else None,
        sum(one.recorded or 0 for one in counted),
    )


def _row(policy: str, cells: Sequence[MapCell | None]) -> MapRow:
    counted = [cell for cell in cells if cell and cell.successes is not None and cell.recorded]
    rated = [(cell.successes or 0, cell.recorded) for cell in counted if cell]
    if not rated:
        return MapRow(policy, tuple(cells), None)
    return MapRow(policy, tuple(cells), sum(successes / n for successes, n in rated) / len(rated), len(rated))
