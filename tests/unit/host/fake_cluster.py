"""A run directory on Slurm by hand, and Slurm's commands as scripts that only write down their words."""

from __future__ import annotations

import os
import time
from pathlib import Path
from typing import Any

import pytest

from comborun.host.engines.slurm import Slurm
from comborun.host.system import files
from comborun.rules.names import RunLayout

RUN = "grid-20260101T000000Z-abcd"
HOUR = 3600.0


class Cluster:
    """A run directory, and Slurm's commands: each writes down its words, says what it shall and ends as it shall."""

    def __init__(self, folder: Path) -> None:
        self.run = folder / RUN
        self.programs = folder / "bin"
        self.words = folder / "words"
        for name in ("dispatch", "slurm/out", "sessions/env_one/attempt-1"):
            (self.run / name).mkdir(parents=True)
        self.programs.mkdir()
        (self.run / "id").write_text(RUN + "\n")
        (self.run / "dispatch/engine").write_text("slurm\n")
        self.at = str(self.run / "sessions/env_one/attempt-1")

    def says(self, program: str, text: str = "", code: int = 0, complaint: str = "") -> None:
        (self.programs / f"{program}.out").write_text(text)
        (self.programs / f"{program}.err").write_text(complaint)
        script = f'#!/bin/sh\necho "{program} $*" >>"{self.words}"\ncat "$0.out"\ncat "$0.err" >&2\nexit {code}\n'
        (self.programs / program).write_text(script)
        (self.programs / program).chmod(0o755)

    def told(self) -> list[str]:
        """The commands so far, each once more forgotten."""
        lines = self.words.read_text().splitlines() if self.words.exists() else []
        self.words.write_text("")
        return lines

    def answer(self, *tasks: str) -> Slurm:
        """What squeue said just now, as the files keep it."""
        (self.run / "slurm/states").write_text("\n".join([str(time.time()), *tasks, ""]))
        return Slurm(RunLayout(str(self.run)))

    def claimed(self, **fields: object) -> dict[str, Any]:
        """The claim of a task, made an hour ago."""
        claim = {"nonce": "feed", "job": "7_0", "restart": "0", **fields}
        files.write(f"{self.at}/claim", claim.items())
        self.age("claim")
        return claim

    def age(self, name: str) -> None:
        then = time.time() - HOUR
        os.utime(f"{self.at}/{name}", (then, then))

    def batch(self, number: int, *names: str) -> None:
        rows = "".join(f"{index}\t{name}\t1\n" for index, name in enumerate(names))
        (self.run / f"slurm/batch-{number}.tsv").write_text(rows)


@pytest.fixture
def cluster(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Cluster:
    made = Cluster(tmp_path / "my runs")
    monkeypatch.setenv("PATH", f"{made.programs}:{os.environ['PATH']}")
    return made


def task(ident: str, state: str, batch: str = "1", reason: str = "None") -> str:
    return f"{ident}|{state}|n1|9|N/A|{RUN}.{batch}|{reason}"
