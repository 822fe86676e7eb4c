"""When sessions start beside others: spacing, warming up, fewer at once after an out-of-memory; and whether they sit
where they should. With real processes and the stand-in for nvidia-smi that counts what they hold."""

from __future__ import annotations

from pathlib import Path

import pytest
from box import Box, bash, until
from happened import events
from nvidia import Gpus, uuid
from recorded import record
from traces import HOLD, RECORD

from comborun.model.judging import ProgressRules
from comborun.rules.endings.evidence import Evidence, fact
from comborun.rules.room.capacity import Request

NAMES = [f"env_p{i}" for i in range(6)]
ON_WRONG_GPU = fact(Evidence.WRONG_GPU, used=[[0, 1000], [1, 700]], granted=[0])


@pytest.fixture
def gpus(box: Box, tmp_path: Path) -> Gpus:
    return Gpus(box, tmp_path / "bin")


def starts(box: Box) -> list[tuple[float, str, str]]:
    """Time, session and GPUs of each launch."""
    found = events(box.directory, "granted")
    return [(event.at, event.session, ",".join(map(str, event.fields["gpus"]))) for event in found]


def warming(box: Box) -> int:
    """How many sessions are told to wait for one that warms up."""
    return sum(box.waits_for(name) == "warm_up" for name in box.waiting)


@pytest.mark.parametrize("sign", ["line", "record"])
def test_the_first_of_a_program_warms_up_alone_until_it_makes_progress(box: Box, sign: str) -> None:
    box.environment["COMBORUN_WATCH_S"] = "0.1"
    tell = RECORD if sign == "record" else "printf 'Episodes: 1/9\\r'; "
    work = 'until [[ -e "$COMBORUN_RUN_DIR/warm" ]]; do sleep 0.1; done; ' + tell
    script = bash(work + HOLD, more={"progress": ProgressRules(r"Episodes: (\d+)/(\d+)")}, results=("*.jsonl",))
    box.plan(dict.fromkeys(NAMES, script), parallel=6, policy={"warm_up_ms": 60000})
    rows = [record(name=name, gpus=0, kind="k1" if i < 4 else "k2") for i, name in enumerate(NAMES)]
    box.write("dispatch/queue.jsonl", "".join(rows))
    box.start()
    until(lambda: len(starts(box)) == 2, "the first of each program has started")
    assert {name for _, name, _ in starts(box)} == {NAMES[0], NAMES[4]}
    until(lambda: warming(box) == 4, "the others are told to wait")
    box.kill_dispatcher()
    assert box.start().returncode == 0
    until(lambda: warming(box) == 4, "a new dispatcher knows who warms up")
    assert len(starts(box)) == 2
    box.write("warm", "")
    until(lambda: len(starts(box)) == 6, "all start when the first make progress")
    assert all((box.attempt(name) / "progressed").exists() for name in (NAMES[0], NAMES[4]))
    assert not any(box.end(name) for name in (NAMES[0], NAMES[4])), "which had not ended"
    box.write("go", "")
    box.await_done()


def test_where_sessions_run_out_of_memory_fewer_run_at_once(box: Box, gpus: Gpus) -> None:
    gpus.cards(10000)
    hold = 'hold-gpu 3000 --until "$COMBORUN_RUN_DIR/go"'
    box.plan(
        dict.fromkeys(NAMES[:4], bash(hold, gpus=1, request=Request(gpu_memory=2000))),  # each takes more than that
        parallel=4,
        gpus="0",
        attempts=5,
        policy={"retry_gpu_memory": 3, "wait_gpu_memory_ms": 100},
    )
    box.start()
    until(lambda: box.told("^gpu_cap .*gpu=0 most=3"), "one fewer runs at once")
    assert box.fields("dispatch/gpu_caps")["0"] == "3"
    box.kill_dispatcher()
    assert box.start().returncode == 0
    box.write("go", "")
    box.await_done()
    assert box.done["succeeded"] == "4"
    assert gpus.peak(0) <= 10000
    resumed = box.program("control", "resume")
    assert resumed.returncode == 0
    assert not (box.directory / "dispatch/gpu_caps").exists()


def test_sessions_that_run_out_of_memory_together_are_too_many_and_no_broken_gpu(box: Box, gpus: Gpus) -> None:
    gpus.cards(10000)
    peak = '[[ $COMBORUN_ATTEMPT != 1 ]] || { hold-gpu 1000 --until "$COMBORUN_RUN_DIR/peak"; '
    peak += "echo 'RuntimeError: CUDA out of memory'; exit 1; }; hold-gpu 6000 --for 0.2"
    box.plan(
        dict.fromkeys(NAMES[:4], bash(peak, gpus=1, request=Request(gpu_memory=1000))),
        parallel=4,
        gpus="0",
        attempts=3,
        policy={"breaker": 3, "retry_gpu_memory": 2, "wait_gpu_memory_ms": 100},
    )
    box.start()
    until(lambda: len(starts(box)) == 4 and gpus.used_now(0) >= 4000, "all four run")
    box.write("peak", "")
    box.await_done()
    assert box.done["succeeded"] == "4"
    assert not box.told("^(quarantine|halted)")
    assert not (box.directory / "dispatch/breaker").exists()
    assert len(box.told("^gpu_cap")) == 1


def test_memory_on_another_gpu_than_planned_is_told_and_a_little_is_not(box: Box, gpus: Gpus) -> None:
    gpus.cards(10000, 10000)
    box.environment |= {"COMBORUN_WATCH_S": "0.1", "COMBORUN_SEAT_S": "1"}
    hold = 'hold-gpu 1000 --gpu {} --until "$COMBORUN_RUN_DIR/go" & '
    hold += 'hold-gpu {} --gpu {} --until "$COMBORUN_RUN_DIR/go" & wait'
    sessions = {NAMES[0]: bash(hold.format(0, 700, 1)), NAMES[1]: bash(hold.format(0, 200, 1))}
    box.plan(sessions, gpus="0,1")
    for name in sessions:
        box.write(f"sessions/{name}/attempt-1/grant", f'{{"gpus": "0", "uuids": "{uuid(0)}"}}\n')
    box.start()
    wrong = box.attempt(NAMES[0]) / "wrong_gpu"
    until(wrong.exists, "it is told")
    assert box.fields(f"sessions/{NAMES[0]}/attempt-1/wrong_gpu")["reason"] == ON_WRONG_GPU
    asked = gpus.asked
    until(lambda: gpus.asked >= asked + 2, "both were looked at once more")
    box.write("go", "")
    box.await_done()
    assert ON_WRONG_GPU in box.ended(NAMES[0]).facts
    assert not any(one.code == Evidence.WRONG_GPU for one in box.ended(NAMES[1]).facts)
    assert box.done["succeeded"] == "2"
