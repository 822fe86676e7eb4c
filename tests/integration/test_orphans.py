"""Sessions whose supervisor is gone: they finish in peace, and none of them keeps its run open for ever."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path

import pytest
from box import Box, alive, bash, kill, make_box, until
from test_retries import FIRST
from traces import RECORD

from comborun.model.judging import WatchRules
from comborun.rules.endings.failures import Failure
from comborun.rules.vocabulary import Cause, Completeness, Outcome

HASTE = {"COMBORUN_WATCH_S": "0.1", "COMBORUN_STOP_INT_S": "1", "COMBORUN_STOP_TERM_S": "1"}


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Box]:
    """A run whose sessions all lost their supervisor, at its end."""
    stubborn = bash(FIRST + "trap '' INT TERM; sleep 600", more={"watch": WatchRules(1)})
    leaves = bash(RECORD + "setsid sleep 600 & sleep 2", results=("*.jsonl",))
    hangs = bash(RECORD + "exec sleep 600", results=("*.jsonl",), more={"watch": WatchRules(hang_s=1)})
    with make_box(tmp_path_factory.mktemp("orphans"), "tmux") as box:
        box.environment |= HASTE
        box.plan({"leaves": leaves, "hangs": hangs, "is_stubborn": stubborn}, policy={"retry_stalled": 1})
        box.start()
        for name in box.names:
            box.orphan(name)
        box.await_done()
        assert len(box.told("^orphaned ")) == len(box.names), "no supervisor ended its session first"
        yield box


def test_an_orphan_that_hangs_after_its_work_is_ended_and_has_succeeded(done: Box) -> None:
    end = done.ended("hangs")
    assert (end.cause, end.completeness, end.outcome) == (Cause.HUNG, Completeness.COMPLETE, Outcome.SUCCEEDED)
    assert not alive(done.begun("hangs").pid)


def test_an_orphan_that_makes_no_progress_is_ended_and_tried_again(done: Box) -> None:
    end = done.ended("is_stubborn")
    assert (end.cause, end.failure) == (Cause.STALLED, Failure.STALLED)
    assert done.ended("is_stubborn", 2).clean


def test_what_an_orphan_leaves_behind_does_not_hold_its_run_open(done: Box) -> None:
    assert done.ended("leaves").outcome is Outcome.SUCCEEDED


def test_an_orphan_goes_on_and_the_watch_over_it_leaves_with_its_dispatcher(box: Box) -> None:
    box.environment |= HASTE
    box.plan({"env_one": bash("exec sleep 600", more={"watch": WatchRules(300)})})
    box.start()
    pid = box.orphan("env_one").pid
    script = str(box.directory / "lib/comborun_host")
    until(lambda: watches(script), "it is watched")
    kill(box.dispatcher, signal.SIGKILL)
    until(lambda: not watches(script), "the watch has left")
    box.start()
    until(lambda: box.told("^adopted env_one 1 life=orphaned"), "a new dispatcher takes it up")
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
