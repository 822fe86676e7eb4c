"""A program of Python that runs as an attempt, and a watch over it that is called as a supervisor calls it."""

from __future__ import annotations

import os
import select
import subprocess
import sys
import time
from pathlib import Path

from comborun.host.supervise.attempt import Attempt
from comborun.host.system import process


class Watched:
    """`name`: of its session or server; `words`: those behind `python`; `fields`: of its attempt."""

    def __init__(self, folder, run, name, watch, words, marker="", **fields):
        folder.mkdir()
        (folder / "id").write_text(f"{run}\n")
        self.said = []
        self.of = Attempt(str(folder), name, "1")
        self.at = self.of.at
        Path(self.at.output).mkdir(parents=True)
        own = {"COMBORUN_SESSION": marker or self.of.marker, "OUT": self.at.output, "PYTHONUNBUFFERED": "1"}
        with Path(self.at.log).open("wb") as log:
            self.child = subprocess.Popen([sys.executable, *words], env={**os.environ, **own}, stdout=log, stderr=log)
        start = process.look(self.child.pid).start
        for key, value in {"pid": self.child.pid, "start": start, "tell": self.said.append, **fields}.items():
            setattr(self.of, key, value)
        self.watch = watch(self.of)

    def until(self, happened, seconds=20):
        """The first verdict, or None once something has happened."""
        deadline = time.monotonic() + seconds
        while not happened():
            assert time.monotonic() < deadline, "it did not happen"
            pause = max(0.0, min(self.watch.due(), deadline) - time.monotonic())
            readable = select.select(self.watch.descriptors(), [], [], min(pause, 0.05))[0]
            if not readable and time.monotonic() < self.watch.due():
                continue
            verdict = self.watch.look()
            if verdict:
                return verdict
        return None

    def end(self):
        self.watch.close()
        self.child.kill()
        self.child.wait()
