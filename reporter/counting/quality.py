"""What a reader must know about the data before trusting a number. Pure."""

from __future__ import annotations

from collections import Counter, defaultdict
from dataclasses import dataclass
from typing import TYPE_CHECKING

from comborun.reporter.counting.ending import cause_words
from comborun.reporter.records.reading import RejectKind
from comborun.reporter.text import combo_name
from comborun.rules.counts import WROTE_NOTHING, where_it_ran
from comborun.text import several
from comborun.work import Spans, describe, size, spans

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from comborun.reporter.collected import Collected, SessionHistory
    from comborun.reporter.merge import MergedCombo
    from comborun.reporter.records.reading import Defect, Reject


@dataclass(frozen=True)
class Finding:
    """A sentence and its subject: a combo, or `file:line`."""

    where: str
    what: str


@dataclass(frozen=True)
class Quality:
    """Counts of the records that were read and of their fates, and all findings."""

    files: int
    records: int
    accepted: int
    rejected: int
    torn: int
    foreign: int
    outside: int
    """records of episodes outside the plan"""
    duplicated: int
    """episodes that an attempt recorded more than once, always the same"""
    conflicting: int
    """episodes that an attempt recorded more than once and not always the same"""
    replayed: int
    """episodes with a verdict from more than one attempt"""
    replays_differ: int
    retried: int
    """accepted records from a second attempt or a later one"""
    findings: tuple[Finding, ...]


def quality(collected: Collected, combos: Sequence[MergedCombo], warnings: Iterable[Finding]) -> Quality:
    """`warnings` are about sessions; they come first."""
    kinds = Counter(reject.kind for reject in collected.rejects)
    return Quality(
        files=len(collected.files),
        records=len(collected.records),
        accepted=sum(len(combo.accepted) for combo in combos),
        rejected=len(collected.rejects),
        torn=kinds[RejectKind.TORN],
        foreign=kinds[RejectKind.FOREIGN],
        outside=sum(len(combo.outside) for combo in combos),
        duplicated=sum(size(combo.duplicates) for combo in combos),
        conflicting=sum(size(combo.conflicts) for combo in combos),
        replayed=sum(size(combo.replays) for combo in combos),
        replays_differ=sum(size(combo.differing) for combo in combos),
        retried=sum(combo.retried for combo in combos),
        findings=(
            *_canary_findings(collected),
            *_uncounted_findings(collected.sessions),
            *warnings,
            *_aside_findings(collected.aside),
            *_misplaced_findings(collected.sessions),
            *(finding for combo in combos for finding in _combo_findings(combo)),
            *_grouped(collected.rejects, "rejected: "),
            *_grouped(collected.defects, ""),
        ),
    )


def _canary_findings(collected: Collected) -> Iterator[Finding]:
    for combo in collected.canary.combos if collected.canary else ():
        if combo.differs or not combo.compared:
            yield Finding(combo.name, combo.words)


def _uncounted_findings(histories: Iterable[SessionHistory]) -> Iterator[Finding]:
    """Why rows of a session don't count, in its host's words, with the line for `results` that counts them; not if an
    attempt counts.
    """
    histories = list(histories)
    names = {kind: {getattr(one.session, kind) for one in histories} for kind in ("policy", "environment")}
    for history in histories:
        ends = [attempt.end for attempt in history.attempts if attempt.end]
        if ends and all(end.counts.misread for end in ends):
            where = combo_name(history.session.policy, history.session.environment)
            why = ends[-1].counts.why
            no_wonder = why.startswith(WROTE_NOTHING) and not ends[-1].clean
            yield Finding(where, cause_words(ends[-1]) if no_wonder else where_it_ran(why, names))


def _aside_findings(histories: Iterable[SessionHistory]) -> Iterator[Finding]:
    """Sessions that ran and don't count. Sessions that never started are not mentioned."""
    for history in histories:
        if history.attempts:
            session = history.session
            how = "is a smoke test" if session.flag == "smoke" else "was superseded when the grid changed"
            where = combo_name(session.policy, session.environment)
            yield Finding(where, f"the session {session.name} {how}: none of its records counts")


def _misplaced_findings(histories: Iterable[SessionHistory]) -> Iterator[Finding]:
    """Sessions with memory on a GPU that they were not granted: they may have slowed others down."""
    for history in histories:
        where = combo_name(history.session.policy, history.session.environment)
        for attempt in history.attempts:
            if attempt.end and "WRONG_GPU" in attempt.end.note:
                at = attempt.end.note.index("WRONG_GPU")
                yield Finding(where, f"attempt {attempt.number} of {history.session.name}: {attempt.end.note[at:]}")


def _combo_findings(combo: MergedCombo) -> Iterator[Finding]:
    where = combo_name(combo.policy, combo.environment)
    if combo.missing and combo.planned is not None:
        yield Finding(where, f"{_episodes(combo.missing)} missing")
    elif combo.missing:
        yield Finding(where, f"no record of {_episodes(combo.missing)}, between the first and the last that there are")
    if combo.outside:
        indices = spans(record.episode for record in combo.outside)
        yield Finding(where, f"{_episodes(indices)} not in the plan: kept out")
    if combo.conflicts:
        yield Finding(
            where,
            f"{_episodes(combo.conflicts)} recorded more than once in one attempt, and differently:"
            " the first with a verdict counts",
        )
    if combo.duplicates:
        yield Finding(where, f"{_episodes(combo.duplicates)} recorded more than once in one attempt, always the same")
    if combo.differing:
        yield Finding(
            where,
            f"non-deterministic replays: {size(combo.differing)} of {size(combo.replays)} episodes that ran in"
            f" more than one attempt went differently ({describe(combo.differing)}); the lowest attempt counts",
        )
    elif combo.replays:
        yield Finding(where, f"{_episodes(combo.replays)} ran in more than one attempt, with the same verdicts")


def _episodes(indices: Spans) -> str:
    count = size(indices)
    return f"{several(count, 'episode')} ({describe(indices)})"


def _grouped(found: Sequence[Reject] | Sequence[Defect], prefix: str) -> Iterator[Finding]:
    """One finding per file and reason, with the lines as ranges."""
    lines: defaultdict[tuple[str, str], list[int]] = defaultdict(list)
    for entry in found:
        lines[entry.path, entry.reason].append(entry.line)
    for (path, reason), numbers in lines.items():
        places = spans(number for number in numbers if number)
        count = f" ({len(numbers)} times)" if len(numbers) > 1 else ""
        yield Finding(f"{path}:{describe(places)}" if places else path, f"{prefix}{reason}{count}")
