"""Finds results that the grid does not read, and the lines of `results` that would read them."""

from __future__ import annotations

import os
from itertools import islice

from comborun.rules import globs
from comborun.rules.facts import Fact, data_of
from comborun.rules.results import counts as reasons
from comborun.rules.results import formats, tally
from comborun.rules.results.fields import NO_VERDICTS, OUTSIDE, Identity, ResultRules
from comborun.rules.results.log_patterns import COUNTER_TRUTH, LOG_PATTERNS, RUNNING
from comborun.rules.results.packed import unpacked_name
from comborun.rules.results.proposals import VERDICTS, proposed
from comborun.rules.results.result_files import CHUNK, Folder, unhindered
from comborun.rules.results.tally import VAGUE

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Mapping, Sequence

    from comborun.rules.results.counts import Counts, Span

PATTERNS_MOST = 20
"""patterns of a grid that a reason quotes"""
_NAMED_KINDS = ("foreign_kind", "pickle", "member_of_objects", "packed_file", "unreadable_archive", "unknown_text")
"""why a file is named that holds no rows, JSON or tables"""
_RESULTS = (*formats.LINES, *formats.DOCUMENTS, *formats.TABLES)
_FILES_MOST = 200
"""files that are searched for unread results, or read again to join what is proposed"""
_LOG_MOST = 4 << 20
_LINES_MOST = 4
"""lines for `results` that are proposed one after another"""


def name_unread(counts: Counts, folder: Folder, span: Span, log: str = "") -> None:
    """If no episode counts, put before the reasons what was written and is not read; `log` is searched too. A line that
    is proposed becomes the one that counts all.
    """
    if counts.proposes and counts.countable and folder.found <= _FILES_MOST:
        _, keys = counted_by(folder, span)
        first = next(at for at, fact in enumerate(counts.facts) if reasons.keys_of(fact))
        before, fact, after = counts.facts[:first], counts.facts[first], counts.facts[first + 1 :]
        fact = Fact(fact.code, **fact.without("keys").fields, **proposed(keys, ())) if keys else fact
        counts.facts = (*before, fact, *(one for one in after if not reasons.keys_of(one)))
    if 0 < counts.records < span[1] and folder.patterns and counts.countable:
        counts.facts = (*counts.facts, *_beside(counts, folder, span))
    if not counts.records and (folder.patterns or folder.log) and counts.countable:
        found = _in_texts(folder, span) or unread(folder, span, log)
        found = found or (None if folder.found and counts.facts else _without_results(folder))
        if found and counts.proposes and _says_nothing(found):
            return
        read = found and folder.log and "pattern" in reasons.keys_of(found)  # then its format is known
        counts.facts = (*((found,) if found else ()), *(() if read else counts.facts))


def _in_texts(folder: Folder, span: Span) -> Fact | None:
    """The episodes of texts that the grid takes and whose format is not known, with the pattern that finds them."""
    taken = globs.found(folder.directory, folder.patterns)[:_FILES_MOST]
    texts = [path for path in taken if formats.is_log(path)]
    named = folder.identity.pattern or folder.kind or len(texts) < len(taken)
    readable = not named and 0 < sum(map(folder.size, texts)) <= _LOG_MOST
    return _by_pattern(folder, span, {}) if readable else None


def _beside(counts: Counts, folder: Folder, span: Span) -> list[Fact]:
    """Files outside the grid's patterns that may hold the missing episodes, with the line that reads all of them,
    if they do. Without such files, those that can't be read."""
    found, broken = _search(folder, span)
    if not found:
        return [one for one in broken if not _says_nothing(one)][: tally.REASONS_MOST]
    more = reasons.keys_of(found)
    keys = {**more, "files": [*folder.patterns, more["files"]]}
    identity = folder.identity.by(**{key: value for key, value in keys.items() if key != "files"})
    both = Folder(folder.directory, keys["files"], identity, folder.kind)
    told = tally.tally(both.read(), identity, span, over=True)
    both_read = Fact(found.code, **found.without("keys").fields, **proposed(keys, ()))
    return [both_read if told.verdicts > counts.verdicts else found.without(*reasons.OF_LINE)]


def _without_results(folder: Folder) -> Fact:
    """What was written if no file has results."""
    taken = globs.found(folder.directory, folder.patterns)
    if taken or not folder.patterns:
        empty = bool(taken) and not any(map(folder.size, taken[:_FILES_MOST]))
        return Fact(reasons.NO_EPISODE, **_some(taken), **({"why": Fact("empty_file").as_data()} if empty else {}))
    written = sorted(islice(globs.matching(folder.directory, "**"), _FILES_MOST), key=_unlike_results)
    patterns = folder.patterns[:PATTERNS_MOST]
    return Fact(reasons.NO_MATCH, patterns=patterns, **_some(written)) if written else Fact(reasons.WROTE_NOTHING)


def _unlike_results(path: str) -> tuple[bool, str]:
    """Sort key: files that look like results come first."""
    return formats.suffix_of(path) not in (*formats.LINES, *formats.DOCUMENTS), path


def _some(paths: Sequence[str]) -> dict[str, Any]:
    """The first path, and how many more there are."""
    return {"file": paths[0], "more": len(paths) - 1} if paths else {}


def unread(folder: Folder, span: Span, log: str = "") -> Fact | None:
    """The results that the grid does not read, with what to write in `results` to read them; None if there are none.
    Files come before the log.
    """
    found, broken = _search(folder, span)
    if found:
        return found
    path = folder.log or (log and os.path.relpath(log, folder.directory))
    searched = not (folder.log and (folder.identity.pattern or folder.kind))  # else the grid says what counts
    if path and searched and 0 < folder.size(path) <= _LOG_MOST:
        held = Folder(folder.directory, [], folder.identity, "", path)
        found = _by_pattern(held, span, {"from": "log"})
    return found or min(broken, key=_says_nothing, default=None)


def _search(folder: Folder, span: Span) -> tuple[Fact | None, list[Fact]]:
    """Files that no pattern takes: the first ones that hold episodes, with the line that reads them; else those that
    can't be read, documents and tables first.
    """
    taken, written = set(globs.found(folder.directory, folder.patterns)), globs.matching(folder.directory, "**")
    others = sorted(islice((path for path in written if path not in taken and folder.size(path)), _FILES_MOST))
    own = list(folder.patterns[:PATTERNS_MOST])
    refused: list[Fact] = []
    foreign: list[Fact] = []
    for suffix in dict.fromkeys(map(formats.ending_of, others)):
        pattern = f"**/*{suffix}"
        held = Folder(folder.directory, [pattern], folder.identity, folder.kind)
        found = uncounted(held, span, {"files": pattern})
        if not found and suffix in formats.LOGS:
            size = sum(map(held.size, globs.found(folder.directory, [pattern])))
            found = _by_pattern(held, span, {"files": pattern}) if size <= _LOG_MOST else None
        if found:
            return Fact(found.code, taken=own, **found.fields), []
        path, why = _why_not(held, span, pattern)
        known = formats.suffix_of(unpacked_name(path)) in _RESULTS
        if why and (known or (why.code in _NAMED_KINDS and may_hold(f"{folder.directory}/{path}", why))):
            (refused if known else foreign).append(Fact(reasons.FILE_NOT_READ, file=path, why=why.as_data(), taken=own))
    return None, [*refused, *foreign]


def _why_not(held: Folder, span: Span, pattern: str) -> tuple[str, Fact | None]:
    """A file of those that a pattern finds, and why nothing of it counts."""
    files = held.read()
    if files.refused:
        path, refused = min(files.refused, key=lambda one: one[1].fact.code in VAGUE)
        return path, refused.fact
    counts = tally.tally(files, held.identity, span, over=True)
    path = next((path for path, rows in files.rows if rows.rows), "")
    fact = next((fact for fact in counts.facts if fact.code != reasons.PROPOSAL), None)
    if fact is None or not path:
        return path, None
    if fact.code == reasons.REFUSED and (inner := Fact.of(fact.fields.get("why"))):
        return fact.text("file") or path, inner
    return path, Fact(fact.code, **fact.fields, files=pattern)


def may_hold(path: str, why: Fact) -> bool:
    """Whether a file of another kind may hold results. Most YAML files are configurations."""
    if why.text("kind") != "YAML" and why.code != "unknown_text":
        return True
    try:
        with open(path, "rb", opener=unhindered) as stream:
            text = stream.read(CHUNK).decode("utf-8", "replace")
    except OSError:
        return False
    if why.code == "unknown_text":
        return any(name in text.lower() for name in VERDICTS)
    return any(f"{name}:" in text for name in VERDICTS)


def _says_nothing(refused: Fact) -> bool:
    """Whether a document is refused because nothing in it looks like episodes, as in a configuration."""
    why = Fact.of(refused.fields.get("why"))
    return bool(why and why.code in VAGUE)


def _by_pattern(folder: Folder, span: Span, keys: Mapping[str, Any]) -> Fact | None:
    """The episodes of a log or of texts, by the pattern that finds most of them in it."""
    best, most = None, 0
    for pattern in ("", *LOG_PATTERNS):  # first the formats that are known
        identity = Identity(folder.identity.policy, folder.identity.environment, ResultRules(pattern=pattern), span[1])
        held = Folder(folder.directory, folder.patterns, identity, "", folder.log)
        found = uncounted(held, span, {**keys, **({"pattern": pattern} if pattern else {})})
        if found and found.count("episodes") > max(most, min(span[1], 2) - 1):
            best, most = _either(found, folder, span) if pattern == COUNTER_TRUTH else found, found.count("episodes")
        if span[1] and most >= span[1]:
            break
    return best.without("file") if best and folder.log else best


def _either(found: Fact, folder: Folder, span: Span) -> Fact:
    """Of lines such as `[4/6] success: 1` that both are: verdicts, or a count that goes on and is never above 1."""
    keys = reasons.keys_of(found)
    files, counted = (_read_by(folder, span, pattern) for pattern in (COUNTER_TRUTH, RUNNING))
    verdicts = {at: verdict for rows in files for at, verdict in sorted({**rows.episodes, **rows.numbered}.items())}
    counts = [one for rows in counted for one in rows.counted]
    goes_on = [*verdicts.values()] == sorted(verdicts.values(), key=bool)
    if len(counts) != 1 or counts[0].episodes < len(verdicts) or not goes_on:
        return found
    way = {key: one for key, one in keys.items() if key not in ("pattern", "episode")}
    other = Fact(found.code, **proposed({**way, "pattern": RUNNING}, ()))
    fields = {"verdicts": sum(map(bool, verdicts.values())), "successes": counts[0].successes}
    without = {"file": found.fields["file"], "episodes": len(verdicts)}
    return Fact(reasons.EITHER, **without, **fields, each=found.as_data(), all=other.as_data())


def _read_by(folder: Folder, span: Span, pattern: str) -> list[tally.Rows]:
    identity = Identity(folder.identity.policy, folder.identity.environment, ResultRules(pattern=pattern), span[1])
    held = Folder(folder.directory, folder.patterns, identity, "", folder.log)
    return [rows for _, rows in held.read().rows]


def uncounted(folder: Folder, span: Span, keys: Mapping[str, Any]) -> Fact | None:
    """That the files of a folder hold episodes, if they do with `keys` and what is proposed with them."""
    counts, more = counted_by(folder, span)
    if (folder.log or folder.identity.pattern) and counts.refused.get(OUTSIDE):
        return None  # more matches than episodes: the pattern also finds other lines
    if not (counts.verdicts or (more.get("success") == NO_VERDICTS and counts.records)):
        return None
    files = folder.read()
    path, rows = next((path, rows) for path, rows in files.rows if rows.rows)
    said = tally.tally(files, folder.identity, span).facts
    another = data_of(fact for fact in said if fact.code == reasons.OF_ANOTHER)
    fields = {**proposed({**keys, **more}, files.samples), **({"another": another} if another else {})}
    episodes = (sum(one.episodes for one in rows.counted) and counts.records) or rows.rows
    return Fact(reasons.NOT_READ, file=path, episodes=episodes, **fields)


def counted_by(folder: Folder, span: Span) -> tuple[Counts, dict[str, Any]]:
    """The counts with every line that is proposed, one after another, and these lines."""
    keys: dict[str, Any] = {}
    identity, lines = folder.identity, 0
    while True:
        held = Folder(folder.directory, folder.patterns, identity, folder.kind, folder.log)
        files = held.read()
        counts = tally.tally(files, identity, span, over=True)
        seen = {index for _, rows in files.rows for index in (*rows.episodes, *rows.numbered)}
        asked = [*map(reasons.keys_of, counts.facts), files.proposed(identity, span, seen)]
        more = next((one for one in asked if one and not keys.items() >= one.items()), {})
        if not more or lines == _LINES_MOST:
            return counts, keys
        lines += 1
        keys.update(more)
        identity = identity.by(**more)
