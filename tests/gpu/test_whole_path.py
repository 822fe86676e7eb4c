"""The whole path on a real GPU: sessions packed beside another process, a full GPU, and one that runs out of memory.

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
from ctypes.util import find_library
from pathlib import Path
from typing import Any

import pytest

from comborun.host.system.drawing import VULKAN_PROGRAM
from comborun.rules.room.capacity import HEADROOM

HERE = Path(__file__).parent
PYTHON = os.environ.get("COMBORUN_GPU_PYTHON", sys.executable)
CONTEXT = 1600
"""MiB that torch's and EGL's contexts take of a session's memory, beside what walk.py is told to hold"""
WALK = f"""\
command: >-
  {PYTHON} {HERE / "walk.py"} --policy {{policy}} --env {{environment}} --episodes {{episodes}}
  --first-episode {{first_episode}} --seed {{seed}} --memory-mib HELD --output-dir {{output_dir}}
seed: 1000
variables: {{MUJOCO_GL: egl, MUJOCO_EGL_DEVICE_ID: "{{egl_device}}"}}
use_gpus: [0]
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
def training(mib: int, folder: Path) -> Iterator[Path]:
    """A process that holds so much of the card until the file is there."""
    stop = folder / "stop"
    with subprocess.Popen([PYTHON, HERE / "hold.py", str(mib), stop], stdout=subprocess.PIPE, text=True) as job:
        try:
            assert job.stdout
            assert "held" in job.stdout.readline()
            yield stop
        finally:
            stop.touch()


class Box:
    """A user on this machine."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.environment = {**os.environ, "HOME": str(home), "COMBORUN_TMUX_SOCKET": f"cbgpu{os.getpid()}"}

    def grid(self, held: int, **keys: str) -> None:
        lines = "".join(f"{key}: {value}\n" for key, value in keys.items())
        (self.home / "grid.yaml").write_text(WALK.replace("HELD", str(held)) + lines)

    def start(self, *words: str) -> subprocess.Popen[str]:
        return subprocess.Popen(
            [sys.executable, "-m", "comborun", *words],
            cwd=self.home,
            env=self.environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )

    def said(self, *words: str) -> str:
        with self.start(*words) as running:
            return running.communicate(timeout=300)[0]

    def waiting(self) -> dict[str, Any] | None:
        """What the one session waits for, once there is a run."""
        if not list(self.home.glob("comborun/on_gpu-*/dispatch/waiting")):
            return None
        return json.loads(self.said("status", "--json"))["sessions"][0]["waiting"]

    @property
    def run(self) -> Path:
        (run,) = (self.home / "comborun").glob("on_gpu-*")
        return run

    def rows(self) -> list[dict[str, Any]]:
        files = self.run.glob("sessions/*/attempt-*/out/*.jsonl")
        return [json.loads(line) for file in files for line in file.read_text().splitlines()]

    def at_once(self) -> int:
        """The most attempts that lived at any moment, by their records."""
        moments = []
        for end in self.run.glob("sessions/*/attempt-*/end"):
            fields = json.loads(end.read_text())
            moments += [(fields["started"], 1), (fields["ended"], -1)]
        living = most = 0
        for _, step in sorted(moments):
            living += step
            most = max(most, living)
        return most


@pytest.fixture
def box(tmp_path: Path) -> Box:
    return Box(tmp_path)


@pytest.mark.parametrize("multiplexer", ["tmux", "screen"])
def test_twelve_sessions_are_packed_beside_a_process_that_holds_half_the_card(box: Box, multiplexer: str) -> None:
    name, uuid, total = query("name,uuid,memory.total")
    request = int(total) // 20
    box.grid(
        request - CONTEXT,
        name="on_gpu",
        policies="[flat, rough]",
        environments="[friction, grass, boulder]",
        episodes="4",
        block="2",
        resources=f"{{gpus: 1, gpu_memory: {request} MiB, cpus: 1}}",
        limits="{parallel: 12, per_gpu: 12, stagger: 500 ms}",
    )
    peak = 0
    with training(int(total) // 2, box.home):
        (before,) = map(int, query("memory.used"))
        began = time.monotonic()
        with box.start("run", "grid.yaml", "--multiplexer", multiplexer) as running:
            while running.poll() is None:
                peak = max(peak, int(query("memory.used")[0]))
                time.sleep(0.3)
            assert running.stdout
            said = running.stdout.read()
        took = time.monotonic() - began
    assert running.returncode == 0, said
    rows = box.rows()
    assert len(rows) == len({(row["policy"], row["environment"], row["episode"]) for row in rows}) == 24
    assert all(row["frames"] > 0 for row in rows)
    assert {row["device"] for row in rows} <= {uuid.removeprefix("GPU-"), uuid, ""}
    fit = (int(total) - before - HEADROOM) // request
    most = box.at_once()
    assert most <= fit
    assert most >= min(fit, 12) - 1
    assert peak < int(total)
    assert not list(box.run.glob("sessions/*/attempt-2"))
    if told := os.environ.get("COMBORUN_GPU_TOLD"):
        with Path(told).open("a") as file:
            file.write(
                f"{name}, {total} MiB, {multiplexer}: {before} MiB held by another process; 12 sessions of {request}"
                f" MiB, {fit} fit, {most} at once; {peak} MiB used at most; 24 episodes with frames through EGL in"
                f" {took:.0f} s\n"
            )


def test_who_says_no_memory_waits_beside_a_full_gpu_and_says_so(box: Box) -> None:
    (total,) = map(int, query("memory.total"))
    keys = {"policies": "[flat]", "environments": "[grass]", "episodes": "1", "resources": "{gpus: 1}"}
    box.grid(100, name="on_gpu", **keys)
    with training(total - total // 20, box.home) as stop:
        with box.start("run", "grid.yaml") as running:
            began = time.monotonic()
            while not (waiting := box.waiting()) and time.monotonic() - began < 60:
                time.sleep(0.1)
            stop.touch()
            said = running.communicate(timeout=120)[0]
        assert waiting, said
        assert waiting["for"] == "gpu_memory"
        assert "others use" in waiting["detail"]
    assert running.returncode == 0, said
    assert len(box.rows()) == 1


def test_who_runs_out_of_memory_beside_others_runs_again_with_what_it_needs(box: Box) -> None:
    """Three that say a fifth of the card and take two fifths: two fit."""
    (total,) = map(int, query("memory.total"))
    box.grid(
        total * 2 // 5,
        name="on_gpu",
        policies="[flat]",
        environments="[friction, grass, boulder]",
        episodes="2",
        resources=f"{{gpus: 1, gpu_memory: {total // 5} MiB}}",
        limits="{parallel: 3}",
        retry="{gpu_memory: {times: 2, wait: 1 s}}",
    )
    assert "3 succeeded" in box.said("run", "grid.yaml", "--plain")
    assert len(box.rows()) == 6
    ends = [json.loads(end.read_text()) for end in box.run.glob("sessions/*/attempt-*/end")]
    failed = [end for end in ends if end["class"]]
    assert {end["class"] for end in failed} == {"gpu_memory"}
    assert all("CUDA out of memory" in end["note"] for end in failed)
    assert (int(query("memory.used")[0])) < total // 20, "all memory came back"


@pytest.mark.skipif(not find_library("vulkan"), reason="no Vulkan loader here")
def test_a_program_that_draws_through_vulkan_sees_the_gpu_of_its_session_first(box: Box) -> None:
    (uuid,) = query("uuid")
    (box.home / "devices.py").write_text(VULKAN_PROGRAM)
    (box.home / "grid.yaml").write_text(
        f"name: on_gpu\ncommand: bash -c '{PYTHON} devices.py; touch {{output_dir}}/done'\n"
        "policies: [flat]\nenvironments: [grass]\nresults: none\nresources: {gpus: 1}\n"
        'variables: {DRI_PRIME: "{vulkan_device}"}\n'
    )
    said = box.said("run", "grid.yaml", "--plain")
    (attempt,) = box.run.glob("sessions/*/attempt-1")
    begin, seen = json.loads((attempt / "begin").read_text()), (attempt / "log").read_text().splitlines()
    seen = [line for line in seen if line.startswith("GPU-")]
    assert begin["vulkan_told"] == "asked", said
    assert begin["vulkan"].startswith("pci-")
    assert seen[0] == uuid
    assert len(seen) == 1 or not begin["vulkan"].endswith("!")
    if told := os.environ.get("COMBORUN_GPU_TOLD"):
        with Path(told).open("a") as file:
            file.write(f"Vulkan: DRI_PRIME={begin['vulkan']} shows {seen}\n")
