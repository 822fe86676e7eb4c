"""Patterns of log lines."""

from __future__ import annotations

import re
import time

import pytest

from comborun.rules import patterns
from comborun.rules.patterns import (
    LONGEST_RECORD,
    PatternError,
    compile_late,
    compiled,
    explodes,
    late,
    matches,
    unhurried,
)
from comborun.rules.results.log_patterns import LOG_PATTERNS


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("[[:digit:]]+", "[0-9]"),
        ("x[^[:space:]]", "\\s"),
        (r"\<word", "\\b"),
        ("(?>a)b", "without"),
        ("a++b", "without"),
        ("(", "\\("),
        ("{policy} failed", "\\{"),
        ("a*", "word"),
        ("", "word"),
    ],
)
def test_what_is_not_read_alike_everywhere_is_refused_with_what_to_write(text: str, hint: str) -> None:
    with pytest.raises(PatternError) as error:
        compiled(text)
    assert hint in error.value.hint


def test_of_a_very_long_line_the_beginning_is_looked_at() -> None:
    assert matches(compiled("end"), "x end")
    assert not matches(compiled("end"), "x" * 100_000 + "end")


def test_a_repeat_of_a_repeat_may_take_for_ever_and_repeats_with_something_between_them_do_not() -> None:
    for text in ("(a+)+$", "(a*)*b", r"(\s*\w+)+x", "(a|b+)+c", r"x((\d+)?)*y", "(?:a+){30,}b"):
        assert explodes(text), text
        with pytest.raises(PatternError, match="repeats what repeats already"):
            unhurried(text)
    for text in (r"(\w+ )+done", r"(\d+\.)+\d+", "(a|b){2,5}", "x+?y", "(abc)+", r"\[ *(\d+)/(\d+)\]"):
        assert not explodes(text), text


@pytest.mark.parametrize(
    "text", [r"(\w+).*(\d+).*(\w+) end", r".*episode.*(\d+).*(success|fail).*", "(.*),(.*),(.*),(.*)x"]
)
def test_a_pattern_of_many_repeats_that_a_long_line_would_keep_busy_is_refused(text: str) -> None:
    with pytest.raises(PatternError, match="for a long line that almost matches"):
        unhurried(text)


@pytest.mark.parametrize("text", [*LOG_PATTERNS, r"episode.*(\d+).*(success|fail)", r"([^,]*),([^,]*),(\d+)$"])
def test_a_pattern_as_people_write_them_is_fast_whatever_stands_in_a_line(text: str) -> None:
    assert unhurried(text) == text
    began = time.process_time()
    for line in ("episode " + "1" * 4000, "episode 1 return " * 300, "1," * 2000, "success" + " " * 4000):
        re.search(text, line[:LONGEST_RECORD])
    assert time.process_time() - began < 5


def test_a_late_pattern_is_compiled_at_its_first_use_or_before_a_process_forks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(patterns._Late, "made", [])
    seen: list[str] = []
    compiles = re.compile
    monkeypatch.setattr(patterns.re, "compile", lambda text, flags: seen.append(text) or compiles(text, flags))
    one, other = late("a+"), late("B", re.IGNORECASE)
    assert not seen
    assert one.search("caat")
    assert one.search("a")
    assert seen == ["a+"]
    compile_late()
    assert "B" in seen
    assert other.fullmatch("b")
