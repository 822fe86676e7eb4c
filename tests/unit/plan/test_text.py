"""Text of others does nothing to a terminal, and names become names that files, tmux and screen can have."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comborun.errors import UserError
from comborun.text import LONGEST, clean, harmless, session_name


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\x1b[31mred\x1b[0m", "red"),
        ("\x1b]0;owned\x07title", "title"),
        ("a\rb\x08c\x00d", "abcd"),
        ("right\u202eleft", "rightleft"),
    ],
)
def test_what_acts_on_a_terminal_is_left_out(text: str, shown: str) -> None:
    assert harmless(text) == shown


@pytest.mark.parametrize(
    ("written", "cleaned"),
    [
        ("café", "cafe"),
        ('it\'s "quoted"', "it-s-quoted"),
    ],
)
def test_a_name_keeps_what_a_file_name_can_hold(written: str, cleaned: str) -> None:
    assert clean(written) == cleaned


@pytest.mark.parametrize("name", ["", "..", "/", "日本", "---", "🤖", "\n"])
def test_a_name_with_nothing_left_is_refused(name: str) -> None:
    with pytest.raises(UserError, match="no letter or digit"):
        clean(name)


@given(st.text())
def test_whatever_is_cleaned_is_safe_and_stays_as_it_is(name: str) -> None:
    try:
        cleaned = clean(name)
    except UserError:
        return
    assert re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_-]*", cleaned)
    assert clean(cleaned) == cleaned


def test_a_long_name_is_cut_and_ends_with_the_same_digest_always() -> None:
    name = session_name("e" * 300, "p")
    assert name == "e" * 51 + "-1b747b9e"
    assert len(name) == LONGEST
