"""What a terminal without UTF-8 shows."""

from __future__ import annotations

import io

from comborun.cli.terminal import _LETTERS
from comborun.monitor.wording import MARKS


def test_each_state_has_a_letter_of_its_own_on_a_terminal_without_utf_8() -> None:
    """A lost session is shown as ?, so nothing else is."""
    file = io.BytesIO()
    stream = io.TextIOWrapper(file, encoding="ascii", errors=_LETTERS)
    symbols = {mark.symbol for mark in MARKS.values()}
    for symbol in sorted(symbols):
        stream.write(symbol)
    stream.write("é")
    stream.flush()
    shown = file.getvalue().decode("ascii")
    assert len(set(shown[:-1])) == len(symbols)
    assert shown.count("?") == 2, "of a lost session, and of the last character"
