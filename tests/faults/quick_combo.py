"""The program `combo` without the second that Python takes to import it: each call is a fork of one that has it all."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from multiprocessing.context import ForkServerProcess
from pathlib import Path

_FORKS = multiprocessing.get_context("forkserver")
_FORKS.set_forkserver_preload(
    [
        *(f"comborun.cli.{file.stem}" for file in (Path(__file__).parents[2] / "comborun/cli").glob("[a-z]*.py")),
        *("comborun.cli", "monitor.watch", "remote.control", "remote.fetch.transfer", "remote.launch", "remote.local"),
        *("remote.ssh.exchange", "reporter.render", "reporter.report", "paramiko", "jinja2", "scipy.stats"),
        *(f"matplotlib.{part}" for part in ("figure", "backends.backend_agg", "backends.backend_pdf")),
        "matplotlib.backends.backend_svg",
    ]
)


@dataclass
class Call:
    """One call of `combo`; what it says goes to a file."""

    process: ForkServerProcess
    said: Path

    @property
    def text(self) -> str:
        return self.said.read_text(errors="replace") if self.said.exists() else ""

    def code(self, seconds: float = 90.0) -> int:
        """The exit code, once it has one."""
        self.process.join(seconds)
        assert self.process.exitcode is not None, f"combo has not ended within {seconds:g} s; it says\n{self.text}"
        return self.process.exitcode

    def kill(self) -> None:
        self.process.kill()
        self.process.join(10)


def call(words: list[str], environment: Mapping[str, str], folder: Path, said: Path) -> Call:
    process = _FORKS.Process(target=_become, args=(words, dict(environment), folder, said), daemon=True)
    process.start()
    return Call(process, said)


def _become(words: list[str], environment: dict[str, str], folder: Path, said: Path) -> None:
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    file = os.open(said, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    for descriptor, end in ((nothing, 0), (file, 1), (file, 2)):
        os.dup2(descriptor, end)
    sys.stdout, sys.stderr = (open(end, "w", closefd=False) for end in (1, 2))  # noqa: SIM115
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    sys.argv = ["combo", *words]
    from comborun.__main__ import main

    try:
        main()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
