"""Counts the rows of an attempt's result files, and says in words why rows don't count. Pure."""

from __future__ import annotations

from comborun.rules.results.counts import Counts, join, marked, within
from comborun.rules.results.episodes import rebuild
from comborun.rules.results.fields import (
    ENVIRONMENT,
    FORMAT,
    INDEX,
    NO_RECORD,
    OUTSIDE,
    POLICY,
    REPEATED,
    TORN,
    UNREADABLE,
)
from comborun.rules.results.proposals import advice, propose
from comborun.rules.results.rows import Refusals, Rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Mapping

    from comborun.rules.results.counts import Span, Verdicts
    from comborun.rules.results.fields import Identity, RefusedError
    from comborun.rules.results.rates import Count


class Files:
    __slots__ = ("foreign", "refused", "rows")

    def __init__(self) -> None:
        self.rows: list[tuple[str, Rows]] = []
        """path below the output folder and rows, in the order in which the report reads them"""
        self.refused: list[tuple[str, RefusedError]] = []
        """files without rows, and why"""
        self.foreign: list[tuple[str, str]] = []
        """files that are not counted, and why"""


def tally(files: Files, identity: Identity, span: Span, over: bool = False) -> Counts:
    """The counts of one attempt. `over`: the session has ended, so a line that is cut off stays so."""
    counts = Counts()
    verdicts: Verdicts = {}
    refusals: dict[str, Refusals] = {}
    complaints: dict[str, int] = {}
    rebuilt: dict[str, int] = {}
    taken = 0
    totals = [rows.counted for _, rows in files.rows if rows.counted]
    for path, rows in files.rows:
        folder, _, name = path.rpartition("/")
        group = "" if rows.ordered else folder
        base = span[0] + (rebuilt.get(group, 0) if rows.ordered or rebuild(name) else 0)
        rebuilt[group] = rebuilt.get(group, 0) + (rows.taken if rows.ordered or rows.jobs else 0)
        join(verdicts, rows.episodes.items())
        join(verdicts, ((base + index, verdict) for index, verdict in rows.numbered.items()))
        for reason, one in rows.refused.items():
            refusals.setdefault(reason, Refusals()).join(one, path)
        for complaint, times in rows.complaints.items():
            complaints[complaint] = complaints.get(complaint, 0) + times
        counts.ordered = counts.ordered or rows.reader.copies > 1
        counts.rows += rows.rows
        taken += rows.taken
    for path, refused in files.refused:
        one = Refusals()
        one.add(refused, 0)
        refusals.setdefault(refused.reason, Refusals()).join(one, path)
    planned, outside = within(verdicts, span)
    if totals and not verdicts:
        planned, counts.ordered = _episodes_of(max(totals, key=lambda one: one.episodes), span), True
    counts.take(planned)
    counts.refused = {reason: one.count for reason, one in refusals.items()}
    for reason, number in ((OUTSIDE, len(outside)), (REPEATED, taken - len(verdicts))):
        if number:
            counts.refused[reason] = number
    counts.marks = marked(planned, span)
    counts.countable = bool(files.rows) or not files.foreign
    counts.why = _Why(counts, identity, span, refusals, complaints).sentence(outside, over)
    if counts.misread:
        counts.why += proposed(files, identity, span, verdicts)
    if not counts.countable:
        counts.why = counts.why or ": ".join(files.foreign[0])
    return counts


def proposed(files: Files, identity: Identity, span: Span, seen: Iterable[int] = ()) -> str:
    """The end of a sentence: what `results` needs to make more rows count. `seen` are the indices of all records."""
    keys = propose(samples := samples_of(files), identity, span, seen)
    return f": {advice(keys, samples)}" if keys else ""


def samples_of(files: Files) -> list[Any]:
    """Some rows of the first file that has any."""
    return next((rows.samples for _, rows in files.rows if rows.samples), [])


def _episodes_of(counted: Count, span: Span) -> Verdicts:
    """A count as single episodes. Which ones succeeded is unknown, so any order is as good."""
    first = span[0] if span[1] else 0
    return {first + at: at < counted.successes for at in range(counted.episodes)}


def steps(files: Files) -> Counts:
    """The counts of a session that is counted in steps: each row is one."""
    counts = Counts()
    counts.rows = sum(rows.rows for _, rows in files.rows)
    refused = [(reason, one.count) for _, rows in files.rows for reason, one in rows.refused.items()]
    counts.records = counts.rows - sum(count for reason, count in refused if reason in {NO_RECORD, TORN})
    counts.countable = bool(files.rows) or not files.foreign
    return counts


class _Why:
    """Says in words why rows don't count."""

    def __init__(
        self,
        counts: Counts,
        identity: Identity,
        span: Span,
        refusals: Mapping[str, Refusals],
        complaints: Mapping[str, int],
    ) -> None:
        self.counts, self.identity, self.span = counts, identity, span
        self.refusals, self.complaints = refusals, complaints

    def sentence(self, outside: list[int], over: bool) -> str:
        reasons = [self._refused(reason) for reason in (POLICY, ENVIRONMENT, INDEX, NO_RECORD, FORMAT, UNREADABLE)]
        reasons += [self._errored(), self._outside(outside), self._repeated()]
        said = [one for one in reasons if one]
        if over and not said:
            said = [one for one in [self._refused(TORN)] if one]
        return "; ".join(said[:3])

    def _refused(self, reason: str) -> str:
        one = self.refusals.get(reason)
        if not one:
            return ""
        rows = self._of(one.count, "row")
        if reason in (POLICY, ENVIRONMENT):
            own = getattr(self.identity, reason)
            other = f"{reason} {one.about!r}" if one.about else f"another {reason}"
            verb = "says" if rows.startswith(("the only", "1 of")) else "say"
            return f"{rows} {verb} {other}, this session is {own!r}"
        if reason == INDEX:
            return f"{rows}: {one.text}" + (f" (they have {one.about})" if one.about else "")
        where = f"{one.where}:{one.line}" if one.line else one.where
        more = f", and {one.count - 1} more" if one.count > 1 else ""
        return f"{where}: {one.text}{more}"

    def _errored(self) -> str:
        """Says which verdicts seem to be missing by mistake. An episode that is meant to be errored has null."""
        if not self.complaints:
            return ""
        complaint = max(self.complaints, key=lambda text: self.complaints[text])
        return f"{self._of(self.complaints[complaint], 'row')} without a verdict: {complaint.rpartition(': ')[0]}"

    def _outside(self, outside: list[int]) -> str:
        if not outside:
            return ""
        first, count = self.span
        shown = ", ".join(map(str, outside[:3])) + (" ..." if len(outside) > 3 else "")
        noun = "episode" if len(outside) == 1 else "episodes"
        return f"{len(outside)} {noun} not planned here ({shown}): planned are {first} to {first + count - 1}"

    def _repeated(self) -> str:
        count = self.counts.refused.get(REPEATED, 0)
        rows = f"{self._of(count, 'row')} repeat{'s' * (count == 1)} an episode"
        return f"{rows}: of each the first with a verdict counts" if count else ""

    def _of(self, count: int, noun: str) -> str:
        rows = self.counts.rows
        if count >= rows:
            return f"the only {noun}" if rows == 1 else f"all {rows} {noun}s"
        return f"{count} of {rows} {noun}s"
