"""What is on record is no longer so: pids that are another's, a folder that was moved."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator

import pytest
from accounts import accounted_for, planned
from box import alive
from ground import Ground, rewrite
from matrix import faults

SESSIONS = ("maze_policy1", "maze_policy10")


@pytest.fixture
def bystander(ground: Ground) -> Iterator[subprocess.Popen[bytes]]:
    """A process of the same user that has nothing to do with the run."""
    process = subprocess.Popen(["sleep", "600"], start_new_session=True, user=ground.user)
    yield process
    process.kill()
    process.wait()


@faults("records")
def test_a_pid_that_is_another_process_now_is_left_alone(ground: Ground, bystander: subprocess.Popen[bytes]) -> None:
    """Neither a launch nor a stop signals it, and the session is started again."""
    grid = ground.grid("policy1", "policy10")
    ground.launch(grid)
    for session in SESSIONS:
        ground.begun(session)
    ground.kill_everything()
    directory = ground.run.directory
    for record in [*directory.glob("sessions/*/attempt-1/begin"), *directory.glob("sessions/*/attempt-1/claim")]:
        rewrite(record, pid=bystander.pid, supervisor=bystander.pid)
    rewrite(directory / "dispatch/dispatcher", pid=bystander.pid)
    ground.combo("stop", *ground.of_run(), ground.run.id)
    assert alive(bystander.pid)
    ground.launch(grid)
    ground.open_gates()
    assert ground.await_done()["succeeded"] == "2", ground.story
    accounted_for(ground, planned("policy1", "policy10"))
    assert alive(bystander.pid)


@faults("records", turn=1)
def test_a_run_directory_that_was_moved_is_watched_resumed_and_reported_there(ground: Ground) -> None:
    ground.launch(ground.grid("policy1", "policy10"))
    for session in SESSIONS:
        ground.begun(session)
    ground.open_gates(SESSIONS[0])
    ground.end(SESSIONS[0])
    ground.combo("stop", *ground.of_run(), ground.run.id)
    moved = ground.root.with_name(f"moved-{ground.token}")
    ground.root.rename(moved)
    ground.root = moved
    named = [*ground.of_run(), ground.run.id]
    assert "1 succeeded" in ground.combo("status", *named, codes=(0, 1))
    ground.combo("resume", *named)
    ground.open_gates()
    assert ground.await_done()["succeeded"] == "2", ground.story
    accounted_for(ground, planned("policy1", "policy10"))
