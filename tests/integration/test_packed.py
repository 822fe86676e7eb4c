"""The simulated admission foresees what the real dispatcher does."""

from __future__ import annotations

import random
from pathlib import Path

from box import Box, bash
from nvidia import Gpus

from comborun.planner.packing import Job, Stage, simulate
from comborun.rules.room.capacity import Capacity, Request


def test_the_real_dispatcher_ends_when_the_play_says(box: Box) -> None:
    chance = random.Random(5)
    jobs = sorted(
        (
            Job(
                seconds=chance.choice([0.8, 1.5, 2.5]),
                request=Request(
                    cpus=chance.choice([1, 1, 2, 3]),
                    tokens=("ray",) if number % 5 == 0 else (),
                    group="maze" if number % 3 == 0 else "",
                    per_host=2 if number % 3 == 0 else 0,
                ),
            )
            for number in range(16)
        ),
        key=lambda job: -job.seconds,
    )
    on = Stage(Capacity(cpus=6), slots=5)
    foreseen = simulate(jobs, on)
    sessions = {f"s_{place}": bash(f"sleep {job.seconds}", request=job.request) for place, job in enumerate(jobs)}
    box.run(sessions, parallel=on.slots, policy={"cpus": on.capacity.cpus})

    starts = {name: box.begun(name).started for name in sessions}
    ends = {name: box.ended(name).ended for name in sessions}
    took = max(ends.values()) - min(starts.values())
    assert foreseen.makespan <= took
    moments = sorted(starts.values())
    most = max(sum(starts[name] <= moment < ends[name] for name in sessions) for moment in moments)
    assert most == foreseen.most


def test_the_real_dispatcher_chooses_among_unequal_gpus_as_the_play_does(box: Box, tmp_path: Path) -> None:
    gpus = Gpus(box, tmp_path / "bin")
    gpus.cards(10000, 35000)
    jobs = [Job(1.0, Request(1, gpu_memory=size)) for size in (8000, 30000)]
    foreseen = simulate(jobs, Stage(Capacity((0, 1), gpu_memory={0: 10000, 1: 35000}), slots=4))
    sessions = {f"s_{place}": bash("sleep 1", gpus=1, request=job.request) for place, job in enumerate(jobs)}
    box.plan(sessions, gpus="0,1")
    box.start()
    box.await_done(40)
    assert [box.fields(f"sessions/{name}/attempt-1/grant")["gpus"] for name in sessions] == ["1", "1"]
    assert foreseen.most == 1
    assert box.begun("s_1").started >= box.ended("s_0").ended
