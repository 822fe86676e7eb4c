"""What is told from squeue's answer and from files, and what Slurm is asked, with commands that only write down."""

from __future__ import annotations

from pathlib import Path

import pytest
from fake_cluster import Cluster, cluster, task

from comborun.host.engines.arrays import Arrays, follow_command
from comborun.host.engines.slurm import Slurm
from comborun.host.record.backend import Backend
from comborun.host.system import files
from comborun.rules.facts import Fact
from comborun.rules.names import AttemptLayout, RunLayout

__all__ = ["cluster"]


def test_an_attempt_lives_while_slurm_has_its_task_and_while_its_heart_beats(cluster: Cluster) -> None:
    claim = cluster.claimed()
    cluster.batch(1, "env_one")
    assert cluster.answer(task("7_0", "RUNNING")).life(AttemptLayout(cluster.at), claim) == "running"
    assert cluster.answer(task("7_0", "PENDING")).life(AttemptLayout(cluster.at), claim) == "lost"
    assert cluster.answer().life(AttemptLayout(cluster.at), claim) == "lost"
    files.write_text(AttemptLayout(cluster.at).heartbeat, "")
    seen = cluster.answer()
    assert (seen.life(AttemptLayout(cluster.at), claim), seen.forgot(AttemptLayout(cluster.at), claim)) == (
        "running",
        True,
    )
    cluster.age("heartbeat")
    assert cluster.answer().life(AttemptLayout(cluster.at), claim) == "lost"
    for name in ("heartbeat", "claim"):
        Path(f"{cluster.at}/{name}").unlink()
    assert cluster.answer().life(AttemptLayout(cluster.at), claim) == "running", "nothing can be told of its beat"


def test_what_slurm_said_of_an_earlier_start_is_passed_over(cluster: Cluster) -> None:
    said = "slurmstepd: error: *** JOB 2 ON n1 CANCELLED AT x DUE TO PREEMPTION ***\n"
    (cluster.run / "slurm/out/7_0").write_text(said)
    seen = cluster.answer()
    assert seen.why(cluster.claimed(said="0"), {})[0] == "preempted"
    assert seen.why(cluster.claimed(said=str(len(said))), {}) == ("lost", [Fact("task_gone")])


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


def test_what_a_job_was_given_does_not_reach_what_it_submits(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    (cluster.programs / "sbatch").write_text(f'#!/bin/sh\nenv >"{cluster.words}"\necho 7\n')
    (cluster.programs / "sbatch").chmod(0o755)
    for name in ("SLURM_JOB_ID", "SLURM_CONF", "SLURMD_NODENAME", "CUDA_VISIBLE_DEVICES", "HERE"):
        monkeypatch.setenv(name, "1")
    assert Arrays(Slurm(RunLayout(str(cluster.run)))).settle() == "7"
    names = {line.partition("=")[0] for line in cluster.told()}
    assert {"SLURM_CONF", "HERE"} <= names
    assert not names & {"SLURM_JOB_ID", "SLURMD_NODENAME", "CUDA_VISIBLE_DEVICES"}


def test_nothing_of_this_machine_answers_for_a_run_on_slurm() -> None:
    assert {name for name in vars(Backend) if not name.startswith("_")} <= vars(Slurm).keys()
