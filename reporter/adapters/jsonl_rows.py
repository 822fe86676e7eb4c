"""JSON Lines: one object per episode and line, with any metrics beside the verdict.

What counts as what is documented for users in docs/report.md.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, BinaryIO, NamedTuple, cast

import jsonlines

from comborun.reporter.adapters import RejectKind
from comborun.reporter.adapters.findings import Findings
from comborun.rules.episodes import LINE_LIMIT, decode

if TYPE_CHECKING:
    from collections.abc import Iterator

    from comborun.reporter.adapters import Context, Reading

_TOO_LONG = "\0\n"


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
    assert isinstance(text, str)
    ended = text.endswith("\n")
    if text is _TOO_LONG:
        return _Line((), f"longer than {LINE_LIMIT >> 20} MiB", ended)
    values, fault = decode(text)
    return _Line(tuple(values), fault, ended)
