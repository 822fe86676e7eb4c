"""Which attempt a start of a task makes, and how it lives and leaves."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from fake_cluster import Cluster, cluster, task
from recorded import queue_rows, record

from comborun.host.supervise import task as task_module
from comborun.host.supervise.attempt import Attempt
from comborun.host.supervise.task import SlurmPlace
from comborun.host.system import files
from comborun.rules.facts import Fact, fact_in
from comborun.rules.holds import HoldReason

__all__ = ["cluster"]


class Became(Exception):  # noqa: N818 - no error: the process is another program from here on
    """What a process would have become."""


@pytest.fixture
def run(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A task 7_0 for the first attempt of env_one."""
    told = {"SLURM_ARRAY_JOB_ID": "7", "SLURM_ARRAY_TASK_ID": "0", "SLURM_JOB_ID": "7", "SLURMD_NODENAME": "n1"}
    for name, value in {**told, "COMBORUN_SETTLE_S": "0"}.items():
        monkeypatch.setenv(name, value)
    for name in ("SLURM_RESTART_COUNT", "SLURM_JOB_GPUS", "CUDA_VISIBLE_DEVICES"):
        monkeypatch.delenv(name, raising=False)

    def become(program: str, words: list[str], *_: object) -> None:
        raise Became(" ".join(words))

    monkeypatch.setattr(os, "execv", become)
    monkeypatch.setattr(os, "execvp", become)
    cluster.batch(1, "env_one")
    (cluster.run / "dispatch/queue.jsonl").write_text(queue_rows(env_one=""))
    (cluster.run / "dispatch/policy.json").write_text(record(attempts=3, retry_error=1))
    cluster.answer(task("7_0", "RUNNING"))
    return cluster


def begins(run: Cluster) -> str:
    """The attempt that the task makes; empty where it leaves."""
    here = Path.cwd()
    try:
        assert task_module.main([str(run.run), "1"]) == 0
    except Became as became:
        return str(became).split()[-2]
    finally:
        os.chdir(here)
    return ""


def start(run: Cluster, number: int = 1) -> SlurmPlace:
    return SlurmPlace(Attempt(str(run.run), "env_one", str(number)))


def end(run: Cluster, **fields: str) -> None:
    """An end of the first attempt, which some start has claimed."""
    told = {"cause": "exited", "completeness": "none", "class": "error", "nonce": "feed", **fields}
    files.write(f"{run.at}/end", told.items())


def test_a_task_of_no_array_or_without_a_line_is_told(run: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    assert task_module.main([str(run.run), "2"]) == 66
    assert task_module.main([str(run.run), "x"]) == 64
    assert task_module.main([str(run.run / "dispatch"), "1"]) == 66
    monkeypatch.delenv("SLURM_ARRAY_JOB_ID")
    monkeypatch.delenv("SLURM_JOB_ID")
    assert task_module.main([str(run.run), "1"]) == 64


@pytest.mark.parametrize("what", ["held", "stopped", "dropped"])
def test_a_task_leaves_where_its_session_is_not_to_run(
    run: Cluster, what: str, capsys: pytest.CaptureFixture[str]
) -> None:
    if what == "held":
        files.write(
            str(run.run / "dispatch/hold"), [("kind", "paused"), ("reason", Fact(HoldReason.BY_PERSON, words=""))]
        )
    elif what == "stopped":
        (run.run / "dispatch/stopped").touch()
    else:
        (run.run / "dispatch/queue.jsonl").write_text(queue_rows(env_one="dropped"))
    assert begins(run) == ""
    fact, said = capsys.readouterr().out.splitlines()
    assert fact_in(fact).code == f"task_{what}"
    assert said.startswith("task: env_one: ")


def test_a_task_makes_the_attempt_that_it_was_submitted_for_unless_another_task_has_made_it(run: Cluster) -> None:
    assert begins(run) == "1"
    run.claimed(job="6_0")
    assert begins(run) == ""


def test_a_task_that_is_started_again_closes_what_its_earlier_start_left(
    run: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    run.claimed(judging={"results": {"files": ["*.jsonl"]}})
    out = Path(run.at) / "out-feed"
    out.mkdir()
    (Path(run.at) / "out").symlink_to(out.name)
    (Path(run.at) / "log").write_text("begun\n")
    (out / "records.jsonl").write_text('{"episode": 0, "success": true}\n')
    (out / "video.mp4").write_text("large")
    old = (out / "records.jsonl").open("a")
    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    assert begins(run) == "2"
    told = files.read(f"{run.at}/end")
    assert (told["cause"], told["nonce"], told["job"]) == ("lost", "feed", "7_0")
    with old:
        old.write('{"episode": 1, "success": true}\n')
    shown = Path(run.at) / "out"
    assert (shown / "records.jsonl").read_text().count("\n") == 1, "what readers see does not grow"
    assert (shown / "video.mp4").samefile(out / "video.mp4")
    assert begins(run) == "2", "who comes second finds it closed"


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"cause": "preempted"}, "2"),
        ({"cause": "lost"}, "2"),
        ({"cause": "exited", "class": "error"}, "2"),
        ({"cause": "exited", "class": "no_result"}, ""),
        ({"cause": "exited", "completeness": "complete"}, ""),
        ({"cause": "stopped"}, ""),
    ],
)
def test_another_start_makes_another_attempt_where_the_last_one_calls_for_it(
    run: Cluster, monkeypatch: pytest.MonkeyPatch, fields: dict[str, str], expected: str
) -> None:
    run.claimed()
    end(run, **fields)
    monkeypatch.setenv("SLURM_RESTART_COUNT", "1")
    assert begins(run) == expected


def test_the_gpus_of_the_allocation_are_granted(run: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    assert start(run).grant() == {"gpus": "", "slurm_gpus": "", "node": "n1"}
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0,1")
    assert start(run).grant()["gpus"] == "", "Slurm gave none"
    monkeypatch.setenv("SLURM_JOB_GPUS", "2,3")
    assert start(run).grant() == {"gpus": "0,1", "slurm_gpus": "2,3", "node": "n1"}
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "GPU-abc")
    assert start(run).grant()["gpus"] == "", "by name they stay as Slurm has put them"


def test_a_session_does_not_begin_if_the_run_was_stopped_after_its_task_had_looked(run: Cluster) -> None:
    """That stop saw no claim. An end that says so is a cancelled session, which the next start runs again."""
    assert begins(run) == "1"
    place = start(run)
    place.open()
    (run.run / "dispatch/stopped").touch()
    assert not place.claim([("first", 0), ("count", 3)])
    end = files.read(f"{run.at}/end")
    assert (end["cause"], end["outcome"], end["nonce"]) == ("stopped", "cancelled", place.nonce)
