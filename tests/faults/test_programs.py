"""Programs whose exit codes lie, that hang, crash, leave children or garble results: each is told as it really was."""

from __future__ import annotations

import contextlib
import fcntl
import os
import secrets
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from accounts import accounted_for, planned
from ground import Ground, set_login_environment
from matrix import faults

ENDS = {
    "steady": [("complete", "exited", "")],
    "silent": [("none", "exited", "no_result")],
    "segfaults": [("complete", "signal", "")],
    "lies": [("complete", "exited", "")],
    "lingers": [("complete", "hung", "")],
    "hangs": [("partial", "stalled", "stalled"), ("complete", "exited", "")],
    "deaf": [("partial", "stalled", "stalled"), ("complete", "exited", "")],
    "family": [("complete", "exited", "")],
    "greedy": [("partial", "host_memory", "host_memory"), ("complete", "exited", "")],
    "torn": [("partial", "signal", "killed"), ("complete", "exited", "")],
    "garbled": [("complete", "exited", "")],
    "crashes": [("partial", "signal", "crashed"), ("complete", "exited", "")],
    "appends": [("partial", "signal", "crashed"), ("complete", "exited", "")],
    "smears": [("partial", "signal", "crashed"), ("partial", "exited", "no_result")],
}
"""manner -> completeness, cause and class of its attempts, in a run that knows when to call a program stalled"""


@faults("programs")
@pytest.mark.usefixtures("kernel_that_kills_nobody")
def test_what_a_program_computed_is_told_once_and_how_it_ended_is_told_as_it_was(ground: Ground) -> None:
    ground.launch(ground.grid(*ENDS, episodes=6, limits="{parallel: 6, attempts: 4, stall_after: 3 s, breaker: 0}"))
    ground.open_gates()
    done = ground.await_done()
    counted = done["succeeded"], done["partial"], done["failed"]
    assert counted == (str(len(ENDS) - 2), "1", "1"), ground.story
    assert {manner: ends(ground, manner) for manner in ENDS} == ENDS
    assert ground.record("sessions/maze_greedy/attempt-2/grant").get("alone") == "run"
    silent = planned("silent", episodes=6)
    document = accounted_for(ground, planned(*ENDS, episodes=6), {*silent, ("smears", "maze", 3)})
    warned = {combo["policy"] for combo in document["combos"] if combo["warnings"]}
    assert {"segfaults", "lies", "lingers"} <= warned

    ground.combo("resume", *ground.of_run(), ground.run.id)
    ground.open_gates()
    ground.await_done()
    accounted_for(ground, planned(*ENDS, episodes=6), silent)


def ends(ground: Ground, manner: str) -> list[tuple[str, str, str]]:
    attempts = sorted(ground.run.directory.glob(f"sessions/maze_{manner}/attempt-*/end"))
    told = [ground.end(f"maze_{manner}", number) for number in range(1, len(attempts) + 1)]
    return [(end["completeness"], end["cause"], end["class"]) for end in told]


@faults("programs")
def test_a_program_that_its_control_group_kills_for_memory_starts_again_alone(ground: Ground) -> None:
    with kernel_lock(fcntl.LOCK_EX), memory_group(ground) as group:
        ground.environment["MEMORY_GROUP"] = str(group)
        set_login_environment(ground)
        ground.launch(ground.grid("killed", "steady"))
        ground.open_gates()
        assert ground.await_done()["succeeded"] == "2", ground.story
        assert ends(ground, "killed") == [("partial", "host_memory", "host_memory"), ("complete", "exited", "")]
        accounted_for(ground, planned("killed", "steady"))


@pytest.fixture
def kernel_that_kills_nobody() -> Iterator[None]:
    """No test beside this one has the kernel kill for memory: it counts for the whole machine whom it kills."""
    with kernel_lock(fcntl.LOCK_SH):
        yield


@contextlib.contextmanager
def kernel_lock(kind: int) -> Iterator[None]:
    """Shared by those whom a kill for memory would mislead, exclusive for those who cause one."""
    with (Path(tempfile.gettempdir()) / "comborun-tests-memory-kills").open("w") as file:
        fcntl.flock(file, kind)
        yield


@contextlib.contextmanager
def memory_group(ground: Ground) -> Iterator[Path]:
    """A control group that the user may enter, with little memory in it; skips where there can be none."""
    parents = (Path("/sys/fs/cgroup/memory"), Path("/sys/fs/cgroup"))
    parent, limit = next(
        (
            (parent, name)
            for parent, name in zip(parents, ("memory.limit_in_bytes", "memory.max"), strict=True)
            if (parent / "cgroup.procs").exists()
        ),
        (None, ""),
    )
    if parent is None or os.geteuid():
        pytest.skip("only root can make a control group, and only where they are mounted")
    group = parent / f"combo-{secrets.token_hex(4)}"
    try:
        group.mkdir()
        (group / limit).write_text(str(64 << 20))
        os.chown(group / "cgroup.procs", ground.user, ground.user)
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")
    try:
        yield group
    finally:
        deadline = time.monotonic() + 10
        while (group / "cgroup.procs").read_text() and time.monotonic() < deadline:
            time.sleep(0.02)
        group.rmdir()
