"""The last line of a log, and nothing that could act on a terminal."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from comborun.monitor.wording import LONGEST, last_line, visible


@pytest.mark.parametrize(
    ("log", "shown"),
    [
        (b"", ""),
        (b"first\nsecond\n", "second"),
        (b"first\n   \n", "first"),
        (b"\xff\xfe binary \x00\x01\n", "�� binary"),
        ("cut in a ü"[:-1].encode() + "ü".encode()[:1], "cut in a �"),
    ],
)
def test_the_last_line_that_shows_anything(log: bytes, shown: str) -> None:
    assert last_line(log) == shown


@pytest.mark.parametrize(
    ("line", "shown"),
    [
        ("  3%|▎ | 3/100\r 62%|██▍ | 62/100", "62%|██▍ | 62/100"),
        ("50 %\r", "50 %"),
        ("a\tb", "a b"),
        ("x" * 100_000, "x" * (LONGEST - 1) + "…"),
        ("\x1b[1;31merror\x1b[0m: bad", "error: bad"),
        ("\x1b]0;evil title\x07text", "text"),
        ("\x1b[?1049htext\x1b(B", "text"),
        ("safe\u202etxt.exe", "safetxt.exe"),
        ("no\u200bbreak\u2028here\x7f", "nobreakhere"),
    ],
)
def test_nothing_is_left_that_is_overwritten_too_long_or_acts_on_a_terminal(line: str, shown: str) -> None:
    assert visible(line) == shown


PIECES = st.sampled_from(
    ["\r", "\b", "\x1b", "\x1b[", "\x1b]", "K", "5", ";", "G", "C", "D", "\x07", "\u202e", "é", "日"]
)


@given(st.one_of(st.text(), st.lists(PIECES).map("".join)))
@example("\x1b[²K")
@example("\x1b[٣C")
def test_any_line_becomes_one_printable_line(line: str) -> None:
    shown = visible(line)
    assert len(shown) <= LONGEST
    assert not [mark for mark in shown if unicodedata.category(mark) in ("Cc", "Cf", "Cs", "Zl", "Zp")]
    assert visible(shown) == shown
