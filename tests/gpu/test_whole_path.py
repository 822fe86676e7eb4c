"""The whole path on a real GPU: twelve sessions packed beside a process that holds half the card.

Runs where nvidia-smi, torch with CUDA and MuJoCo's EGL are (COMBORUN_GPU_PYTHON names the interpreter that has them;
else this one), and is passed over elsewhere. With COMBORUN_GPU_TOLD it appends the device and what was measured to that
file, for docs/benchmarks.md.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from comborun.rules.placement import HEADROOM

HERE = Path(__file__).parent
PYTHON = os.environ.get("COMBORUN_GPU_PYTHON", sys.executable)
CONTEXT = 1600
"""MiB that torch's and EGL's contexts take of a session's memory, beside what walk.py is told to hold"""
GRID = """\
name: on_gpu
policies: {{flat: , rough: }}
environments: [friction, grass, boulder]
episodes: 4
block: 2
seed: 1000
command: >-
  {python} {walk} --policy {{policy}} --env {{environment}} --episodes {{episodes}} --first-episode {{first_episode}}
  --seed {{seed}} --memory-mib {held} --output-dir {{output_dir}}
variables: {{MUJOCO_GL: egl, MUJOCO_EGL_DEVICE_ID: "0"}}
use_gpus: [0]
resources: {{gpus: 1, gpu_memory: {request} MiB, cpus: 1}}
limits: {{parallel: 12, per_gpu: 12, stagger: 500 ms}}
poll: 1 s
"""


def query(fields: str) -> list[str]:
    told = subprocess.run(
        ["nvidia-smi", "-i", "0", f"--query-gpu={fields}", "--format=csv,noheader,nounits"],
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
    )
    return [field.strip() for field in told.stdout.strip().split(",")]


def has_gpu() -> bool:
    if not shutil.which("nvidia-smi"):
        return False
    able = "import torch, mujoco, mujoco.egl; assert torch.cuda.is_available()"
    return subprocess.run([PYTHON, "-c", able], capture_output=True, timeout=120, check=False).returncode == 0


pytestmark = [
    pytest.mark.timeout(580),
    pytest.mark.skipif(not has_gpu(), reason="no GPU here with torch and EGL: see tests/gpu/test_whole_path.py"),
]


@contextmanager
def training(mib: int, folder: Path) -> Iterator[None]:
    """A process that holds so much of the card."""
    stop = folder / "stop"
    with subprocess.Popen([PYTHON, HERE / "hold.py", str(mib), stop], stdout=subprocess.PIPE, text=True) as job:
        try:
            assert job.stdout
            assert "held" in job.stdout.readline()
            yield
        finally:
            stop.touch()


def at_once(run: Path) -> int:
    """The most attempts that lived at any moment, by their records."""
    moments = []
    for begin in run.glob("sessions/*/attempt-*/begin"):
        for file, step in ((begin, 1), (begin.with_name("end"), -1)):
            fields = dict(line.split("=", 1) for line in file.read_text().splitlines() if "=" in line)
            moments.append((float(fields["started" if step == 1 else "ended"]), step))
    living = most = 0
    for _, step in sorted(moments):
        living += step
        most = max(most, living)
    return most


def test_twelve_sessions_are_packed_beside_a_process_that_holds_half_the_card(tmp_path: Path) -> None:
    name, uuid, total = query("name,uuid,memory.total")
    request = int(total) // 20
    (tmp_path / "grid.yaml").write_text(
        GRID.format(python=PYTHON, walk=HERE / "walk.py", held=request - CONTEXT, request=request)
    )
    environment = {**os.environ, "HOME": str(tmp_path), "COMBORUN_TMUX_SOCKET": f"cbgpu{os.getpid()}"}
    peak = 0
    with training(int(total) // 2, tmp_path):
        (before,) = map(int, query("memory.used"))
        began = time.monotonic()
        with subprocess.Popen(
            [sys.executable, "-m", "comborun", "run", "grid.yaml"],
            cwd=tmp_path,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        ) as running:
            while running.poll() is None:
                peak = max(peak, int(query("memory.used")[0]))
                time.sleep(0.3)
            assert running.stdout
            said = running.stdout.read()
        took = time.monotonic() - began
    assert running.returncode == 0, said
    (run,) = (tmp_path / "comborun").glob("on_gpu-*")
    rows = [json.loads(line) for file in run.glob("sessions/*/attempt-*/out/*.jsonl") for line in file.open()]
    assert len(rows) == len({(row["policy"], row["environment"], row["episode"]) for row in rows}) == 24
    assert all(row["frames"] > 0 for row in rows)
    assert {row["device"] for row in rows} <= {uuid.removeprefix("GPU-"), uuid, ""}
    fit = (int(total) - before - HEADROOM) // request
    most = at_once(run)
    assert most <= fit
    assert most >= min(fit, 12) - 1
    assert peak < int(total)
    assert not list(run.glob("sessions/*/attempt-2"))
    if told := os.environ.get("COMBORUN_GPU_TOLD"):
        with Path(told).open("a") as file:
            file.write(
                f"{name}, {total} MiB: {before} MiB held by another process; 12 sessions of {request} MiB, {fit} fit,"
                f" {most} at once; {peak} MiB used at most; 24 episodes with frames through EGL in {took:.0f} s\n"
            )
