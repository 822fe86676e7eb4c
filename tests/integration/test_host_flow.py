"""A grid on another host: launched, watched, stopped and reported over SSH, as a user who is not root."""

from __future__ import annotations

import json
import os
import pty
import re
import select
import shlex
import shutil
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from box import until
from desk import EVALUATOR as HERE
from desk import Desk, evaluate, reported
from sshd import Sshd, fresh_user, make_key, public, running_sshd

from comborun.rules.records import parse

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def far_host(ssh_place: Path, request: pytest.FixtureRequest) -> Iterator[Sshd]:
    """A server of the test's own, and a user whose processes end with the test."""
    name = re.sub(r"\W", "_", request.node.name)[-50:]
    with fresh_user() as user, running_sshd(ssh_place / name, user) as server:
        yield server


@pytest.fixture
def far(desk: Desk, far_host: Sshd) -> Desk:
    """A desk whose grids run on `testbox`, where the user has an evaluator and a start-up file that talks."""
    shutil.copy(HERE, far_host.user.home / "evaluator.py")
    (far_host.user.home / ".bash_profile").write_text("echo noise\n")
    desk.environment["COMBORUN_SSH_CONFIG"] = str(far_host.config)
    return desk


def far_grid(far: Desk, gate: Path | None = None, **keys: str) -> Path:
    command = evaluate(float(keys.pop("pace", "0")), gate=gate).split(" --", 1)[1]
    return far.grid(command=f"/usr/bin/python3 ~/evaluator.py --{command}", host="testbox", **keys)


def far_runs(far_host: Sshd) -> list[Path]:
    return sorted((far_host.user.home / "comborun").glob("*-????????T??????Z-????"))


def test_a_host_at_its_limit_on_processes_is_named_and_the_run_goes_on_when_there_is_room(
    far: Desk, far_host: Sshd
) -> None:
    home, user = far_host.user.home, str(far_host.user.uid)
    (home / ".bashrc").write_text("[[ ! -e ~/limited ]] || ulimit -u 60\n")
    (home / "limited").touch()
    grid = far_grid(far, home / "gate", policies="[good]", environments="[maze, field]", limits="{parallel: 1}")
    assert far.combo("launch", grid).returncode == 0
    others = [subprocess.Popen(["setpriv", "--reuid", user, "--clear-groups", "sleep", "300"]) for _ in range(60)]
    try:
        (run,) = far_runs(far_host)
        (home / "gate").touch()
        until((run / "dispatch/waiting").exists, "the second session waits")
        (home / "limited").unlink()
        assert "waits for room" in far.combo("status").stdout
        assert "ulimit -u" in far.combo("explain", "field_good").stdout
    finally:
        for one in others:
            one.kill()
            one.wait()
    until((run / "dispatch/done").exists, "it goes on when there is room")
    assert parse((run / "dispatch/done").read_text())["succeeded"] == "2"
    assert {path.parent.name for path in run.glob("sessions/*/attempt-*/end")} == {"attempt-1"}


def test_a_combo_is_tried_on_the_host_and_results_that_were_not_found_there_are_read_again(
    far: Desk, far_host: Sshd
) -> None:
    wrong = {"policies": "[good]", "environments": "[maze]", "results": '{files: "*.json"}'}
    tried = far.json("try", far_grid(far, **wrong))
    assert '`results: {files: "**/*.jsonl"}` counts them' in tried["why"]
    assert tried["folder"].startswith(str(far_host.user.home))
    assert not far_runs(far_host)
    again = far.combo("try", far_grid(far, **wrong), "--host", "testbox").stdout.splitlines()[-1]
    assert again.endswith("--host testbox"), "it is tried there again"

    assert far.combo("run", far_grid(far, **wrong)).returncode == 1
    mended = far.combo("run", far_grid(far, **{**wrong, "results": '{files: "**/*.jsonl"}'}), code=0)
    (run,) = far_runs(far_host)
    assert [path.parent.name for path in run.glob("sessions/*/attempt-*/begin")] == ["attempt-1"]
    assert far.report(reported(mended.stdout).parent)["totals"]["completed"] == 4


def test_the_laptop_may_go_and_another_one_may_watch(far: Desk, far_host: Sshd) -> None:
    after = """bash -c 'cat "$1"/*.jsonl > "$1"/all.txt; echo once >> "$1"/count' x {results_dir}"""
    launched = far.json("launch", far_grid(far, pace="0.2", after=after))
    assert (launched["host"], launched["state"]) == ("testbox", "new")
    (run,) = far_runs(far_host)
    until((run / "dispatch/done").exists, "the run ends by itself")
    assert len((run / "results/all.txt").read_text().splitlines()) == 16
    other = far.home.parent / "another laptop"
    other.mkdir()
    far.environment["HOME"] = str(other)
    watched = far.combo("monitor", "--host", "testbox", "--interval", "0.3", code=0)
    assert "Report:" in watched.stdout
    assert (run / "results/count").read_text() == "once\n"


def test_another_laptop_finds_a_run_by_its_grid_file_whatever_the_root(far: Desk) -> None:
    grid = far_grid(far, pace="1", root="~/data/runs")
    launched = far.json("launch", grid)
    other = far.home.parent / "another laptop"
    other.mkdir()
    far.environment["HOME"] = str(other)
    assert far.json("status", grid)["run"] == launched["run"]
    assert [one["run"] for one in far.json("runs", grid)] == [launched["run"]]
    assert far.combo("logs", "maze_good", "--run", grid).returncode == 0
    told = far.combo("explain", "maze_good", "--run", grid).stdout
    (command,) = [line.strip().partition("  ")[0] for line in told.splitlines() if "combo logs" in line]
    assert far.combo(*shlex.split(command)[1:]).returncode == 0, command
    assert far.combo("stop", grid, "--yes").returncode == 0


CUTTING = """
[[ $(</proc/$PPID/comm) == timeout ]] && exec() { # what runs a script: half an answer, and then sshd dies
  if [[ " $* " == *" fetch "* && ! -e ~/cut ]]; then
    : >~/cut
    "$@" | head -c 900
    pid=$$
    until [[ $(</proc/$pid/comm) == sshd* ]]; do read -r _ _ _ pid _ </proc/$pid/stat; done
    kill -KILL "$pid"
    exit 1
  fi
  builtin exec "$@"
}
"""


def test_a_host_that_can_not_be_reached_is_exit_code_3_and_with_two_names_its_run_is_listed_once(
    far: Desk, far_host: Sshd
) -> None:
    far_host.config.write_text(far_host.stanza() + far_host.stanza(alias="lab"))
    grid = far_grid(far, pace="30")
    run = far.json("launch", grid, "--host", "lab")["run"]
    seen = far.json("status")["counts"]
    assert [far.json("status", *name)["host"] for name in ([], [run])] == ["lab"] * 2, "the laptop remembers it"
    assert "there are no runs on local" in far.combo("status", "--host", "local").stderr
    far_host.stop_all()
    failed = far.combo("monitor", "--once", code=3)
    assert "unreachable" in failed.stdout
    listed = [(one["run"], one["counts"], one["reachable"]) for one in far.json("runs")]
    assert listed == [(run, seen, False)], "though no `combo runs` was given while it answered"
    far_host.start()
    assert [one["host"] for one in far.json("runs")] == ["lab"]
    assert "has a run already" in far.combo("launch", grid).stdout
    assert len(far.json("runs")) == 1
    far_host.config.write_text(far_host.stanza("Port 1", alias="lab") + far_host.stanza())
    far.combo("stop", "little", "--host", "testbox", code=0)
    (told,) = far.json("runs")
    assert (told["host"], told["reachable"], told["stopped"]) == ("testbox", True, True)


def test_a_link_that_is_cut_while_results_are_fetched_is_made_anew_and_the_report_follows(
    far: Desk, far_host: Sshd
) -> None:
    far.combo("launch", far_grid(far, pace="0.3"))
    (far_host.user.home / "cutting").write_text(CUTTING)
    (far_host.user.home / ".bashrc").write_text("export BASH_ENV=~/cutting\n")
    watched = far.combo("monitor", "--interval", "0.3", code=0)
    assert (far_host.user.home / "cut").exists()
    assert far.report(reported(watched.stdout).parent)["totals"]["completed"] == 16


def test_a_host_that_has_one_multiplexer_only_is_enough(far: Desk, far_host: Sshd) -> None:
    there, absent = "screen", "tmux"
    programs = far_host.user.home / "bin"
    programs.mkdir()
    for program in Path("/usr/bin").iterdir():
        if program.name != absent:
            (programs / program.name).symlink_to(program)
    (far_host.user.home / ".bashrc").write_text(f"PATH={programs}\n")
    far.combo("run", far_grid(far), code=0)
    (run,) = far_runs(far_host)
    assert (run / "dispatch/multiplexer").read_text() == f"{there}\n"
    assert run.owner() == far_host.user.name
    assert not (run / "report").exists(), "nothing but the run is left on the host"
    refused = far.combo("launch", far_grid(far), "--new", "--multiplexer", absent, code=3)
    assert f"lacks what sessions need: {absent}" in refused.stderr

    far_host.config.write_text(far_host.stanza("Port 9"))
    told = json.loads(far.combo("status", "--json", code=3).stdout)
    assert (told["reachable"], told["finished"], told["counts"]) == (False, True, {"succeeded": 4})
    assert 0 <= told["last_seen_seconds"] < 60
    assert "unreachable" in far.combo("status").stdout
    assert "the records were copied" in far.combo("report", timeout=90, code=0).stderr


def test_a_calibration_on_a_host_is_written_here_and_leaves_nothing_there(far: Desk, far_host: Sshd) -> None:
    grid = far_grid(far, pace="0.1", policies="[good]", environments="[maze]", episodes="400")
    far.environment["COMBORUN_CALIBRATE_S"] = "1"
    measured = far.json("calibrate", grid, "--most", "1")
    assert 0.08 < measured["combos"][0]["episode_s"] < 1
    assert not list((far_host.user.home / "comborun").glob("**/run.json"))
    planned = far.json("plan", grid)
    assert "expected" in planned, planned
    expected = planned["expected"]
    assert expected["makespan"] > 0.08 * 400


def test_videos_of_failed_episodes_come_from_the_host_and_those_that_do_not_are_counted(
    far: Desk, far_host: Sshd
) -> None:
    rows = [{"episode": n, "success": n == 0, "video": f"v{n}.mp4"} for n in range(3)]
    (far_host.user.home / "rows").write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    grid = far.grid(
        host="testbox",
        policies="[good]",
        environments="[maze]",
        episodes="3",
        results="{videos: '**/*.mp4'}",
        command="bash -c 'cp ~/rows {output_dir}/rows.jsonl && date | tee {output_dir}/v0.mp4 > {output_dir}/v1.mp4'",
    )
    far.combo("run", grid)
    (run,) = far_runs(far_host)
    assert [path.name for path in sorted(run.rglob("*.mp4"))] == ["v0.mp4", "v1.mp4"]
    asked = far.combo("report", "--videos", "failed", code=0)
    assert "1 video that the host does not list" in asked.stderr
    assert [path.name for path in far.home.rglob("*.mp4")] == ["v1.mp4"]
    page = (reported(asked.stdout) / "report.html").read_text()
    assert 'attempt-1/out/v1.mp4"' in page
    far.environment["XDG_DATA_HOME"] = str(far.home / "another")
    for size, why in (("1", "the limit for one copy"), ("1 GiB", "compared with itself")):
        told = far.combo("report", "--compare", run.name, run.name, "--host", "testbox", "--max-size", size)
        assert why in told.stderr


def test_a_report_says_which_options_are_for_another_kind_of_report(desk: Desk) -> None:
    folder = desk.home / "old"
    folder.mkdir()
    row = {"policy": "good", "environment": "maze", "episode": 0, "success": True}
    (folder / "rows.jsonl").write_text(json.dumps(row))
    assert desk.combo("report", folder).returncode == 0
    for words in ((folder, "--max-size", "1GiB"), (folder, "--videos", "all")):
        told = desk.combo("report", *words)
        assert (told.returncode, f"{words[1]} with a folder" in told.stderr) == (2, True), told.stderr
    told = desk.combo("report", "--compare", folder, folder, "--figures", "pdf")
    assert (told.returncode, "--figures with --compare" in told.stderr) == (2, True), told.stderr


def at_terminal(command: list[str], until_shown: str, environment: dict[str, str]) -> str:
    """What a command shows on a terminal, up to some text."""
    ours, theirs = pty.openpty()
    shown = ""
    with subprocess.Popen(
        command, stdin=theirs, stdout=theirs, stderr=theirs, env=environment, start_new_session=True
    ) as process:
        os.close(theirs)
        deadline = time.monotonic() + 20
        while until_shown not in shown and time.monotonic() < deadline:
            if select.select([ours], [], [], 0.2)[0]:
                try:
                    shown += os.read(ours, 65536).decode("utf-8", "replace")
                except OSError:
                    break
        process.kill()
    os.close(ours)
    return shown


def test_a_window_opens_in_a_terminal_that_the_host_does_not_know_and_a_failing_ssh_is_read(
    far: Desk, far_host: Sshd
) -> None:
    grid = far_grid(far, pace="60", policies="[good]", environments="[maze]")
    far.combo("launch", grid, code=0)
    until(lambda: list(far_runs(far_host)[-1].glob("sessions/*/attempt-1/begin")), "it begins")
    environment = {**far.environment, "TERM": "xterm-ghostty"}
    one = shlex.split(far.combo("attach", "maze_good", "--show", code=0).stdout)
    assert "maze_good" in at_terminal(one, "[maze_good", environment)
    (pane,) = far.combo("attach", "--all", "--show", code=0).stdout.splitlines()
    words = shlex.split(pane)
    (at,) = [at for at, word in enumerate(words) if word.startswith("ControlPath=")]
    assert len(words[at].partition("=")[2]) + 17 < 104
    words[at] = "ControlPath=none"
    far_host.stop_all()
    shown = at_terminal(words, "Enter closes", environment)
    assert "Connection refused" in shown
    assert "Enter closes" in shown


def test_a_changed_host_key_is_told_by_status_with_fingerprints_and_what_to_do(
    far: Desk, far_host: Sshd, tmp_path: Path
) -> None:
    far.combo("launch", far_grid(far, policies="[good]", environments="[maze]"), code=0)
    far.combo("status", code=0)
    far_host.known_hosts.write_text(f"[127.0.0.1]:{far_host.port} {public(make_key(tmp_path / 'other'))}")
    told = far.combo("status", code=3)
    assert "unreachable" in told.stdout
    assert told.stderr.count("SHA256:") == 2
    assert "ssh-keygen" in told.stderr
