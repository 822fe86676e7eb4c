"""Two machines with one home: a run goes on where it began, whoever looks from the other one.

Each has its own host name, boot id and process table, as two GPU boxes with a home on NFS.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import quick_combo
from box import until
from desk import Desk, evaluate
from machines import POSSIBLE, SSHFS, Machine, sshfs

from comborun.host.system.files import read

pytestmark = pytest.mark.skipif(not POSSIBLE, reason="needs root, for namespaces")
GRID = {"policies": "[good]", "environments": "[maze, field]"}


def machine(desk: Desk, name: str, boot: str, mount: tuple[str, str] = ("", "")) -> Machine:
    own = {"COMBORUN_TMUX_SOCKET": f"{desk.environment['COMBORUN_TMUX_SOCKET']}-{name}"}
    screens = {"COMBORUN_LEASES": f"{desk.environment['COMBORUN_LEASES']}-{name}"}
    return Machine(name, desk.home, boot, {**desk.environment, **own, **screens}, mount)


@pytest.fixture
def pair(desk: Desk) -> Iterator[tuple[Machine, Machine]]:
    with machine(desk, "nodea", "aaaa-1") as first, machine(desk, "nodeb", "bbbb-1") as second:
        yield first, second


def combo(at: Machine, *words: object, code: int | None = 0) -> str:
    """What a command on a machine says."""
    done = quick_combo.run(list(map(str, words)), at.environment, at.folder, 60, inside=at.init())
    assert code in (None, done.returncode), f"{words} on {at.name}: {done.returncode}\n{done.stdout}{done.stderr}"
    return done.stdout + done.stderr


def status(at: Machine, run: Path) -> Any:
    """What `combo status` tells programs. On a slow machine its standard error says what it waits for."""
    words = ["status", run.name, "--json"]
    return json.loads(quick_combo.run(words, at.environment, at.folder, 60, inside=at.init()).stdout)


def begin(desk: Desk, at: Machine, gate: str = "go") -> tuple[Path, Path]:
    """Launch a grid there whose two sessions wait at a gate; returns the grid and the run."""
    grid = desk.grid(**GRID, command=evaluate(gate=desk.home / gate))
    combo(at, "launch", grid)
    until(lambda: len(desk.begun) == 2, "both sessions run")
    return grid, desk.runs[-1]


def commands(grid: Path, run: Path) -> list[list[object]]:
    """Commands that decide by processes."""
    asked = "--run", run.name
    return [
        ["launch", grid], ["resume", run.name], ["stop", "--yes", run.name], ["stop", "maze_good", *asked],
        ["retry", "maze_good", *asked], ["retry", "--failed", *asked], ["attach", "maze_good", *asked],
        ["attach", "--all", *asked],
    ]  # fmt: skip


def test_a_command_on_another_machine_is_refused_and_ends_nothing_in_both_directions(
    desk: Desk, pair: tuple[Machine, Machine]
) -> None:
    for here, there in (pair, pair[::-1]):
        grid, run = begin(desk, here, gate=f"go-{here.name}")
        for words in commands(grid, run)[:: 1 if here is pair[0] else 3]:
            said = combo(there, *words, code=2)
            assert f"it runs on {here.name}: give the command there, or with `--host {here.name}`" in said, words
        by_hand = there.run("bash", str(run / "run_parallel.sh"), "stop")
        assert by_hand.returncode == 68, by_hand.stderr
        seen = status(there, run)
        assert seen["facts"][0] == {"code": "runs_on_another_machine", "host": here.name, "here": there.name}
        assert {one["state"] for one in seen["sessions"]} == {"running"}
        assert status(here, run)["facts"] == []
        combo(here, "stop", "--yes", run.name)
        assert "runs_on" not in combo(there, "status", run.name, "--json", code=None), "nothing of it is left"
        combo(there, "clean", "--yes", run.name)
        assert run not in desk.runs


def test_a_run_that_was_stopped_on_one_machine_goes_on_on_another(desk: Desk, pair: tuple[Machine, Machine]) -> None:
    first, second = pair
    _, run = begin(desk, first)
    combo(first, "stop", "--yes", run.name)
    (desk.home / "go").touch()
    combo(second, "resume", run.name)
    until((run / "dispatch/done").exists, "it ends", 40)
    hosts = {read(str(path))["host"] for path in run.glob("sessions/*/attempt-2/begin")}
    assert hosts == {"nodeb"}


def test_of_two_launches_on_two_machines_one_owns_the_run(desk: Desk, pair: tuple[Machine, Machine]) -> None:
    grid, run = begin(desk, pair[0])
    for record in ("dispatcher", "machine"):
        assert read(str(run / "dispatch" / record))["host"] == "nodea"
    program = [sys.executable, "-I", "-S", str(run / "lib/comborun_host"), "dispatch", str(run)]
    (run / "dispatch/lock").unlink()  # a lock that does not reach other machines
    assert pair[1].run(*program).returncode == 68
    assert "runs on nodea" in combo(pair[1], "launch", grid, code=2)
    assert len([*run.glob("sessions/*/attempt-*/begin")]) == 2


def test_another_container_of_the_same_boot_is_another_machine(desk: Desk) -> None:
    with machine(desk, "box", "") as inside, machine(desk, "box", "") as other:
        grid, run = begin(desk, inside)
        for words in commands(grid, run)[::3]:
            assert "another container of this machine, box" in combo(other, *words, code=2), words
        assert "another container" in desk.combo("stop", "--yes", run.name, code=2).stderr
        assert {one["state"] for one in status(other, run)["sessions"]} == {"running"}
        combo(inside, "stop", "--yes", run.name)


def test_a_copy_of_a_machine_with_its_name_is_another_machine_and_a_restart_is_not(desk: Desk) -> None:
    with machine(desk, "gpu", "aaaa-1") as here, machine(desk, "gpu", "bbbb-1") as there:
        for one, hardware in ((here, "first"), (there, "second")):
            one.power_off()
            one.hardware = hardware
            one.power_on()
        grid, run = begin(desk, here)
        assert "stays: not finished" in combo(there, "clean", "--yes", run.name)
        for words in commands(grid, run):
            said = combo(there, *words, code=None)
            assert "another machine that is also called gpu" in said, words
        seen = status(there, run)
        assert seen["facts"][0]["code"] == "runs_on_a_namesake"
        assert {one["state"] for one in seen["sessions"]} == {"running"}
        here.power_off()
        here.power_on("aaaa-2")
        (desk.home / "go").touch()
        combo(here, "resume", run.name)
        until((run / "dispatch/done").exists, "it ends", 40)


def test_after_a_restart_the_same_launch_goes_on_without_a_question(desk: Desk) -> None:
    with machine(desk, "nodea", "aaaa-1") as here:
        grid, run = begin(desk, here)
        here.power_off()
        here.power_on("aaaa-2")
        (desk.home / "go").touch()
        combo(here, "launch", grid)
        until((run / "dispatch/done").exists, "it ends", 40)


def test_a_run_of_a_machine_that_is_gone_is_taken_over_if_a_person_says_so(
    desk: Desk, pair: tuple[Machine, Machine]
) -> None:
    first, second = pair
    grid, run = begin(desk, first)
    first.power_off()
    (desk.home / "go").touch()
    assert f"`combo resume {run.name} --take-over`" in combo(second, "launch", grid, code=2)
    assert "taken over from nodea" in combo(second, "resume", run.name, "--take-over")
    until((run / "dispatch/done").exists, "it ends", 40)
    lost = [read(str(path)) for path in run.glob("sessions/*/attempt-1/end")]
    assert [end["cause"] for end in lost] == ["lost", "lost"]
    assert [end["ending"][0].as_data() for end in lost] == [{"code": "taken_over", "host": "nodea"}] * 2


def test_a_dispatcher_whose_run_was_taken_over_leaves_and_ends_nothing(
    desk: Desk, pair: tuple[Machine, Machine]
) -> None:
    first, second = pair
    _, run = begin(desk, first)
    combo(second, "stop", "--yes", run.name, "--take-over")
    assert '"taken_over"' in (run / "dispatch/events.jsonl").read_text(), "its dispatcher has left"
    assert "it runs" not in combo(second, "status", run.name, code=None)
    for path in run.glob("sessions/*/attempt-1/begin"):
        assert first.run("kill", "-0", read(str(path))["pid"]).returncode == 0, "its sessions go on"
    assert "no other machine" in second.run("bash", str(run / "run_parallel.sh"), "take-over").stdout


@pytest.mark.skipif(not SSHFS, reason="needs sshfs")
def test_a_home_that_comes_by_sshfs_from_the_other_machine_is_the_same(desk: Desk, tmp_path: Path) -> None:
    seen = tmp_path / "seen"
    away = machine(desk, "nodeb", "bbbb-1", (str(seen), str(desk.home)))
    with sshfs(desk.home, seen), machine(desk, "nodea", "aaaa-1") as here, away as there:
        grid, run = begin(desk, here)
        for words in commands(grid, run)[::3]:
            assert "runs on nodea" in combo(there, *words, code=2), words
        seen_there = status(there, run)
        assert {one["state"] for one in seen_there["sessions"]} == {"running"}
        program = [sys.executable, "-I", "-S", str(run / "lib/comborun_host"), "dispatch", str(run)]
        assert there.run(*program).returncode == 68, "locks do not reach the other machine, and the claim does"
        here.power_off()
        assert "taken over from nodea" in there.run("bash", str(run / "run_parallel.sh"), "take-over").stdout
        here.power_on("aaaa-2")
        assert "runs on nodeb" in combo(here, "resume", run.name, code=2)
