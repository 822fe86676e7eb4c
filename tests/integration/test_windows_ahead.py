"""Windows that the dispatcher opens ahead of a free slot, and that wait there."""

from __future__ import annotations

import contextlib
import signal
from pathlib import Path

import pytest
from box import Box, bash, frozen, kill, until
from traces import HOLD, NAMES, STARTED, starts


def waiting(box: Box, count: int) -> None:
    """Return when so many windows wait for a slot, beside those of the sessions that run."""
    until(lambda: len(waiters(box)) == count, f"{count} windows wait")


def waiters(box: Box) -> list[int]:
    """The windows that have no supervisor yet."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = file.read_text().split("\0")
            if words[2:3] == [f"{box.directory}/lib/window.sh"] and Path(words[3]).exists():
                found.append(int(file.parent.name))
    return found


def test_a_window_that_waits_for_a_slot_is_no_attempt_yet(any_box: Box) -> None:
    any_box.plan({name: bash(STARTED + HOLD) for name in NAMES}, parallel=2)
    any_box.start()
    waiting(any_box, 2)
    assert len(any_box.told("^launch")) == 2
    assert not any((any_box.attempt(name) / "claim").exists() for name in NAMES[2:])
    seen = any_box.look()["attempts"]
    assert [(one["session"], one["attempt"]) for one in seen] == [("env_p0", 1), ("env_p1", 1)]
    any_box.write("go", "")
    any_box.await_done()
    assert all(starts(any_box, name) == ["1"] for name in NAMES)


def test_windows_that_wait_leave_with_their_dispatcher(any_box: Box) -> None:
    any_box.plan({name: bash(HOLD) for name in NAMES}, parallel=2)
    any_box.start()
    waiting(any_box, 2)
    any_box.kill_dispatcher()
    waiting(any_box, 0)
    any_box.start()
    waiting(any_box, 2)
    kill(any_box.dispatcher, signal.SIGTERM)
    waiting(any_box, 0)
    assert len(any_box.told("^launch")) == 2


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGHUP, signal.SIGKILL])
def test_a_window_that_waits_and_is_closed_costs_its_session_nothing(box: Box, number: signal.Signals) -> None:
    box.plan({name: bash(STARTED + HOLD) for name in NAMES[:3]}, parallel=1)
    box.start()
    until(lambda: starts(box, NAMES[0]) == ["1"], "the first runs: its own window waits no more")
    waiting(box, 1)
    for pid in waiters(box):
        kill(pid, number)
    box.write("go", "")
    box.await_done()
    assert all(starts(box, name) == ["1"] for name in NAMES[:3])
    assert box.done["succeeded"] == "3"


def test_a_window_that_is_frozen_holds_up_no_session(box: Box) -> None:
    box.plan({name: bash(STARTED + HOLD) for name in NAMES[:3]}, parallel=1)
    box.start()
    waiting(box, 1)
    pane = ("capture-pane", "-p", "-t", f"={NAMES[1]}_{box.id[-4:]}:")
    until(lambda: "waits for a free slot" in box.tmux(*pane).stdout, "it says what it waits for")
    (still,) = waiters(box)
    with frozen(still):
        box.write("go", "")
        box.await_done()
        assert all(starts(box, name) == ["1"] for name in NAMES[:3])
        assert f"{NAMES[1]}_{box.id[-4:]}" in box.windows()
    until(lambda: not box.windows(), "it closes, since its supervisor has ended")


def test_a_window_closes_with_a_supervisor_that_is_killed(any_box: Box) -> None:
    any_box.plan({"env_one": bash(STARTED + HOLD)})
    any_box.start()
    kill(any_box.begun("env_one").supervisor, signal.SIGKILL)
    until(lambda: not any_box.windows(), "its window is closed")


def test_a_queued_session_that_is_stopped_gives_up_its_window(box: Box) -> None:
    box.plan({name: bash(STARTED + HOLD) for name in NAMES[:3]}, parallel=1)
    box.start()
    waiting(box, 1)
    assert box.stop(NAMES[1]).returncode == 0
    until(lambda: f"{NAMES[1]}_{box.id[-4:]}" not in box.windows(), "its window is gone")
    box.write("go", "")
    box.await_done()
    assert [starts(box, name) for name in NAMES[:3]] == [["1"], [], ["1"]]
