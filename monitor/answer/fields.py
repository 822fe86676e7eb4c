"""The lines of the probe's answer as fields: `key=value` words, the last of which may be a text with blanks. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from comborun.attempt import parse_record

if TYPE_CHECKING:
    from collections.abc import Mapping

_TEXT = re.compile(r"(?:^| )(?:why|detail|reason)=(?P<text>.*)")


def fields_of(line: str) -> dict[str, str]:
    """The `key=value` words of a line."""
    return parse_record("\n".join(line.split()))


def parted(line: str) -> tuple[Mapping[str, str], str]:
    """The fields of a line, and the text that ends it: `why`, `detail` or `reason`; empty where it has none."""
    last = _TEXT.search(line)
    return fields_of(line[: last.start()] if last else line), last["text"].strip() if last else ""
