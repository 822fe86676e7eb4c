"""How complete an attempt's work is, by its evidence. Pure.

Exit codes lie in both directions, so all evidence that is named must hold, and the exit code is the last witness.
"""

from __future__ import annotations

from comborun.rules.words import Completeness

TYPE_CHECKING = False
if TYPE_CHECKING:
    from comborun.rules.tally import Counts


class Asked:
    """What shows that the work of an attempt is done."""

    __slots__ = ("others", "planned", "records", "results", "verdicts")

    def __init__(
        self, planned: int, records: bool, others: int = 0, results: bool = False, verdicts: bool = True
    ) -> None:
        self.planned = planned
        """episodes or steps; 0: as many as the program decides"""
        self.records = records
        """a record of each is asked for"""
        self.others = others
        """how much else is: a line of the log, files"""
        self.results = results
        """there have to be result files, though nobody counts what is in them"""
        self.verdicts = verdicts
        """at least one record has to have a verdict: of steps none has one"""


def completeness(asked: Asked, counts: Counts, held: int, files: int, code: int | None) -> Completeness:
    """How much is done, where `held` of the other evidence holds and so many result files hold something.

    `code` is None where it is not known, or proves nothing: a program that was told to end, and ended with 0.
    """
    found = counts.records > 0 or (not counts.countable and files > 0)
    less = Completeness.PARTIAL if found else Completeness.NONE
    counted = asked.records and counts.countable
    if files == 0 and (asked.results or (asked.records and not counted)):
        return less
    if not counted and not asked.others:
        return Completeness.COMPLETE if code == 0 else less
    enough = not counted or _enough(asked, counts, code)
    return Completeness.COMPLETE if enough and held == asked.others else less


def _enough(asked: Asked, counts: Counts, code: int | None) -> bool:
    """Whether the records show the whole of it. Nothing planned: only the program's end or other evidence can vouch."""
    if asked.verdicts and not counts.verdicts:
        return False
    if asked.planned:
        return counts.records >= asked.planned
    return counts.records > 0 and (asked.others > 0 or code == 0)
