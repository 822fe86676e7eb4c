"""What another way to read results makes of the files that are there: a line for each session. Pure."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

from comborun.rules.tally import Counts
from comborun.text import several

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

_MOST = 12


@dataclass(frozen=True)
class Rereading:
    """One attempt whose end would say something else."""

    session: str
    attempt: int
    before: Mapping[str, str]
    """of its end record"""
    now: Mapping[str, str]

    @classmethod
    def of(cls, fields: Mapping[str, Any]) -> Self:
        """From the host's answer."""
        return cls(fields["session"], fields["attempt"], fields["before"], fields["now"])

    @property
    def fewer(self) -> bool:
        """Whether less of it would count."""
        had, has = Counts.of(self.before), Counts.of(self.now)
        incomplete = self.before["completeness"] == "complete" != self.now["completeness"]
        return incomplete or has.records < had.records or has.verdicts < had.verdicts

    @property
    def words(self) -> str:
        """`0 episodes before, 10 now (7 with success)`, and why the rest does not count."""
        had, has = Counts.of(self.before), Counts.of(self.now)
        counted = f"{several(had.records, 'episode')} before, {has.records} now ({has.successes} with success)"
        was, now = self.before["completeness"], self.now["completeness"]
        return "; ".join(filter(None, (counted, f"{was} before, {now} now" if was != now else "", has.why)))


def reading_lines(changes: Sequence[Rereading]) -> Iterator[str]:
    """A line for all sessions that change alike."""
    alike: defaultdict[str, list[Rereading]] = defaultdict(list)
    for one in changes:
        alike[one.words].append(one)
    for words, ones in list(alike.items())[:_MOST]:
        many = f"each of {len(ones)} sessions" if len(ones) > 1 else f"{ones[0].session}, attempt {ones[0].attempt}"
        yield f"{many}: {words}"
    if len(alike) > _MOST:
        yield f"and {sum(map(len, list(alike.values())[_MOST:]))} more sessions"
