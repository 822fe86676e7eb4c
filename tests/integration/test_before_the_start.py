"""What a launch does before the first session starts, from the grid to the manifest, and in how many round trips."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from box import until
from desk import Desk

from comborun.api.launching import start_run
from comborun.api.named import GridChoice, HostChoice
from comborun.remote.preparing import LaunchRequest
from comborun.remote.transport import Completed, LocalTransport
from comborun.text import MIB

SCRIPT = """#!/bin/bash\r
set -euo pipefail\r
printf '{"episode": 0, "success": true}\\n' >"$1/records.jsonl"\r
echo "token is $(printf %s "$TOKEN" | wc -c) bytes"\r
"""
GRID = """\
name: shipped
policies: [good]
environments: [maze, field]
episodes: 1
command: bash "run me.sh" {output_dir}
workdir: ~/deployed
sync: [{from: project, to: ~/deployed, exclude: [notes]}]
replaces: [eval4env]
secrets: {TOKEN: laptop}
"""


@pytest.fixture
def project(desk: Desk) -> Iterator[Path]:
    """A grid beside a repository with a script that was written on Windows."""
    folder = desk.home / "project"
    folder.mkdir()
    (folder / "run me.sh").write_bytes(SCRIPT.encode())
    (desk.home / "grid.yaml").write_text(GRID)
    git(folder, "init", "-q")
    git(folder, "add", ".")
    git(folder, "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-qm", "One")
    sockets = tempfile.mkdtemp(prefix="ct")
    desk.environment |= {"TOKEN": "twelve bytes", "TMUX_TMPDIR": sockets}
    yield folder
    for socket in ("default", desk.environment["COMBORUN_TMUX_SOCKET"]):  # sessions outlive it; the desk ends them
        kill = ["tmux", "-L", socket, "kill-server"]
        subprocess.run(kill, env=desk.environment, capture_output=True, check=False)
    shutil.rmtree(sockets, ignore_errors=True)


def git(folder: Path, *arguments: str) -> str:
    done = subprocess.run(["git", "-C", folder, *arguments], capture_output=True, text=True, check=True)
    return done.stdout.strip()


def launch(desk: Desk, *options: str) -> tuple[dict[str, list[str]], Path]:
    record = desk.json("launch", "grid.yaml", *options)
    until(Path(record["directory"], "dispatch/done").exists, "the run is done")
    return record, Path(record["directory"])


def origin(run: Path) -> dict[str, object]:
    return json.loads((run / "run.json").read_text())["provenance"]["sync"][0]


def test_the_plan_says_what_one_command_then_ships_replaces_and_hands_over(desk: Desk, project: Path) -> None:
    shown = desk.combo("plan", "grid.yaml").stdout
    assert re.search(r"ships project +1 file, \d+ B to ~/deployed", shown)
    assert re.search(r"replaces +eval4env", shown)
    planned = desk.json("plan", "grid.yaml")["digest"]
    assert not (desk.home / "deployed").exists()
    old = ["tmux", "-L", "default", "new-session", "-d", "-s", "eval4env", "sleep 600"]
    subprocess.run(old, env=desk.environment, check=True)
    record, run = launch(desk)
    assert json.loads((run / "run.json").read_text())["digest"] == planned
    assert record["shipped"] == [
        f"project -> ~/deployed: 1 file, 1 sent, {len(SCRIPT.replace(chr(13), ''))} B",
        "CRLF became LF in run me.sh",
    ]
    assert len(record["replaced"]) == 1
    assert re.fullmatch(r"eval4env: tmux \S+ has ended after INT", record["replaced"][0])
    assert '"succeeded": 2' in (run / "dispatch/done").read_text()
    assert (run / "sessions/maze_good/attempt-1/log").read_text() == "token is 12 bytes\n"
    assert origin(run) | {"sha256": "", "bytes": 0} == {
        "from": "project",
        "to": "~/deployed",
        "files": 1,
        "bytes": 0,
        "sha256": "",
        "converted": 1,
        "commit": git(project, "rev-parse", "HEAD"),
        "uncommitted": False,
    }

    again = desk.json("launch", "grid.yaml")
    assert (again["state"], again["directory"]) == ("finished", str(run))
    (project / "notes").write_text("not shipped")
    assert desk.json("launch", "grid.yaml")["state"] == "finished"
    (project / "new.py").write_text("shipped, and unknown to git\n")
    record, second = launch(desk)
    assert record["state"] == "new", "a change to what is shipped is another run"
    assert "2 files, 1 sent" in record["shipped"][0]
    assert record["replaced"] == ["eval4env: there is no session of that name"]
    assert origin(second)["uncommitted"] is True
    assert origin(run)["sha256"] != origin(second)["sha256"]


def test_code_that_changed_is_not_mixed_into_an_unfinished_run(desk: Desk, project: Path) -> None:
    (project / "run me.sh").write_text(SCRIPT + "sleep 60 #\r\n")
    record = desk.json("launch", "grid.yaml")
    until(lambda: list(Path(record["directory"]).glob("sessions/*/attempt-1/out/*")), "an episode is recorded")
    (project / "run me.sh").write_text("changed\n")
    refused = desk.combo("launch", "grid.yaml", code=2)
    assert "what sync ships has changed" in refused.stderr
    assert "changed" not in (desk.home / "deployed/run me.sh").read_text()


def test_keep_ships_nothing_that_changed_and_rerun_does(desk: Desk, project: Path) -> None:
    _, run = launch(desk)
    (project / "run me.sh").write_text(SCRIPT + "# changed\n")
    grown = GRID.replace("[maze, field]", "[maze, field, lake]")
    (desk.home / "grid.yaml").write_text(grown)
    assert "changed" not in (desk.home / "deployed/run me.sh").read_text()
    launch(desk, "--changed", "keep")
    assert "changed" not in (desk.home / "deployed/run me.sh").read_text()
    until((run / "sessions/lake_good/attempt-1/end").exists, "what is new has run")
    record, _ = launch(desk, "--changed", "rerun")
    assert "changed" in (desk.home / "deployed/run me.sh").read_text()
    assert record["run"] == run.name
    assert len(list(run.glob("sessions/*/attempt-1"))) == 6


def test_what_is_in_the_way_stops_the_launch_before_there_is_a_run(desk: Desk, project: Path) -> None:
    (desk.home / "deployed/run me.sh").mkdir(parents=True)
    refused = desk.combo("launch", "grid.yaml", code=2)
    assert "deployed/run me.sh is a folder" in refused.stderr
    assert desk.runs == []


class Counting(LocalTransport):
    trips = 0

    def run(
        self, script: str, *args: str, stdin: bytes = b"", timeout: float = 60.0, limit: int = 64 * MIB
    ) -> Completed:
        Counting.trips += 1
        return super().run(script, *args, stdin=stdin, timeout=timeout, limit=limit)

    def call(self, work: Callable[[], int], stdin: bytes, timeout: float, limit: int = 64 * MIB) -> Completed:
        Counting.trips += 1
        return super().call(work, stdin, timeout, limit)


def test_a_launch_is_four_round_trips_and_at_most_two_more_that_ship(
    desk: Desk, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in desk.environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("comborun.api.named.LocalTransport", Counting)
    where = HostChoice(transport="ssh")
    counts = []
    for text in (GRID, GRID, re.sub("sync: .*\n", "", GRID)):
        (desk.home / "grid.yaml").write_text(text)
        Counting.trips = 0
        directory = start_run(
            GridChoice(desk.home / "grid.yaml"), where, LaunchRequest(new=True)
        ).launched.publication.directory
        counts.append(Counting.trips)
        until(Path(directory, "dispatch/done").exists, "the run is done")
    assert counts == [6, 5, 4]
