"""What a log says last, without anything that could act on a terminal."""

from __future__ import annotations

from comborun.text import harmless

LONGEST = 200
"""characters that are kept of a line"""


def last_line(log: bytes) -> str:
    """The last line that shows anything."""
    lines = reversed(log.decode("utf-8", "replace").split("\n"))
    return next((shown for line in lines if (shown := visible(line))), "")


def visible(line: str) -> str:
    """One line as people may see it: no control characters, no escape sequences, bounded."""
    return indented(line).strip()


def indented(line: str) -> str:
    """The same with the blanks before it, which tell the lines of a traceback apart.

    Of a progress bar it shows what was drawn last, after a `\\r`.
    """
    drawn = harmless(line, keep="\r\t").replace("\t", " ").split("\r")
    shown = next((one.rstrip() for one in reversed(drawn) if one.strip()), "")
    return shown if len(shown) <= LONGEST else shown[: LONGEST - 1] + "…"
