"""A grid on a real Slurm as a person sees it: plan, launch, table, explain, attach, report; here and over ssh."""

from __future__ import annotations

import csv
import json
import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from box import until
from desk import Desk, evaluate
from slurm import Slurm
from sshd import Sshd

HERE = Path(__file__)
KNOBS = {
    "COMBORUN_ASK_S": "0",
    "COMBORUN_SLURM_S": "3",
    "COMBORUN_SETTLE_S": "2",
    "COMBORUN_WATCH_S": "0.5",
    "COMBORUN_STOP_TERM_S": "1",
}

MEMORY = {"resources": "{memory: 5 GiB}", "slurm": "{partition: main}"}
GPUS = {"resources": "{gpus: 4, cpus: 1, memory: 100 MiB}", "slurm": "{partition: main}"}
"""each of the two nodes has 8000 MiB and four GPUs: two sessions run, two wait"""


@pytest.fixture
def login(slurm: Slurm, desk: Desk) -> Iterator[Desk]:
    """A desk on the login node; it is cleared before its Slurm ends."""
    desk.environment |= {**slurm.environment, **KNOBS}
    yield desk
    desk.environment |= slurm.environment
    subprocess.run(["scancel", "--partition=main"], env=desk.environment, check=False, timeout=20)


def states(desk: Desk) -> dict[str, dict[str, Any]]:
    return {session["name"]: session for session in desk.json("status")["sessions"]}


def gated(gate: Path) -> str:
    """The evaluator, as soon as a file is there."""
    wait = shlex.join(["bash", "-c", 'until [ -e "$0" ]; do sleep 0.1; done; exec "$@"', str(gate)])
    return f"{wait} {evaluate()}"


def told(desk: Desk) -> list[str | None]:
    """Why tasks wait."""
    return [one["task"]["reason"] for one in states(desk).values() if one["state"] == "queued"]


def await_states(desk: Desk, **wanted: int) -> dict[str, dict[str, Any]]:
    """The sessions, once so many are in each state."""
    seen: dict[str, dict[str, Any]] = {}

    def there() -> bool:
        seen.update(states(desk))
        words = [one["state"] for one in seen.values()]
        return all(words.count(word) == count for word, count in wanted.items())

    until(there, f"{wanted}", 40)
    return seen


def episodes(report: Path) -> list[dict[str, str]]:
    """Every episode of a report, without what says when and in which attempt it ran."""
    with (report / "episodes.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    return [{key: value for key, value in row.items() if key not in ("attempt", "source", "file")} for row in rows]


@pytest.mark.timeout(240)
def test_from_the_plan_to_the_same_report_as_on_one_machine(login: Desk) -> None:
    gate = login.home / "gate"
    grid = login.grid(**MEMORY, command=gated(gate))
    planned = login.combo("plan", grid, "--slurm").stdout
    assert "array 1      4 tasks, 4 at once at most, each with 5120 MiB" in planned
    assert "would start at" in planned
    assert "calibrate and recheck" in planned
    assert "#SBATCH --mem=5120M" in planned

    launched = login.combo("launch", grid, "--slurm")
    assert (launched.returncode, "4 sessions planned; Slurm has them" in launched.stdout) == (0, True), launched.stderr
    await_states(login, running=2, queued=2)
    until(lambda: all(told(login)), "Slurm says why two wait", 30)
    seen = states(login)
    running = [one for one in seen.values() if one["state"] == "running"]
    queued = [one for one in seen.values() if one["state"] == "queued"]
    assert {one["node"] for one in running} == {"n1", "n2"}
    assert {one["task"]["reason"] for one in queued} <= {"Resources", "Priority"}
    assert "2 tasks pending" in login.combo("status").stdout
    why = login.combo("explain", queued[0]["name"]).stdout
    assert f"its task {queued[0]['task']['job']} is in Slurm's queue" in why
    assert "it asks for 5120 MiB" in why

    step = shlex.split(login.combo("attach", running[0]["name"], "--show").stdout)
    there = subprocess.run(
        [*step[:3], "printenv", "SLURMD_NODENAME"], env=login.environment, capture_output=True, text=True, check=True
    )
    assert step[-1].endswith("/log")
    assert there.stdout.strip() == running[0]["node"]

    again = login.combo("launch", grid, "--slurm")
    assert "nothing else is due" in again.stdout, again.stdout + again.stderr
    assert "2 tasks pending" in login.combo("resume").stdout
    other = login.combo("launch", grid)
    assert (other.returncode, "is on Slurm" in other.stderr, "--slurm" in other.stderr) == (2, True, True)

    gate.touch()
    ended = login.combo("monitor", "--plain", timeout=120, code=0)
    on_slurm = login.runs[-1]
    assert "finished: 4 succeeded" in ended.stdout

    login.combo("run", login.grid(), "--new", "--plain", timeout=120, code=0)
    assert login.runs[-1] != on_slurm
    assert episodes(on_slurm / "report") == episodes(login.runs[-1] / "report")

    refused = login.combo("recheck", on_slurm.name)
    assert (refused.returncode, "srun" in refused.stderr) == (2, True), refused.stderr
    on_a_node = ["srun", "--mem=1000M", *login.command("recheck", "--json")]
    alone = subprocess.run(on_a_node, env=login.environment, cwd=login.home, capture_output=True, text=True, check=True)
    assert json.loads(alone.stdout)["run"] == login.runs[-2].name, "of the run that was made on one machine"


def test_over_ssh_it_is_launched_watched_and_reported_from_a_laptop(
    login: Desk, slurm: Slurm, own_sshd: Callable[..., Sshd]
) -> None:
    server = own_sshd(f"SetEnv SLURM_CONF={slurm.environment['SLURM_CONF']}")
    login.environment |= {"COMBORUN_SSH_CONFIG": str(server.config)}
    login.environment.pop("SLURM_CONF")  # the laptop knows of no Slurm
    place = server.user.home / "evaluator.py"
    shutil.copy(HERE.with_name("evaluator.py"), place)
    command = evaluate().split(" --", 1)[1]
    grid = login.grid(resources="{gpus: 1}", host="testbox", command=f"/usr/bin/python3 {place} --{command}")
    done = login.combo("run", grid, "--slurm", "--plain", timeout=150, code=0)
    assert "finished: 4 succeeded" in done.stdout
    (report,) = login.home.glob(".local/share/comborun/testbox/*/report")
    assert len(episodes(report)) == 16


def test_what_slurm_would_not_take_is_refused_before_anything_is_written(login: Desk) -> None:
    grid = login.grid(resources="{gpus: 5}", slurm="{partition: main}")
    refused = login.combo("launch", grid, "--slurm", code=3)
    assert "a task with 5 GPUs: Requested node configuration is not available" in refused.stderr
    assert not login.runs
    unknown = login.combo("plan", login.grid(slurm="{partition: nope}"), "--slurm")
    assert (unknown.returncode, "refused: invalid partition specified: nope" in unknown.stdout) == (3, True)
    assert unknown.stderr.startswith("Error: Slurm on ")  # below the scripts, where a person looks
    assert "invalid partition specified: nope" in unknown.stderr


def test_a_controller_that_is_down_changes_nothing_that_is_known(login: Desk, slurm: Slurm) -> None:
    grid = login.grid(**GPUS, command=evaluate(pace=600))
    assert login.combo("launch", grid, "--slurm").returncode == 0
    before = await_states(login, running=2, queued=2)
    assert sorted(one["gpus"] for one in before.values()) == [[], [], [0, 1, 2, 3], [0, 1, 2, 3]]
    slurm.kill("slurmctld")
    seen = login.json("status")
    assert seen["slurm"]["answered"] is False
    assert {one["name"]: one["state"] for one in seen["sessions"]} == {n: one["state"] for n, one in before.items()}
    assert "! Slurm does not answer; this is from" in login.combo("status").stdout
    slurm.start("slurmctld")
    until(lambda: login.json("status")["slurm"]["answered"], "Slurm answers again", 30)
    login.combo("stop", timeout=90, code=0)
    await_states(login, running=0)


def test_what_was_resumed_while_slurm_was_silent_is_let_go_later(login: Desk, slurm: Slurm) -> None:
    gate = login.home / "gate"
    assert login.combo("launch", login.grid(**GPUS, command=gated(gate)), "--slurm").returncode == 0
    await_states(login, running=2, queued=2)
    assert login.combo("pause").returncode == 0
    until(lambda: all((reason or "").startswith("JobHeld") for reason in told(login)), "the waiting ones are held", 40)
    controller = int((slurm.folder / "run/slurmctld.pid").read_text())
    os.kill(controller, signal.SIGSTOP)
    assert login.combo("resume").returncode == 3
    os.kill(controller, signal.SIGCONT)
    until(lambda: login.json("status")["slurm"]["answered"], "Slurm answers again", 30)
    again = login.combo("resume")
    assert (again.returncode, "2 tasks that Slurm holds are released" in again.stdout) == (0, True), again.stdout
    gate.touch()
    assert {one["outcome"] for one in await_states(login, ended=4).values()} == {"succeeded"}


def test_a_session_is_stopped_and_started_again_while_others_run_and_wait(login: Desk) -> None:
    grid = login.grid(**GPUS, command=evaluate(pace=600))
    assert login.combo("launch", grid, "--slurm").returncode == 0
    seen = await_states(login, running=2, queued=2)
    running, queued = ([one["name"] for one in seen.values() if one["state"] == word] for word in ("running", "queued"))
    login.combo("stop", queued[0], running[0], timeout=90, code=0)
    until(lambda: states(login)[queued[1]]["state"] == "running", "the node is given to the next", 40)
    outcomes = {name: one["outcome"] for name, one in states(login).items()}
    assert [outcomes[name] for name in (queued[0], running[0])] == ["cancelled", "cancelled"]

    again = login.combo("retry", running[0])
    assert (again.returncode, "attempt 2 comes next" in again.stdout) == (0, True), again.stdout + again.stderr
    until(lambda: states(login)[running[0]]["state"] == "queued", "it waits again", 40)
    assert states(login)[running[0]]["task"]["attempt"] == 2
    assert states(login)[queued[0]]["outcome"] == "cancelled", "what was stopped and not asked for stays so"
    until(lambda: states(login)[running[0]]["task"]["reason"] == "Resources", "Slurm says why", 40)
    assert "attempt 2 waits, Resources" in login.combo("status").stdout
    assert login.combo("stop", timeout=90).returncode == 0
    assert login.combo("status").returncode == 1


def test_a_changed_grid_starts_nothing_more_of_what_it_was_before(login: Desk) -> None:
    asks, gate = {"resources": "{cpus: 1, memory: 100 MiB}"}, login.home / "gate"
    grid = login.grid(**asks, slurm="{partition: main, parallel: 1}", command=gated(gate))
    assert login.combo("launch", grid, "--slurm").returncode == 0
    await_states(login, running=1, queued=3)
    grid = login.grid(**asks, slurm="{partition: main}", command=evaluate(pace=0.1))
    changed = login.combo("launch", grid, "--slurm", "--changed", "rerun")
    assert (changed.returncode, "submitted 4 of 4" in changed.stdout) == (0, True), changed.stdout + changed.stderr
    gate.touch()
    ended = login.combo("monitor", "--plain", timeout=120)
    assert (ended.returncode, "finished: 4 succeeded" in ended.stdout) == (0, True), ended.stdout + ended.stderr
    queued = ["squeue", "-h", "-o", "%i", "--partition=main"]
    until(
        lambda: not subprocess.run(queued, env=login.environment, capture_output=True, check=True).stdout,
        "Slurm has nothing of it any more",
        40,
    )
    (run,) = login.runs
    begun = {begin.parts[-3] for begin in run.glob("sessions/*/attempt-*/begin")}
    assert len(begun) == 5, "the four of the changed grid, and the one that ran already"
