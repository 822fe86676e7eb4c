"""The host's clock is set by an hour, forwards and backwards, while a run works.

Nobody may set the clock of the machine that tests run on, so every process of the run gets one that can be set: a
library that is preloaded. Times of files go by the true clock, so that both disagree besides.
"""

from __future__ import annotations

import shutil
import signal
import subprocess
from pathlib import Path

import pytest
from accounts import accounted_for, planned
from box import alive, kill, until
from desk import Desk
from ground import Ground, set_login_environment
from matrix import faults
from test_host_flow import far, far_grid, far_host

__all__ = ["far", "far_host"]

HOUR = 3600
SOURCE = Path(__file__).with_name("clock.c")
SESSIONS = ("maze_policy1", "maze_policy10")
AGAIN = """\
[[ ${LD_PRELOAD-} || $0 != */session.sh ]] || LD_PRELOAD=%s exec "$BASH" "$0" "$@"
"""
"""for bash to read before a script: screen, which is setgid, drops what is preloaded"""


@pytest.fixture(scope="session")
def clock_library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    if not shutil.which("gcc"):
        pytest.skip("no gcc here, for a clock that can be set")
    library = tmp_path_factory.mktemp("clock") / "clock.so"
    command = ["gcc", "-shared", "-fPIC", "-O1", "-Wall", "-o", str(library), str(SOURCE), "-ldl"]
    subprocess.run(command, check=True, timeout=60)
    return library


@faults("records", [HOUR, -HOUR])
def test_a_clock_that_is_set_by_seconds(ground: Ground, fault: int, clock_library: Path) -> None:
    """Nothing is called stalled or over its time, and a retry that a new dispatcher starts waits no hour."""
    clock = preload(ground, clock_library)
    grid = ground.grid(
        "policy1",
        "policy10",
        limits="{parallel: 2, attempts: 4, stall_after: 5 min, max_time: 10 min}",
        retry="{killed: {times: 1, wait: 3 s}}",
    )
    ground.launch(grid)
    first, second = (ground.begun(session) for session in SESSIONS)
    clock.write_text(str(fault))
    kill(first.pid, signal.SIGKILL)
    end = ground.end(SESSIONS[0])
    shift = float(end["ended"]) - float(end["started"])
    assert abs(shift - fault) < HOUR / 2, "the clock had been set when that was written"
    kill(ground.dispatcher, signal.SIGKILL)
    clock.unlink()
    ground.launch(grid)
    ground.begun(SESSIONS[0], 2)
    assert alive(second.pid), "the other one works on"
    ground.open_gates()
    assert ground.await_done()["succeeded"] == "2", ground.story
    assert len(ground.run.begins) == 3
    accounted_for(ground, planned("policy1", "policy10"))


def test_ages_and_what_is_left_hold_where_the_laptops_clock_is_off(
    far: Desk, clock_library: Path, tmp_path: Path
) -> None:
    far.combo("launch", far_grid(far, pace="0.5", policies="[good]", environments="[maze]", episodes="200"))
    until(lambda: far.json("status")["estimated_end"], "its end can be told")
    assert "clock of testbox" not in far.combo("status").stdout
    clock = tmp_path / "clock"
    far.environment |= {"LD_PRELOAD": str(clock_library), "FAULT_CLOCK": str(clock)}
    for seconds in ("600", "-600"):
        clock.write_text(seconds)
        seen = far.json("status")
        assert 0 < seen["seconds"] < 120
        assert 0 <= seen["sessions"][0]["idle_seconds"] < 120
        assert seen["estimated_end"] is None or 0 < seen["estimated_end"] - seen["now"] < 300
    assert "the clock of testbox is 10 min" in far.combo("status").stdout
    (run,) = far.json("runs")
    assert 0 < run["seconds"] < 120
    for name in ("LD_PRELOAD", "FAULT_CLOCK"):
        del far.environment[name]
    far.combo("stop", "--yes")


def preload(ground: Ground, clock_library: Path) -> Path:
    """Give the host the clock; the file that sets it."""
    again, clock = ground.gates / "again.sh", ground.gates / "clock"
    # what is preloaded must not have blanks in its name, and another user may not see our folder
    library = clock_library if ground.cell.place == "local" else shutil.copy(clock_library, ground.gates)
    again.write_text(AGAIN % library)
    ground.environment |= {"LD_PRELOAD": str(library), "BASH_ENV": str(again), "FAULT_CLOCK": str(clock)}
    set_login_environment(ground)
    return clock
