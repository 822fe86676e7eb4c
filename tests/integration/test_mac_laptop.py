"""The laptop's half on a Mac: every command, with a host and without. /proc is empty, names of Linux are gone."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import pytest
from desk import CHECKOUT, EVALUATOR, Desk, desk_at, evaluate
from sshd import fresh_user, running_sshd

from comborun.cli import combo

if TYPE_CHECKING:
    from collections.abc import Iterator

Told = list[tuple[str, int, str, str]]
"""commands, each with its exit code, output and complaints"""
AS_MAC = Path(__file__).with_name("as_mac")
HIDE = 'mount -t tmpfs none /proc && exec "$@"'

FOLLOWED = '{follow: "~/ckpt_*.pt", done: STABLE}'
FAR = """
init > presets > presets show openpi > schema > docs results > completion bash > check grid.yaml
doctor --host testbox > plan grid.yaml > export compose boxed.yaml > try grid.yaml > calibrate grid.yaml --most 1
launch grid.yaml > status > mcp > hosts list > hosts lost testbox > runs > explain maze_good > logs maze_good
attach maze_good --show
pause > drain > resume > slots 1 > set parallel=2 > stop
retry maze_good > resume > monitor --plain > run grid.yaml --plain > report > recheck
notify > keep > view --bundle page > follow follow.yaml > clean --older 0 --dry-run --host testbox
status little --json > disconnect
"""
"""in this order; what they need is there"""
WITHOUT = {"init", "presets", "schema", "docs", "completion", "check", "disconnect", "canary"}
"""commands that need no host"""


@pytest.fixture(scope="module")
def mac(ssh_place: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    """A desk on a Mac, with a host."""
    place = ssh_place / "as_mac"
    with (
        fresh_user() as user,
        running_sshd(place, user) as server,
        desk_at(tmp_path_factory.mktemp("mac") / "a home") as desk,
    ):
        shutil.copy(EVALUATOR, user.home / "evaluator.py")
        desk.environment |= {
            "COMBORUN_CALIBRATE_S": "1",
            "COMBORUN_SSH_CONFIG": str(server.config),
            "PYTHONPATH": f"{AS_MAC}:{CHECKOUT}",
            "XDG_STATE_HOME": str(desk.home / "state"),
        }
        yield desk
        desk.combo("disconnect")


@pytest.fixture(scope="module")
def told(mac: Desk) -> tuple[Told, Told]:
    """What is said without a host, and with one, by processes that fork from one."""
    grids(mac, "bare_")
    grids(mac, host="testbox")
    lines = [words.replace(" --host testbox", "") for words in asked(FAR) if words.split()[0] not in WITHOUT]
    bare = [words.replace("grid.yaml", "bare_grid.yaml") for words in lines]
    bare = [words.replace("boxed.yaml", "bare_boxed.yaml").replace("follow.yaml", "bare_follow.yaml") for words in bare]
    said = mac_combo(mac, [*bare, *asked(FAR)])
    return said[: len(bare)], said[len(bare) :]


def mac_combo(desk: Desk, lines: list[str]) -> Told:
    """Each command, with its exit code and both streams."""
    folder = desk.home / "said"
    folder.mkdir()
    program = [sys.executable, str(AS_MAC / "each.py"), str(folder), *lines]
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", HIDE, "sh", *program],
        stdout=subprocess.PIPE,
        text=True,
        env=desk.environment,
        cwd=desk.home,
        stdin=subprocess.DEVNULL,
        timeout=800,
        check=True,
    )
    told = []
    for number, (words, code) in enumerate(zip(lines, json.loads(done.stdout), strict=True)):
        out, err = ((folder / f"{number}.{name}").read_text() for name in ("out", "err"))
        told.append((words, code, out, err))
        print(f"{words}: {code}\n{err}")
    return told


def grids(desk: Desk, prefix: str = "", **keys: str) -> None:
    command = f"/usr/bin/python3 ~/evaluator.py --{evaluate(0.2).split(' --', 1)[1]}"
    keys |= {"command": command, "policies": "[good]", "environments": "[maze]", "notify": "'true'"}
    desk.grid(f"{prefix}boxed.yaml", container="{image: evaluator}", **keys)
    desk.grid(f"{prefix}follow.yaml", **{**keys, "name": "followed", "policies": FOLLOWED})
    desk.grid(f"{prefix}grid.yaml", **keys)


def asked(line: str) -> list[str]:
    return [words.strip() for words in line.replace("\n", " > ").split(">") if words.strip()]


def test_every_command_is_tried() -> None:
    context = click.Context(combo)
    every = set(combo.list_commands(context))
    every |= {f"{name} {one}" for name in every for one in getattr(combo.get_command(context, name), "commands", {})}
    tried = {" ".join(words.split()[:count]) for words in asked(FAR) for count in (1, 2)}
    assert tried >= every, "a new command needs a line above"


@pytest.mark.timeout(900)
def test_every_command_works_with_a_host(told: tuple[Told, Told]) -> None:
    _, with_host = told
    for words, code, out, err in with_host:
        assert "Traceback" not in out + err, words
        assert "sessions need Linux" not in err, words
        assert code in (0, 1) or "runs on one host" in err, words
    outputs = {words: out for words, _, out, _ in with_host}
    assert "1 succeeded" in outputs["run grid.yaml --plain"]
    assert json.loads(outputs["status little --json"])["finished"] is True


def test_without_a_host_each_command_says_that_one_is_needed(told: tuple[Told, Told]) -> None:
    without, _ = told
    for words, code, _, err in without:
        assert "Traceback" not in err, words
        assert "sessions need Linux: give --host" in err, words
        assert code == 2, words


def test_names_that_differ_only_by_case_are_refused(desk: Desk) -> None:
    done = desk.combo("check", desk.grid(policies="[PPO, ppo]"), code=2)
    assert "differ only by case" in done.stderr
    desk.combo("check", desk.grid(policies="[PPO, ppo2]"), code=0)
