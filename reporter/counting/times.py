"""Which field of the records says when an episode succeeded, and the curve that it gives. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from comborun.attempt import Verdict
from comborun.reporter.statistics.proportion import Incidence, incidence

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comborun.attempt import EpisodeRecord

FIELDS = {
    "time_to_success_s": "s",
    "time_to_success": "s",
    "sim_time_s": "s",
    "time_s": "s",
    "duration_s": "s",
    "episode_length_s": "s",
    "steps_to_success": "steps",
    "steps": "steps",
    "num_steps": "steps",
    "episode_length": "steps",
    "episode_steps": "steps",
}
"""field -> unit, the plainest first; wall time is none of them, since it tells of the machine"""


@dataclass(frozen=True)
class TimeToSuccess:
    field: str
    """the metric that holds the time of each successful episode; of a program that goes on after a success it is the
    length of the episode"""
    unit: str
    """`s` or `steps`"""
    curve: Incidence
    untimed: int
    """successful episodes without the field: in n, but in no step of the curve"""


def time_to_success(records: Sequence[EpisodeRecord]) -> TimeToSuccess | None:
    """Of the completed episodes; None where no successful one has a field that says it."""
    judged = [record for record in records if record.verdict is not Verdict.ERRORED]
    succeeded = [record for record in judged if record.verdict is Verdict.SUCCESS]
    named = {name for record in succeeded for name in record.metrics}
    field = next((name for name in FIELDS if name in named), None)
    if field is None:
        return None
    times = [record.metrics[field] for record in succeeded if field in record.metrics]
    return TimeToSuccess(field, FIELDS[field], incidence(times, len(judged)), len(succeeded) - len(times))
