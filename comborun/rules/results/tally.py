"""Counts the rows of an attempt's result files, and finds the reasons why rows don't count. Pure."""

from __future__ import annotations

from comborun.rules.facts import Fact
from comborun.rules.results import counts as reasons
from comborun.rules.results.codings import joined
from comborun.rules.results.counts import Counts, join, marked, within
from comborun.rules.results.episodes import rebuild
from comborun.rules.results.fields import (
    ENVIRONMENT,
    FORMAT,
    IGNORE,
    INDEX,
    NO_RECORD,
    OUTSIDE,
    POLICY,
    REPEATED,
    TORN,
    UNREADABLE,
)
from comborun.rules.results.proposals import failures_only, propose, proposed
from comborun.rules.results.rates import not_settled, settled
from comborun.rules.results.readers import SAMPLES
from comborun.rules.results.repeats import why_repeated
from comborun.rules.results.rows import Refusals, Rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterable, Iterator, Mapping

    from comborun.rules.results.codings import Coding
    from comborun.rules.results.counts import Span, Verdicts
    from comborun.rules.results.fields import Identity, RefusedError
    from comborun.rules.results.rates import Count

REASONS_MOST = 3
"""reasons that an attempt keeps"""


class Files:
    __slots__ = ("foreign", "refused", "rows")

    def __init__(self) -> None:
        self.rows: list[tuple[str, Rows]] = []
        """path below the output folder and rows, in the order in which the report reads them"""
        self.refused: list[tuple[str, RefusedError]] = []
        """files without rows, and why"""
        self.foreign: list[tuple[str, Fact]] = []
        """files that are not counted, and why"""

    @property
    def samples(self) -> list[Any]:
        """Some rows of the first file that has any; of all files if each has one."""
        first = next((rows.samples for _, rows in self.rows if rows.samples), [])
        ones = [rows.samples[0] for _, rows in self.rows if len(rows.samples) == 1]
        return ones[:SAMPLES] if len(first) == 1 else first

    def proposed(self, identity: Identity, span: Span, seen: Iterable[int]) -> dict[str, Any]:
        """What to write in `results`. To ignore several names would lose rows if they are more than planned."""
        keys = propose(self.samples, identity, span, seen)
        ignored = [kind for kind in (POLICY, ENVIRONMENT) if keys.get(kind) == IGNORE]
        refused = [rows.refused[kind] for _, rows in self.rows for kind in ignored if kind in rows.refused]
        several = len({name for one in refused for name in one.named}) > 1
        return {} if several and sum(rows.rows for _, rows in self.rows) > span[1] > 0 else keys


def tally(files: Files, identity: Identity, span: Span, over: bool = False) -> Counts:
    """The counts of one attempt. `over`: the session has ended, so a line that is cut off stays so."""
    found, counts = _All(files, span[0]), Counts()
    planned, outside = within(found.verdicts, span)
    counts.ordered = any(rows.reader.copies > 1 for _, rows in files.rows)
    totals = [one for _, rows in files.rows for one in rows.counted]
    if totals and not any(verdict is not None for verdict in found.verdicts.values()):
        if counted := settled(totals, span[1]):
            planned, outside, counts.ordered = _episodes_of(counted, span), [], True
        else:
            path = next(path for path, rows in files.rows if rows.counted)
            found.refusals.setdefault(FORMAT, Refusals()).add(not_settled(totals, span[1]), 0, path)
    counts.take(planned)
    counts.rows = found.rows
    counts.marks = marked(planned, span)
    counts.numeric = found.coding.field if found.coding.numeric else ""
    counts.countable = bool(files.rows) or not files.foreign
    counts.refused = {reason: one.count for reason, one in found.refusals.items()}
    for reason, number in ((OUTSIDE, len(outside)), (REPEATED, found.taken - len(found.verdicts))):
        if number:
            counts.refused[reason] = number
    differ: dict[str, Any] = {}
    if counts.refused.get(REPEATED, 0):
        kept = [(path, rows.kept) for path, rows in files.rows]
        words = next((rows.reader.identity for _, rows in files.rows if rows.kept), identity)
        differ = why_repeated(kept, words, span)
    if differ:  # which rows are an episode's is not decided
        counts.take({})
        counts.marks = ""
    said = [*_reasons(found, identity), *_of_episodes(counts, outside, span, differ)]
    torn = found.refusals.get(TORN)
    if over and torn:
        said.append(Fact(reasons.REFUSED, **torn.fields(counts.rows)))
    counts.facts = tuple(said[:REASONS_MOST])
    if not counts.proposes:
        _propose(counts, files, found, identity, span)
    counts.facts += tuple(remark for _, rows in files.rows for remark in rows.told())[:REASONS_MOST]
    if not counts.countable and not said:
        path, why = files.foreign[0]
        counts.facts = (Fact(reasons.NOT_COUNTED, file=path, why=why.as_data()),)
    return counts


def _propose(counts: Counts, files: Files, found: _All, identity: Identity, span: Span) -> None:
    """Add the line that would make more rows count, or the field in which it must name what means a success."""
    if counts.misread and (keys := files.proposed(identity, span, found.verdicts)):
        counts.facts += (Fact(reasons.PROPOSAL, **proposed(keys, files.samples)),)
    elif not counts.verdicts and (words := failures_only(files.samples))[0]:
        told = Fact(reasons.UNDECIDED, rows=found.taken, of=found.rows, values=words[1], field=words[0])
        counts.facts = (*(fact for fact in counts.facts if fact.code != reasons.WITHOUT_VERDICT), told)


class _All:
    """The rows of all files together. `base`: the first episode of the attempt."""

    def __init__(self, files: Files, base: int) -> None:
        self.verdicts: Verdicts = {}
        self.refusals: dict[str, Refusals] = {}
        """by the reason"""
        self.complaints: dict[Fact, int] = {}
        self.coding = joined(rows.coding for _, rows in files.rows)
        self.rows = self.taken = self.bare = 0
        self._base = base
        self._keys: dict[tuple[object, ...], int] = {}
        self._rebuilt: dict[str, int] = {}
        """how many episodes were numbered that the next file continues to count, by folder"""
        for path, rows in files.rows:
            self._add(path, rows)
        if self.coding.undecided:
            self.verdicts = dict.fromkeys(self.verdicts)
        for path, refused in files.refused:
            self.refusals.setdefault(refused.reason, Refusals()).add(refused, 0, path)

    def _add(self, path: str, rows: Rows) -> None:
        folder, _, name = path.rpartition("/")
        group = "" if rows.ordered else folder
        before = self._rebuilt.get(group, 0)
        base = self._base + (before if rows.ordered or rebuild(name) else 0)
        self._rebuilt[group] = before + (rows.taken if rows.ordered or rows.jobs else 0)
        join(self.verdicts, rows.episodes.items())
        if rows.keys:  # the same ones may come in several files
            numbers = {at: self._keys.setdefault(key, len(self._keys)) for key, at in rows.keys.items()}
            join(self.verdicts, ((base + numbers[index], verdict) for index, verdict in rows.numbered.items()))
        else:
            join(self.verdicts, ((base + index, verdict) for index, verdict in rows.numbered.items()))
        for reason, one in rows.refused.items():
            self.refusals.setdefault(reason, Refusals()).join(one, path)
        for complaint, times in rows.complaints.items():
            self.complaints[complaint] = self.complaints.get(complaint, 0) + times
        self.rows += rows.rows
        self.taken += rows.taken
        self.bare += rows.bare


def _reasons(found: _All, identity: Identity) -> Iterator[Fact]:
    """Why rows are no records of this session, or have no verdict."""
    for reason in (POLICY, ENVIRONMENT, INDEX, NO_RECORD, FORMAT, UNREADABLE):
        if one := found.refusals.get(reason):
            fields = one.fields(found.rows)
            if reason in (POLICY, ENVIRONMENT):
                own = getattr(identity, reason)
                yield Fact(reasons.OF_ANOTHER, kind=reason, named=one.named, own=own, **fields)
            else:
                yield Fact(reasons.WITHOUT_INDEX if reason == INDEX else reasons.REFUSED, **fields)
    if found.coding.undecided:
        fields = {"rows": found.taken, "of": found.rows, "values": found.coding.values, **undecided(found.coding)}
        yield Fact(reasons.UNDECIDED, **fields)
    elif found.complaints:  # an episode that is meant to be errored has null, and no complaint
        complaint, rows = max(found.complaints.items(), key=lambda pair: pair[1])
        every = sum(found.complaints.values()) + found.bare
        part = {"part": rows} if rows < every else {}
        yield Fact(reasons.WITHOUT_VERDICT, rows=every, of=found.rows, why=complaint.as_data(), **part)


def undecided(coding: Coding) -> dict[str, Any]:
    """The field whose values are no verdicts, and the line that says which of them mean a success."""
    proposal, of_numbers = coding.proposal(coding.field), {"numbers": True} if coding.numbers else {}
    return {
        "field": coding.field,
        **of_numbers,
        **({"keys": [{"key": "success", "value": proposal}]} if proposal else {}),
    }


def _of_episodes(counts: Counts, outside: list[int], span: Span, why: Mapping[str, Any]) -> Iterator[Fact]:
    """Why records don't count. `why`: by what rows of one index differ."""
    if outside and not why:
        yield Fact(reasons.NOT_PLANNED, episodes=len(outside), some=outside[:3], first=span[0], count=span[1])
    if repeated := counts.refused.get(REPEATED, 0):
        yield Fact(reasons.REPEAT, rows=repeated, of=counts.rows, **why)


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
