"""What the order of a combo's episodes shows. Pure."""

from __future__ import annotations

from itertools import groupby
from operator import attrgetter
from typing import TYPE_CHECKING

from comborun.attempt import EpisodeRecord, Verdict

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from comborun.work import Combo

Running = tuple[tuple[int, int], ...]
"""(completed, successes) of the first episodes by index, at places close enough to draw a line through"""

PLACES = 36
"""of a line: more than a small plot can show apart"""


def running(episodes: Sequence[EpisodeRecord]) -> Mapping[Combo, Running]:
    """Of every combo with a completed episode; `episodes` stand by combo and index."""
    found = {}
    for combo, group in groupby(episodes, attrgetter("combo")):
        verdicts = [record.verdict is Verdict.SUCCESS for record in group if record.verdict is not Verdict.ERRORED]
        if verdicts:
            found[combo] = _running(verdicts)
    return found


def _running(verdicts: Sequence[bool]) -> Running:
    """Every place of a short line; of a long one the first places, where it moves most, and the last."""
    step = max(1, len(verdicts) // PLACES)
    places = {*range(1, min(len(verdicts), PLACES // 4) + 1), *range(step, len(verdicts) + 1, step), len(verdicts)}
    found, successes = [], 0
    for n, success in enumerate(verdicts, 1):
        successes += success
        if n in places:
            found.append((n, successes))
    return tuple(found)
