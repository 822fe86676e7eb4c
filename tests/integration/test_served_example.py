"""The example's policies behind HTTP: four simulators, a server that dies once, and the records of no server."""

from __future__ import annotations

import os
import shlex
import signal
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest
from box import until
from desk import Desk
from rounds import some

from comborun.model.attempt import Begin
from comborun.rules.records import parse

if not all(map(find_spec, ("mujoco", "fastapi", "uvicorn"))):
    pytest.skip("the example's simulator, or the extra `serve`, is not installed", allow_module_level=True)

EXAMPLE = Path(__file__).parents[2] / "examples" / "quadruped"
EPISODES = 2
SEED = 1014
"""the robots fall soon"""


def shipped(desk: Desk) -> Path:
    """The grid as it ships, with this Python and fewer episodes."""
    text = (EXAMPLE / "served.yaml").read_text()
    for before, now in {
        "setup: source ../../.venv/bin/activate": "",
        "workdir: .": f"workdir: {EXAMPLE}",
        "python ": f"{shlex.quote(sys.executable)} ",
        "episodes: 20": f"episodes: {EPISODES}",
        "seed: 1000": f"seed: {SEED}",
    }.items():
        assert before in text
        text = text.replace(before, now)
    path = desk.home / "served.yaml"
    path.write_text(text)
    return path


def in_process(desk: Desk, policy: str, environment: str, output: Path) -> list[str]:
    """The records of one combo, its policy within the simulator, in the environment that sessions have: numpy rounds as
    OPENBLAS_CORETYPE says."""
    command = [sys.executable, "evaluate.py", "--policy", policy, "--env", environment, "--episodes", str(EPISODES)]
    command += ["--seed", str(SEED)]
    variables = {**desk.environment, "OMP_NUM_THREADS": "1"}
    subprocess.run([*command, "--output-dir", str(output)], cwd=EXAMPLE, env=variables, check=True, timeout=100)
    return (output / "episodes.jsonl").read_text().splitlines()


def test_four_simulators_and_a_server_that_dies_give_the_records_of_the_policy_in_process(desk: Desk) -> None:
    launched = desk.json("launch", shipped(desk))
    (run,) = desk.runs
    server = run / "servers/gaits/attempt-1"
    until((server / "ready").exists, "the server is ready", 60)
    assert parse((server / "ready").read_text())["url"].startswith("http://127.0.0.1:")
    (told,) = desk.json("status")["servers"]
    assert (told["name"], told["state"], told["attempt"]) == ("gaits", "ready", 1)
    until(lambda: len(desk.records(run)) == 4, f"four simulators have a record, of {launched['sessions']}", 60)
    os.kill(Begin.parse((server / "begin").read_text()).pid, signal.SIGKILL)
    until((run / "dispatch/done").exists, "the run is done", 120)
    assert "POST" not in desk.combo("logs", "gaits").stderr
    assert parse((run / "dispatch/done").read_text())["succeeded"] == "4"

    assert not (run / "servers/gaits/attempt-3").exists()
    lost = [parse(file.read_text())["class"] for file in run.glob("sessions/*/attempt-1/end")]
    assert "server_lost" in lost
    assert set(lost) <= {"server_lost", ""}
    for session, records in some(sorted(desk.records(run).items()), 1, 2):  # both policies, and both environments
        environment, policy = session.split("_")
        assert [*dict.fromkeys(records)] == in_process(desk, policy, environment, desk.home / session)
