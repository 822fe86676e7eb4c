"""Programs that run copies of an environment side by side: which episode ran in which copy, and as which of its
episodes. Pure."""

from __future__ import annotations

from operator import itemgetter
from typing import TYPE_CHECKING

from comborun.attempt import Verdict
from comborun.reporter.statistics.proportion import Balanced, balanced

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comborun.attempt import EpisodeRecord

COPY = "env_id"
ORDER = "episode_in_env"


def balanced_rate(records: Sequence[EpisodeRecord]) -> Balanced | None:
    """None unless every completed record names its copy and its place there, and there are several copies."""
    judged = [record for record in records if record.verdict is not Verdict.ERRORED]
    copies: dict[object, list[tuple[float, bool]]] = {}
    for record in judged:
        order, copy = record.metrics.get(ORDER), _copy(record)
        if order is None or copy is None:
            return None
        copies.setdefault(copy, []).append((order, record.verdict is Verdict.SUCCESS))
    if len(copies) < 2:
        return None
    for found in copies.values():
        found.sort(key=itemgetter(0))
    return balanced({copy: [success for _, success in found] for copy, found in copies.items()})


def _copy(record: EpisodeRecord) -> object:
    value = record.extra.get(COPY, record.metrics.get(COPY))
    return value if isinstance(value, str | int | float) else None
