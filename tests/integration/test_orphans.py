"""Sessions whose supervisor is gone: they finish in peace, and none of them keeps its run open for ever."""

from __future__ import annotations

import signal
from collections.abc import Callable
from pathlib import Path

import pytest
from box import Box, Script, alive, bash, kill, until
from test_retries import FIRST
from traces import RECORD

from comborun.rules.words import Cause, Completeness, Failure, Outcome


@pytest.fixture
def orphaned(box: Box) -> Callable[..., None]:
    box.environment |= {"COMBORUN_WATCH_S": "0.1", "COMBORUN_GRACE_S": "1"}
    box.environment |= {"COMBORUN_STOP_INT_S": "1", "COMBORUN_STOP_TERM_S": "1"}

    def start(script: Script, **policy: int) -> None:
        """Start the session and kill its supervisor."""
        box.plan({"env_one": script}, policy=policy)
        box.start()
        box.orphan("env_one")

    return start


def test_an_orphan_that_hangs_after_its_work_is_ended_and_has_succeeded(
    box: Box, orphaned: Callable[..., None]
) -> None:
    orphaned(bash(RECORD + "exec sleep 600", results=("*.jsonl",), constants=("hang_s=1",)))
    box.await_done()
    end = box.ended("env_one")
    assert (end.cause, end.completeness, end.outcome) == (Cause.HUNG, Completeness.COMPLETE, Outcome.SUCCEEDED)
    assert not alive(box.begun("env_one").pid)


def test_an_orphan_that_makes_no_progress_is_ended_and_tried_again(box: Box, orphaned: Callable[..., None]) -> None:
    orphaned(bash(FIRST + "trap '' INT TERM; sleep 600", constants=("stall_s=1",)), retry_stalled=1)
    box.await_done()
    end = box.ended("env_one")
    assert (end.cause, end.failure) == (Cause.STALLED, Failure.STALLED)
    assert box.ended("env_one", 2).clean


def test_what_an_orphan_leaves_behind_does_not_hold_its_run_open(box: Box, orphaned: Callable[..., None]) -> None:
    orphaned(bash(RECORD + "setsid sleep 600 & sleep 1", results=("*.jsonl",)))
    box.await_done()
    assert box.ended("env_one").outcome is Outcome.SUCCEEDED


def test_an_orphan_goes_on_and_the_watch_over_it_leaves_with_its_dispatcher(
    box: Box, orphaned: Callable[..., None]
) -> None:
    orphaned(bash("exec sleep 600", constants=("stall_s=300",)))
    script = str(box.directory / "lib/comborun_host")
    until(lambda: watches(script), "it is watched")
    pid = box.begun("env_one").pid
    kill(box.dispatcher, signal.SIGKILL)
    until(lambda: not watches(script), "the watch has left")
    box.start()
    until(lambda: box.told("^adopted env_one 1 orphaned"), "a new dispatcher takes it up")
    assert alive(pid)
    box.stop()
    assert not alive(pid)


def watches(script: str) -> list[int]:
    """The processes that watch over an orphan of this run."""
    found = []
    for entry in Path("/proc").glob("[0-9]*/cmdline"):
        try:
            words = entry.read_bytes().decode(errors="replace").split("\0")
        except OSError:
            continue
        if script in words and "orphan" in words:
            found.append(int(entry.parts[2]))
    return found
