"""The command is split once and filled per argument; bash itself is the judge of the words."""

from __future__ import annotations

import os
import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from comborun.model.command import CommandError, fill, split_command, word

TEXT = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=40)


def arguments_in_bash(words: tuple[str, ...], **environment: str) -> list[str]:
    script = f"words=({' '.join(words)}); printf '%s\\0' \"${{words[@]}}\""
    known = {"PATH": os.environ["PATH"], "HOME": "/home/a user", **environment}
    return subprocess.check_output(["bash", "-c", script], env=known).decode().split("\0")[:-1]


def test_a_leading_tilde_means_the_home_of_the_host() -> None:
    words = fill("~/bin/eval ~/a\\ b --c={policy.c} {policy.c} x~/y", {"policy.c": "~/ckpt/flat.pt"})
    assert arguments_in_bash(words) == [
        "/home/a user/bin/eval",
        "/home/a user/a b",
        "--c=/home/a user/ckpt/flat.pt",
        "/home/a user/ckpt/flat.pt",
        "x~/y",
    ]


@settings(max_examples=60)
@given(st.lists(TEXT, min_size=1, max_size=6))
def test_any_text_reaches_the_program_unchanged(values: list[str]) -> None:
    words = tuple(word("{policy}", {"policy": value}) for value in values)
    expected = ["/home/a user/" + value[2:] if value.startswith("~/") else value for value in values]
    assert arguments_in_bash(words) == expected


@settings(max_examples=60)
@given(TEXT, TEXT)
def test_text_around_a_start_time_placeholder_stays_as_it_is(before: str, after: str) -> None:
    before, after = before.replace("{", "("), after.replace("{", "(")
    if before.startswith("~/"):
        before = "x" + before
    (argument,) = arguments_in_bash((word(f"{before}{{attempt}}{after}", {}),), COMBORUN_ATTEMPT="3")
    assert argument == f"{before}3{after}"


@pytest.mark.parametrize(
    ("command", "operator"),
    [("a | b", "|"), ("a && b", "&&"), ("a > log", ">"), ("a;b", ";"), ("(a)", "("), ("a 2>&1", ">&")],
)
def test_an_unquoted_shell_operator_is_refused(command: str, operator: str) -> None:
    with pytest.raises(CommandError) as caught:
        split_command(command)
    assert operator in caught.value.message
    assert "bash -c" in caught.value.hint


def test_a_server_is_filled_when_a_session_starts_also_in_an_attribute() -> None:
    assert word("--url={server.my-vlm.url}/v1", {}) == '--url="$COMBORUN_SERVER_MY_VLM_URL"/v1'
    assert word("{policy.url}", {"policy.url": "{server.a.host}:{x}"}) == "\"$COMBORUN_SERVER_A_HOST\"':{x}'"
