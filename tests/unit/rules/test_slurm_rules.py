"""What squeue and slurmstepd say, and how places are shared, without a Slurm."""

from __future__ import annotations

import pytest

from comborun.rules import slurm
from comborun.rules.slurm import is_held, is_silence, refusal, rows, shares, tasks_of, turn, why

RUN = "grid-20260101T000000Z-abcd"
CANCELLED = "slurmstepd-n1: error: *** JOB 2 ON n1 CANCELLED AT 2026-11-22T06:06:43"


@pytest.mark.parametrize(
    ("output", "cause"),
    [
        ([f"{CANCELLED} ***"], "stopped"),
        ([f"{CANCELLED} DUE TO TIME LIMIT ***"], "timed_out"),
        ([f"{CANCELLED} DUE TO PREEMPTION ***"], "preempted"),
        ([f"{CANCELLED} DUE TO JOB REQUEUE ***", "the program's last words"], "preempted"),
        ([f"{CANCELLED} DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***"], "lost"),
        (["slurmstepd: error: Exceeded job memory limit", f"{CANCELLED} ***"], "host_memory"),
        (
            ["slurmstepd: error: Detected 1 oom-kill event(s) in StepId=2.batch. Some of it was OOM Killed."],
            "host_memory",
        ),
        (["the program says: CANCELLED AT once DUE TO TIME LIMIT"], None),
        ([], None),
    ],
)
def test_why_slurm_ended_a_task_is_told_in_its_own_words(output: list[str], cause: str | None) -> None:
    told = why(output)
    assert (told and told[0]) == cause
    assert not told or told[1].code == "slurm_says"


def test_tasks_are_those_of_the_run_with_the_session_that_their_batch_has_for_them() -> None:
    lines = [
        f"7_0|PENDING||9|N/A|{RUN}.1|Resources",
        f"7_1|RUNNING|n1|10|2026-01-01T00:00:00|env_two.{RUN}.1|None",
        f"8|PENDING||8|N/A|{RUN}.settle|launch failed requeued held",
        f"9_0|PENDING||11|N/A|{RUN}x.1|Resources",
        f"9_0|PENDING||11|N/A|{RUN}.1x|Resources",
        f"9_0|PENDING||11|N/A|{RUN}.1.of_another|Resources",
        "torn|PEND",
        "",
    ]
    found = {task.id: task for task in tasks_of(lines, RUN, {"1": rows("0\tenv_one\t2\n1\tenv_two\t1\nx\ty\n")})}
    assert set(found) == {"7_0", "7_1", "8"}
    assert (found["7_0"].session, found["7_0"].attempt, found["7_0"].array) == ("env_one", 2, "7")
    assert (found["7_1"].node, found["8"].batch, found["8"].session) == ("n1", "settle", "")
    assert [found[task].held for task in ("7_0", "7_1", "8")] == [False, False, True]


def test_what_waits_for_a_release_is_held() -> None:
    held = ("JobHeldUser", "(JobHeldAdmin)", "launch_failed_requeued_held", "job requeued in held state")
    assert [reason for reason in (*held, "Resources") if is_held(reason)] == [*held]


def test_what_has_ended_meanwhile_is_no_refusal() -> None:
    assert refusal("27_0: Job has already finished\n27_1-9: No error\n") == ""
    assert refusal("scontrol: error: Access/permission denied\n") == "scontrol: error: Access/permission denied"
    assert is_silence("slurm_load_jobs error: Unable to contact slurm controller")
    assert not is_silence("Access/permission denied")


@pytest.mark.parametrize(
    ("places", "live", "expected"),
    [(4, [10], [4]), (4, [2, 5], [2, 2]), (4, [10, 10], [3, 1]), (3, [1, 1, 9], [1, 1, 1]), (2, [9, 9, 9], [1, 1, 1])],
)
def test_the_oldest_array_takes_what_it_can_use_and_each_has_one(
    places: int, live: list[int], expected: list[int]
) -> None:
    assert shares(places, live) == expected


def test_a_new_array_waits_for_the_one_that_leaves_it_a_place() -> None:
    assert turn(3, ["7", "8"], [], 1) == ""
    assert turn(2, ["7"], ["7_0", "7_1"], 1) == "afterany:7_0?afterany:7_1"
    assert turn(2, ["7", "8"], ["7_0"], 1) == "afterany:7"
    assert turn(2, ["7", "8", "9"], ["7_0"], 1) == "afterany:8"


@pytest.mark.parametrize(
    ("life", "cause", "facts", "expected"),
    [
        ("queued", "", (), "queued"),
        ("queued", "", ("sent", "submitted"), "sent"),
        ("queued", "", ("submitted",), "gone"),
        ("starting", "", (), "running"),
        ("running", "", (), "running"),
        ("running", "", ("forgot",), "stray"),
        ("running", "", ("forgot", "restarts"), "sent"),
        ("lost", "", ("forgot",), "lost"),
        ("lost", "", ("forgot", "restarts"), "sent"),
        ("ended", "exited", (), "ended"),
        ("ended", "exited", ("restarts",), "ended"),
        ("ended", "exited", ("sent",), "sent"),
        ("ended", "exited", ("submitted",), "gone"),
        ("ended", "preempted", ("restarts",), "sent"),
        ("ended", "lost", ("restarts",), "sent"),
        ("ended", "lost", (), "ended"),
    ],
)
def test_where_a_session_is_follows_from_its_files_and_from_what_slurm_has(
    life: str, cause: str, facts: tuple[str, ...], expected: str
) -> None:
    assert slurm.life(life, cause, facts) == expected
