"""Variables of the caller that would change what our own children do."""

from __future__ import annotations

import subprocess
import tempfile
from pathlib import Path

import pytest
from box import until
from desk import ONE, Desk, evaluate

from comborun.host.doctor.machine import Box, variables


def test_a_window_is_found_from_a_shell_that_has_not_the_folder_of_its_tmux(desk: Desk) -> None:
    with tempfile.TemporaryDirectory(prefix="ct-") as folder:
        desk.environment["TMUX_TMPDIR"] = folder
        desk.launched(1, **ONE, command=evaluate(gate=desk.home / "go"))
        run = desk.runs[-1]
        del desk.environment["TMUX_TMPDIR"]
        shown = desk.combo("attach", "maze_good", "--show", code=0).stdout
        assert f"env TMUX_TMPDIR={folder} tmux" in shown
        desk.combo("stop", "--yes", code=0)
        assert not (run / "dispatch/machine").exists()
        kill = ["tmux", "-L", desk.environment["COMBORUN_TMUX_SOCKET"], "kill-server"]
        subprocess.run(kill, env={**desk.environment, "TMUX_TMPDIR": folder}, capture_output=True, check=False)


def test_options_of_the_callers_bash_and_a_repository_of_a_hook_change_nothing(desk: Desk) -> None:
    desk.environment.update(SHELLOPTS="noexec", GIT_DIR="/nonexistent", SYSSCREENRC="/nonexistent")
    desk.launched(1, **ONE)
    until((desk.runs[-1] / "dispatch/done").exists, "it ends")
    assert desk.states == {"maze_good": "succeeded"}


def test_doctor_tells_of_a_proxy_and_of_slurms_variables(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    monkeypatch.setenv("http_proxy", "http://proxy:3128")
    monkeypatch.setenv("SBATCH_PARTITION", "urgent")
    found = [one.fact.texts("variables") for one in variables(Box(str(tmp_path)))]
    assert found == [("http_proxy",), ("SBATCH_PARTITION",)]
    monkeypatch.setenv("no_proxy", "intranet,127.0.0.1")
    assert len([*variables(Box(str(tmp_path)))]) == 1
