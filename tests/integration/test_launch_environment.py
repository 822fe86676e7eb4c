"""A run that goes on from another shell: the other Python is named before anything starts, and in the report."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from box import until
from desk import Desk

PROGRAM = """
import json, os, sys
out, environment = sys.argv[1:]
mark = os.environ.get("VIRTUAL_ENV")
with open(f"{out}/rows.jsonl", "w") as file:
    file.write(json.dumps({"episode": 0, "success": True, "mark": mark}) + "\\n")
"""


@pytest.fixture
def grid(desk: Desk) -> Path:
    (desk.home / "program.py").write_text(PROGRAM)
    command = f"{sys.executable} -S program.py {{output_dir}} {{environment}}"
    return desk.grid(policies="[p]", environments="[a, b]", episodes="1", workdir=str(desk.home), command=command)


def marks(run: Path) -> dict[str, str]:
    """Session -> VIRTUAL_ENV of its latest attempt."""
    found = sorted(run.glob("sessions/*/attempt-*/out/rows.jsonl"))
    return {path.parts[-4]: json.loads(path.read_text())["mark"] for path in found}


def report(run: Path) -> str:
    return "".join(path.read_text("utf-8", "replace") for path in sorted((run / "report").glob("*.md")))


def begin(desk: Desk, grid: Path) -> Path:
    """One session ends in a first shell, the other one never starts."""
    desk.environment["VIRTUAL_ENV"] = "/first"
    desk.combo("launch", grid, "--parallel", "1", code=0)
    (run,) = desk.runs
    until(lambda: marks(run), "one has ended")
    desk.combo("stop", "--yes", code=None)
    for path in run.glob("sessions/b_p/attempt-*"):  # as if it had been too slow
        path.rename(path.with_name(f"gone-{path.name}"))
    (run / "dispatch/done").unlink(missing_ok=True)
    desk.environment["VIRTUAL_ENV"] = "/second"
    return run


SAID = "sessions that start now get other variables than the first launch: VIRTUAL_ENV is /second, and was /first"


@pytest.mark.parametrize("how", ["resume", "launch"])
def test_another_shell_is_named_before_anything_starts_and_in_the_report(desk: Desk, grid: Path, how: str) -> None:
    run = begin(desk, grid)
    if how == "resume":
        assert SAID in desk.combo("resume", "--dry-run", code=0).stdout
        assert set(marks(run)) == {"a_p"}
        assert SAID in desk.combo("resume", code=0).stdout
    else:
        assert SAID in desk.combo("launch", grid, code=0).stderr
    until((run / "dispatch/done").exists, "it ends")
    assert marks(run) == {"a_p": "/first", "b_p": "/second"}
    desk.combo("report", code=0)
    assert "1 session had other variables than the first launch: VIRTUAL_ENV is /second" in report(run)
    assert "/second" in (run / "dispatch/environments.jsonl").read_text()
    assert "HOME" not in (run / "dispatch/environments.jsonl").read_text()


def test_the_first_ones_are_used_if_a_person_asks_for_them(desk: Desk, grid: Path) -> None:
    run = begin(desk, grid)
    assert "other variables" not in desk.combo("resume", "--environment", "first", code=0).stdout
    until((run / "dispatch/done").exists, "it ends")
    assert marks(run) == {"a_p": "/first", "b_p": "/first"}
    desk.combo("report", code=0)
    assert "other variables" not in report(run)
