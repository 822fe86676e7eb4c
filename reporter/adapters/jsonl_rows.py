"""JSON Lines: one object per episode and line, with any metrics beside the verdict.

What counts as what is documented for users in docs/report.md.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

import jsonlines

from reporter.adapters import RejectKind
from reporter.adapters.findings import Findings

if TYPE_CHECKING:
    from collections.abc import Iterator

    from reporter.adapters import Context, Reading

LINE_LIMIT = 16 << 20
"""bytes; a longer line is no record but a program gone wrong, and is passed over without being held in memory"""

_TOO_LONG = "\0\n"
_BLANKS = re.compile(r"\s*")
_decoder = json.JSONDecoder()


class _Line(NamedTuple):
    """The objects of one line, and what was wrong after the last of them."""

    objects: tuple[Any, ...]
    fault: str
    ended: bool
    """whether a newline ends it: only the last line of a file can lack one"""


Shape = Callable[[Any], Any]
"""a decoded value in the words of another program -> the same in those of the rules"""


def read(stream: BinaryIO, context: Context) -> Reading:
    """The records of one file, in their order, and everything in it that gave none."""
    findings = Findings(context)
    take_lines(findings, stream)
    return findings.reading()


def take_lines(findings: Findings, stream: BinaryIO, shape: Shape | None = None) -> None:
    """Every line into `findings`, each value given its `shape` first."""
    # Explicit loads: jsonlines takes orjson or ujson where they are installed, and these treat NaN in other ways.
    reader = jsonlines.Reader(_lines(stream), loads=_decode)  # pyright: ignore[reportCallIssue] - attrs names it so
    for number, line in enumerate(cast("Iterator[_Line]", reader.iter()), 1):
        _take(findings, number, line, shape)


def _take(findings: Findings, number: int, line: _Line, shape: Shape | None) -> None:
    if len(line.objects) > 1:
        findings.defect(number, "more than one record on a line")
    for value in line.objects:
        findings.take_row(number, shape(value) if shape else value)
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
