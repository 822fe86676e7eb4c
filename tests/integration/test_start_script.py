"""start.sh: what it refuses, what it needs of a machine, and what it hands on."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest
from box import Box, bash, until
from traces import RECORD

BAD_STARTS = {
    "--parallel 0": "not understood: --parallel 0;",
    "--parallel": "not understood: --parallel",
    "--multiplexer byobu": "not understood: --multiplexer byobu;",
    "--fast": "not understood: --fast;",
}


@pytest.mark.parametrize("arguments", BAD_STARTS)
def test_a_start_that_makes_no_sense_is_refused(box: Box, arguments: str) -> None:
    box.plan({"env_one": bash("true")})
    refused = box.program("start", *arguments.split())
    assert refused.returncode == 64
    assert BAD_STARTS[arguments] in refused.stderr


def minimal_path(folder: Path, *more: str) -> str:
    """A PATH with bash, coreutils and util-linux, and nothing else but what is named."""
    packages = ["bash", "coreutils", "util-linux"]
    listed = subprocess.run(["dpkg", "-L", *packages], capture_output=True, text=True, check=True).stdout.split()
    folder.mkdir()
    programs = [Path(path) for path in listed if Path(path).parent.name in {"bin", "sbin"} and Path(path).is_file()]
    for program in (*programs, *(Path(shutil.which(name) or "/missing") for name in more)):
        (folder / program.name).unlink(missing_ok=True)
        (folder / program.name).symlink_to(program)
    return str(folder)


needs_dpkg = pytest.mark.skipif(not shutil.which("dpkg"), reason="asks dpkg which programs a package holds")


@needs_dpkg
def test_without_tmux_and_screen_both_are_named(box: Box, tmp_path: Path) -> None:
    box.plan({"env_one": bash("true")})
    box.environment["PATH"] = minimal_path(tmp_path / "bin")
    refused = box.program("start")
    assert refused.returncode == 69
    assert "neither tmux nor screen" in refused.stderr


@needs_dpkg
def test_nothing_is_needed_but_bash_coreutils_util_linux_and_a_multiplexer(any_box: Box, tmp_path: Path) -> None:
    any_box.environment["PATH"] = minimal_path(tmp_path / "bin", any_box.multiplexer)
    any_box.plan({"env_one": bash(RECORD, results=("*.jsonl",)), "env_two": bash("sleep 60"), "after": bash("true")})
    assert any_box.start().returncode == 0
    any_box.ended("env_one")
    any_box.begun("env_two")
    assert any_box.program("probe", "", "100").stderr == ""
    stopped = any_box.stop("env_two")
    assert stopped.returncode == 0, stopped.stderr
    assert any_box.await_done()["after"] == "succeeded"
    assert (any_box.directory / "dispatch/out").read_text() == ""


def test_the_windows_environment_is_that_of_the_start_and_not_of_an_older_server(box: Box) -> None:
    box.environment["TMUX_MARK"] = "older"
    box.tmux("-f", "/dev/null", "new-session", "-d", "-s", "mine", "sleep 60")
    box.environment["TMUX_MARK"] = "newer"
    box.run({"env_one": bash('echo "$TMUX_MARK"')})
    assert box.log("env_one") == "newer\n"
    until(lambda: box.windows() == ["mine"], "the session's window is gone and the other is not")
