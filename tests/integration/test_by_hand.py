"""`bash session.sh`: the page of a session, in a terminal without comborun."""

from __future__ import annotations

import subprocess

from box import Box, bash

SHOW = 'echo "$COMBORUN_FIRST_EPISODE-$COMBORUN_LAST_EPISODE of $COMBORUN_EPISODES"; touch "$COMBORUN_OUTPUT_DIR/there"'


def in_a_terminal(box: Box, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["bash", "session.sh"],
        cwd=box.directory / "sessions/stairs_flat",
        env={**box.environment, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_a_session_runs_by_hand_in_any_terminal_and_shows_its_output(box: Box) -> None:
    box.plan({"stairs_flat": bash(SHOW, first=5, count=10, setup="export A=b")})
    shown = in_a_terminal(box)
    assert (shown.returncode, shown.stdout, shown.stderr) == (0, "5-14 of 10\n", "")
    assert (box.directory / "sessions/stairs_flat/by-hand/there").exists()
    assert not box.attempt("stairs_flat").exists(), "it is on no record"


def test_what_a_start_would_grant_can_be_given_by_hand(box: Box) -> None:
    box.plan({"stairs_flat": bash(SHOW + '; echo "$COMBORUN_PORT"', first=5, count=10)})
    out = box.directory / "elsewhere"
    shown = in_a_terminal(box, COMBORUN_OUTPUT_DIR=str(out), COMBORUN_EPISODES="2", COMBORUN_PORT="7777")
    assert shown.stdout == "5-6 of 2\n7777\n"
    assert (out / "there").exists()


def test_a_setup_that_fails_is_told_and_nothing_runs(box: Box) -> None:
    box.plan({"stairs_flat": bash("echo ran", setup="true\nfalse")})
    shown = in_a_terminal(box)
    assert (shown.returncode, shown.stdout) == (78, "")
    assert shown.stderr == "comborun: setup line 2 failed with code 1: false\n"
