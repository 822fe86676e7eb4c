"""The disk of the runs is full at each kind of write: nothing that was computed is lost, and with room it goes on.

A file system of its own for the runs, filled to the last byte, and no file has room left in its last page.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from accounts import Key, accounted_for, planned
from box import alive, kill, until
from ground import Ground
from matrix import faults

SIZE = "8m"
PAGE = 4096
NO_SPACE = ("No space left", "disk is full", "can't write")


@pytest.fixture
def small_disk(ground: Ground) -> Iterator[Path]:
    """Where the runs are; `full` fills it."""
    if os.geteuid():
        pytest.skip("only root can mount a file system to fill")
    options = f"size={SIZE},uid={ground.user},gid={ground.user},mode=755"
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(ground.root)]
    mounted = subprocess.run(command, capture_output=True, text=True, check=False)
    if mounted.returncode:
        pytest.skip(f"no tmpfs can be mounted here: {mounted.stderr.strip()}")
    yield ground.root
    ground.kill_everything()
    subprocess.run(["umount", "-l", str(ground.root)], check=False)


@contextlib.contextmanager
def full(disk: Path) -> Iterator[None]:
    """No page is left, and none that has room; what a record that is replaced gives back may still be taken."""
    for file in [*disk.glob("*/dispatch/events.jsonl"), *disk.glob("*/sessions/*/attempt-*/log")]:
        with file.open("a") as stream:
            stream.write("0 padding".ljust(-file.stat().st_size % PAGE or PAGE, "-")[:-1] + "\n")
    filler = disk / ".filler"
    subprocess.run(["dd", "if=/dev/zero", f"of={filler}", f"bs={PAGE}"], stderr=subprocess.DEVNULL, check=False)
    try:
        yield
    finally:
        filler.unlink()


def whole_or_absent(record: Path) -> None:
    text = record.read_text() if record.exists() else None
    assert text is None or text.endswith("\n"), f"{record.name} is there in part: {text!r}"


def launching(ground: Ground, disk: Path) -> set[Key]:
    grid = ground.grid("policy1")
    with full(disk):
        assert "the disk is full" in ground.combo("launch", grid, codes=(2,))
        launch = ground.begin("launch", grid, "--force")
        assert launch.code() not in {0, 70}
        assert any(words in launch.text for words in NO_SPACE), launch.text
        assert not list(disk.glob("little-*")), "what is not whole is no run"
    ground.launch(grid)
    ground.open_gates()
    return planned("policy1")


def writing_rows(ground: Ground, disk: Path) -> set[Key]:
    """Rows and log of one session, then its end, the claim and the begin of the next, and the events of all that."""
    ground.launch(ground.grid("bulky-1", "bulky-2", limits="{parallel: 1, attempts: 4}"))
    begin = ground.begun("maze_bulky-1")
    with full(disk):
        ground.open_gates()
        until(lambda: not alive(begin.pid), "its row does not fit")
        until(lambda: tried(ground, "maze_bulky-2"), lambda: f"the next one tries to begin\n{ground.story}")
        whole_or_absent(ground.run.directory / "sessions/maze_bulky-2/attempt-1/end")
    return planned("bulky-1", "bulky-2")


def tried(ground: Ground, session: str) -> bool:
    """Whether somebody wanted to start it, or nobody is left who could."""
    return (ground.run.directory / f"sessions/{session}/attempt-1").exists() or not alive(ground.dispatcher)


def ending(ground: Ground, disk: Path) -> set[Key]:
    ground.launch(ground.grid("waits"))
    begin = ground.begun("maze_waits")
    ground.open_gates()
    until(lambda: ground.run.records == 4, "all is recorded")
    with full(disk):
        ground.open_gates("maze_waits.end")
        until(lambda: not alive(begin.pid), "the program ends")
        until(lambda: not alive(begin.supervisor) or ground.marked() == [], "nothing of the session is left")
        whole_or_absent(ground.run.directory / "sessions/maze_waits/attempt-1/end")
    return planned("waits")


def being_done(ground: Ground, disk: Path) -> set[Key]:
    waits = f"bash -c 'until [ -e ~/{ground.gates.name}/after ]; do sleep 0.05; done'"
    ground.launch(ground.grid("policy1", after=f'"{waits}"'))
    ground.open_gates()
    begin = ground.begun_at("after", 1)
    with full(disk):
        (ground.gates / "after").touch()
        until(lambda: not alive(begin.pid), "the command for the end has ended")
        whole_or_absent(ground.run.directory / "dispatch/done")
    return planned("policy1")


def holding_and_waiting(ground: Ground, disk: Path) -> set[Key]:
    ground.launch(ground.grid("policy1", "policy10", retry="{killed: {times: 1, wait: 2 s}}"))
    victim, other = (ground.begun(f"maze_{policy}") for policy in ("policy1", "policy10"))
    with full(disk):
        kill(victim.pid, signal.SIGKILL)
        until(lambda: not alive(victim.pid), "it is to start again")
        pause = ground.begin("pause", *ground.of_run(), ground.run.id)
        assert pause.code() not in {0, 70}
        assert any(words in pause.text for words in NO_SPACE), pause.text
        whole_or_absent(ground.run.directory / "dispatch/hold")
        assert alive(other.pid)
    ground.open_gates()
    return planned("policy1", "policy10")


def reporting(ground: Ground, disk: Path) -> set[Key]:
    ground.launch(ground.grid("policy1"))
    ground.open_gates()
    ground.await_done()
    with full(disk):
        report = ground.begin("report", *ground.of_run(), "--output", disk / "report", ground.run.id)
        assert report.code() not in {0, 70}
        assert any(words in report.text for words in NO_SPACE), report.text
        assert not (disk / "report/report.html").exists()
    return planned("policy1")


WRITES: dict[str, Callable[[Ground, Path], set[Key]]] = {
    "launching": launching,
    "writing rows": writing_rows,
    "ending": ending,
    "being done": being_done,
    "holding and waiting": holding_and_waiting,
    "reporting": reporting,
}
AGAIN = {"writing rows", "holding and waiting"}
"""where work is done again, and not just judged"""


@faults("full disk", list(WRITES))
def test_a_run_goes_on_when_there_is_room_again_after(ground: Ground, fault: str, small_disk: Path) -> None:
    episodes = WRITES[fault](ground, small_disk)
    done = brought_to_end(ground)
    assert done["failed"] == done["partial"] == done["lost"] == "0", ground.story
    attempts = len(list(ground.run.directory.glob("sessions/maze_*/attempt-*/begin")))
    assert (attempts > int(done["succeeded"])) == (fault in AGAIN), ground.story
    accounted_for(ground, episodes)


def brought_to_end(ground: Ground) -> dict[str, str]:
    """By `combo resume`: once for what waits, and once more for a session that the full disk made fail meanwhile."""
    for _ in range(2):
        ground.combo("resume", *ground.of_run(), ground.run.id)
        done = ground.await_done()
    return done
