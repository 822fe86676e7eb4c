"""Reads one result file for the report: the rules' reader reads its content, and its path may name the combo."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, BinaryIO

from comborun.reporter.records.combos import NAME_ENVIRONMENT
from comborun.reporter.records.levels import NAME_COMBO
from comborun.reporter.records.path_parts import combo_of_folder, combo_of_path, policy_of_path, saying_names
from comborun.reporter.records.reading import UNNAMED, Context, Reading, RejectKind
from comborun.rules.facts import Fact
from comborun.rules.results import formats
from comborun.rules.results.documents import SUMMARY_NOT_READ
from comborun.rules.results.episodes import DEPTH_LIMIT, ORDER, decode_line
from comborun.rules.results.fields import ENVIRONMENT, FORMAT, MISSING, TORN, UNREADABLE, RefusedError
from comborun.rules.results.filename_results import VIDEO, Named
from comborun.rules.results.one_row import names_sibling, order_of
from comborun.rules.results.rates import Count
from comborun.rules.results.readers import NOTHING, Lines, Reader
from comborun.words import say

if TYPE_CHECKING:
    from comborun.rules.results.readers import Entry

try:
    import orjson
except ImportError:  # if it has no wheel here
    _loads: Callable[[bytes], Any] = json.loads
else:
    _loads = orjson.loads
_DIGITS = bytes.maketrans(b"123456789", b"000000000")
_LONG_NUMBER = b"0" * 19

_TABLES = frozenset({formats.TABLE, formats.EPISODES, formats.DATABASE})
_CHUNK = 1 << 20
_KINDS = {TORN: RejectKind.TORN, UNREADABLE: RejectKind.UNREADABLE}


def read(stream: BinaryIO, context: Context) -> Reading:
    """The content of a file; without a format if it is unknown. The stream is left at its end."""
    reading = Reading(context.path)
    try:
        rules = context.rules
        log = rules.pattern and rules.source == "log" and context.path.rpartition("/")[2] in formats.LOG_NAMES
        named = formats.LOG_PATTERN if log else "" if rules.format == formats.NAMED else rules.format
        file = formats.look(stream, context.path, context.identity, named)
        reading.format = file.kind or formats.JSONL_ROWS
        reading.why = "the grid names it" if named else formats.WHY[reading.format]
        if reading.format == formats.JOB_ROWS and rules.metrics:
            context = replace(context, rules=rules.replace(metrics=(*rules.metrics, ORDER)))
        if reading.format not in NAME_COMBO | NAME_ENVIRONMENT:
            context = reading.named(context, *combo_of_path(context.path))
        source = file.reader(context.identity, context.path, decoded)
        source.over = context.over
        content = file.content or stream
        content.seek(file.start)
        _fill(reading, context, source, _entries(content, source))
    except RefusedError as refused:
        _refuse(reading, refused, named=bool(context.rules.format))
    stream.seek(0, os.SEEK_END)
    return reading


def read_names(found: Sequence[str], context: Context) -> Reading:
    """The episodes in the names of a group of files; `context.path` is its folder."""
    reading = Reading(context.path, formats.NAMED, formats.WHY[formats.NAMED])
    context = reading.named(context, *combo_of_folder(context.path))
    source = Named(context.identity, context.path, found)
    _fill(reading, context, source, source.finish())
    return reading


def _refuse(reading: Reading, refused: RefusedError, *, named: bool) -> None:
    """Record that the whole file gives nothing. An unknown format is a fault only if the grid names the file."""
    if refused.fact.code == SUMMARY_NOT_READ:
        reading.format, reading.why = formats.SUMMARY, formats.WHY[formats.SUMMARY]
        reading.defect(0, say(refused.fact))
    elif refused.reason == FORMAT and not named:
        reading.format, reading.why, reading.unknown = "", "", say(refused.fact)
    else:
        reading.reject(0, say(refused.fact), _KINDS.get(refused.reason, RejectKind.UNREADABLE))


def _entries(stream: BinaryIO, source: Reader) -> Iterator[Entry]:
    yield from source.feed(stream.readline(_CHUNK))  # by which others are known
    while chunk := stream.read(_CHUNK):
        yield from source.feed(chunk)
    yield from source.finish()


def _fill(reading: Reading, context: Context, source: Reader, entries: Iterator[Entry]) -> None:
    """Raises RefusedError if the file turns out to have no known format."""
    used = context
    by_path: dict[tuple[str | None, str | None], Context] = {}
    if reading.format == formats.JSONL_ROWS and isinstance(source, Lines):
        source.taken = lambda line, lines: bool(rows := alike(lines)) and reading.take_alike(used, line, rows)
    for line, value, remark, order in entries:
        if context.words is not source.identity:
            context = used = replace(context, words=source.identity)
            by_path.clear()
        if not remark and order is None and reading.take_alike(used, line, [value]):
            continue
        own = replace(context, path=value[VIDEO]) if reading.format == formats.NAMED else context
        if remark:
            reading.defect(line, say(remark), own.path)
        if value is NOTHING:
            continue
        if isinstance(value, RefusedError):
            if not line and value.reason in {FORMAT, UNREADABLE}:
                raise value
            reading.reject(line, say(value.fact), _KINDS.get(value.reason, RejectKind.NOT_A_RECORD))
        elif isinstance(value, Count):
            _take_count(reading, context, line, value)
        else:
            number = order_of(value, order, context.identity)
            used = _context_of(reading, own, value, by_path)
            reading.take(used, line, value, None if number is None else context.first + context.skipped + number)
    _settle(reading, context, source)


def _take_count(reading: Reading, context: Context, line: int, counted: Count) -> None:
    if context.rules.named and not counted.environment:  # a total of several environments
        reading.reject(line, say(Fact("names_none", kind=ENVIRONMENT)))
    elif not names_sibling(counted.environment, context.identity):
        own = replace(context, environment=context.environment or counted.environment)
        reading.take_count(reading.named(own, *_combo_of(context, counted.environment)), line, counted)


def _settle(reading: Reading, context: Context, source: Reader) -> None:
    reading.by_ending = source.copies > 1
    reading.unpaired = reading.unpaired or (source.unpaired if reading.entries else "")
    if context.identity.episode.word and any(record.seed is None for record in reading.records):
        reading.unpaired = "its rows hold no index and are numbered in the order in which they were written"
    if not (reading.entries or reading.rejects or reading.defects or context.rules.named):
        reading.defect(0, "the file holds no records")


def _context_of(
    reading: Reading, context: Context, row: Any, known: dict[tuple[str | None, str | None], Context]
) -> Context:
    """With what a row takes from its path."""
    may = NAME_ENVIRONMENT if context.planned_names else NAME_COMBO | NAME_ENVIRONMENT
    names = _by_path(context, row) if reading.format in may or reading.format in _TABLES else None
    return (known.get(names) or known.setdefault(names, reading.by_path(context, *names))) if names else context


def _by_path(context: Context, row: Any) -> tuple[str | None, str | None] | None:
    """The policy and the environment that a row takes from its file's path; None if it takes neither."""
    identity = context.identity
    if not isinstance(row, dict) or (identity.policy is not None and identity.environment is not None):
        return None
    policy, environment = identity.policy_field.find(row), identity.environment_field.find(row)
    asks = identity.policy is None and policy is MISSING, identity.environment is None and environment is MISSING
    if asks == (False, True):
        names = [name for name in saying_names(context.path) if name != policy]
        return None, (UNNAMED, *names)[-1]
    by_path = _combo_of(context, environment if isinstance(environment, str) else None)
    return (by_path[0], by_path[1] if asks[1] else None) if asks[0] else None


def _combo_of(context: Context, environment: str | None) -> tuple[str, str]:
    """The combo by the path, for a file that names an environment at most."""
    return (policy_of_path(context.path, {environment}), environment) if environment else combo_of_path(context.path)


def decoded(line: bytes) -> tuple[list[Any], str]:
    """The values of a line. The rules' decoder is used for everything that orjson refuses or reads differently: long
    integers and deep nesting."""
    if _LONG_NUMBER not in line.translate(_DIGITS) and line.count(b"{") + line.count(b"[") <= DEPTH_LIMIT:
        try:
            return [_loads(line)], ""
        except ValueError:
            return decode_line(line)
    return decode_line(line)


def alike(lines: Sequence[bytes]) -> list[Any]:
    """The objects of lines with one object each; empty if lines must be decoded one by one. There are as many braces as
    lines, and one at the start of each."""
    text = b"\n".join(lines)
    simple = text.startswith(b"{") and text.count(b"\n{") + 1 == text.count(b"{") == len(lines)
    if not simple or text.count(b"[") > DEPTH_LIMIT or _LONG_NUMBER in text.translate(_DIGITS):
        return []
    try:
        rows: list[Any] = _loads(b"[%b]" % text.replace(b"\n", b","))
    except ValueError:
        return []
    return rows if len(rows) == len(lines) else []
