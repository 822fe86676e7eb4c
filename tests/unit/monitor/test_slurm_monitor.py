"""What a person sees of a run on Slurm: the table, why a task waits, and a Slurm that does not answer."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from monitor_stage import NOW, Seen, a_hold, a_host, a_plan, a_session, a_view, an_answer, look_at, picture

from comborun.model.resources import SlurmOptions
from comborun.monitor.classify import classify
from comborun.monitor.document import to_json
from comborun.monitor.explain import Explanation, explain
from comborun.monitor.observe import History
from comborun.monitor.screen import changes
from comborun.monitor.status import RunStatus
from comborun.rules.facts import Fact
from comborun.rules.host import Silence
from comborun.rules.room.capacity import Request
from comborun.rules.vocabulary import Life, Outcome

GOLDEN = Path(__file__).parents[2] / "golden" / "monitor"
NAMES = ("grass", "stairs", "maze", "field", "dunes")
PLAN = replace(
    a_plan([replace(a_session("act", name), gpus=1, request=Request(cpus=4)) for name in NAMES], parallel=5),
    slurm=SlurmOptions(("--partition=gpu",), minutes=240),
)
VIEW = a_view(PLAN, host="login1")
ANSWERED = {"scheduler": {"at": NOW - 2, "answered": True}}
UNABLE = "squeue: error: Unable to contact slurm controller"
SILENT = {
    "scheduler": {"at": NOW - 754, "answered": False, "reason": Fact(Silence.ANSWERED_WITH, said=UNABLE).as_data()}
}


def a_task(session: str, job: str, state: str = "PENDING", attempt: int = 1, **fields: object) -> dict[str, Any]:
    return {"tasks": [{"session": session, "job": job, "state": state, "attempt": attempt, **fields}]}


TASKS = (
    a_task("grass_act", "12_0", "RUNNING", id="13", node="n1", start=NOW - 300, reason="None"),
    a_task("stairs_act", "12_1", "CONFIGURING", id="14", node="n2", reason="None"),
    a_task("maze_act", "12_2", start=NOW + 900, reason="Resources"),
    a_task("field_act", "12_3", reason="(QOSMaxGRESPerUser)"),
    a_task("dunes_act", "15_0", attempt=2, reason="BeginTime"),
)
GRASS = Seen("grass_act", started=NOW - 290, counts=(60, 50), log=b"episode 60: success\n", gpus="3")
DUNES = Seen("dunes_act", started=NOW - 900).ended("signal", "none", code=137, signal=9, **{"class": "killed"})


def look(*header: Mapping[str, Any], answer: tuple[Seen, ...] = (GRASS, DUNES), **fields: object) -> History:
    tasks = [replace(one, address="12_0", multiplexer="slurm", host="n1") for one in answer]
    text = an_answer(*tasks, host=(*a_host(), *header), **{"dispatcher": 0, **fields})  # type: ignore[arg-type]
    return look_at(text)


def seen(*header: Mapping[str, Any], **fields: Any) -> RunStatus:
    return classify(VIEW, look(*header, **fields))


def told(name: str, *header: Mapping[str, Any], **fields: Any) -> Explanation:
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
        Fact("task_is_queued", job="12_2", task=Fact("task_waits", reason="Resources").as_data()),
        Fact("slurm_expects_start", at=NOW + 900, in_s=900),
        Fact("task_asks_for", asks="1 GPU, 4 CPUs, 4 h"),
    )
    (field, *_) = told("field_act", ANSWERED, *TASKS).reasons
    assert field.fields["task"]["reason"] == "QOSMaxGRESPerUser"


def test_a_run_that_slurm_has_forgotten_is_resumed_by_command() -> None:
    status = seen(ANSWERED, dispatcher=None)
    assert status.advice == Fact("slurm_has_no_job", run=VIEW.id)
    assert told("maze_act", ANSWERED, dispatcher=None).reasons[0] == status.advice


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
    header = a_task("maze_act", "12_2", reason="JobHeldUser")
    status = seen(ANSWERED, header)
    assert status.advice == Fact("slurm_holds_tasks", run=VIEW.id, tasks=1, arrays=["12"], host="login1")
    (held, *_) = told("maze_act", ANSWERED, header).reasons
    assert held.fields["task"] == {"code": "task_held_by_slurm", "reason": "JobHeldUser"}
    paused = seen(ANSWERED, header, a_hold("paused", "lunch"))
    assert paused.advice
    assert paused.advice.code == "run_held"


@pytest.mark.parametrize("left", [(1, "COMPLETING"), (2, "PENDING"), (2, "CONFIGURING")])
def test_what_has_succeeded_is_not_undone_by_a_task_that_is_left(left: tuple[int, str]) -> None:
    task = a_task("grass_act", "12_0", left[1], left[0], id="13", node="n1", reason="BeginTime")
    session = seen(ANSWERED, task, answer=(GRASS.ended(records=100, successes=91),)).sessions[0]
    assert (session.life, session.outcome) == (Life.ENDED, Outcome.SUCCEEDED)


def test_a_session_whose_task_vanished_is_not_called_lost_for_good_before_it_was_judged() -> None:
    assert seen(ANSWERED, answer=(GRASS,)).sessions[0].life is Life.RUNNING
    gone = replace(GRASS, life="lost")
    assert seen(ANSWERED, answer=(gone,)).sessions[0].facts == (Fact("task_is_gone"),)


def test_a_task_that_is_left_after_a_stop_does_not_hide_how_its_session_ended() -> None:
    status = seen(ANSWERED, TASKS[-1], answer=(DUNES,), stopped=True, dispatcher=None)
    assert status.finished
    grass, *_, dunes = status.sessions
    assert (dunes.life, dunes.outcome, dunes.task) == (Life.ENDED, Outcome.FAILED, None)
    assert (grass.life, grass.outcome) == (Life.ENDED, Outcome.CANCELLED)


def test_a_task_that_has_begun_shows_nothing_of_the_attempt_before_it() -> None:
    task = a_task("dunes_act", "15_0", "RUNNING", attempt=2, node="n2")
    dunes = seen(ANSWERED, task, answer=(replace(DUNES, gpus="3"),)).sessions[-1]
    assert (dunes.life, dunes.attempt, dunes.node) == (Life.STARTING, 2, "n2")
    assert (dunes.gpus, dunes.facts, dunes.failure, dunes.last_line) == ((), (), None, "")


def test_no_retry_is_offered_while_slurm_has_its_next_task() -> None:
    words = [one.words.split()[0] for one in told("dunes_act", ANSWERED, *TASKS).commands]
    assert "retry" not in words
    assert "retry" in [one.words.split()[0] for one in told("dunes_act", ANSWERED).commands]
