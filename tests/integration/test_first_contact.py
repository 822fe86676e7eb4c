"""Mistakes of a new user on a host over SSH: what the first line says, and after how many seconds.

`pytest -rP tests/integration/test_first_contact.py` prints each line with the seconds until it.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest
import sshd
from desk import Desk
from nvidia import Gpus
from sshd import Sshd, fresh_user, running_sshd
from test_host_flow import far, far_grid

from comborun.rules.names import MULTIPLEXER_NAMES

if TYPE_CHECKING:
    from box import Box

__all__ = ["far"]

SERVER = """#!/bin/bash
exec unshare --mount --propagation private bash -c '
{mounts}
exec {sshd} "$@"' sshd "$@"
"""
"""an sshd whose sessions see another machine: mounts of its own"""
HIDE = """touch {home}/none
for program in {programs}; do [ ! -e $program ] || mount --bind {home}/none $(readlink -f $program); done"""
FULL = """mkdir {home}/comborun && mount -t tmpfs -o size=4m,mode=777 none {home}/comborun
head -c 8m /dev/zero >{home}/comborun/zeros 2>{home}/none"""
GPU = "mount --bind {gpus} /usr/local/bin"


@dataclass(frozen=True)
class Mistake:
    said: tuple[str, ...]
    """words that stand in the first lines"""
    keys: dict[str, str] = field(default_factory=dict)
    """of the grid"""
    verb: str = "launch"
    host: str = ""
    """commands in front of its sshd"""


MISSING = {
    "policies": "{good: {checkpoint: ~/models/none.pt}}",
    "command": "cat {policy.checkpoint} {episodes} {output_dir}",
}
FLAG = "/usr/bin/python3 ~/evaluator.py --env x --policy x --epsiodes 3 --episodes {episodes} --output-dir {output_dir}"
PYTHONS = "/usr/bin/python3* /usr/local/bin/python3*"
ON_GPU = {"resources": "{gpus: 1}"}
MISTAKES = {
    "a wrong host": Mistake(("tsetbox", "Your ssh config has testbox"), {"host": "tsetbox"}),
    "an unknown host key": Mistake(("not known", "SHA256:", "--accept-new")),
    "a misspelt key of the grid": Mistake(("enviroments", "did you mean `environments`"), {"enviroments": "[maze]"}),
    "no multiplexer": Mistake(
        ("testbox lacks", "tmux (or screen", "apt-get install tmux"),
        host=HIDE.replace("{programs}", " ".join(f"/usr/bin/{name}" for name in MULTIPLEXER_NAMES)),
    ),
    "no Python": Mistake(("testbox", "Python 3.8"), host=HIDE.replace("{programs}", PYTHONS)),
    "a list of runs without Python": Mistake(
        ("! testbox: testbox has no Python 3.8",), verb="runs", host=HIDE.replace("{programs}", PYTHONS)
    ),
    "a typo in the conda environment": Mistake(
        ("testbox is not ready", "environment isaclab", "source FOLDER/etc/profile.d/conda.sh"),
        {"setup": "conda activate isaclab"},
    ),
    "a missing checkpoint": Mistake(("there is no ~/models/none.pt", "from: none.pt, to: ~/models/none.pt"), MISSING),
    "a program that is not there": Mistake(
        ("no-such-program", "add its folder to PATH in `setup`"), {"command": "no-such-program {episodes} {output_dir}"}
    ),
    "a path that is relative to nothing there": Mistake(
        ("eval.py is relative", "`workdir: ~/FOLDER`", "from: ., to: ~/a home"),
        {"command": "python3 eval.py {episodes} {output_dir}"},
    ),
    "a wrong flag of the program": Mistake(("unrecognized arguments: --epsiodes 3",), {"command": FLAG}, "try"),
    "a wrong pattern of results": Mistake(
        ("the pattern takes *.json", 'results: {files: "**/*.jsonl"}'), {"results": '{files: "*.json"}'}, "try"
    ),
    "a full GPU": Mistake(("waits for", "GPU 0", "free"), ON_GPU, host=GPU),
    "a driver that was upgraded": Mistake(("Driver/library version mismatch", "`sudo reboot` there"), ON_GPU, host=GPU),
    "a full disk": Mistake(("testbox is not ready", "disk:", "is full", "combo clean"), host=FULL),
}
BEGINS = ("a full GPU",)


@pytest.fixture
def mistake(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def far_host(ssh_place: Path, tmp_path: Path, mistake: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sshd]:
    """A server whose machine lacks what the mistake says."""
    gpus = Gpus(cast("Box", SimpleNamespace(environment={"PATH": ""})), ssh_place / "gpus")
    gpus.folder.chmod(0o777)
    gpus.cards(24576)
    gpus.taken(24000)
    gpus.fault("mismatch" if "driver" in mistake else "")
    with fresh_user() as user:
        mounts = MISTAKES[mistake].host.replace("{home}", str(user.home)).replace("{gpus}", str(gpus.folder))
        server = tmp_path / "sshd"
        server.write_text(SERVER.replace("{mounts}", mounts).replace("{sshd}", sshd.SSHD))
        server.chmod(0o755)
        monkeypatch.setattr(sshd, "SSHD", str(server))
        with running_sshd(ssh_place / mistake.replace(" ", "-"), user) as made:
            if "host key" in mistake:
                made.known_hosts.write_text("")
            yield made


@pytest.mark.parametrize("mistake", MISTAKES, indirect=True)
def test_a_mistake_is_answered_by_its_cause_and_a_fix(far: Desk, far_host: Sshd, mistake: str) -> None:
    made = MISTAKES[mistake]
    grid = far_grid(far)
    lines = [line for line in grid.read_text().splitlines() if line.partition(":")[0] not in made.keys]
    grid.write_text("\n".join([*lines, *(f"{key}: {value}" for key, value in made.keys.items())]) + "\n")
    far.combo("--version")  # the programs of a test are imported once
    began = time.monotonic()
    done = far.combo(made.verb, grid)
    said = (done.stderr + done.stdout).strip()
    print(f"{mistake}: {time.monotonic() - began:.1f} s, code {done.returncode}:\n{said}")
    assert done.returncode == (0 if mistake in BEGINS else 1 if made.verb == "try" else done.returncode or -1), said
    assert all(word in said for word in made.said)
    if made.verb == "try":
        assert made.said[0] in done.stdout.splitlines()[0], "the trouble comes first"
    assert not list(far_host.user.home.glob("comborun/*-*/sessions/*/attempt-1/begin"))
