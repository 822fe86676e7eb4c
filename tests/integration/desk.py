"""A user's desk: a home of their own, grids in a folder, and the programs `combo` and `combo-monitor`."""

from __future__ import annotations

import json
import os
import pty
import re
import secrets
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
import quick_combo
from answered import checked
from box import until

CHECKOUT = Path(__file__).parents[2]
EVALUATOR = Path(__file__).with_name("evaluator.py")

LITTLE = {
    "name": "little",
    "policies": "[good, poor]",
    "environments": "[maze, field]",
    "episodes": "4",
    "seed": "7",
    "limits": "{parallel: 4}",
    "poll": "0.3",
}
ONE = {"policies": "[good]", "environments": "[maze]"}
"""keys of a grid with one combo"""


@dataclass
class Desk:
    home: Path
    environment: dict[str, str] = field(default_factory=dict)

    def grid(self, file: str = "grid.yaml", **keys: str) -> Path:
        """A grid file: the little one, with keys replaced or added."""
        path = self.home / file
        entries = {**LITTLE, "command": evaluate(), **keys}
        entries["command"] = json.dumps(entries["command"])  # it may begin with a quote
        path.write_text("".join(f"{key}: {value}\n" for key, value in entries.items()))
        return path

    def command(self, *arguments: object) -> list[str]:
        return [sys.executable, "-m", "comborun", *map(str, arguments)]

    def combo(
        self, *arguments: object, timeout: float = 60, code: int | None = None
    ) -> subprocess.CompletedProcess[str]:
        """A command, which has ended; with `code`, where that is given."""
        if quick_combo.can_run(self.environment):
            done = quick_combo.run(list(map(str, arguments)), self.environment, self.home, timeout)
        else:
            done = subprocess.run(
                self.command(*arguments),
                capture_output=True,
                text=True,
                env=self.environment,
                cwd=self.home,
                timeout=timeout,
                check=False,
            )
        assert code in (None, done.returncode), f"{arguments}\n{done.stdout}{done.stderr}"
        return done

    def start(self, *arguments: object) -> quick_combo.Call:
        said = self.home.with_name(f"said-{secrets.token_hex(4)}")
        return quick_combo.call(list(map(str, arguments)), self.environment, self.home, said)

    def typed(self, *arguments: object, answer: str = "", **variables: str) -> tuple[int, str]:
        """The exit code of a command on a terminal, where `answer` is typed, and what it shows."""
        ours, theirs = pty.openpty()
        words, environment = list(map(str, arguments)), {**self.environment, **variables}
        asked = quick_combo.at_terminal(words, environment, self.home, theirs)
        os.write(ours, answer.encode() + b"\x04")  # further questions get the end of input
        shown = b""
        with suppress(OSError):  # the other end is closed
            while piece := os.read(ours, 4096):
                shown += piece
        os.close(ours)
        asked.join(30)
        assert asked.exitcode is not None, shown
        return asked.exitcode, shown.decode()

    def json(self, *arguments: object) -> Any:
        """The answer of a command, held against the schema; of one that answers with records the first one."""
        done = self.combo(*arguments, "--json")
        assert done.stdout, done.stderr
        return checked(list(map(str, arguments)), json.JSONDecoder().raw_decode(done.stdout)[0])

    def stream(self, *arguments: object) -> list[dict[str, Any]]:
        """The records that a command answers with."""
        lines = self.combo(*arguments, "--json").stdout.splitlines()
        return [checked(list(map(str, arguments)), json.loads(line)) for line in lines]

    @property
    def runs(self) -> list[Path]:
        return sorted((self.home / "comborun").glob("*-????????T??????Z-????"))

    def launched(self, count: int, **keys: str) -> Path:
        """Launch the little grid, and wait until `count` sessions have begun."""
        done = self.combo("launch", self.grid(**keys))
        assert done.returncode == 0, done.stderr
        until(lambda: len(self.begun) == count, f"{count} begin")
        return self.runs[-1]

    @property
    def begun(self) -> set[str]:
        """The sessions of the newest run that have begun."""
        return {path.parts[-3] for path in self.runs[-1].glob("sessions/*/attempt-1/begin")}

    @property
    def states(self) -> dict[str, str]:
        return {one["name"]: one["outcome"] or one["state"] for one in self.json("status")["sessions"]}

    def report(self, run: Path | None = None) -> dict[str, Any]:
        return json.loads(((run or self.runs[-1]) / "report/final_benchmark_report.json").read_text())

    def records(self, run: Path) -> dict[str, list[str]]:
        """Session name -> its result lines, of all attempts."""
        records: dict[str, list[str]] = {}
        for file in sorted(run.glob("sessions/*/attempt-*/out/*.jsonl")):
            records.setdefault(file.parts[-4], []).extend(file.read_text().splitlines())
        return records

    def close(self) -> None:
        """Kill what this desk's runs still have; a finalizer never raises."""
        tmux = ["tmux", "-L", self.environment["COMBORUN_TMUX_SOCKET"], "kill-server"]
        subprocess.run(tmux, env=self.environment, capture_output=True, check=False)
        mark = f"{self.home}/comborun/".encode()
        for _ in range(2 if self.runs else 0):
            found = False
            for folder in Path("/proc").glob("[0-9]*"):
                with suppress(OSError):
                    if mark in (folder / "cmdline").read_bytes() + (folder / "environ").read_bytes():
                        os.kill(int(folder.name), signal.SIGKILL)
                        found = True
            if not found:
                break
        shutil.rmtree(self.environment["SCREENDIR"], ignore_errors=True)


def reported(said: str) -> Path:
    """The folder of the report that a command named."""
    found = re.search(r"^Report: (.*)$", said, re.MULTILINE)
    assert found, said
    return Path(found[1])


def evaluate(pace: float = 0.0, fail: str = "", gate: Path | None = None) -> str:
    """The grid's command: its evaluator takes `pace` seconds for an episode, goes wrong, or waits for `gate`."""
    wrong = f" --fail {fail}" if fail else ""
    waits = f" --gate {shlex.quote(str(gate))}" if gate else ""
    program = shlex.join([sys.executable, "-S", str(EVALUATOR)])
    return (
        f"{program} --policy {{policy}} --env {{environment}} --episodes {{episodes}} "
        f"--first-episode {{first_episode}} --seed {{seed}} --output-dir {{output_dir}} --pace {pace}{wrong}{waits}"
    )


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A desk with the little grid's run, which `combo run` has brought to its end."""
    with desk_at(tmp_path_factory.mktemp("ended") / "a home") as there:
        there.combo("run", there.grid(), code=0)
        yield there


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    with desk_at(tmp_path / "a home") as made:
        yield made


@contextmanager
def desk_at(home: Path) -> Iterator[Desk]:
    """A desk with this home folder, which is made; what its runs have is ended at the end."""
    home.mkdir()
    screens = tempfile.mkdtemp(prefix="cs-")
    Path(screens, "run").mkdir(mode=0o700)
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": str(home),
        "MPLCONFIGDIR": os.environ["MPLCONFIGDIR"],
        "PYTHONPATH": str(CHECKOUT),
        "COMBORUN_TMUX_SOCKET": f"desk-{secrets.token_hex(4)}",
        "SCREENDIR": screens,
        "XDG_RUNTIME_DIR": f"{screens}/run",  # else a `disconnect` ends the connections of other tests
        "COMBORUN_LEASES": f"{screens}/leases",
        "COMBORUN_VMSTAT": "/dev/null",
        "LANG": "C.UTF-8",
        "TERM": "dumb",
    }
    made = Desk(home, environment)
    try:
        yield made
    finally:
        made.close()
