"""What a pass over a run on Slurm decides and does, from files and from an answer of squeue."""

from __future__ import annotations

import os
import shlex
import time
from pathlib import Path

import pytest
from fake_cluster import Cluster, cluster, task
from happened import events
from recorded import queue_rows, record

from comborun.host.dispatch import slurm_reconcile
from comborun.host.record import recounts, together
from comborun.host.system import files
from comborun.host.verbs import start
from comborun.rules.endings.evidence import Evidence, fact
from comborun.rules.facts import Fact
from comborun.rules.holds import HoldReason
from comborun.rules.results.counts import NOT_IN_TIME, Counts

__all__ = ["cluster"]

PERSON = ("--multiplexer", "tmux")
"""options that mean nothing on Slurm"""
SLURM = {"SLURM_JOB_ID": "99", "SLURM_JOB_PARTITION": "main"}


@pytest.fixture
def run(cluster: Cluster, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    """A run of two sessions, looked at in a settle job, where nothing is to be waited for."""
    for name, value in {**SLURM, "COMBORUN_SETTLE_S": "0", "COMBORUN_LOCK_S": "0"}.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("SLURM_ARRAY_JOB_ID", raising=False)
    queue(cluster, env_one="", env_two="")
    policy = record(attempts=3, retry_lost=1, retry_error=1, slurm_array=500)
    (cluster.run / "dispatch/policy.json").write_text(policy)
    cluster.says("squeue")
    cluster.says("sbatch", "7\n")
    cluster.says("scancel")
    cluster.says("scontrol")
    return cluster


def queue(cluster: Cluster, **flags: str) -> None:
    (cluster.run / "dispatch/queue.jsonl").write_text(queue_rows(**flags))


def end(cluster: Cluster, name: str, number: int = 1, **fields: str) -> None:
    """A claim and an end of it; complete unless they say otherwise."""
    at = cluster.run / f"sessions/{name}/attempt-{number}"
    at.mkdir(parents=True, exist_ok=True)
    claim = {"nonce": f"feed{number}", "job": fields.pop("job", "7_0"), "restart": "0"}
    told = {"cause": "exited", "code": "0", "completeness": "complete", "records": "1", "ended": f"{1000 + number}"}
    files.write(str(at / "claim"), claim.items())
    files.write(str(at / "end"), {**told, "class": "", **claim, **fields}.items())


def submitted(cluster: Cluster, *tasks: str) -> None:
    """Both sessions were handed over as 7_0 and 7_1, of which squeue has these."""
    cluster.batch(1, "env_one", "env_two")
    (cluster.run / "slurm/jobs").write_text("7\t1\t1\t2\t0\n")
    cluster.says("squeue", "".join(f"{line}\n" for line in tasks))


def go(cluster: Cluster, *options: str) -> int:
    """A pass; with options what a person's launch or resume does."""
    return start.main([str(cluster.run), *options]) if options else slurm_reconcile.main([str(cluster.run)])


def done(cluster: Cluster) -> dict[str, str]:
    return files.read(str(cluster.run / "dispatch/done"))


def told(cluster: Cluster) -> list[tuple[str, str]]:
    """The kind and the session of each event."""
    return [(event.kind, event.session) for event in events(cluster.run)]


def test_a_run_is_submitted_settled_and_done(run: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    assert go(run, "--parallel", "4") == 0
    assert "submitted 2 of 2 sessions: job 7" in capsys.readouterr().out
    assert (run.run / "dispatch/slots").read_text() == "4\n"
    submitted(run, task("7_0", "RUNNING"), task("7_1", "RUNNING"))
    assert go(run, *PERSON) == 0
    assert "2 sessions are on their way; nothing else is due" in capsys.readouterr().out
    submitted(run)
    end(run, "env_one")
    end(run, "env_two")
    assert go(run) == 0
    end_of_run = done(run)
    assert (end_of_run["succeeded"], end_of_run["failed"], end_of_run["after"]) == ("2", "0", "")
    before = told(run)
    assert before[-3:] == [("ended", "env_one"), ("ended", "env_two"), ("done", "")]
    assert go(run) == 0
    assert told(run) == before, "what was told is not told again"
    assert go(run, *PERSON) == 0
    assert "nothing is left to do" in capsys.readouterr().out


def test_a_failure_is_tried_again_as_often_as_the_grid_says(run: Cluster) -> None:
    submitted(run, task("7_1", "RUNNING"))
    end(run, "env_one", cause="exited", code="1", completeness="none", **{"class": "error"})
    assert go(run) == 0
    assert (run.run / "slurm/batch-2.tsv").read_text() == "0\tenv_one\t2\n"
    end(run, "env_one", 2, cause="exited", code="1", completeness="none", **{"class": "error"})
    end(run, "env_two")
    run.says("squeue")
    assert go(run) == 0
    assert done(run)["failed"] == "1"


def test_a_lost_session_whose_files_take_long_holds_no_pass_up(run: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    submitted(run)
    end(run, "env_two")
    at = run.run / "sessions/env_one/attempt-1"
    (at / "out").mkdir(parents=True)
    files.write(str(at / "claim"), {"nonce": "feed1", "job": "7_0", "restart": "0"}.items())
    os.utime(at / "claim", (1, 1))
    monkeypatch.setattr(recounts, "LOST_S", -1.0)
    monkeypatch.setattr(recounts, "READ_AT_ONCE", -1)
    monkeypatch.setattr(together, "judge", lambda *_: time.sleep(600))
    assert go(run) == 0
    (told,) = Counts.of(files.read(str(at / "end"))).facts
    assert (told.code, told.number("seconds")) == (NOT_IN_TIME, 1)


def test_what_was_cancelled_in_slurm_before_it_began_is_cancelled(run: Cluster) -> None:
    submitted(run)
    end(run, "env_two")
    assert go(run) == 0
    told = files.read(str(run.run / "sessions/env_one/attempt-1/end"))
    assert (told["cause"], told["ending"]) == ("stopped", (fact(Evidence.TASK_CANCELLED),))
    assert done(run)["cancelled"] == "1"
    assert go(run, *PERSON) == 0, "a person asks for it again"
    assert (run.run / "slurm/batch-2.tsv").read_text() == "0\tenv_one\t2\n"


@pytest.mark.parametrize(
    ("said", "cause"), [("bash: no such file\n", "launch_failed"), ('{"code": "task_stopped"}\ntask: left\n', "")]
)
def test_a_task_that_claimed_nothing_is_told_by_its_output(run: Cluster, said: str, cause: str) -> None:
    submitted(run)
    end(run, "env_two")
    (run.run / "slurm/out/7_0").write_text(said)
    assert go(run) == 0
    assert files.read(str(run.run / "sessions/env_one/attempt-1/end")).get("cause", "") == cause
    assert (run.run / "slurm/batch-2.tsv").exists() is (not cause)


def test_a_task_that_holds_its_gpus_waits_for_nothing(run: Cluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SLURM_ARRAY_JOB_ID", "7")
    submitted(run, task("7_1", "RUNNING"))
    run.claimed()
    assert go(run) == 0
    assert not (Path(run.at) / "end").exists()


def test_others_wait_for_the_smoke_test_and_a_failed_one_holds_the_run(run: Cluster) -> None:
    queue(run, env_one="smoke", env_two="")
    assert go(run, *PERSON) == 0
    assert (run.run / "slurm/batch-1.tsv").read_text() == "0\tenv_one\t1\n"
    end(run, "env_one", cause="exited", code="0", completeness="none", records="0", **{"class": "no_result"})
    run.says("squeue")
    assert go(run) == 0
    hold = Fact(HoldReason.SMOKE_TEST_UNPROVEN, sessions=["env_one"], whys=[[]])
    assert files.read(str(run.run / "dispatch/hold"))["reason"] == hold
    assert not (run.run / "slurm/batch-2.tsv").exists()


def test_a_held_run_submits_nothing_and_says_what_lets_it_go_on(
    run: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    files.write(str(run.run / "dispatch/hold"), [("kind", "paused"), ("at", "1"), ("why", "by hand")])
    assert go(run) == 0
    assert go(run, *PERSON) == 0
    said = capsys.readouterr().out
    assert said.startswith("the run is paused (by hand)")
    assert shlex.split(said.partition("To resume: ")[2]) == ["bash", str(run.run / "run_parallel.sh"), "resume"]
    assert not (run.run / "slurm/batch-1.tsv").exists()


def test_a_slurm_that_does_not_answer_is_told(run: Cluster, capsys: pytest.CaptureFixture[str]) -> None:
    submitted(run)
    run.says("squeue", code=1, complaint="squeue: error: Unable to contact slurm controller\n")
    assert (go(run), go(run, *PERSON)) == (75, 75)
    assert "Slurm does not answer: squeue: error: Unable to contact" in capsys.readouterr().err
    end(run, "env_one")
    end(run, "env_two")
    assert go(run) == 0, "all have ended, whatever Slurm has to say"
    assert done(run)["succeeded"] == "2"


def test_what_slurm_refuses_is_told_and_two_do_not_settle_at_once(
    run: Cluster, capsys: pytest.CaptureFixture[str]
) -> None:
    run.says("sbatch", code=1, complaint="sbatch: error: Invalid account\n")
    assert go(run, *PERSON) == 78
    assert "Slurm refuses: sbatch: error: Invalid account" in capsys.readouterr().err
    files.write(str(run.run / "dispatch/slurm.lock"), [("boot", "elsewhere"), ("pid", "1"), ("start", "1")])
    assert go(run) == 75
    assert "another process" in capsys.readouterr().err


def test_words_that_make_no_sense_are_refused(run: Cluster, tmp_path: Path) -> None:
    assert go(run, "--parallel", "0") == 64
    assert go(run, "--nonsense") == 64
    assert slurm_reconcile.main([str(tmp_path)]) == 66
