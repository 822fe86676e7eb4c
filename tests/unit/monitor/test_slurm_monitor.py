"""What a person sees of a run on Slurm: the table, why a task waits, and a Slurm that does not answer."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from monitor_stage import NOW, Seen, a_host, a_plan, a_session, a_view, an_answer, look_at, picture

from comborun.model.resources import SlurmOptions
from comborun.monitor.classify import classify
from comborun.monitor.explain import Explanation, explain
from comborun.monitor.observe import History
from comborun.monitor.screen import changes
from comborun.monitor.status import RunStatus, to_json
from comborun.rules.room.placement import Request
from comborun.rules.vocabulary import Life, Outcome

GOLDEN = Path(__file__).parents[2] / "golden" / "monitor"
NAMES = ("grass", "stairs", "maze", "field", "dunes")
PLAN = replace(
    a_plan([replace(a_session("act", name), gpus=1, request=Request(cpus=4)) for name in NAMES], parallel=5),
    slurm=SlurmOptions(("--partition=gpu",), minutes=240),
)
VIEW = a_view(PLAN, host="login1")
ANSWERED = f"scheduler at={NOW - 2} answered=1"
SILENT = f"scheduler at={NOW - 754} answered=0 why=squeue: error: Unable to contact slurm controller"
TASKS = (
    f"tasks session=grass_act attempt=1 job=12_0 id=13 state=RUNNING node=n1 start={NOW - 300} reason=None",
    "tasks session=stairs_act attempt=1 job=12_1 id=14 state=CONFIGURING node=n2 start= reason=None",
    f"tasks session=maze_act attempt=1 job=12_2 id= state=PENDING node= start={NOW + 900} reason=Resources",
    "tasks session=field_act attempt=1 job=12_3 id= state=PENDING node= start= reason=(QOSMaxGRESPerUser)",
    "tasks session=dunes_act attempt=2 job=15_0 id= state=PENDING node= start= reason=BeginTime",
)
GRASS = Seen("grass_act", started=NOW - 290, counts=(60, 50), log=b"episode 60: success\n", gpus="3")
DUNES = Seen("dunes_act", started=NOW - 900).ended("signal", "none", code=137, signal=9, **{"class": "killed"})


def look(*header: str, answer: tuple[Seen, ...] = (GRASS, DUNES), **fields: object) -> History:
    tasks = [replace(one, address="12_0", multiplexer="slurm", host="n1") for one in answer]
    text = an_answer(*tasks, host=(*a_host(), *header), **{"dispatcher": 0, **fields})  # type: ignore[arg-type]
    return look_at(text)


def seen(*header: str, **fields: Any) -> RunStatus:
    return classify(VIEW, look(*header, **fields))


def told(name: str, *header: str, **fields: Any) -> Explanation:
    history = look(*header, **fields)
    return explain(VIEW, history, classify(VIEW, history), name)


@pytest.mark.parametrize(
    ("said", "width", "name"), [(ANSWERED, 80, "slurm"), (ANSWERED, 120, "slurm"), (SILENT, 120, "slurm-silent")]
)
def test_the_table_is_the_golden_one_and_has_what_was_known_of_a_silent_slurm(said: str, width: int, name: str) -> None:
    assert picture(seen(said, *TASKS), width) == (GOLDEN / f"{name}-{width}.txt").read_text()


def test_of_a_login_node_only_the_disk_matters_and_nobody_tells_when_slurm_starts_what_waits() -> None:
    status = seen(ANSWERED, *TASKS)
    assert (status.use.load, status.use.memory, status.use.gpus) == (None, None, ())
    assert status.use.disk
    assert status.expected is None
    assert status.sessions[0].expected
    assert all(one.expected is None for one in status.sessions if one.life is Life.QUEUED)


def test_a_pending_task_is_explained_in_slurms_word_and_with_what_it_asks_for() -> None:
    maze = told("maze_act", ANSWERED, *TASKS)
    assert maze.reasons == (
        "its task 12_2 is in Slurm's queue, Resources",
        "Slurm expects to start it at 10:45 (in 15 min)",
        "it asks for 1 GPU, 4 CPUs, 4 h",
    )
    field = told("field_act", ANSWERED, *TASKS)
    assert "QOSMaxGRESPerUser" in field.reasons[0]


def test_a_run_that_slurm_has_forgotten_is_resumed_by_command() -> None:
    status = seen(ANSWERED, dispatcher=None)
    assert status.hint.startswith("Slurm has none of its jobs any more")
    assert "combo resume" in status.hint
    assert "Slurm has none of its jobs" in told("maze_act", ANSWERED, dispatcher=None).reasons[0]


def test_lines_tell_when_slurm_falls_silent_and_when_it_answers_again() -> None:
    before, silent = seen(ANSWERED, *TASKS), seen(SILENT, *TASKS)
    assert any("Slurm: 3 tasks pending" in line for line in changes(None, before))
    assert any("! Slurm does not answer" in line for line in changes(before, silent))
    assert any("Slurm answers again" in line for line in changes(silent, before))
    assert not any("Slurm" in line for line in changes(before, before))


def test_json_has_the_scheduler_and_the_task_of_each_session() -> None:
    document = json.loads(to_json(seen(SILENT, *TASKS)))
    assert document["slurm"]["answered"] is False
    assert document["slurm"]["last_answer"] == NOW - 754
    assert document["sessions"][2]["task"] == {
        "job": "12_2",
        "attempt": 1,
        "state": "PENDING",
        "reason": "Resources",
        "node": None,
        "start": NOW + 900,
    }


def test_a_task_that_slurm_holds_is_told_with_what_lets_it_go() -> None:
    header = "tasks session=maze_act attempt=1 job=12_2 id= state=PENDING node= start= reason=JobHeldUser"
    status = seen(ANSWERED, header)
    assert status.hint == "Slurm holds 1 task: run `scontrol release 12` on login1 to continue"
    assert "scontrol release lets it go" in told("maze_act", ANSWERED, header).reasons[0]
    paused = seen(ANSWERED, header, "hold kind=paused why=lunch")
    assert "scontrol" not in paused.hint


@pytest.mark.parametrize(
    "left", ["attempt=1 state=COMPLETING", "attempt=2 state=PENDING", "attempt=2 state=CONFIGURING"]
)
def test_what_has_succeeded_is_not_undone_by_a_task_that_is_left(left: str) -> None:
    task = f"tasks session=grass_act {left} job=12_0 id=13 node=n1 start= reason=BeginTime"
    session = seen(ANSWERED, task, answer=(GRASS.ended(records=100, successes=91),)).sessions[0]
    assert (session.life, session.outcome) == (Life.ENDED, Outcome.SUCCEEDED)


def test_a_session_whose_task_vanished_is_not_called_lost_for_good_before_it_was_judged() -> None:
    assert seen(ANSWERED, answer=(GRASS,)).sessions[0].life is Life.RUNNING
    gone = replace(GRASS, life="lost")
    assert seen(ANSWERED, answer=(gone,)).sessions[0].note == "its task is gone; what ended it is not judged yet"
