"""Counts of results for those who must not wait: the dispatcher, `stop` and a look at a run.

A program's files may be as large as they like. They are read in a child process that gets a few seconds, and of all
the time of a process such reading takes a tenth at most. What can't be read in that time is said to be uncounted.
"""

from __future__ import annotations

import time

from comborun.host.record import judging
from comborun.host.system import children, files
from comborun.rules import globs, records
from comborun.rules.facts import Fact
from comborun.rules.results.counts import CHANGED, NOT_RECOUNTED, TAKES_LONG, TOO_MANY, Counts
from comborun.rules.results.fields import LOG
from comborun.rules.results.result_files import changed

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

    from comborun.rules.names import AttemptLayout

AT_ONCE_S = 5.0
_SHARE = 10
_OF_COUNTS = frozenset(
    (
        *("records", "successes", "verdicts", "rows", "refused", "marks", "ordered", "countable", records.FACTS),
        records.TRAINED,
    )
)
"""the fields of an end that come from its counts"""


class Allowance:
    """How long this process may still read: some seconds at once, and a share of all time."""

    def __init__(self) -> None:
        self._left, self._at = AT_ONCE_S, time.monotonic()

    def counts(self, count: Callable[[], Counts]) -> Counts | None:
        """What `count` returns; None if that takes too long."""
        now = time.monotonic()
        self._left, self._at = min(AT_ONCE_S, self._left + (now - self._at) / _SHARE), now
        text = children.within(self._left, lambda: records.render(_counted(count).pairs()))
        self._left -= time.monotonic() - now
        return None if text is None else Counts.of(records.parse(text))


_ALLOWED = Allowance()


def _counted(count: Callable[[], Counts]) -> Counts:
    try:
        return count()
    except Exception as error:  # noqa: BLE001 - whatever a program wrote
        return judging.uncounted(error)


def as_it_is(at: AttemptLayout, end: dict[str, Any]) -> dict[str, Any]:
    """An end record; if its results have changed since, with the counts of what is there now."""
    if not end.get("results"):
        return end
    rules = judging.Rules.of(files.read(at.claim))
    if not changed(at.output, rules.results.files, end["results"], files.changed(at.end) / 1e9):
        return end
    counts = _ALLOWED.counts(lambda: judging.judged(at, rules, None).counts)
    fact = Fact(CHANGED) if counts else Fact(NOT_RECOUNTED)
    counts = counts or Counts.of(end)
    counts.facts = (fact, *counts.facts)
    kept = [(key, value) for key, value in end.items() if key not in _OF_COUNTS]
    return records.parse(records.render([*kept, *counts.pairs()]))


def live_counts(at: AttemptLayout) -> Counts:
    """The counts of a running attempt: those of its supervisor, else from its files, unless that takes long."""
    if kept := files.read(at.counts):
        return Counts.of(kept)
    rules = judging.Rules.of(files.read(at.claim))
    if globs.are_more(at.output, rules.results.files, judging.READ_FILES_MOST):
        return _not_counted(Fact(TOO_MANY, most=judging.READ_FILES_MOST))
    if rules.results.source != LOG and not globs.are_more(at.output, rules.results.files, 0):
        return judging.Watched(at, rules).count()
    return _ALLOWED.counts(lambda: judging.Watched(at, rules).count()) or _not_counted(Fact(TAKES_LONG))


def _not_counted(why: Fact) -> Counts:
    total = Counts()
    total.countable = False
    total.facts = (why,)
    return total
