"""Windows that the dispatcher opens ahead of a free slot, and that wait there."""

from __future__ import annotations

import contextlib
import os
import signal
import time
from pathlib import Path

import pytest
from box import Box, bash, frozen, kill, until
from traces import HOLD, NAMES, STARTED, starts


def waiting(box: Box, count: int) -> None:
    """Return when so many windows wait for a slot, beside those of the sessions that run."""
    until(lambda: len(waiters(box)) == count, f"{count} windows wait")


def waiters(box: Box) -> list[int]:
    """The supervisors that wait for a slot."""
    found = []
    for file in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):
            words = file.read_bytes().split(b"\0")
            waits = b"ahead" in words and f"{box.directory}/lib/comborun_host".encode() in words[3:4]
            pid = int(file.parent.name)
            if waits and os.getsid(pid) == pid:  # what it starts looks like it for a moment
                found.append(pid)
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
    waiting(box, 1)
    for pid in waiters(box):
        kill(pid, number)
    box.write("go", "")
    box.await_done()
    assert all(starts(box, name) == ["1"] for name in NAMES[:3])
    assert box.done["succeeded"] == "3"


def test_a_window_that_is_slow_to_go_keeps_its_turn(box: Box) -> None:
    box.environment["COMBORUN_LAUNCH_S"] = "20"
    box.plan({name: bash(STARTED + HOLD) for name in NAMES[:3]}, parallel=1)
    box.start()
    waiting(box, 1)
    (slow,) = waiters(box)
    pane = ("capture-pane", "-p", "-t", f"={NAMES[1]}_{box.id[-4:]}:")
    until(lambda: "waits for a free slot" in box.tmux(*pane).stdout, "it is armed")
    with frozen(slow):
        box.write("go", "")
        until(lambda: len(box.told("^launch")) == 2, "the second one is told to go")
        waiting(box, 2)
        time.sleep(0.3)  # time enough for the third one to hear what was not for it
        assert box.begin(NAMES[2]) is None
    box.await_done()
    assert all(starts(box, name) == ["1"] for name in NAMES[:3])


def test_a_queued_session_that_is_stopped_gives_up_its_window(box: Box) -> None:
    box.plan({name: bash(STARTED + HOLD) for name in NAMES[:3]}, parallel=1)
    box.start()
    waiting(box, 1)
    assert box.stop(NAMES[1]).returncode == 0
    until(lambda: f"{NAMES[1]}_{box.id[-4:]}" not in box.windows(), "its window is gone")
    box.write("go", "")
    box.await_done()
    assert [starts(box, name) for name in NAMES[:3]] == [["1"], [], ["1"]]
