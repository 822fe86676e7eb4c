"""`reread RUN`: reads result files again by other rules. Standard input has the rules of each session, as JSON.

The answer is what the end of each attempt says, and what it would say. It changes nothing. An amendment calls `apply`,
which writes the new ends; if it is killed, the next call completes the rest.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator

from comborun.host.record import end_record, judging
from comborun.host.record.run_directory import RunDirectory
from comborun.host.record.totals import EPISODES, totals
from comborun.host.system import files
from comborun.host.system.files import Json
from comborun.host.verb_errors import answered, must_write
from comborun.rules import records
from comborun.rules.endings.failures import failure_of
from comborun.rules.names import AttemptLayout, RunLayout
from comborun.rules.vocabulary import cause_of, completeness_of, outcome_of

_SHOWN = ("completeness", "records", "successes", "verdicts", "rows", records.FACTS)


def main(arguments: list[str]) -> int:
    return answered("reread", lambda: preview(arguments[0], json.load(sys.stdin)))


def preview(run: str, rules: Json) -> list[Json]:
    """The attempts whose end would change, with both ends."""
    changes = []
    for name, number, _, _, end, now in _attempts(run, rules):
        before, after = ({key: one.get(key, "") for key in _SHOWN} for one in (end, now))
        if before != after:
            changes.append({"session": name, "attempt": number, "before": before, "now": after})
    return changes


def apply(run: str, rules: Json) -> None:
    """Judge each attempt by these rules from now on, and ended ones at once. Raises Refusal or OSError."""
    done_file = RunLayout(run).done
    done, left = files.read(done_file), {}
    for name, _, at, claim, end, now in _attempts(run, rules):
        left[name] = (outcome_of(end), outcome_of(now)) if end else ("", "")
        if now is not end:
            judging.list_videos(at, judging.Rules.of(claim))
            _replace(at.end, now)
        if claim:  # after the end: an attempt whose claim has the new rules is done
            _replace(at.claim, claim)
    for before, after in left.values():
        if done and before != after:
            done[before] = str(int(done.get(before, "0")) - 1)
            done[after] = str(int(done.get(after, "0")) + 1)
    if done and os.path.exists(done_file):
        found = totals(RunDirectory(run))
        files.write(done_file, {**done, **{key: found[key] for key in EPISODES}}.items())


def _attempts(run: str, rules: Json) -> Iterator[tuple[str, int, AttemptLayout, Json, Json, Json]]:
    """The claimed attempts of the sessions in `rules`: name, number, files, the claim by the new rules (empty: it has
    them already), its end (empty while it runs), and the end by the new rules.
    """
    directory = RunDirectory(run)
    for name, judged_by in rules.items():
        for number in directory.numbers(name):
            at = directory.at(name, number)
            claim, end = files.read(at.claim), directory.end(name, number)
            before = judging.Rules.of(claim)
            now = judging.Rules(judged_by, *before.span)
            if claim and now.fields() == before.fields():
                yield name, number, at, {}, end, end
            elif claim:
                claim = records.parse(records.render([*claim.items(), *now.fields()]))
                yield name, number, at, claim, end, _judged(at, now, claim, end) if end else end


def _replace(path: str, record: Json) -> None:
    """Replace a record by one that is synced to the disk. Raises Refusal or OSError."""
    must_write(files.write_text(path, records.render(record.items()), synced=True), path)
    files.sync(os.path.dirname(path))


def _judged(at: AttemptLayout, rules: judging.Rules, claim: Json, end: Json) -> Json:
    code, signal = records.integer(end, "code"), records.integer(end, "signal")
    ending = end_record.Ending(end.get("cause", ""), end.get("note", ""), code, records.seconds(end, "started"))
    ending.facts += records.ending(end)
    ending.ended = records.seconds(end, "ended") or 0.0
    ending.peak_memory_kib = records.integer(end, "peak_memory_kib") or 0
    derived = failure_of(completeness_of(end), cause_of(end), code, signal)
    if end.get("class") and (not derived or end["class"] != derived.value):
        ending.signature = end["class"]  # from its log
    judged = judging.judged(at, rules, code if end.get("cause") == "exited" else None)
    return records.parse(records.render(end_record.end_fields(at, ending, judged, claim, rules)))
