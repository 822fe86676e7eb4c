"""What is told from squeue's answer and from files, and what Slurm is asked, with commands that only write down."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest
from fake_cluster import HOUR, RUN, Cluster, cluster, task
from recorded import record

from comborun.host import files
from comborun.host.engines.arrays import Arrays, Due, follow_command
from comborun.host.engines.slurm import Slurm
from comborun.rules.names import RunLayout

__all__ = ["cluster"]


def test_an_attempt_lives_while_slurm_has_its_task_and_while_its_heart_beats(cluster: Cluster) -> None:
    claim = cluster.claimed()
    cluster.batch(1, "env_one")
    assert cluster.answer(task("7_0", "RUNNING")).life(cluster.at, claim) == "running"
    assert cluster.answer(task("7_0", "PENDING")).life(cluster.at, claim) == "lost"
    assert cluster.answer().life(cluster.at, claim) == "lost"
    files.write_text(f"{cluster.at}/beat", "")
    seen = cluster.answer()
    assert (seen.life(cluster.at, claim), seen.forgot(cluster.at, claim)) == ("running", True)
    cluster.age("beat")
    assert cluster.answer().life(cluster.at, claim) == "lost"


def test_a_beat_of_which_nothing_can_be_told_is_not_missing(cluster: Cluster) -> None:
    claim = cluster.claimed()
    seen = cluster.answer()
    Path(f"{cluster.at}/claim").unlink()
    assert seen.life(cluster.at, claim) == "running"


def test_a_slurm_that_is_silent_changes_nothing_and_neither_does_an_answer_older_than_the_claim(
    cluster: Cluster,
) -> None:
    claim = cluster.claimed()
    cluster.answer()
    (cluster.run / "slurm/silent").write_text('{"since": 1, "why": "silence"}\n')
    assert Slurm(RunLayout(str(cluster.run))).life(cluster.at, claim) == "running"
    (cluster.run / "slurm/silent").unlink()
    assert Slurm(RunLayout(str(cluster.run))).life(cluster.at, claim) == "lost"
    then = time.time() - 2 * HOUR
    os.utime(cluster.run / "slurm/states", (then, then))
    assert Slurm(RunLayout(str(cluster.run))).life(cluster.at, claim) == "running"


def test_what_slurm_said_of_an_earlier_start_is_passed_over(cluster: Cluster) -> None:
    said = "slurmstepd: error: *** JOB 2 ON n1 CANCELLED AT x DUE TO PREEMPTION ***\n"
    (cluster.run / "slurm/out/7_0").write_text(said)
    seen = cluster.answer()
    assert seen.why(cluster.claimed(said="0"))[0] == "preempted"
    assert seen.why(cluster.claimed(said=str(len(said)))) == ("lost", "its task is gone, and its end was not recorded")


def test_an_answer_that_is_young_is_not_asked_for_again_unless_more_was_submitted_since(cluster: Cluster) -> None:
    cluster.says("squeue")
    (cluster.run / "slurm/jobs").write_text("7\t1\t1\t2\t0\n")
    then = time.time() - HOUR
    os.utime(cluster.run / "slurm/jobs", (then, then))
    seen = cluster.answer()
    assert seen.refresh()
    assert cluster.told() == []
    later = time.time() + 1
    os.utime(cluster.run / "slurm/jobs", (later, later))
    assert seen.refresh()
    assert cluster.told() == [f"squeue -h -r --name={RUN}.settle -o %i|%T|%N|%A|%S|%j|%r"]


def test_a_slurm_that_is_silent_is_asked_once(cluster: Cluster) -> None:
    cluster.says("squeue", code=1, complaint="slurm_load_jobs error: Unable to contact slurm controller\n")
    cluster.says("scontrol")
    (cluster.run / "slurm/jobs").write_text("7\t1\t1\t1\t0\n")
    seen = cluster.answer(task("7_0", "PENDING"))
    assert not seen.ask()
    assert "Unable to contact" in seen.silence
    assert "Unable to contact" in seen.order("scontrol", "hold", "7")
    seen.at = time.time() - HOUR
    assert not seen.refresh()
    assert len(cluster.told()) == 1
    seen.young_s = 0
    assert not seen.refresh()
    assert len(cluster.told()) == 1
    cluster.says("squeue")
    assert seen.ask()
    assert not seen.silence
    assert seen.order("scontrol", "hold", "7") == ""


def test_a_settle_job_that_slurm_could_not_start_is_let_go_with_the_tasks_and_held_with_none(cluster: Cluster) -> None:
    cluster.says("scontrol")
    cluster.batch(1, "env_one")
    waits = task("7_0", "PENDING", reason="JobHeldUser")
    seen = cluster.answer(waits, task("8", "PENDING", "settle", "launch failed requeued held"))
    assert seen.release() == ""
    assert seen.hold() == ""
    assert cluster.told() == ["scontrol release 7_0,8", "scontrol hold 7"]
    assert cluster.answer(task("8", "PENDING", "settle", "Dependency")).release() == ""
    assert cluster.told() == []


def test_a_word_that_slurm_does_not_hear_is_told(cluster: Cluster) -> None:
    cluster.batch(1, "env_one")
    (cluster.run / "slurm/jobs").write_text("7\t1\t1\t1\t0\n")
    cluster.says("squeue", task("7_0", "PENDING") + "\n")
    cluster.says("scontrol", code=1, complaint="scontrol: error: Access/permission denied\n")
    seen = Slurm(RunLayout(str(cluster.run)))
    assert seen.refresh()
    assert follow_command(seen, "pause", []) == "Slurm refuses: scontrol: error: Access/permission denied"
    cluster.says("squeue", code=1, complaint="squeue: error: Unable to contact\n")
    seen.ask()
    assert "does not answer" in follow_command(seen, "pause", [])


def test_a_submission_is_one_array_for_what_asks_for_the_same(cluster: Cluster) -> None:
    cluster.says("sbatch", "7;mine\n")
    (cluster.run / "dispatch/slurm.json").write_text(record(env_one=1, env_two=1, env_three=2))
    (cluster.run / "dispatch/policy.json").write_text(record(slurm_array=500))
    arrays = Arrays(Slurm(RunLayout(str(cluster.run))))
    arrays.submit([Due("env_one", 1), Due("env_two", 2), Due("env_three", 1, 30)])
    first, second, *settles = cluster.told()
    assert f"--array=0-1 --job-name={RUN}.1 " in first
    assert first.endswith(f"slurm/array-1.sh {cluster.run} 1")
    assert "--dependency" not in first
    assert f"--begin=now+30 --array=0-0 --job-name={RUN}.2 " in second
    assert len(settles) == 2
    assert all(
        "--dependency=afterany:7 " in line and line.endswith(f"slurm/settle.sh {cluster.run}") for line in settles
    )
    assert (arrays.sent, arrays.jobs, arrays.complaint) == (3, ["7", "7"], "")
    assert (cluster.run / "slurm/batch-1.tsv").read_text() == "0\tenv_one\t1\n1\tenv_two\t2\n"
    jobs = [line.split("\t")[:4] for line in (cluster.run / "slurm/jobs").read_text().splitlines()]
    assert jobs[:2] == [["-", "1", "1", "2"], ["7", "1", "1", "2"]]


def test_a_new_array_has_its_share_of_the_places_of_the_whole_run(cluster: Cluster) -> None:
    cluster.says("sbatch", "9\n")
    cluster.says("scontrol")
    (cluster.run / "dispatch/slots").write_text("2\n")
    cluster.batch(1, "env_one", "env_two", "env_three")
    seen = cluster.answer(task("7_0", "RUNNING"), task("7_1", "RUNNING"), task("7_2", "PENDING"))
    arrays = Arrays(seen)
    arrays.submit([Due("env_four", 1)])
    told = cluster.told()
    assert "scontrol update jobid=7 ArrayTaskThrottle=1" in told
    (line,) = [words for words in told if "batch-" not in words and "--array=" in words]
    assert "--dependency=afterany:7_0?afterany:7_1 --array=0-0%1 " in line
    assert arrays.share() == ""
    assert cluster.told() == [], "what Slurm was told already is not told again"


def test_what_a_job_was_given_does_not_reach_what_it_submits(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    (cluster.programs / "sbatch").write_text(f'#!/bin/sh\nenv >"{cluster.words}"\necho 7\n')
    (cluster.programs / "sbatch").chmod(0o755)
    for name in ("SLURM_JOB_ID", "SLURM_CONF", "SLURMD_NODENAME", "CUDA_VISIBLE_DEVICES", "HERE"):
        monkeypatch.setenv(name, "1")
    assert Arrays(Slurm(RunLayout(str(cluster.run)))).settle() == "7"
    names = {line.partition("=")[0] for line in cluster.told()}
    assert {"SLURM_CONF", "HERE"} <= names
    assert not names & {"SLURM_JOB_ID", "SLURMD_NODENAME", "CUDA_VISIBLE_DEVICES"}
