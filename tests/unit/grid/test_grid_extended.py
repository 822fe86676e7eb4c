"""Regular expressions for grep -E: what is accepted means the same there, the rest is refused with a spelling."""

from __future__ import annotations

import os
import subprocess

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from comborun.errors import UserError
from comborun.grid.keys.extended import check_extended


def grep(pattern: str, text: str) -> tuple[int, str]:
    """Exit status (0 found, 1 not found, 2 no pattern) and what grep complains of."""
    bytewise = {**os.environ, "LC_ALL": "C"}  # what a host says over ssh where nothing else is set
    command = ["grep", "-qE", "-e", pattern]
    done = subprocess.run(command, input=text, capture_output=True, text=True, check=False, env=bytewise)
    return done.returncode, done.stderr


@pytest.mark.parametrize(
    ("pattern", "line"),
    [
        ("CUDA.*(out of memory|OOM)", "CUDA error: OOM"),
        (r"\[ERROR\] +[0-9]{2,}", "[ERROR]  17"),
        (r"\bOOM\b", "an OOM here"),
        ("[]a]x", "]x"),
        ("[^]]x", "ax"),
        ("[[:space:]][[:alnum:]_]+$", "a b_c"),
        (r"Saved .*/summary\.json", "Saved /tmp/summary.json"),
        (r"[\\/]logs", "C:\\logs"),
        ("^(a|b)?c", "c"),
        ("größe", "die größe"),
    ],
)
def test_what_grep_reads_alike_is_accepted(pattern: str, line: str) -> None:
    assert check_extended(pattern) == pattern
    assert grep(pattern, line) == (0, "")


@pytest.mark.parametrize(
    ("pattern", "words", "hint"),
    [
        (r"took \d+ s", r"\d means nothing", "[0-9]"),
        (r"\D", r"\D means nothing", "[^0-9]"),
        (r"[\d.]+", r"\d is two characters", "0-9"),
        (r"[^\s]", r"\s is two characters", "[:space:]"),
        (r"a\tb", r"\t means nothing", "[[:blank:]]"),
        (r"\x1b", r"\x means nothing", "are escaped"),
        (r"(a)\1", r"\1 refers back", "write the text out"),
        (r"\-", "needs no backslash", "write -"),
        ("a\\", "escapes nothing at the end", "\\\\"),
        (".*?x", "no lazy form", "remove it"),
        ("a++", "repeats twice", "remove it"),
        ("a(?=b)", "looks around", "`ignore`"),
        ("(?<!a)b", "looks around", "`ignore`"),
        ("(?:a|b)", "is Python's", "write ("),
        ("(?P<n>a)", "names a group", "write ("),
        ("(?i)oom", "is Python's", "[Oo]ut of memory"),
        ("*.log", "has nothing to repeat", r"\*"),
        ("(+a)", "has nothing to repeat", r"\+"),
        ("{policy} failed", "{policy} is no number of repeats", r"\{"),
        ("a{3,2}", "{3,2} is no number of repeats", r"\{"),
        ("a{256}", "{256} is no number of repeats", r"\{"),
        ("[a", "[ is never closed", r"\["),
        ("[[:alpah:]]", "[:alpah:] is no class", "alpha"),
        ("a[:space:]b", "without brackets around it", "[[:space:]]"),
        ("gr[öo]sse", "several bytes", "(ä|ö)"),
        ("é+", "a part of a letter", "(é)+"),
        ("[[=a=]]", "collating", "themselves"),
        (r"[^\]]+x", "ends at its first ]", "put ] first"),
        ("[z-a]", "no extended regular expression", "grep -E"),
        ("(a", "no extended regular expression", "grep -E"),
        ("a)", "no extended regular expression", "grep -E"),
        (".*", "finds every line", "name a word"),
        ("x|", "finds every line", "name a word"),
    ],
)
def test_what_grep_reads_otherwise_is_refused_with_what_to_write(pattern: str, words: str, hint: str) -> None:
    with pytest.raises(UserError) as refused:
        check_extended(pattern)
    assert words in refused.value.message
    assert hint in refused.value.hint


PIECES = st.sampled_from(
    ["a", "b", " ", ".", "*", "+", "?", "|", "(", ")", "[", "]", "^", "$", "\\", "{", "}", "1", ",", "-", "d", "s", ":",
     "[:space:]", "[ab]", "(a|b)", "{2}", "\\.", "\\b", "/"]
)  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(st.lists(PIECES, min_size=1, max_size=8).map("".join))
def test_whatever_is_accepted_is_a_pattern_for_grep_without_a_complaint(pattern: str) -> None:
    try:
        check_extended(pattern)
    except UserError:
        assume(False)
    status, complaint = grep(pattern, "\n")
    assert (status, complaint) == (1, "")
