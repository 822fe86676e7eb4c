"""`secrets`: the program gets them, nobody else does, and they are gone when the run is."""

from __future__ import annotations

import hashlib
import json
import shlex
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from box import Box, bash, kill, until
from desk import Desk
from recorded import record

from comborun.errors import UserError
from comborun.remote.run_orders import StartOptions, laptop_secrets
from comborun.rules.records import parse

PLANTED = '-----BEGIN KEY-----\nplanted\'value "$HOME" `id` \\n\n\nlast plänted line=1\n'
"""what a private key looks like, and all that could be misread on the way"""
PIECES = ("BEGIN KEY", "planted'value", "plänted line")

PROGRAM = """
import hashlib, json, os, pathlib, sys, time
found = {name: hashlib.sha256(os.environb.get(name.encode(), b"")).hexdigest() for name in ("FIRST", "SECOND")}
found["setup"] = os.environ.get("SEEN_BY_SETUP", "")
out = pathlib.Path(os.environ["COMBORUN_OUTPUT_DIR"])
(out / "found.json").write_text(json.dumps(found))
while not (out.parents[3] / "go").exists():
    time.sleep(0.05)
(out / "records.jsonl").write_text('{"episode": 0, "success": true}\\n')
"""
DIGEST = hashlib.sha256(PLANTED.encode()).hexdigest()
SETUP = "export SEEN_BY_SETUP=${#FIRST}"


def grid_of(desk: Desk, secrets: str, **keys: str) -> Path:
    program = desk.home / "program.py"
    program.write_text(PROGRAM)
    words = shlex.join([sys.executable, str(program)])
    entries = {"episodes": "1", "command": words, "secrets": secrets, **keys}
    return desk.grid(policies="[good]", environments="[maze, field]", **entries)


def launch(desk: Desk, grid: Path, *options: str) -> Path:
    desk.combo("launch", grid, *options, code=0)
    return desk.runs[-1]


def found(run: Path, session: str) -> dict[str, str]:
    path = run / f"sessions/{session}/attempt-1/out/found.json"
    until(path.exists, f"{session} has looked; {[*run.glob('sessions/*/attempt-1/log')]}")
    until(path.read_text, "and has written")
    return json.loads(path.read_text())


def finish(run: Path) -> None:
    (run / "go").touch()
    until((run / "dispatch/done").exists, f"done; {(run / 'dispatch/events.jsonl').read_text()}")


def leaks(folder: Path) -> list[str]:
    """Files below a folder, and command lines of processes, that hold a piece of the planted value."""
    wanted = [piece.encode() for piece in PIECES]
    places = [path for path in folder.rglob("*") if path.is_file() and path.name != "secrets"]
    places += Path("/proc").glob("[0-9]*/cmdline")
    leaking = []
    for path in places:
        try:
            content = path.read_bytes()
        except OSError:
            continue
        if any(piece in content for piece in wanted):
            leaking.append(str(path))
    return leaking


@pytest.mark.parametrize(("multiplexer", "setup"), [("tmux", SETUP), ("screen", "")])
def test_the_program_gets_the_planted_value_and_no_file_or_command_line_does(
    desk: Desk, multiplexer: str, setup: str
) -> None:
    desk.environment |= {"FIRST": PLANTED, "SECOND": "short one"}
    grid = grid_of(desk, "{FIRST: laptop, SECOND: host}", **({"setup": setup} if setup else {}))
    run = launch(desk, grid, "--multiplexer", multiplexer)
    seen = found(run, "maze_good")
    assert (seen["FIRST"], seen["SECOND"]) == (DIGEST, hashlib.sha256(b"short one").hexdigest())
    assert seen["setup"] == (str(len(PLANTED)) if setup else "")
    kept = run / "dispatch/secrets"
    assert kept.stat().st_mode & 0o777 == 0o600
    assert leaks(desk.home) == []
    finish(run)
    assert not kept.exists()
    assert not list(run.glob("dispatch/.secrets*"))
    assert leaks(desk.home) == []
    assert "FIRST" in (run / "dispatch/secrets.json").read_text()


def test_neither_dispatcher_nor_supervisor_nor_window_has_them_in_its_environment(desk: Desk) -> None:
    desk.environment |= {"FIRST": PLANTED}
    run = launch(desk, grid_of(desk, "{FIRST: laptop}"))
    found(run, "maze_good")
    begin = parse((run / "sessions/maze_good/attempt-1/begin").read_text())
    dispatcher = parse((run / "dispatch/dispatcher").read_text())
    for pid in (begin["supervisor"], dispatcher["pid"]):
        assert b"FIRST=" not in Path(f"/proc/{pid}/environ").read_bytes()
    assert b"FIRST=" in Path(f"/proc/{begin['pid']}/environ").read_bytes()
    socket = desk.environment["COMBORUN_TMUX_SOCKET"]
    shown = subprocess.run(["tmux", "-L", socket, "show-environment", "-g"], capture_output=True, text=True, check=True)
    assert "FIRST=" not in shown.stdout
    finish(run)


def test_after_gets_them_too_and_a_run_that_has_finished_gets_none(desk: Desk) -> None:
    desk.environment |= {"FIRST": PLANTED}
    after = desk.home / "after.sh"
    after.write_text(f'printf %s "$FIRST" | sha256sum >"{desk.home}/after.sum"\n')
    run = launch(desk, grid_of(desk, "{FIRST: laptop}", after=json.dumps(shlex.join(["bash", str(after)]))))
    finish(run)
    assert (desk.home / "after.sum").read_text().startswith(DIGEST)
    assert not (run / "dispatch/secrets").exists()
    again = subprocess.run(
        ["bash", run / "run_parallel.sh", "--secrets", "-"],
        input=f"FIRST={PLANTED}\0",
        env=desk.environment,
        capture_output=True,
        text=True,
        check=True,
    )
    assert again.stdout == "nothing is left to do\n"
    assert not (run / "dispatch/secrets").exists()


def test_a_killed_dispatcher_keeps_them_for_the_next_and_a_resume_brings_new_ones(desk: Desk) -> None:
    desk.environment |= {"FIRST": "old value", "SECOND": PLANTED}
    grid = grid_of(desk, "{FIRST: laptop, SECOND: laptop}", limits="{parallel: 1}")
    run = launch(desk, grid)
    found(run, "maze_good")
    dispatcher = int(parse((run / "dispatch/dispatcher").read_text())["pid"])
    kill(dispatcher, signal.SIGKILL)
    assert (run / "dispatch/secrets").exists()
    desk.environment["FIRST"] = PLANTED
    assert launch(desk, grid) == run
    assert leaks(desk.home) == []
    finish(run)
    assert found(run, "maze_good")["FIRST"] != DIGEST
    assert found(run, "field_good")["FIRST"] == DIGEST
    assert not (run / "dispatch/secrets").exists()
    ended = [(run / f"sessions/{name}/attempt-1/end").read_text() for name in ("maze_good", "field_good")]
    assert all('"completeness": "complete"' in end for end in ended)


def test_they_go_when_the_run_is_stopped_and_come_again_with_the_resume(desk: Desk) -> None:
    desk.environment |= {"FIRST": PLANTED}
    grid = grid_of(desk, "{FIRST: laptop}", limits="{parallel: 1}")
    run = launch(desk, grid)
    found(run, "maze_good")
    assert desk.combo("stop", "maze_good").returncode == 0
    assert (run / "dispatch/secrets").exists()
    assert found(run, "field_good")["FIRST"] == DIGEST, "stopping one session leaves them to the others"
    assert desk.combo("stop").returncode == 0
    assert not (run / "dispatch/secrets").exists()
    launch(desk, grid)
    assert (run / "dispatch/secrets").exists()
    finish(run)
    assert not (run / "dispatch/secrets").exists()


def test_a_start_that_fails_leaves_none(box: Box) -> None:
    box.plan({"env_one": bash("true")})
    box.write("dispatch/secrets.json", record(FIRST="host"))
    box.environment["FIRST"] = PLANTED
    box.own_library()
    box.write("lib/comborun_host/comborun/host/dispatch/dispatcher.py", "def main(arguments): return 66\n")
    assert box.start().returncode == 66
    assert sorted(path.name for path in (box.directory / "dispatch").glob("*secrets*")) == ["secrets.json"]


def test_a_start_by_hand_takes_them_from_the_environment_or_says_what_is_missing(desk: Desk) -> None:
    desk.environment |= {"FIRST": PLANTED}
    run = launch(desk, grid_of(desk, "{FIRST: laptop}"))
    found(run, "maze_good")
    desk.combo("stop")
    del desk.environment["FIRST"]
    front = ["bash", str(run / "run_parallel.sh")]
    refused = subprocess.run(front, env=desk.environment, capture_output=True, text=True, check=False)
    assert refused.returncode == 78
    assert "the secret FIRST is not in the environment here: combo launch sends it" in refused.stderr
    assert not list(run.glob("sessions/*/attempt-2"))
    by_hand = {**desk.environment, "FIRST": PLANTED}
    subprocess.run(front, env=by_hand, capture_output=True, check=True)
    finish(run)
    outs = list(run.glob("sessions/maze_good/attempt-2/out/found.json"))
    assert json.loads(outs[0].read_text())["FIRST"] == DIGEST


def test_a_login_shell_is_asked_where_the_launch_has_none_however_noisy_it_is(desk: Desk) -> None:
    value = shlex.quote(PLANTED)
    profile = f"echo welcome; echo noise >&2; sleep 300 & echo $! >>~/agent\nexport FIRST={value}\n"
    (desk.home / ".profile").write_text(profile)
    try:
        grid = grid_of(desk, "{FIRST: host}")
        run = launch(desk, grid)
        assert found(run, "maze_good")["FIRST"] == DIGEST
        begun = time.monotonic()
        launch(desk, grid)
        assert time.monotonic() - begun < 18, "what the profile left running keeps nobody waiting"
        finish(run)
    finally:
        for pid in (desk.home / "agent").read_text().split():
            kill(int(pid), signal.SIGKILL)


@pytest.mark.parametrize(
    ("secrets", "where", "hint"),
    [
        ("{FIRST: laptop, SECOND: laptop}", "this machine's environment has no FIRST, SECOND", "export FIRST=..."),
        ("{FIRST: host}", "missing on local: FIRST", "~/.profile there"),
    ],
)
@pytest.mark.parametrize("empty", [True, False])
def test_a_missing_one_is_named_before_anything_starts(
    desk: Desk, secrets: str, where: str, hint: str, empty: bool
) -> None:
    if empty:
        desk.environment |= {"FIRST": "", "SECOND": ""}
    refused = desk.combo("launch", grid_of(desk, secrets))
    assert refused.returncode in {2, 3}
    assert where in refused.stderr
    assert hint in refused.stderr
    assert desk.runs == []


def test_the_plan_shows_names_only(desk: Desk) -> None:
    desk.environment |= {"FIRST": PLANTED}
    grid = grid_of(desk, "{FIRST: laptop}")
    for options in ((), ("--json",), ("--script", "maze_good")):
        shown = desk.combo("plan", grid, *options, code=0)
        assert not [piece for piece in PIECES if piece in shown.stdout + shown.stderr]
    assert "FIRST (laptop)" in desk.combo("plan", grid).stdout


def test_what_goes_to_the_host_ends_each_entry_with_nul_and_never_shows_itself() -> None:
    secrets = {"A": "laptop", "B": "host", "C": "laptop"}
    data = laptop_secrets(secrets, {"A": PLANTED, "B": "not sent", "C": "c=d"})  # type: ignore[arg-type]
    assert data == f"A={PLANTED}\0C=c=d\0".encode()
    assert "planted" not in repr(StartOptions(secrets=data))
    with pytest.raises(UserError) as missing:
        laptop_secrets(secrets, {"A": PLANTED})  # type: ignore[arg-type]
    assert "planted" not in missing.value.message + missing.value.hint
