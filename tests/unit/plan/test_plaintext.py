"""Text from logs and hosts does nothing to the terminal that shows it."""

from __future__ import annotations

import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comborun.text import harmless


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;owned\x07title", "title"),
        ("a\rb\x08c\x00d", "abcd"),
        ("cut \x1b[3", "cut "),
        ("right\u202eleft", "rightleft"),
    ],
)
def test_what_acts_on_a_terminal_is_left_out(text: str, shown: str) -> None:
    assert harmless(text) == shown


def test_a_carriage_return_may_be_kept_for_progress_bars() -> None:
    assert harmless("10 %\r20 %\x1b[K", keep="\r") == "10 %\r20 %"


@given(st.text())
def test_no_control_character_is_ever_let_through(text: str) -> None:
    assert all(one in "\n\t" or unicodedata.category(one) not in {"Cc", "Cf"} for one in harmless(text))
