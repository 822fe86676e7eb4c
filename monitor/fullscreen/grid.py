"""The grid as a map: a row for each policy, a column for each environment. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from rich.cells import cell_len
from rich.text import Text

from comborun.monitor.fullscreen.rows import group_of
from comborun.monitor.fullscreen.table import SYMBOLS, clipped
from comborun.monitor.status import RunStatus, SessionStatus
from comborun.monitor.wording import visible

_NARROWEST, _WIDEST = 7, 14


class Map(NamedTuple):
    policies: tuple[str, ...]
    environments: tuple[str, ...]
    sessions: Mapping[tuple[str, str], tuple[SessionStatus, ...]]

    @classmethod
    def of(cls, status: RunStatus) -> Map:
        sessions: dict[tuple[str, str], list[SessionStatus]] = {}
        for one in status.proper:
            sessions.setdefault((one.policy, one.environment), []).append(one)
        policies, environments = (tuple(dict.fromkeys(pair[place] for pair in sessions)) for place in (0, 1))
        return cls(policies, environments, {pair: tuple(found) for pair, found in sessions.items()})

    def place(self, session: SessionStatus) -> tuple[int, int]:
        """Row and column of a session; the first cell for one that is not in the grid."""
        if session.policy not in self.policies or session.environment not in self.environments:
            return 0, 0
        return self.policies.index(session.policy), self.environments.index(session.environment)

    def at(self, row: int, column: int) -> SessionStatus | None:
        """The most urgent session of a cell."""
        found = self.sessions.get((self.policies[row], self.environments[column]), ())
        return min(found, key=group_of, default=None)


def drawn(found: Map, cursor: tuple[int, int], width: int) -> tuple[Text, list[Text]]:
    """The head, and a line for each policy; columns around the cursor if not all fit.

    A cell has the state, then successes of episodes with a verdict, else episodes done; the last column is the mean.
    """
    names = max((cell_len(one) for one in found.policies), default=0)
    first = max(8, min(names, 28, width // 3))
    cells = {pair: _cell(sessions) for pair, sessions in found.sessions.items()}
    needed = max([cell_len(one) for one in found.environments] + [text.cell_len for text in cells.values()], default=0)
    column = max(_NARROWEST, min(_WIDEST, needed)) + 1
    fitting = max(1, (width - first - 3 - 16) // column)
    begin = max(0, min(cursor[1] - fitting + 1, len(found.environments) - fitting)) if cursor[1] >= fitting else 0
    shown = found.environments[begin : begin + fitting]
    more = f"  ({len(found.environments) - len(shown)} more)" if len(shown) < len(found.environments) else ""
    head = Text(" " * (first + 3), "dim")
    for one in shown:
        head.append(clipped(visible(one), column - 1) + " ")
    head.append(f"mean{more}")
    lines = [_line(found, cells, place, cursor, (first, column, shown)) for place in range(len(found.policies))]
    return head, lines


def _line(
    found: Map,
    cells: Mapping[tuple[str, str], Text],
    place: int,
    cursor: tuple[int, int],
    sizes: tuple[int, int, Sequence[str]],
) -> Text:
    first, column, shown = sizes
    policy = found.policies[place]
    line = Text(("▸ " if place == cursor[0] else "  ") + clipped(visible(policy), first) + " ", no_wrap=True)
    for environment in shown:
        cell = cells.get((policy, environment), Text("")).copy()
        chosen = (place, found.environments.index(environment)) == cursor
        cell.truncate(column - 1, overflow="ellipsis", pad=True)
        if chosen:
            cell.stylize("reverse")
        cell.apply_meta({"act": ("cell", place, found.environments.index(environment))})
        line.append_text(cell).append(" ")
    sessions = [one for pair, some in found.sessions.items() if pair[0] == policy for one in some]
    recorded = sum(one.recorded or 0 for one in sessions if one.successes is not None)
    successes = sum(one.successes or 0 for one in sessions)
    return line.append(f"{100 * successes / recorded:.0f} %" if recorded else "-", "bold" if recorded else "dim")


def _cell(sessions: Sequence[SessionStatus]) -> Text:
    worst = min(sessions, key=group_of)
    sign, style = SYMBOLS.get(worst.word, ("●", "cyan"))
    recorded = sum(one.recorded or 0 for one in sessions if one.successes is not None)
    successes, done = sum(one.successes or 0 for one in sessions), sum(one.done or 0 for one in sessions)
    planned = sum(one.planned for one in sessions)
    share = f"{100 * done // planned} %" if done and planned else ""
    return Text(f"{sign} {f'{successes}/{recorded}' if recorded else share}", style)
