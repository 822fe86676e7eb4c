"""Settles what verdicts and counts mean over all files of a session, or of a combo of a folder. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter

from comborun.model.attempt import Aggregate, Verdict
from comborun.model.work import Combo, grouped
from comborun.reporter.records.reading import Defect, Reading, RejectKind
from comborun.rules.facts import Fact
from comborun.rules.results.codings import Coding
from comborun.rules.results.counts import UNDECIDED
from comborun.rules.results.rates import not_settled, settled
from comborun.rules.results.tally import undecided
from comborun.words import say


def leave_undecided(files: Sequence[Reading]) -> None:
    """Remove the verdicts of sessions, or of combos of a folder, whose field of verdicts has another coding. One
    attempt that shows it is enough."""
    codings: defaultdict[tuple[str, Combo], defaultdict[int, Coding]] = defaultdict(lambda: defaultdict(Coding))
    for reading in files:
        for (session, combo, attempt), coding in reading.codings.items():
            codings[session, combo][attempt].join(coding)
    if not any(one.others for attempts in codings.values() for one in attempts.values()):
        return
    decided = Counter(
        (record.session, record.combo, record.attempt, record.success)
        for reading in files
        for record in reading.records
        if record.success is not None and (record.session, record.combo) in codings
    )
    for (session, combo, attempt), verdicts in grouped(decided, lambda key: key[:3]).items():
        coding = codings[session, combo][attempt]
        if (rows := sum(decided[key] for key in verdicts)) > coding.decided:
            coding.decided = rows
            coding.truths = {**dict.fromkeys(str(key[3]).lower() for key in verdicts), **coding.truths}
    found = (
        (key, next((one for one in attempts.values() if one.undecided), None)) for key, attempts in codings.items()
    )
    unsure = {key: coding for key, coding in found if coding}
    of_run = [reading for reading in files if any(session for session, _, _ in reading.codings)]
    for together in (*([reading] for reading in files), of_run):
        unsure = {**_beside_numbers(together, unsure), **unsure}
    for reading in files:
        if of := next((unsure[key[:2]] for key in reading.codings if key[:2] in unsure), None):
            reading.withdraw(reading.proposal)  # which is the same line, without its cautions
            reading.defect(0, say(Fact(UNDECIDED, values=of.values, **undecided(of))))
        if any((record.session, record.combo) in unsure for record in reading.records):
            reading.records = [
                replace(record, verdict=Verdict.ERRORED) if (record.session, record.combo) in unsure else record
                for record in reading.records
            ]


def _beside_numbers(
    files: Sequence[Reading], unsure: Mapping[tuple[str, Combo], Coding]
) -> dict[tuple[str, Combo], Coding]:
    """The combos of one file, or of a run, whose verdicts are 0 and 1, beside others whose field holds other numbers:
    there 0 and 1 are numbers like them."""
    codings = [(key[:2], coding) for reading in files for key, coding in reading.codings.items()]
    known = (unsure.get(key) for key, _ in codings)
    odd = next((one for one in known if one and one.numbers), None)
    if odd is None:
        return {}
    return {key: odd for key, one in codings if one.field == odd.field and one.numeric}


def settle_counts(files: Iterable[Reading], by_plan: Collection[str]) -> None:
    """Replace the counts of an attempt, or of a file of a folder, by what they say together. `by_plan`: files that a
    grid reads."""
    attempts: defaultdict[tuple[str, int | str], list[Reading]] = defaultdict(list)
    for reading in files:
        if one := next(iter(reading.entries), None):
            attempts[(one.session, one.attempt) if one.session else ("", reading.path)].append(reading)
    for (session, _), readings in attempts.items():
        counts = [one for reading in readings for one in reading.counts]
        if not counts or (not session and all(one.sure for one in counts)):
            continue
        first = next(reading for reading in readings if reading.counts)
        planned = first.identity.planned if first.identity else 0
        listed = session and any(record.success is not None for reading in readings for record in reading.records)
        chosen = None if listed else settled(counts, planned)
        told = {f"{one.successes} of {one.episodes}" for one in counts if one.sure}
        if session and chosen in counts and len(told) > 1:
            first.defect(0, f"{len(told)} files count differently: {', '.join(sorted(told))}")
        if chosen is None:
            first.withdraw(*(say(one.complaint) for one in counts if one.complaint))
        if chosen is None and not listed:
            fact = not_settled(counts, planned).fact
            of_none = {"of_no_session": True} if not planned and first.path in by_plan else {}
            first.unknown = say(Fact(fact.code, **fact.fields, **of_none))
            first.reject(0, first.unknown, RejectKind.UNREADABLE)
        kept = [
            replace(first.aggregates[0], successes=chosen.successes, episodes=chosen.episodes, metrics=chosen.metrics)
            for chosen in ([chosen] if chosen else [])
        ]
        for reading in readings:
            reading.aggregates = kept if reading is first else []


def contradictions(aggregates: Sequence[Aggregate]) -> Iterator[Defect]:
    """Files of one attempt that count differently. The one with the most episodes is taken."""
    for found in grouped(aggregates, attrgetter("combo", "session", "attempt")).values():
        values = {f"{aggregate.successes} of {aggregate.episodes}" for aggregate in found}
        if len(values) > 1:
            yield Defect(found[0].source, 0, f"{len(values)} files count differently: {', '.join(sorted(values))}")
