"""What this machine or a foreign file does to a command: one sentence and no traceback."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from desk import Desk, desk_at, evaluate


def told(desk: Desk, *arguments: object, before: str = "", code: int = 2) -> str:
    """What the command says on standard error, in a bash that has done `before`."""
    done = subprocess.run(
        ["bash", "-c", f'{before}\nexec "$@"', "bash", *desk.command(*arguments)],
        env=desk.environment, cwd=desk.home, capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    assert "Exception ignored" not in done.stderr
    assert done.returncode == code, done.stderr
    return done.stderr


def test_a_full_standard_output_is_told(desk: Desk) -> None:
    said = told(desk, "presets", before="exec >/dev/full")
    assert "No space left on device" in said
    assert "the disk is full" in said


def test_a_machine_that_opens_no_more_files_is_told_with_the_limit(desk: Desk) -> None:
    said = told(desk, "runs", before="ulimit -n 5")
    assert "Too many open files" in said
    assert "ulimit -n" in said


@pytest.mark.parametrize(
    ("command", "text"),
    [("report", "[" * 100_000), ("explain", '{"sessions": 7}'), ("resume", "\0" * 50)],
)
def test_a_plan_that_can_not_be_read_is_told(desk: Desk, command: str, text: str) -> None:
    run = desk.home / "comborun/little-20260101T000000Z-abcd"
    (run / "sessions").mkdir(parents=True)
    (run / "dispatch").mkdir()
    for name, content in {"id": f"{run.name}\n", "run.json": "{}", "digest": "digest=x\n", "plan-1.json": text}.items():
        (run / name).write_text(content)
    assert "can't be read" in told(desk, command, "little")


def test_in_a_home_with_brackets_tmux_reads_its_settings_and_runs_are_found(tmp_path: Path) -> None:
    with desk_at(tmp_path / "a [home] *") as desk:
        tmux = ["tmux", "-L", desk.environment["COMBORUN_TMUX_SOCKET"], "-f", "/dev/null"]
        subprocess.run([*tmux, "new-session", "-d", "sleep 60"], env=desk.environment, check=True)  # it has a server
        launched = desk.json("launch", desk.grid(policies="[good]", environments="[maze]", command=evaluate(10)))
        asked = [*tmux, "show-options", "-sv", "exit-empty"]
        shown = subprocess.run(asked, env=desk.environment, capture_output=True, text=True, check=True)
        assert shown.stdout == "off\n"
        assert [one["run"] for one in desk.json("runs")] == [launched["run"]]
        assert desk.json("status")["sessions"][0]["state"] == "running"


def test_a_path_that_is_too_long_is_told(desk: Desk) -> None:
    said = told(desk, "check", "a/" * 3000)
    assert "name too long" in said.lower()
    assert len(said) < 600


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("IdentityFile ~nobody-at-all/x", "nobody-at-all"),
        ("Port 99999", "your ssh config can't be used"),
        (f"IdentityFile /{'x' * 5000}", ""),
        ("ProxyJump -oProxyCommand=x", ""),
    ],
)
def test_an_ssh_config_that_can_not_be_used_is_told(desk: Desk, tmp_path: Path, line: str, said: str) -> None:
    config = tmp_path / "config"
    config.write_text(f"Host box\n  HostName 127.0.0.1\n  Port 1\n  {line}\n".replace("Port 1\n  Port", "Port"))
    desk.environment["COMBORUN_SSH_CONFIG"] = str(config)
    assert said in told(desk, "runs", "--host", "box", code=3)
