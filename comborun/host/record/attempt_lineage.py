"""The attempts of a session together: which last episodes are missing, and links to the results that count."""

from __future__ import annotations

import contextlib
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from comborun.host.record import judging
from comborun.host.record.recounts import as_it_is, live_counts
from comborun.host.record.run_directory import RunDirectory
from comborun.host.system import files
from comborun.rules import globs, records
from comborun.rules.names import RUN
from comborun.rules.results.counts import CHANGED, NOT_LOOKED_AT, NOT_RECOUNTED, Counts, joined, over_all, unmarked
from comborun.rules.results.fields import INDEX, NO_RECORD, OUTSIDE
from comborun.rules.vocabulary import Completeness, Outcome, cause_of, completeness_of, outcome_of, session_outcome


class Part:
    def __init__(self, run: RunDirectory, name: str, number: int) -> None:
        self.number = number
        at = run.at(name, number)
        self.rules = judging.rules_of(at)
        self.end = as_it_is(at, run.end(name, number))
        self._output = at.output
        self.counts = Counts.of(self.end) if "verdicts" in self.end else live_counts(at)

    @property
    def span(self) -> tuple[int, int]:
        return self.rules.span

    @property
    def links(self) -> bool:
        """Whether its results lie elsewhere, where another attempt may overwrite them."""
        found = globs.found(self._output, self.rules.results.files)
        return any(os.path.islink(f"{self._output}/{path}") for path in found)

    @property
    def made(self) -> set[int]:
        return set(unmarked(self.counts.marks, self.span))


def parts(run: RunDirectory, name: str) -> list[Part]:
    """The claimed attempts, lowest first."""
    return [Part(run, name, number) for number in run.numbers(name) if files.read_text(run.at(name, number).claim)]


def whole(found: list[Part]) -> tuple[int, int]:
    """All episodes of the session; attempts may be for a tail of them."""
    first = min((part.span[0] for part in found), default=0)
    return first, max((sum(part.span) for part in found), default=0) - first


def joined_counts(run: RunDirectory, name: str) -> Counts:
    found = parts(run, name)
    if not found:
        return Counts()
    return joined([(part.span, part.counts) for part in found], whole(found))


def outcome(run: RunDirectory, name: str, end: Mapping[str, Any]) -> Outcome:
    """The outcome of a session with this last end, by the results of all its attempts: as the monitor says it."""
    found = parts(run, name) if end and len(run.numbers(name)) > 1 else []
    if not found or not found[-1].rules.results.counted:
        return outcome_of(end)
    counts = joined([(part.span, part.counts) for part in found], whole(found))
    required = found[-1].rules.required
    required.planned = whole(found)[1]
    ends = [completeness_of(part.end) for part in found if part.end]
    best = over_all(ends, counts, required, records.integer(end, "code"))
    return session_outcome(best, completeness_of(end), cause_of(end))


def of(found: list[Part], last: Part) -> list[Part]:
    """The attempts, oldest first, whose results `last` completes: a tail continues an earlier attempt."""
    chain: list[Part] = []
    need = 0
    for part in sorted(found, key=lambda part: -part.number):
        if part.number > last.number or (chain and part.span[0] >= need):
            continue
        if part is last or part.counts.records:
            chain.insert(0, part)
            need = part.span[0]
    return chain


def tail(run: RunDirectory, name: str) -> tuple[int, int] | None:
    """The missing last episodes, if all others have a record.

    If a later episode has a record, the program did not run them in order, or counts differently. Then all of them run
    again: each attempt has its own folder, and an episode counts once.
    """
    found = parts(run, name)
    if not found or not all(part.rules.ranged and part.rules.count for part in found) or _doubtful(found):
        return None
    first, count = whole(found)
    chain = of(found, found[-1])
    made = {index for part in chain for index in part.made}
    following = first
    while following in made:
        following += 1
    later = any(index >= following for part in found for index in part.made)
    if later or not first < following < first + count:
        return None
    return following, first + count - following


def _doubtful(found: list[Part]) -> bool:
    """Whether the records don't show which episodes were made, or another attempt may overwrite them."""
    unknown = (CHANGED, NOT_RECOUNTED, NOT_LOOKED_AT)
    if any(part.links or any(one.code in unknown for one in part.counts.facts) for part in found):
        return True
    unsure = any(part.counts.refused.get(reason) for part in found for reason in (INDEX, OUTSIDE, NO_RECORD))
    return unsure or any(part.counts.ordered or (part.counts.records and not part.counts.marks) for part in found)


def accepted(run: RunDirectory, name: str) -> list[int]:
    """The attempts whose results count: the chain of the lowest complete one, else the one with the most records."""
    ended = [part for part in parts(run, name) if part.end]
    best: list[Part] = []
    for part in ended:
        chain = of(ended, part)
        if part.end.get("completeness") == Completeness.COMPLETE.value:
            return [one.number for one in chain]
        if sum(one.counts.records for one in chain) > sum(one.counts.records for one in best):
            best = chain
    return [one.number for one in best]


def link(run: RunDirectory, names: list[str]) -> None:
    """Link the results that count. Links are relative, so a run directory may be moved.

    If two files have the same name, the session's name is added where the grid's own patterns still find the file, and
    the attempt's if both are of one session. Files that are not links stay: `after` may write there.
    """
    every = ((name, number) for name in names for number in accepted(run, name))
    folders = {os.path.realpath(run.at(*one).output): one for one in every}  # sessions of one process share theirs
    patterns = {one: judging.rules_of(run.at(*one)).results.files for one in folders.values()}
    found = [(*one, path) for one in folders.values() for path in _files(run, *one, patterns[one])]
    shared = Counter(os.path.basename(path) for _, _, path in found)
    try:
        os.makedirs(run.layout.results, exist_ok=True)
        for entry in os.listdir(run.layout.results):
            if os.path.islink(f"{run.layout.results}/{entry}"):
                files.remove(f"{run.layout.results}/{entry}")
    except OSError:
        return
    for name, number, path in found:
        shown = os.path.basename(path)
        if shared[shown] > 1:
            shown = _name(path, name, patterns[name, number])
            if os.path.islink(f"{run.layout.results}/{shown}"):
                shown = _name(path, f"{name}_a{number}", patterns[name, number])
        with contextlib.suppress(OSError):  # an existing file stays
            os.symlink(f"../{RUN.attempt(name, number).output}/{path}", f"{run.layout.results}/{shown}")


def _files(run: RunDirectory, name: str, number: int, patterns: Sequence[str]) -> list[str]:
    output = run.at(name, number).output
    return [path for path in globs.found(output, patterns) if files.size(f"{output}/{path}")]


def _name(path: str, session: str, patterns: Sequence[str]) -> str:
    """`SESSION_eval_r.jsonl` for `eval/r.jsonl`; if only that has the form that a pattern asks for,
    `eval_r_SESSION.jsonl`."""
    flat = path.replace("/", "_")
    stem, dot, suffix = flat.rpartition(".")
    after = f"{stem or suffix}_{session}{dot and stem and dot + suffix}"
    names, before = [pattern.rpartition("/")[2] for pattern in patterns], f"{session}_{flat}"
    return next((one for one in (before, after) if any(fnmatchcase(one, name) for name in names)), before)
