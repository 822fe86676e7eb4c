"""Counts the result files of an attempt as they grow, and finds results that the grid does not read.

Each byte is read once, unless a file was rewritten.
"""

from __future__ import annotations

import os
import stat
import zlib
from itertools import islice

from comborun.rules import globs
from comborun.rules.facts import Fact, data_of
from comborun.rules.results import counts as reasons
from comborun.rules.results import formats, tally
from comborun.rules.results.fields import (
    ENVIRONMENT,
    FORMAT,
    INDEX,
    NO_RECORD,
    NO_VERDICTS,
    OUTSIDE,
    POLICY,
    TORN,
    TRAINING,
    UNREADABLE,
    Identity,
    RefusedError,
    ResultRules,
    unreadable,
)
from comborun.rules.results.proposals import VERDICTS, proposed
from comborun.rules.results.readers import WHOLE_MOST
from comborun.rules.results.rows import VAGUE, Rows

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO, Iterable, Mapping, Sequence

    from comborun.rules.results.counts import Counts, Span

_CHUNK = 1 << 20
_SAME = 64
"""bytes before the place up to which a file was read: if they differ, the file was rewritten"""
WHOLE_WHILE_RUNNING = 4 << 20
"""bytes; a larger document is not read while its session runs"""
PATTERNS_MOST = 20
"""patterns of a grid that a reason quotes"""
_ENDS = 4096
"""bytes of the beginning and of the end of a file that tell whether it has changed"""
_NAMED_KINDS = ("foreign_kind", "pickle", "member_of_objects", "packed_file", "unreadable_archive", "unknown_text")
"""why a file is named that holds no rows, JSON or tables"""
_FILES_MOST = 200
"""files that are searched for unread results"""
_LOG_MOST = 4 << 20
_LINES_MOST = 4
"""lines for `results` that are proposed one after another"""
_NUMBER = r"(?i)\b(?:episode|ep|trial|rollout)\D{0,4}(?P<episode>\d{1,9})\b"
_COUNTER = r"(?i)(?:^|[\[(\s])(?P<episode>\d{1,9})\s?/\s?\d{1,9}[\])]?"
_SCORE = r".{0,200}?\b(?:return|reward|score)\D{0,6}?(?P<score>[-+]?\d{1,15}(?:\.\d{1,15})?)"
_WORD = (
    r".{0,200}?\b(?P<verdict>(?:not? (?:an? )?|un)?"
    r"(?:success(?:ful)?|succeeded|solved|passed|ok|fail(?:ed|ure)?|timeout))\b(?![ _]?rate)"
)
_TRUTH = r"\bsuccess(?!_?rate)\w*\W{1,4}(?P<verdict>true|false|0|1)\b(?![.%/,]\d|\s?[%/])"
LOG_PATTERNS = (
    _NUMBER + r".{0,200}?" + _TRUTH,
    _NUMBER + _SCORE + _WORD,
    _NUMBER + _WORD,
    _COUNTER + r".{0,200}?" + _TRUTH,
    _COUNTER + _WORD,
    r"(?i)" + _TRUTH,
    r"(?i)^\W{0,8}(?P<verdict>success(?:ful)?|succeeded|solved|passed|fail(?:ed|ure)?|timeout)\W{0,8}$",
    r"(?i)\bsucc(?:ess\w*)?(?:[ _]rate)?\W{0,4}(?P<successes>\d{1,9})\s?/\s?(?P<episodes>\d{1,9})\b",
    r"(?i)\b(?P<successes>\d{1,9})\s?/\s?(?P<episodes>\d{1,9})\b.{0,20}?\bsuccess",
    _NUMBER + _SCORE,
)
"""lines that programs print for each episode. Repeats are bounded, since a log may hold anything"""


class Folder:
    def __init__(self, directory: str, patterns: Sequence[str], identity: Identity, kind: str, log: str = "") -> None:
        self.directory = directory
        self.patterns = patterns
        self.identity = identity
        self.kind = kind
        self.log = log
        """path of the log if the records are its lines"""
        self._files: dict[str, _File] = {}
        self.found = 0
        """number of files that are not empty"""

    def size(self, path: str) -> int:
        """Size of a file in bytes; 0 if it can't be read."""
        status = _status(f"{self.directory}/{path}")
        return status.st_size if status else 0

    def _look(self) -> dict[str, os.stat_result]:
        """Paths of files that are not empty, can't be read, or hold their result in their names."""
        paths = [*filter(None, [self.log]), *globs.found(self.directory, self.patterns)]
        seen = ((path, _status(f"{self.directory}/{path}", path != self.log and not _named(path))) for path in paths)
        return {path: status for path, status in seen if status and (status.st_size or _named(path))}

    def read(self, over: bool = True) -> tally.Files:
        """The rows of all files now. A large document waits until the session is `over`."""
        found, before, self._files = tally.Files(), self._files, {}
        looked = self._look()
        for path, status in looked.items():
            if _named(path):
                continue
            if self.kind == formats.NAMED:
                found.refused.append((path, RefusedError(NO_RECORD, "name_without_outcome")))
                continue
            kind = formats.LOG_PATTERN if path == self.log and self.identity.pattern else self.kind
            file = before.get(path) or _File(self.directory, path, self.identity, kind)
            self._files[path] = file
            file.read(status, over)
            if file.refused and (over or file.refused.reason != TORN):
                found.refused.append((path, file.refused))
            elif file.rows and not file.later:
                found.rows.append((path, file.rows))
            elif file.later:
                found.foreign.append((path, file.later))
        if any(map(_named, looked)):
            self._read_names(found, looked)
        self.found = len(looked)
        return found

    def _read_names(self, found: tally.Files, paths: Iterable[str]) -> None:
        """Read episodes in the names of files, by the folder of their environment."""
        from comborun.rules.results.filename_results import Named, groups

        for folder, group in groups(paths).items():
            rows = Rows(Named(self.identity, folder, group))
            try:
                rows.finish()
            except Exception as error:  # noqa: BLE001
                found.refused.append((folder, unreadable(error)))
            else:
                found.rows.append((folder, rows))


def _status(place: str, link: bool = False) -> os.stat_result | None:
    """The status of a file, or None. With `link`, a link that leads nowhere has its own."""
    try:
        return os.lstat(place) if link and os.path.islink(place) and not os.path.exists(place) else os.stat(place)
    except OSError:  # it may have been removed
        return None


def _named(path: str) -> bool:
    """Whether a name may hold an episode's result: `success_obj_episode_7.mp4`."""
    return path.rpartition("/")[2].startswith(("success_obj_", "failure_obj_"))


class _File:
    def __init__(self, directory: str, path: str, identity: Identity, kind: str) -> None:
        self.later: Fact | None = None
        """why nothing counts yet; this is not an error"""
        self.rows: Rows | None = None
        """all rows so far, including the text after the last newline"""
        self.refused: RefusedError | None = None
        self._path = path
        self._place = f"{directory}/{path}"
        self._identity = identity
        self._asked = kind
        self._seen: tuple[object, ...] = ()
        self._start_anew()

    def _start_anew(self) -> None:
        self._taken: Rows | None = None
        self._at = 0
        self._before = b""
        self._settled = False
        """whether its format is known, so that it is read in pieces"""

    def read(self, status: os.stat_result, over: bool) -> None:
        """Read what is new. A large document waits until the session is `over`."""
        seen = (status.st_ino, status.st_size, status.st_mtime_ns, over)
        if seen == self._seen:
            return
        self.refused, self.rows, self.later = None, None, None
        try:
            with open(self._place, "rb", buffering=0, opener=_unhindered) as stream:
                self._read(stream, over)
            if self._taken:
                self._taken.reader.over = over
                self.rows = self._taken.last()
        except RefusedError as refused:
            self.refused = refused
        except OSError as error:
            dangling = os.path.islink(self._place) and not os.path.exists(self._place)
            code = "dangling_link" if dangling else "unreadable_file"
            self.refused = RefusedError(UNREADABLE, code, **({} if dangling else {"error": error.strerror}))
        except MemoryError:
            raise
        except Exception as error:  # noqa: BLE001
            self.refused, self.rows = unreadable(error), None
            self._start_anew()
        self._seen = seen

    def _read(self, stream: BinaryIO, over: bool) -> None:
        status = os.fstat(stream.fileno())
        if not stat.S_ISREG(status.st_mode):
            raise RefusedError(UNREADABLE, "no_file")
        if self._taken is None or status.st_ino != self._seen[0] or not self._goes_on(stream.fileno()):
            self._start_anew()
            self._open(stream, over)
        while self._taken and (data := os.pread(stream.fileno(), _CHUNK, self._at)):
            self._taken.feed(data)
            self._at += len(data)
            self._before = (self._before + data)[-_SAME:]

    def _goes_on(self, fd: int) -> bool:
        """Whether the bytes that were read earlier are unchanged."""
        return self._settled and os.pread(fd, len(self._before), self._at - len(self._before)) == self._before

    def _open(self, stream: BinaryIO, over: bool) -> None:
        """Find out its format. Raises RefusedError if no reader reads it."""
        try:
            file = formats.look(stream, self._path, self._identity, self._asked)
        except RefusedError as refused:
            if over or refused.reason != FORMAT or not formats.is_log(self._path):
                raise
            return  # the kind of a log may show later
        size = os.fstat(stream.fileno()).st_size
        if file.kind == TRAINING:
            self.later = Fact("training")
            return
        if (file.kind in formats.WHOLE or file.content) and not over and size > WHOLE_WHILE_RUNNING:
            self.later = Fact("counted_at_the_end", most_mib=WHOLE_WHILE_RUNNING >> 20)
            return
        rows, self._at = Rows(file.reader(self._identity, self._path)), file.start
        if file.content:
            file.content.seek(file.start)
            rows.feed(file.content.read())
            self.rows = _finished(rows)
            return
        if file.kind in formats.WHOLE:
            rows.feed(os.pread(stream.fileno(), WHOLE_MOST + 1, self._at) if self._at < size else b"")
            self.rows = _finished(rows)
            return
        self._taken = rows
        self._settled = bool(file.kind or size > formats.HEAD)


def _unhindered(path: str, flags: int) -> int:
    """Opens a file without waiting for a pipe."""
    return os.open(path, flags | os.O_NONBLOCK | os.O_CLOEXEC)


def _finished(rows: Rows) -> Rows:
    """The rows of a file that is read as a whole. Raises RefusedError where it has none."""
    rows.finish()
    reason, one = next(iter(rows.refused.items()), ("", None))
    if one and one.why and rows.rows == 1 and not one.line and reason not in (POLICY, ENVIRONMENT, INDEX):
        raise RefusedError(reason, one.why.code, **one.why.fields)
    return rows


def fingerprint(directory: str, patterns: Sequence[str]) -> str:
    """Number, size and checksum of the result files; of each file the beginning and the end are read."""
    count = size = check = 0
    for path in globs.found(directory, patterns):
        try:
            with open(f"{directory}/{path}", "rb", opener=_unhindered) as stream:
                length = os.fstat(stream.fileno()).st_size
                ends = (os.pread(stream.fileno(), _ENDS, max(0, at)) for at in (0, length - _ENDS))
                check = zlib.crc32(b"".join((os.fsencode(path), *ends)), check)
        except OSError:
            continue
        count, size = count + 1, size + length
    return f"{count} {size} {check:08x}"


def changed(directory: str, patterns: Sequence[str], before: str, since: float) -> bool:
    """Whether result files have another `fingerprint` than before. They are opened only if one has changed since then,
    in seconds since 1970, or another number or size shows it.
    """
    if not before:
        return False
    found = [status for path in globs.found(directory, patterns) if (status := _status(f"{directory}/{path}"))]
    if f"{len(found)} {sum(one.st_size for one in found)}" != before.rpartition(" ")[0]:
        return True
    newest = max((one.st_mtime for one in found), default=0.0)
    return newest > since and fingerprint(directory, patterns) != before


def name_unread(counts: Counts, folder: Folder, span: Span, log: str = "") -> None:
    """If no episode counts, put before the reasons what was written and is not read; `log` is searched too. A line that
    is proposed becomes the one that counts all.
    """
    if counts.proposes and counts.countable:
        _, keys = counted_by(folder, span)
        first = next(at for at, fact in enumerate(counts.facts) if reasons.keys_of(fact))
        before, fact, after = counts.facts[:first], counts.facts[first], counts.facts[first + 1 :]
        told = {key: one for key, one in fact.fields.items() if key != "keys"}
        fact = Fact(fact.code, **told, **proposed(keys, ())) if keys else fact
        counts.facts = (*before, fact, *(one for one in after if not reasons.keys_of(one)))
    if (
        0 < counts.records < span[1]
        and folder.patterns
        and counts.countable
        and (more := _beside(counts, folder, span))
    ):
        counts.facts = (*counts.facts, more)
    if not counts.records and (folder.patterns or folder.log) and counts.countable:
        found = unread(folder, span, log) or (None if folder.found and counts.facts else _without_results(folder))
        if found and counts.proposes and _says_nothing(found):
            return
        counts.facts = (*((found,) if found else ()), *counts.facts)


def _beside(counts: Counts, folder: Folder, span: Span) -> Fact | None:
    """Files that no pattern takes and that hold episodes which are missing, with the line that reads both; if there is
    none, it names them."""
    found = unread(folder, span)
    if not found or found.code != reasons.NOT_READ:
        return None
    more = reasons.keys_of(found)
    keys = {**more, "files": [*folder.patterns, more["files"]]}
    identity = folder.identity.by(**{key: value for key, value in keys.items() if key != "files"})
    both = Folder(folder.directory, keys["files"], identity, folder.kind)
    told = tally.tally(both.read(), identity, span, over=True)
    own = {key: value for key, value in found.fields.items() if key != "keys"}
    return Fact(found.code, **own, **proposed(keys, ())) if told.verdicts > counts.verdicts else None


def _without_results(folder: Folder) -> Fact:
    """What was written if no file has results."""
    taken = globs.found(folder.directory, folder.patterns)
    if taken or not folder.patterns:
        return Fact(reasons.NO_EPISODE, **_some(taken))
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
    taken, written = set(globs.found(folder.directory, folder.patterns)), globs.matching(folder.directory, "**")
    others = sorted(islice((path for path in written if path not in taken and folder.size(path)), _FILES_MOST))
    own, refused, foreign = list(folder.patterns[:PATTERNS_MOST]), None, None
    for suffix in dict.fromkeys(map(formats.ending_of, others)):
        pattern = f"**/*{suffix}"
        held = Folder(folder.directory, [pattern], folder.identity, folder.kind)
        if found := uncounted(held, span, {"files": pattern}):
            return Fact(found.code, taken=own, **found.fields)
        texts = suffix in formats.LOGS and sum(map(held.size, globs.found(folder.directory, [pattern]))) <= _LOG_MOST
        if found := _by_pattern(held, span, {"files": pattern}) if texts else None:
            return Fact(found.code, taken=own, **found.fields)
        path, why = _why_not(held, span, pattern)
        if why and suffix in (*formats.LINES, *formats.DOCUMENTS, *formats.TABLES):
            fact = Fact(reasons.FILE_NOT_READ, file=path, why=why.as_data(), taken=own)
            refused = fact if not refused or _says_nothing(refused) else refused
        elif why and why.code in _NAMED_KINDS and _may_hold(folder, path, why):
            foreign = foreign or Fact(reasons.FILE_NOT_READ, file=path, why=why.as_data(), taken=own)
    in_log = None
    if log and not folder.log and 0 < folder.size(os.path.relpath(log, folder.directory)) <= _LOG_MOST:
        held = Folder(folder.directory, [], folder.identity, "", os.path.relpath(log, folder.directory))
        in_log = _by_pattern(held, span, {"from": "log"})
    return in_log or (foreign if foreign and refused and _says_nothing(refused) else refused or foreign)


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


def _may_hold(folder: Folder, path: str, why: Fact) -> bool:
    """Whether a file of another kind may hold results. Most YAML files are configurations."""
    if why.text("kind") != "YAML" and why.code != "unknown_text":
        return True
    try:
        with open(f"{folder.directory}/{path}", "rb", opener=_unhindered) as stream:
            text = stream.read(_CHUNK).decode("utf-8", "replace")
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
            best, most = found, found.count("episodes")
        if span[1] and most >= span[1]:
            break
    return best and Fact(best.code, **{key: one for key, one in best.fields.items() if key != "file" or not folder.log})


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
    episodes = sum(one.episodes for one in rows.counted) or rows.rows
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
