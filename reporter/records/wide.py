"""Tables with a column for each environment, policy or task, whose cells sum up episodes. Pure."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain

from comborun.model.attempt import EpisodeRecord
from comborun.reporter.records.naming import WORDS
from comborun.rules.facts import Fact
from comborun.rules.results.proposals import INDICES, SEEDS, VERDICT_NAMES

WIDE = "column_for_each"
MOST_ROWS = 200
_NUMBER = r"[-+]?\d+(?:[.,]\d+)?\s*(?:\\?%)?"
_SUM = re.compile(
    rf"\W*(?:\d+\s*(?:/|of|out of)\s*\d+|[-+]?\d+(?:[.,]\d+)?\s*\\?%|{_NUMBER}\s*(?:±|\+/?-|\\pm|\()\s*{_NUMBER})\W*"
    rf"(?:\({_NUMBER}\)\W*)?",
    re.IGNORECASE,
)
"""a cell that sums up episodes: `17/20`, `85.0 %`, `0.85 ± 0.05`"""
_OF_EPISODES = {name.casefold() for name in (*INDICES, *SEEDS, *VERDICT_NAMES, "seed")}
_OF_COMBOS = {name.casefold() for names in WORDS.values() for name in names}


def wide_table(records: Sequence[EpisodeRecord]) -> Fact | None:
    """Of a table with at least two columns of such cells, or of numbers beside a name that each row has of its own."""
    if not 0 < len(records) <= MOST_ROWS:
        return None
    shared = list(dict.fromkeys(chain.from_iterable(chain(*one.names) for one in records)))
    columns = {name: [one.field(name) for one in records] for name in shared}
    if any(name.casefold() in _OF_EPISODES for name in columns):
        return None
    sums = [name for name, cells in columns.items() if all(_is_sum(one) for one in cells)]
    if len(sums) < 2:
        named = [name for name, cells in columns.items() if name.casefold() in _OF_COMBOS and _own(cells)]
        others = [name for name in columns if name not in named]
        if len(named) != 1 or len(others) < 2 or not all(_is_rate(columns[name]) for name in others):
            return None
        sums = others
    return Fact(WIDE, columns=sums, cell=_shown(columns[sums[0]][0]))


def _is_sum(cell: object) -> bool:
    return isinstance(cell, str) and (not cell.strip(" -—") or bool(_SUM.fullmatch(cell.strip())))


def _own(cells: Sequence[object]) -> bool:
    return all(isinstance(one, str) for one in cells) and len({*cells}) == len(cells)


def _is_rate(cells: Sequence[object]) -> bool:
    """Counts or rates, of which some are neither 0 nor 1."""
    numbers = [one for one in cells if isinstance(one, int | float) and not isinstance(one, bool)]
    return len(numbers) == len(cells) and any(one not in (0, 1) for one in numbers)


def _shown(cell: object) -> str:
    return f"{cell:g}" if isinstance(cell, float) else str(cell)
