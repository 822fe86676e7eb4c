"""The laptop's half on a Mac: every command, with a host and without. /proc is empty, names of Linux are gone."""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest
from desk import CHECKOUT, EVALUATOR, Desk, evaluate
from sshd import fresh_user, running_sshd

from comborun.cli import combo

if TYPE_CHECKING:
    from collections.abc import Iterator

AS_MAC = Path(__file__).with_name("as_mac")
HIDE = 'mount -t tmpfs none /proc && exec "$@"'

FAR = """
init > presets > schema > docs results > completion bash > check grid.yaml
doctor --host testbox > plan grid.yaml > export compose boxed.yaml > try grid.yaml > calibrate grid.yaml
launch grid.yaml > status > runs > explain maze_good > logs maze_good > attach maze_good --show > pause > drain
resume > slots 1 > stop > retry maze_good > resume > monitor --plain > run grid.yaml --plain > report > recheck
notify > view --bundle page > clean --older 0 --dry-run --host testbox > disconnect
"""
"""in this order; what they need is there"""
WITHOUT = {"init", "presets", "schema", "docs", "completion", "check", "disconnect", "canary"}
"""commands that need no host"""


@pytest.fixture
def mac(desk: Desk, ssh_place: Path, tmp_path: Path) -> Iterator[Desk]:
    """A desk on a Mac, with a host."""
    with fresh_user() as user, running_sshd(ssh_place / tmp_path.name, user) as server:
        shutil.copy(EVALUATOR, user.home / "evaluator.py")
        desk.environment |= {
            "COMBORUN_SSH_CONFIG": str(server.config),
            "PYTHONPATH": f"{AS_MAC}:{CHECKOUT}",
            "XDG_STATE_HOME": str(desk.home / "state"),
        }
        yield desk
        mac_combo(desk, "disconnect")


def mac_combo(desk: Desk, *words: str, seconds: float = 90) -> subprocess.CompletedProcess[str]:
    command = ["unshare", "--mount", "sh", "-c", HIDE, "sh", *desk.command(*words)]
    return subprocess.run(
        command,
        capture_output=True,
        text=True,
        env=desk.environment,
        cwd=desk.home,
        stdin=subprocess.DEVNULL,
        timeout=seconds,
        check=False,
    )


def grid(desk: Desk, **keys: str) -> Path:
    command = f"/usr/bin/python3 ~/evaluator.py --{evaluate(0.2).split(' --', 1)[1]}"
    keys |= {"command": command, "policies": "[good]", "environments": "[maze]", "notify": "'true'"}
    desk.grid("boxed.yaml", container="{image: evaluator}", **keys)
    return desk.grid(**keys)


def asked(line: str) -> list[str]:
    return [words.strip() for words in line.replace("\n", " > ").split(">") if words.strip()]


@pytest.mark.timeout(900)
def test_every_command_works_with_a_host(mac: Desk) -> None:
    grid(mac, host="testbox")
    every = set(combo.list_commands(click.Context(combo)))
    assert {words.split()[0] for words in asked(FAR)} >= every, "a new command needs a line above"
    told = {}
    for words in asked(FAR):
        told[words] = done = mac_combo(mac, *words.split())
        print(f"{words}: {done.returncode}\n{done.stderr}", flush=True)
    for words, done in told.items():
        assert "Traceback" not in done.stderr + done.stdout, words
        assert "sessions need Linux" not in done.stderr, words
        assert done.returncode in (0, 1), words
    assert "1 succeeded" in told["run grid.yaml --plain"].stdout
    assert json.loads(mac_combo(mac, "status", "--json").stdout)["finished"] is True


@pytest.mark.timeout(600)
def test_without_a_host_each_command_says_that_one_is_needed(mac: Desk) -> None:
    grid(mac)
    for words in asked(FAR):
        name = words.split()[0]
        if name in WITHOUT:
            continue
        done = mac_combo(mac, *words.replace("--host testbox", "").split())
        assert "Traceback" not in done.stderr, f"{words}\n{done.stderr}"
        assert "sessions need Linux: give --host" in done.stderr, f"{words}\n{done.stderr}{done.stdout}"
        assert done.returncode == 2, words


def test_names_that_differ_only_by_case_are_refused(desk: Desk) -> None:
    done = desk.combo("check", desk.grid(policies="[PPO, ppo]"), code=2)
    assert "differ only by case" in done.stderr
    desk.combo("check", desk.grid(policies="[PPO, ppo2]"), code=0)
