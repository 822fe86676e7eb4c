"""`reread RUN`: reads result files again by other rules. Standard input has the rules of each session, as JSON.

The answer is what the end of each attempt says, and what it would say. It changes nothing. An amendment calls `apply`,
which writes the new ends; if it is killed, the next call completes the rest.
"""

from __future__ import annotations

import errno
import json
import os
import sys

from comborun.host import files, judging
from comborun.host.attempts import RunDirectory, word_of
from comborun.host.refusal import answered
from comborun.rules import records
from comborun.rules.words import Cause, Completeness, failure_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, Mapping

    from comborun.rules.names import AttemptLayout

_SHOWN = ("completeness", "records", "successes", "verdicts", "rows", "why")


def main(arguments: list[str]) -> int:
    return answered("reread", lambda: preview(arguments[0], json.load(sys.stdin)))


def preview(run: str, rules: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The attempts whose end would change, with both ends."""
    changes = []
    for name, number, one in _attempts(run, rules):
        if one.end and one.differs:
            before, now = ({key: end.get(key, "") for key in _SHOWN} for end in (one.end, one.fields))
            changes.append({"session": name, "attempt": number, "before": before, "now": now})
    return changes


def apply(run: str, rules: Mapping[str, Any]) -> None:
    """Judge each attempt by these rules from now on, and ended ones at once. Raises OSError."""
    done, left = files.read(f"{run}/dispatch/done"), {}
    for name, _, one in _attempts(run, rules):
        before = word_of(one.end) if one.end else ""
        one.write()
        left[name] = before, word_of(one.fields) if one.end else ""
    for before, now in left.values():
        if done and before != now:
            done[before] = str(int(done.get(before, "0")) - 1)
            done[now] = str(int(done.get(now, "0")) + 1)
    if done and os.path.exists(f"{run}/dispatch/done"):
        files.write(f"{run}/dispatch/done", done.items())


def _attempts(run: str, rules: Mapping[str, Any]) -> Iterator[tuple[str, int, Reread]]:
    """The claimed attempts of the sessions in `rules`."""
    directory = RunDirectory(run)
    for name, judged_by in rules.items():
        for number in directory.numbers(name):
            at = directory.at(name, number)
            claim = files.read(at.claim)
            if claim and isinstance(judged_by, dict):
                yield name, number, Reread(at, claim, directory.end(name, number), judged_by)


def _replace(path: str, record: Mapping[str, Any]) -> None:
    """Replace a record by one that is synced to the disk. Raises OSError."""
    draft = files.draft(path)
    if not files.write(draft, record.items()):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)
    files.sync(draft)
    os.replace(draft, path)
    files.sync(os.path.dirname(path))


class Reread:
    """One attempt, judged by other rules."""

    def __init__(
        self, at: AttemptLayout, claim: Mapping[str, str], end: Mapping[str, str], judged_by: Mapping[str, Any]
    ) -> None:
        self.end = end
        """the present end; empty while it runs"""
        self._at = at
        first, count = records.integer(claim, "first") or 0, records.integer(claim, "count") or 0
        self._rules = judging.Rules(judged_by, first, count)
        self._claim: dict[str, Any] = {**claim, **dict(self._rules.fields())}
        self._same = judging.Rules.of(claim).fields() == self._rules.fields()
        self._fields: dict[str, str] | None = None

    @property
    def fields(self) -> Mapping[str, str]:
        """The end by the new rules."""
        if self._same:
            return self.end
        if self._fields is None:
            pairs = judging.end_fields(self._at, self._ending(), self._judged(), self._claim)
            self._fields = records.parse(records.render(pairs))
        return self._fields

    @property
    def differs(self) -> bool:
        return any(self.end.get(key, "") != self.fields.get(key, "") for key in _SHOWN)

    def write(self) -> None:
        """Write the end before the claim: an attempt whose claim has the new rules is done."""
        if self._same:
            return
        if self.end:
            judging.list_videos(self._at, self._rules)
            _replace(self._at.end, self.fields)
        _replace(self._at.claim, self._claim)

    def _judged(self) -> judging.Judged:
        code = records.integer(self.end, "code")
        return judging.judged(self._at, self._rules, code if self.end.get("cause") == "exited" else None)

    def _ending(self) -> judging.Ending:
        end = self.end
        code, signal = records.integer(end, "code"), records.integer(end, "signal")
        ending = judging.Ending(end.get("cause", ""), end.get("note", ""), code, records.seconds(end, "started"))
        ending.ended = records.seconds(end, "ended") or 0.0
        ending.peak_memory_kib = records.integer(end, "peak_memory_kib") or 0
        completeness, cause = Completeness(end.get("completeness", "none")), Cause(end.get("cause", "unknown"))
        derived = failure_of(completeness, cause, code, signal)
        if end.get("class") and (not derived or end["class"] != derived.value):
            ending.signature = end["class"]  # from its log
        return ending
