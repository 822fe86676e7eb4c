"""Counts of results for those who must not wait: the dispatcher, `stop` and a look at a run.

A program's files may be as large as they like. They are read in a child process that gets a few seconds, and of all
the time of a process such reading takes a tenth at most. What can't be read in that time is said to be uncounted.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable

from comborun.host.record import end_record, judging, together
from comborun.host.record.judging import Judged
from comborun.host.system import children, files
from comborun.host.system.files import Json
from comborun.rules import globs, records
from comborun.rules.facts import Fact
from comborun.rules.names import AttemptLayout
from comborun.rules.results.counts import (
    CHANGED,
    NOT_IN_TIME,
    NOT_LOOKED_AT,
    NOT_RECOUNTED,
    TAKES_LONG,
    TOO_MANY,
    Counts,
)
from comborun.rules.results.fields import LOG
from comborun.rules.results.result_files import changed
from comborun.rules.vocabulary import Cause, Completeness, cause_of, completeness_of

AT_ONCE_S = 5.0
AT_END_S, LOST_S = 600.0, 60.0
"""seconds for judging one attempt at its end, and all lost ones for which somebody waits"""
LOOKED_AT_MOST, READ_AT_ONCE = 20_000, 64 << 20
"""files and folders below an output folder, and bytes of its results, that take hardly any time"""
_SHARE = 10
_OF_COUNTS = frozenset(
    (
        *("records", "successes", "verdicts", "rows", "refused", "marks", "ordered", "countable", records.FACTS),
        records.TRAINED,
    )
)
"""the fields of an end that come from its counts"""


class Deadline:
    """So many seconds for all that is read; then a second for each."""

    def __init__(self, seconds: float) -> None:
        self._until = time.monotonic() + seconds

    @property
    def left(self) -> float:
        return max(1.0, self._until - time.monotonic())


class Allowance:
    """How long this process may still read: some seconds at once, and a share of all time."""

    def __init__(self) -> None:
        self._left, self._at = AT_ONCE_S, time.monotonic()

    def text(self, work: Callable[[], str]) -> str | None:
        """What `work` returns; None if that takes too long."""
        now = time.monotonic()
        self._left, self._at = min(AT_ONCE_S, self._left + (now - self._at) / _SHARE), now
        text = children.within(self._left, work)
        self._left -= time.monotonic() - now
        return text


_ALLOWED = Allowance()


def as_it_is(at: AttemptLayout, end: Json) -> Json:
    """An end record; if its results have changed since, with the counts of what is there now."""
    if not end.get("results"):
        return end
    rules = judging.rules_of(at)
    is_changed = _is_changed(at, rules, end)
    if is_changed is False:
        return end
    code = records.integer(end, "code") if end.get("cause") == Cause.EXITED.value else None
    text = _ALLOWED.text(lambda: json.dumps(judging.judged(at, rules, code).as_data())) if is_changed else None
    now = None if text is None else Judged.of(json.loads(text))
    counts = Counts.of(end) if now is None else now.counts
    counts.facts = (Fact(CHANGED if now else NOT_RECOUNTED if is_changed else NOT_LOOKED_AT), *counts.facts)
    kept = {key: value for key, value in end.items() if key not in _OF_COUNTS}
    order = list(Completeness)
    if now and order.index(now.completeness) > order.index(completeness_of(end)):  # it is less complete now
        kept.update(end_record.outcome_fields(now.completeness, cause_of(end), code, end.get("class", "")))
    return records.parse(records.render([*kept.items(), *counts.pairs()]))


def _is_changed(at: AttemptLayout, rules: judging.Rules, end: Json) -> bool | None:
    """Whether its results have changed since its end; None if it takes too long to look."""

    def look() -> bool:
        return changed(at.output, rules.results.files, end["results"], files.changed(at.end) / 1e9)

    if not globs.holds_more(at.output, LOOKED_AT_MOST):
        return look()
    text = _ALLOWED.text(lambda: json.dumps(look()))
    return None if text is None else bool(json.loads(text))


def judged(at: AttemptLayout, code: int | None, seconds: float = AT_END_S) -> Judged:
    """As `together.judge`; if its files may take long, in a child process, and without counts after so many seconds."""
    if not _takes_long(at):
        return together.judge(at, code)
    text = children.within(seconds, lambda: json.dumps(together.judge(at, code).as_data()))
    try:
        return Judged.of(json.loads(text or ""))
    except ValueError:
        nothing = Judged(_not_counted(Fact(NOT_IN_TIME, seconds=round(seconds, 1))), Completeness.NONE)
        nothing.members = dict.fromkeys(together.Process(at).names, nothing)
        return nothing


def _takes_long(at: AttemptLayout) -> bool:
    if globs.holds_more(at.output, LOOKED_AT_MOST):
        return True
    found = globs.found(at.output, judging.rules_of(at).results.files)
    return sum(map(files.size, (at.log, *(f"{at.output}/{path}" for path in found)))) > READ_AT_ONCE


def live_counts(at: AttemptLayout) -> Counts:
    """The counts of a running attempt: those of its supervisor, else from its files, unless that takes long."""
    if kept := files.read(at.counts):
        return Counts.of(kept)
    rules = judging.rules_of(at)
    if not globs.holds_more(at.output, LOOKED_AT_MOST):
        if globs.are_more(at.output, rules.results.files, judging.READ_FILES_MOST):
            return _not_counted(Fact(TOO_MANY, most=judging.READ_FILES_MOST))
        if rules.results.source != LOG and not globs.are_more(at.output, rules.results.files, 0):
            return judging.Watched(at, rules).count()

    def count() -> str:
        try:
            counts = judging.Watched(at, rules).count()
        except Exception as error:  # noqa: BLE001 - whatever a program wrote
            counts = judging.uncounted(error)
        return records.render(counts.pairs())

    text = _ALLOWED.text(count)
    return _not_counted(Fact(TAKES_LONG)) if text is None else Counts.of(records.parse(text))


def _not_counted(why: Fact) -> Counts:
    total = Counts()
    total.countable = False
    total.facts = (why,)
    return total
