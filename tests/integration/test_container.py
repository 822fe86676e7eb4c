"""`container`: a session in a container; the docker here is a stand-in, whose containers are no children of ours."""

from __future__ import annotations

import json
import os
import signal
import sys
from pathlib import Path

import pytest
from box import until
from desk import CHECKOUT, Desk

from comborun.rules.records import parse
from comborun.words.endings import said

STAND_IN = CHECKOUT / "tests" / "testbed" / "docker.py"
WORK = """
trap 'echo told to end >>"$COMBORUN_OUTPUT_DIR/told"' TERM INT
printf '{"episode": 0, "success": true, "seen": "%s"}\\n' "$SEEN $PLANTED $SPACED" >"$COMBORUN_OUTPUT_DIR/a.jsonl"
[[ $1 == stay ]] && while :; do sleep 0.1; done
exit 0
"""


@pytest.fixture
def docker(desk: Desk) -> Path:
    """The stand-in on the desk's PATH; the folder with its containers."""
    (desk.home / "bin").mkdir()
    program, state = desk.home / "bin" / "docker", desk.home / "containers"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{STAND_IN}" "$@"\n')
    program.chmod(0o755)
    state.mkdir()
    desk.environment |= {
        "PATH": f"{program.parent}:{desk.environment['PATH']}",
        "DOCKER_STAND_IN": str(state),
        "PLANTED": "a secret",
        **dict.fromkeys(("COMBORUN_STOP_INT_S", "COMBORUN_STOP_TERM_S", "COMBORUN_GRACE_S"), "1"),
    }
    return state


def launch(desk: Desk, policies: str) -> Path:
    work = desk.home / "work.sh"
    work.write_text(WORK)
    grid = desk.home / "grid.yaml"
    grid.write_text(
        f"""\
policies: {policies}
environments: [maze]
episodes: 1
container: {{image: "{{policy.image}}", mounts: [~/data:/data:ro], options: --ipc=host}}
command: "{{policy.program}} '{work}' {{policy.how}}"
setup: export SEEN=inside
variables: {{SPACED: a 'b' $c}}
secrets: {{PLANTED: laptop}}
retry: none
"""
    )
    desk.combo("launch", grid, code=0)
    return desk.runs[-1]


def end(run: Path, session: str) -> dict[str, str]:
    path = run / "sessions" / session / "attempt-1" / "end"
    until(path.exists, f"{session} has ended")
    return dict(parse(path.read_text()))


def test_a_session_runs_in_its_container_and_the_runtimes_own_codes_are_failed_launches(
    desk: Desk, docker: Path
) -> None:
    policies = "{good: {image: i, program: bash, how: go}, absent: {image: absent, program: bash, how: go},"
    run = launch(desk, policies + " wordless: {image: i, program: no-such-thing, how: go}}")
    assert end(run, "maze_good")["completeness"] == "complete"
    record = json.loads((run / "sessions/maze_good/attempt-1/out/a.jsonl").read_text())
    assert record["seen"] == "inside a secret a 'b' $c"
    absent, wordless = end(run, "maze_absent"), end(run, "maze_wordless")
    assert (absent["cause"], absent["code"]) == ("launch_failed", "125")
    assert "pull access denied" in said(absent)
    assert wordless["completeness"] == "none"
    until((run / "dispatch/done").exists, "the run has ended")
    assert [*docker.glob("comborun-*")] == []


@pytest.mark.parametrize("client", ["lives", "is killed"])
def test_a_container_is_told_what_it_needs_and_stop_finds_it(desk: Desk, docker: Path, client: str) -> None:
    (docker / "unmarked").touch()
    run = launch(desk, "{stays: {image: i, program: bash, how: stay}}")
    until(lambda: [*docker.glob("comborun-*/pid")], "its container runs")
    folder = next(docker.glob("comborun-*"))
    told = json.loads((folder / "asked.json").read_text())
    assert told["name"] == f"comborun-{run.name}-maze_stays-1"
    assert (told["network"], told["user"], told["init"]) == ("host", f"{os.getuid()}:{os.getgid()}", True)
    assert told["volume"] == [f"{run}:{run}", f"{desk.home}/data:/data:ro"]
    assert "PLANTED" in told["env"]  # by its name: the value is on no command line
    assert "SPACED=a 'b' $c" in told["env"]
    assert told["gpus"] is None
    until((run / "sessions/maze_stays/attempt-1/out/a.jsonl").exists, "it works")
    process = int((folder / "pid").read_text())
    if client == "is killed":
        begin = run / "sessions/maze_stays/attempt-1/begin"
        until(begin.exists, "it has begun")
        os.kill(int(parse(begin.read_text())["pid"]), signal.SIGKILL)
        assert end(run, "maze_stays")["cause"] == "signal"
    else:
        assert desk.combo("stop").returncode == 0
        assert end(run, "maze_stays")["cause"] == "stopped"
        assert (run / "sessions/maze_stays/attempt-1/out/told").read_text().startswith("told to end")
    until(lambda: not Path(f"/proc/{process}").exists(), "its container is gone")
    assert [*docker.glob("comborun-*")] == []
