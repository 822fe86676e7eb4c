"""A JSON file, whole or in parts."""

from __future__ import annotations

import json
import re
from typing import Any, BinaryIO

from comborun.reporter.adapters import RejectKind

SIZE_LIMIT = 256 << 20
"""bytes; a larger document is no result but a program gone wrong"""

_BLANKS = re.compile(r"\s*")
_BETWEEN = re.compile(r"\s*,\s*")
_decoder = json.JSONDecoder()


class DocumentError(Exception):
    """The file as a whole is no JSON document."""

    def __init__(self, reason: str, kind: RejectKind = RejectKind.UNREADABLE) -> None:
        super().__init__(reason)
        self.kind = kind


def text_of(stream: BinaryIO) -> str:
    """Raises DocumentError for what is empty or too large."""
    content = stream.read(SIZE_LIMIT + 1)
    if len(content) > SIZE_LIMIT:
        raise DocumentError(f"larger than {SIZE_LIMIT >> 20} MiB")
    text = content.decode("utf-8", "replace")
    if not text.strip():
        raise DocumentError("empty: being written, or cut off", RejectKind.TORN)
    return text


def document(stream: BinaryIO) -> Any:
    """The JSON value of a whole file; raises DocumentError."""
    text = text_of(stream)
    try:
        return json.loads(text)
    except json.JSONDecodeError as error:
        if error.pos >= len(text.rstrip()) or not text.rstrip().endswith(("}", "]")):
            raise DocumentError("half-written JSON: being written, or cut off", RejectKind.TORN) from error
        raise DocumentError(f"not JSON: {error.msg} in line {error.lineno}") from error
    except RecursionError as error:
        raise DocumentError("nested too deeply") from error
    except ValueError as error:  # an integer of thousands of digits
        raise DocumentError("not JSON: a number too long") from error


def elements(text: str) -> tuple[list[Any], str]:
    """The elements of a list as far as they are whole, and what is wrong behind them: empty when nothing is.

    Raises DocumentError when the text is no list.
    """
    position = _skip(text, 0)
    if not text.startswith("[", position):
        raise DocumentError("not a JSON list")
    found: list[Any] = []
    position = _skip(text, position + 1)
    while not text.startswith("]", position):
        try:
            value, position = _decoder.raw_decode(text, position)
        except (ValueError, RecursionError):
            return found, "half-written JSON"
        found.append(value)
        between = _BETWEEN.match(text, position)
        position = between.end() if between else _skip(text, position)
        if not between and not text.startswith("]", position):
            return found, "half-written JSON"
    return found, ""


def _skip(text: str, position: int) -> int:
    blanks = _BLANKS.match(text, position)
    return blanks.end() if blanks else position
