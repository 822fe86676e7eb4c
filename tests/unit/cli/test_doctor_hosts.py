"""`combo doctor` of a grid on several hosts of which some can't be reached."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from comborun.cli import doctor
from comborun.errors import HostError
from comborun.remote.host import Examination

GRID = """
hosts: [a, b, c]
policies: [p]
environments: [e]
episodes: 1
command: eval {policy} {environment} {episodes} {output_dir}
workdir: ~/
"""


def test_every_host_is_looked_at_and_each_that_can_not_be_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def examined(_: object, grid: Any) -> tuple[str, Examination]:
        if grid.host != "b":
            raise HostError(f"{grid.host} is away", "plug it in")
        return grid.host, Examination((), {"cpus": 2})

    monkeypatch.setattr(doctor, "_examined", examined)
    grid = tmp_path / "grid.yaml"
    grid.write_text(GRID)
    done = CliRunner().invoke(doctor.doctor, ["--grid", str(grid)], standalone_mode=False)
    assert isinstance(done.exception, HostError)
    assert done.exception.message == "2 hosts of 3 can't be looked at:\n  a: a is away\n  c: c is away"
    assert "b  2 CPUs" in done.output
