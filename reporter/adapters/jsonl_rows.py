"""JSON Lines: one object per episode and line, with any metrics beside the verdict.

What counts as what is documented for users in docs/report.md.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, BinaryIO, cast

import jsonlines

from reporter.adapters import Defect, Reading, Reject, RejectKind
from reporter.adapters.row import Row, RowError, parse_row

if TYPE_CHECKING:
    from collections.abc import Iterator

    from comborun.episode import EpisodeRecord
    from reporter.adapters import Context

LINE_LIMIT = 16 << 20
"""bytes; a longer line is no record but a program gone wrong, and is passed over without being held in memory"""

_TOO_LONG = "\0\n"
_BLANKS = re.compile(r"\s*")
_decoder = json.JSONDecoder()


@dataclass(frozen=True)
class _Line:
    """The objects of one line, and what was wrong after the last of them."""

    objects: tuple[Any, ...]
    fault: str
    ended: bool
    """whether a newline ends it: only the last line of a file can lack one"""


@dataclass
class _Findings:
    context: Context
    records: list[EpisodeRecord] = field(default_factory=list)
    rejects: list[Reject] = field(default_factory=list)
    defects: list[Defect] = field(default_factory=list)

    def reject(self, line: int, kind: RejectKind, reason: str) -> None:
        self.rejects.append(Reject(self.context.path, line, kind, reason))

    def defect(self, line: int, reason: str) -> None:
        self.defects.append(Defect(self.context.path, line, reason))

    def take(self, line: int, row: Row) -> None:
        self.records.append(row.record)
        for reason in row.defects:
            self.defect(line, reason)


def read(stream: BinaryIO, context: Context) -> Reading:
    """The records of one file, in their order, and everything in it that gave none."""
    findings = _Findings(context)
    # Explicit loads: jsonlines takes orjson or ujson where they are installed, and these treat NaN in other ways.
    reader = jsonlines.Reader(_lines(stream), loads=_decode)  # pyright: ignore[reportCallIssue] - attrs names it so
    for number, line in enumerate(cast("Iterator[_Line]", reader.iter()), 1):
        _take(findings, number, line)
    if not (findings.records or findings.rejects or findings.defects):
        findings.defect(0, "the file holds no records")
    return Reading(tuple(findings.records), tuple(findings.rejects), tuple(findings.defects))


def _take(findings: _Findings, number: int, line: _Line) -> None:
    if len(line.objects) > 1:
        findings.defect(number, "more than one record on a line")
    for value in line.objects:
        try:
            findings.take(number, parse_row(value, findings.context, number))
        except RowError as error:
            findings.reject(number, error.kind, str(error))
    if line.fault and not line.ended:
        findings.reject(number, RejectKind.TORN, "the last line is cut off")
    elif line.fault:
        findings.reject(number, RejectKind.NOT_A_RECORD, line.fault)
    elif not line.ended and line.objects:
        findings.defect(number, "the last line lacks its newline; its record is whole and counts")


def _lines(stream: BinaryIO) -> Iterator[str]:
    """Every line with its newline; the last one without, when the file does not end in one."""
    while line := stream.readline(LINE_LIMIT):
        if len(line) == LINE_LIMIT and not line.endswith(b"\n"):
            while (rest := stream.readline(1 << 20)) and not rest.endswith(b"\n"):
                pass
            yield _TOO_LONG
        else:
            yield line.decode("utf-8", "replace")


def _decode(text: str | bytes) -> _Line:
    """What stands on one line. Behind the first fault nothing is looked for: it could be a part of what is broken."""
    assert isinstance(text, str)
    ended = text.endswith("\n")
    if text is _TOO_LONG:
        return _Line((), f"longer than {LINE_LIMIT >> 20} MiB", ended)
    objects: list[Any] = []
    position = _skip_blanks(text, 0)
    while position < len(text):
        try:
            value, position = _decoder.raw_decode(text, position)
        except (ValueError, RecursionError) as error:
            fault = "nested too deeply" if isinstance(error, RecursionError) else "not JSON"
            return _Line(tuple(objects), f"{fault} after a whole record" if objects else fault, ended)
        objects.append(value)
        position = _skip_blanks(text, position)
    return _Line(tuple(objects), "", ended)


def _skip_blanks(text: str, position: int) -> int:
    blanks = _BLANKS.match(text, position)
    return blanks.end() if blanks else position
