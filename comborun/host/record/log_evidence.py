"""Lines of a growing log that prove that a session did its work: one that matches, or a count of steps."""

from __future__ import annotations

import re

from comborun.rules import counting, patterns
from comborun.rules.patterns import PatternError, compiled, matches

_LOG_CHUNK = 1 << 20
_ANNOUNCED = re.compile(r"[Tt]otal steps:\s*([0-9]{1,18})\b")


class LogLine:
    """Searches a growing log for a line that matches, and reads each byte once."""

    def __init__(self, pattern: str) -> None:
        self.there = False
        self._at = 0
        self._rest = b""
        try:
            self._pattern = compiled(pattern)
        except PatternError:  # somebody has edited a record
            self._pattern = re.compile("(?!)")

    def look(self, log: str, size: int | None = None) -> bool:
        """`size`: the bytes of the log that count; None: all."""
        try:
            with open(log, "rb") as file:
                file.seek(self._at)
                while not self.there:
                    data = file.read(_LOG_CHUNK if size is None else max(0, min(_LOG_CHUNK, size - self._at)))
                    if not data:
                        break
                    self._at += len(data)
                    self._take(data)
        except OSError:
            return self.there
        return self.there or self._matches(self._rest)

    def _take(self, data: bytes) -> None:
        lines = counting.with_line_ends(self._rest + data).split(b"\n")
        self._rest = lines.pop()[-_LOG_CHUNK:]
        self.there = any(self._matches(line) for line in lines)

    def _matches(self, line: bytes) -> bool:
        return bool(line) and matches(self._pattern, line.decode("utf-8", "replace"))


class LogSteps(LogLine):
    """Searches for a line that counts as many steps as the program announced, else as planned."""

    def __init__(self, pattern: str, planned: int) -> None:
        super().__init__(pattern)
        self._planned = planned

    def _matches(self, line: bytes) -> bool:
        text = line.decode("utf-8", "replace")[: patterns.LONGEST_LINE]
        if announced := _ANNOUNCED.search(text):
            self._planned = int(announced.group(1))
        found = self._pattern.search(text)
        number = next((one for one in found.groups() if one is not None), "") if found else ""
        return number.isdecimal() and int(number[:18]) >= self._planned
