"""Why episodes failed, in the words of their program. Pure."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import TYPE_CHECKING

from comborun.attempt import Verdict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comborun.attempt import EpisodeRecord

FIELDS = (
    "failure",
    "failure_kind",
    "failure_mode",
    "failure_reason",
    "termination",
    "termination_reason",
    "end_reason",
    "reason",
    "error",
)
"""the plainest first"""

KINDS = 12
"""told apart per combo; a program that writes a sentence of its own each time must not fill the report"""
KIND_LENGTH = 80
"""characters"""


@dataclass(frozen=True)
class FailureKinds:
    """Of the episodes of a combo that count and did not succeed, errored ones included."""

    field: str | None
    """the field of the records that says it; None where no record has one"""
    counts: tuple[tuple[str, int], ...]
    """kind -> failed episodes, the most frequent first"""
    other: int
    """of kinds beyond the limit"""
    untold: int
    """failed, and the record does not say how"""
    errored: int
    """gave no verdict"""

    @property
    def total(self) -> int:
        return sum(count for _, count in self.counts) + self.other + self.untold + self.errored


def failure_kinds(records: Sequence[EpisodeRecord]) -> FailureKinds:
    failed = [record for record in records if record.verdict is Verdict.FAILURE]
    named = set[str]().union(*(record.extra for record in failed))
    field = next((name for name in FIELDS if name in named and any(_told(record, name) for record in failed)), None)
    kinds = Counter(_told(record, field) for record in failed) if field is not None else Counter({"": len(failed)})
    untold = kinds.pop("", 0)
    ranked = sorted(kinds.items(), key=lambda item: (-item[1], item[0]))
    return FailureKinds(
        field=field,
        counts=tuple(ranked[:KINDS]),
        other=sum(count for _, count in ranked[KINDS:]),
        untold=untold,
        errored=sum(record.verdict is Verdict.ERRORED for record in records),
    )


def _told(record: EpisodeRecord, field: str) -> str:
    """The first line of what the field says, if that is text."""
    value = record.extra.get(field)
    return value.strip().partition("\n")[0][:KIND_LENGTH] if isinstance(value, str) else ""
