"""Text of others does nothing to a terminal, and names become names that files, tmux and screen can have."""

from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comborun.errors import UserError
from comborun.text import LONGEST, clean, session_name


def test_a_name_with_nothing_left_is_refused() -> None:
    for name in ("", "..", "/", "日本", "---", "🤖", "\n"):
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
