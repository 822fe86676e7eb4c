"""`combo runs` and `combo monitor --all` over three real sshd, of which one is frozen."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from box import until
from boxes import NAMES, freeze, thaw, three_hosts
from desk import Desk, evaluate
from rounds import only_slow
from sshd import Sshd

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture
def three(desk: Desk, ssh_place: Path, tmp_path: Path) -> Iterator[dict[str, Sshd]]:
    """Hosts with a run each, which have been listed once."""
    with three_hosts(desk, ssh_place, tmp_path.name) as servers:
        command = f"/usr/bin/python3 ~/evaluator.py --{evaluate(30).split(' --', 1)[1]}"
        for name in NAMES:
            grid = desk.grid(f"{name}.yaml", host=name, command=command, policies="[good]", limits="{parallel: 1}")
            grid.write_text(grid.read_text().replace("name: little", f"name: {name}"))
            desk.combo("launch", grid, code=0)
        desk.combo("runs", code=0)
        yield servers


@only_slow  # tests/unit/monitor/test_fleet.py holds the same of hosts that are made up
def test_no_row_waits_for_a_frozen_host_which_is_shown_as_last_seen(desk: Desk, three: dict[str, Sshd]) -> None:
    freeze(three["beta"])
    begun, seen = time.monotonic(), dict[str, tuple[float, str]]()
    command = [*desk.command("runs")]
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True}
    with subprocess.Popen(command, env=desk.environment, cwd=desk.home, **pipes) as asked:
        assert asked.stdout
        assert asked.stderr
        for line in asked.stdout:
            for name in NAMES:
                if line.startswith(f"{name}-"):
                    seen.setdefault(name, (time.monotonic() - begun, line))
        told_of = asked.stderr.read()
    thaw(three["beta"])
    print({name: round(seconds, 2) for name, (seconds, _) in seen.items()})
    assert set(seen) == set(NAMES)
    assert "waiting for beta ..." in told_of
    assert "! beta: no answer yet; `combo runs --host beta` waits for it" in told_of, "until the link gives up"
    assert "ago)" in seen["beta"][1]
    assert max(seen["alpha"][0], seen["gamma"][0]) < seen["beta"][0] + 1, "they do not wait"
    assert 1.9 < seen["beta"][0] < 8
    assert all("1 queued, 1 running" in line for _, line in seen.values())
    told = {one["host"]: one for one in desk.json("runs")}
    assert {name: told[name]["counts"] for name in NAMES} == {name: {"queued": 1, "running": 1} for name in NAMES}
    assert all(told[name]["episodes_planned"] == 8 for name in NAMES)
    name = told["beta"]["run"].rpartition("-")[2]
    assert desk.json("status", name)["run"] == told["beta"]["run"], "the end of its id names it"


def test_all_hosts_are_watched_and_an_end_is_told(desk: Desk, three: dict[str, Sshd]) -> None:
    del three
    watched = desk.start("monitor", "--all", "--json", "--interval", "0.3")
    until(lambda: "\n" in watched.text, "a first document", 30)
    desk.combo("stop", "gamma", code=0)

    def stopped() -> bool:
        last = [json.loads(line) for line in watched.text.splitlines(keepends=True) if line.endswith("\n")][-1]
        return any(one["host"] == "gamma" and one["stopped"] for one in last["runs"])

    until(stopped, "the stop is seen", 30)
    watched.interrupt()
