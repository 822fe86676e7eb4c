"""A run on Slurm ends like any other, and is steered and stopped with the same scripts."""

from __future__ import annotations

import shutil
from dataclasses import replace

import pytest
from box import bash
from slurm_box import SlurmBox
from traces import HOLD

from comborun.model.resources import Display, SlurmOptions
from comborun.words.endings import said

RECORDS = """for i in $(seq "$COMBORUN_FIRST_EPISODE" "$COMBORUN_LAST_EPISODE"); do
printf '{"episode": %d, "success": true}\\n' $i >>"$COMBORUN_OUTPUT_DIR/records.jsonl"; done"""
RESULTS = ("*.jsonl",)


def test_a_run_of_several_sessions_ends_like_one_of_the_dispatcher(slurm_box: SlurmBox) -> None:
    box = slurm_box
    sessions = {f"env_{name}": bash(RECORDS, count=3, results=RESULTS) for name in ("one", "two", "three")}
    waits = "until [[ -e $COMBORUN_RUN_DIR/go ]]; do sleep 0.1; done; [[ $COMBORUN_ATTEMPT == 2 ]] || kill -SEGV $$; "
    failing = bash(waits + RECORDS, count=3, results=RESULTS)
    after = bash('ls "$COMBORUN_RESULTS_DIR" | wc -l')
    box.lay_out({**sessions, "env_four": failing, "after": after}, policy={"retry_crashed": 1})
    assert "submitted 4 of 4 sessions" in box.submit()
    assert "on their way" in box.submit()
    (box.directory / "go").touch()
    done = box.await_end()
    assert (done["succeeded"], done["after"]) == ("4", "succeeded")
    assert box.log("after").strip() == "4"
    assert [cause for cause, _ in box.ends("env_four")] == ["signal", "exited"]
    for name in box.names[:3]:
        assert box.ends(name) == [("exited", "complete")]
    assert "nothing is left to do" in box.submit()


def test_variables_of_the_caller_change_no_option_of_the_grid(slurm_box: SlurmBox) -> None:
    box = slurm_box
    caller = {"PARTITION": "urgent", "TIMELIMIT": "1", "MEM_PER_NODE": "50M", "ARRAY_INX": "0-3", "QOS": ""}
    box.environment.update({f"SBATCH_{name}": value for name, value in caller.items()}, SQUEUE_STATES="SUSPENDED")
    keys = SlurmOptions(options=("--partition=main",))
    box.lay_out({"env_one": bash(HOLD), "env_two": bash(HOLD)}, keys=keys)
    said = box.submit()
    assert "submitted 2 of 2 sessions" in said
    assert "SBATCH_TIMELIMIT=1 of your environment counts: the grid gives no --time" in said
    assert "SBATCH_PARTITION=urgent of your environment does not count" in said
    box.begun("env_one")
    jobs = box.slurm.command("squeue", "-h", "-r", "-o", "%P %l %m %j").stdout.splitlines()
    tasks = [line for line in jobs if not line.endswith("settle")]
    assert [line.split()[:3] for line in tasks] == [["main", "1:00", "200M"]] * 2, jobs
    (settle,) = (line for line in jobs if line.endswith("settle"))
    assert settle.split()[:3] == ["urgent", "30:00", "100M"], "it goes where the grid does not say"
    box.stop()


def test_a_run_is_stopped_with_all_that_it_started(slurm_box: SlurmBox) -> None:
    box = slurm_box
    child = "(trap '' INT TERM; setsid sleep 300) & " + HOLD
    box.lay_out({"env_one": bash(child), "env_two": bash(HOLD), "env_three": bash(HOLD)})
    box.submit("--parallel", "2")
    begun = box.begun("env_one")
    box.begun("env_two")
    named = {task.name for task in box.slurm.tasks() if task.state == "RUNNING"}
    assert named == {f"env_one.{box.id}.1", f"env_two.{box.id}.1"}, "squeue shows what each task runs"
    box.environment["COMBORUN_ASK_S"] = "0"
    task = next(task for task in box.look()["tasks"] if task["session"] == "env_one")
    assert (task["state"], task["node"], task["job"]) == ("RUNNING", begun.host, begun.address)
    stopped = box.stop("env_two")
    assert stopped.returncode == 0, stopped.stdout + stopped.stderr
    assert box.ends("env_two") == [("stopped", "none")]
    stopped = box.stop()
    assert stopped.returncode == 0, stopped.stdout + stopped.stderr
    assert box.ends("env_one") == [("stopped", "none")]
    box.wait_for(lambda: not box.slurm.tasks(), "nothing of it is in the queue")
    assert not box.marked()
    assert not box.done
    box.write("go", "")
    assert "submitted 3 of 3" in box.submit()
    assert box.await_end()["succeeded"] == "3"


def test_what_is_tried_again_shares_the_places_of_the_rest(slurm_box: SlurmBox) -> None:
    box = slurm_box
    box.lay_out({f"env_{name}": bash(HOLD) for name in ("one", "two", "three")})
    box.submit("--parallel", "2")
    box.begun("env_one")
    box.begun("env_two")
    assert box.stop("env_one").returncode == 0
    assert box.program("control", "retry", "env_one").returncode == 0
    box.begun("env_three")
    assert "submitted 1 of 1" in box.submit()
    again = max(int(task.id.partition("_")[0]) for task in box.slurm.tasks() if "_" in task.id)
    told = box.slurm.command("scontrol", "show", "job", f"{again}_0").stdout
    assert "Dependency=afterany" in told, f"two run, and it is the turn of none: {told}"
    assert box.stop("env_two").returncode == 0
    box.begun("env_one", 2)
    box.write("go", "")
    assert box.await_end()["succeeded"] == "2"


def test_what_runs_is_stopped_though_slurm_does_not_answer(slurm_box: SlurmBox) -> None:
    box = slurm_box
    box.lay_out({"env_one": bash(HOLD)})
    box.submit()
    box.begun("env_one")
    box.slurm.kill("slurmctld")
    box.environment["COMBORUN_SLURM_S"] = "1"
    stopped = box.stop("env_one")
    assert "does not answer" in stopped.stderr
    assert stopped.returncode == 0, stopped.stdout + stopped.stderr
    assert box.ends("env_one") == [("stopped", "none")]


def test_a_session_has_its_display_in_a_task_too_or_is_told_why_not(slurm_box: SlurmBox) -> None:
    box = slurm_box
    if not shutil.which("Xvfb"):
        pytest.skip("Xvfb is not here")
    draw, at = '[[ "$DISPLAY" == "$0" && "$0" == :* ]]', '"$COMBORUN_DISPLAY"'
    one = bash(draw, more={"display": Display("xvfb")})
    other = bash(draw, more={"display": Display(by_gpu=((0, 8), (1, 9)))})
    box.lay_out(
        {"env_one": replace(one, command=(*one.command, at)), "env_two": replace(other, command=(*other.command, at))}
    )
    box.submit()
    assert box.await_end()["succeeded"] == "1", box.story()
    assert box.ends("env_two") == [("launch_failed", "none")]
    assert "no display for GPU" in said(box.fields("sessions/env_two/attempt-1/end"))
