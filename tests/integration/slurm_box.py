"""A run directory made by hand whose sessions Slurm starts: the box (box.py) with another engine."""

from __future__ import annotations

import contextlib
import signal
import subprocess
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from box import Box, Script, kill, make_box, until
from recorded import record
from slurm import Slurm, slurm_at

from comborun.generate.slurm_jobs import TaskRequest, array_script, settle_script
from comborun.model.attempt import Begin, End
from comborun.model.resources import NO_SLURM, SlurmOptions

KIND = TaskRequest(gpus=0, cpus=1, memory=200, minutes=0, gpu_type="")
SETTLE = settle_script(SlurmOptions(settle_options=("--mem=100M",)), after=False)
LONG = 40.0
"""seconds for what Slurm needs some seconds for"""


@dataclass
class SlurmBox(Box):
    slurm: Slurm = None  # type: ignore[assignment]

    def lay_out(
        self, sessions: dict[str, Script], kind: TaskRequest = KIND, keys: SlurmOptions = NO_SLURM, **limits: object
    ) -> None:
        """Write the run directory as a launch on Slurm would; all sessions ask for the same."""
        self.plan(sessions, **limits)  # type: ignore[arg-type]
        self.write("dispatch/engine", "slurm\n")
        self.write("dispatch/slurm.json", record(**dict.fromkeys(self.names, 1)))
        self.write("slurm/array-1.sh", array_script(kind, keys))
        self.write("slurm/settle.sh", SETTLE)

    def submit(self, *options: str) -> str:
        """Hand what is due to Slurm; what it says."""
        told = self.program("start", *options)
        assert told.returncode == 0, told.stderr
        return told.stdout

    def settle(self, *options: str) -> subprocess.CompletedProcess[str]:
        return self.program("settle", *options)

    def field(self, path: str, key: str) -> str:
        return self.fields(path).get(key, "")

    def ends(self, name: str) -> list[tuple[str, str]]:
        """Cause and completeness of each attempt that has ended, oldest first."""
        found = sorted((self.directory / "sessions" / name).glob("attempt-*/end"))
        records = [self.fields(str(file.relative_to(self.directory))) for file in found]
        return [(record["cause"], record["completeness"]) for record in records]

    def begun(self, name: str, number: int = 1) -> Begin:
        self.wait_for(lambda: self.begin(name, number), f"attempt {number} of {name} has begun")
        return super().begun(name, number)

    def ended(self, name: str, number: int = 1) -> End:
        self.wait_for(lambda: self.end(name, number), f"attempt {number} of {name} has ended")
        return super().ended(name, number)

    def task(self, name: str, number: int = 1) -> str:
        """The task that makes an attempt, once it has claimed it: `12_7`."""
        claim = f"sessions/{name}/attempt-{number}/claim"
        self.wait_for(lambda: self.field(claim, "job"), f"{name} is claimed")
        return self.field(claim, "job")

    def node(self, name: str, number: int = 1) -> str:
        self.task(name, number)
        return self.field(f"sessions/{name}/attempt-{number}/claim", "node")

    def await_end(self, seconds: float = LONG) -> dict[str, str]:
        self.wait_for(lambda: self.done, "the run is done", seconds)
        return self.done

    def wait_for(self, condition: Callable[[], object], what: str, seconds: float = LONG) -> None:
        """Poll until `condition` holds; fail with all that is known of the run when it does not in time."""
        until(condition, lambda: f"{what}\n{self.story()}", seconds)

    def story(self) -> str:
        """What a failing test wants to know."""
        outputs = [f"{file.name}: {file.read_text()}" for file in sorted((self.directory / "slurm/out").glob("*"))]
        return "\n".join([self.happened, str(self.slurm.tasks()), *outputs])


@contextlib.contextmanager
def slurm_box_at(parent: Path, slurm: Slurm) -> Iterator[SlurmBox]:
    with make_box(parent, "slurm") as made:
        knobs = {
            "COMBORUN_SETTLE_S": "2",
            "COMBORUN_WATCH_S": "0.5",
            "COMBORUN_STOP_TERM_S": "1",
            "COMBORUN_SLURM_S": "5",
            "COMBORUN_HEART_S": "2",
        }
        box = SlurmBox(made.directory, "slurm", {**made.environment, **knobs, **slurm.environment}, slurm=slurm)
        try:
            yield box
        finally:
            for pid in box.marked():
                kill(pid, signal.SIGKILL)


@pytest.fixture
def slurm_box(tmp_path: Path, slurm: Slurm) -> Iterator[SlurmBox]:
    """A run on a Slurm of two nodes, which is gone afterwards."""
    with slurm_box_at(tmp_path, slurm) as made:
        yield made


__all__ = ["SlurmBox", "slurm_at", "slurm_box", "slurm_box_at"]
