"""What one look tells about the host, and how many bytes it costs."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from box import Box, bash
from nvidia import Gpus
from recorded import record
from test_probe import answer, identity, probe

from comborun.rules import counting
from comborun.rules.placement import Card

END = {"attempt": 1, "started": 1, "ended": 2, "code": 0, "cause": "exited", "completeness": "complete", "records": 0}
UNKNOWN = (None, None, None)
SEEN = {
    "": [(0, 42188, 81559, 5), (1, 0, 81559, 5)],
    "missing": [(0, 42188, 81559, 5), (1, *UNKNOWN)],
    "lost": [(0, *UNKNOWN), (1, *UNKNOWN)],
    "garbage": [(0, *UNKNOWN), (1, *UNKNOWN)],
}
"""what nvidia-smi suffers from -> index, used and total MiB, and utilization of each GPU"""


@pytest.fixture
def gpus(box: Box, tmp_path: Path) -> Gpus:
    found = Gpus(box, tmp_path / "bin")
    found.cards(81559, 81559)
    found.taken(42188, 0)
    return found


def test_each_gpu_is_told_or_unknown_and_never_empty_because_nobody_answered(box: Box, gpus: Gpus) -> None:
    box.plan({"env_one": bash("true")}, gpus="0,1")
    for fault, seen in SEEN.items():
        gpus.fault(fault)  # type: ignore[arg-type]
        assert [(one.index, one.used, one.total, one.utilization) for one in probe(box).use.gpus] == seen, fault


def test_gpus_that_hang_are_unknown_soon_and_all_else_is_told(box: Box, gpus: Gpus) -> None:
    box.plan({"env_one": bash("true")}, gpus="0")
    box.environment["COMBORUN_GPU_S"] = "1"
    gpus.fault("hang")
    begun = time.monotonic()
    seen = probe(box)
    assert time.monotonic() - begun < 5
    assert seen.use.gpus == (Card(0),)
    assert seen.use.load is not None


def test_a_run_that_uses_no_gpus_asks_for_none(box: Box, gpus: Gpus) -> None:
    box.plan({"env_one": bash("true")})
    box.write("sessions/env_one/attempt-1/grant", '{"gpus": ""}\n')
    box.write("sessions/env_one/attempt-1/log", "")
    assert probe(box).use.gpus == ()
    assert gpus.asked == 0


def test_a_look_at_a_large_run_costs_few_bytes(box: Box) -> None:
    running, ended, all_of_them = 32, 4, 500
    names = [f"environment-{i % 25:02}_policy-{i:03}" for i in range(all_of_them)]
    rows = "".join(f'{{"episode": {i}, "success": true}}\n' for i in range(40))
    box.plan({name: bash("true", results=("*.jsonl",)) for name in names})
    for i, name in enumerate(names[: running + ended]):
        box.write(f"sessions/{name}/attempt-1/claim", '{"count": 100, "files": ["*.jsonl"]}\n')
        told = {"attempt": 1, "started": time.time(), "host": "gpu-box-with-a-name", "multiplexer": "tmux"}
        told |= {"address": f"{name}_ab12", "gpus": "0", "first": 0, "count": 100}
        box.write(f"sessions/{name}/attempt-1/begin", identity(**told))
        box.write(f"sessions/{name}/attempt-1/out/r.jsonl", rows)
        log = box.write(f"sessions/{name}/attempt-1/log", "")
        lines = b"".join(b"  step %d/30000 of episode %d\n" % (step, i) for step in range(400))
        with log.open("wb") as file:  # 10 MB, of which the end is written
            file.seek(10_000_000 - len(lines))
            file.write(lines)
        if i >= running:
            box.write(f"sessions/{name}/attempt-1/end", record(**END))
    for i, name in enumerate(names[running + ended :]):
        if i % 2:
            box.write(f"sessions/{name}/attempt-1/claim", "")
            box.write(f"sessions/{name}/attempt-1/end", record(**END))
    known = ",".join("1" if i >= running + ended and (i - running - ended) % 2 else "0" for i in range(all_of_them))
    begun = time.monotonic()
    told = answer(box, known, tail=4096)
    assert time.monotonic() - begun < 5
    assert len(told) < 128_000
    seen = probe(box, known, tail=4096)
    assert len(seen.attempts) == running + ended
    for one in seen.attempts:
        assert one.log_size == 10_000_000
        assert 2000 < len(one.tail) <= 4096
        assert list(counting.lines(one.tail, cut=True))[-2].startswith("  step 399/30000 of episode ")


def test_the_first_look_at_a_run_that_is_over_brings_a_line_of_each_log(box: Box) -> None:
    names = [f"env_p{i}" for i in range(300)]
    box.plan({name: bash("true") for name in names})
    for name in names:
        box.write(f"sessions/{name}/attempt-1/end", record(**END))
        box.write(f"sessions/{name}/attempt-1/log", "x" * 5000 + f"\nlast words of {name}\n")
    seen = probe(box, tail=4096)
    assert len(seen.attempts) == 300
    assert all(one.tail.endswith(f"\nlast words of {one.session}\n".encode()) for one in seen.attempts)
    assert {len(one.tail) for one in seen.attempts} == {160}
