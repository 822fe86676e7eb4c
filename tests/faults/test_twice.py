"""Two at once of what there should be one of: launches, dispatchers, monitors, messages."""

from __future__ import annotations

from pathlib import Path

from accounts import accounted_for, planned
from box import until
from desk import reported
from ground import Ground, as_user
from happened import events
from matrix import faults

SESSIONS = ("maze_policy1", "maze_policy10")


@faults("twice")
def test_two_launches_are_one_run_and_two_monitors_report_the_same_bytes(ground: Ground) -> None:
    grid = ground.grid("policy1", "policy10")
    words = ("launch", grid, "--multiplexer", ground.cell.multiplexer)
    launches = [ground.begin(*words), ground.begin(*words)]
    assert [one.code() for one in launches] == [0, 0], [one.text for one in launches]
    before = [ground.begun(session) for session in SESSIONS]
    a_second_dispatcher_leaves(ground)

    ground.combo("report", *ground.of_run(), "--output", ground.desk.home / "early", ground.run.id)
    monitors = [ground.begin("monitor", *ground.of_run(), "--plain", ground.run.id) for _ in range(2)]
    for monitor in monitors:
        until(lambda one=monitor: "2 running" in one.text, f"it watches; it says\n{monitor.text}")
    ground.open_gates()
    assert [monitor.code() for monitor in monitors] == [0, 0], [monitor.text for monitor in monitors]

    assert list(ground.run.launches.values()) == [1, 1]
    assert [ground.begun(session) for session in SESSIONS] == before
    accounted_for(ground, planned("policy1", "policy10"))
    made = {reported(monitor.text) for monitor in monitors}
    mine = contents(ground.desk.home / "accounts")
    assert all(contents(report) == mine for report in made)
    assert contents(ground.desk.home / "early") != mine


def a_second_dispatcher_leaves(ground: Ground) -> None:
    """Started by hand beside one that lives."""
    first = ground.dispatcher
    directory = str(ground.run.directory)
    python = (ground.run.directory / "dispatch/python").read_text().strip()
    second = as_user(ground, python, "-I", "-S", f"{directory}/lib/comborun_host", "dispatch", directory)
    assert second.returncode == 75, second.stderr
    assert ground.dispatcher == first


def contents(report: Path) -> dict[str, bytes]:
    files = (file for file in report.rglob("*") if file.is_file())
    return {str(file.relative_to(report)): file.read_bytes() for file in files}


@faults("twice", turn=1)
def test_an_end_that_is_told_twice_calls_for_one_attempt(ground: Ground) -> None:
    ground.launch(ground.grid("crashes", "steady", retry="{crashed: {times: 1, wait: 2 s}}"))
    until(lambda: told(ground, "retry"), lambda: f"it is to start again\n{ground.story}")
    with (ground.run.directory / "dispatch/fifo").open("a") as fifo:
        fifo.write("ended maze_crashes 1\n")
    ground.open_gates()
    assert ground.await_done()["succeeded"] == "2"
    assert (told(ground, "ended"), told(ground, "retry")) == (1, 1)
    accounted_for(ground, planned("crashes", "steady"))


def told(ground: Ground, kind: str) -> int:
    """How often this is told of its first attempt."""
    return sum((one.session, one.attempt) == ("maze_crashes", 1) for one in events(ground.run.directory, kind))
