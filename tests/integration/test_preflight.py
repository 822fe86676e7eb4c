"""What a grid names and its host does not have is said before anything starts, all at once."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from desk import Desk, evaluate

from comborun.grid import parse_grid
from comborun.host.doctor import preflight
from comborun.host.system import machine
from comborun.remote.grids import preflight_question
from comborun.remote.host import host_facts
from comborun.remote.transport import LocalTransport
from comborun.rules.host import Lack
from comborun.words import say

HEAD = "name: g\npolicies: {a: {ckpt: CKPT}}\nenvironments: [x]\nresults: none\n"


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "project").mkdir()
    (tmp_path / "project/eval.py").write_text("")
    (tmp_path / "project/summary.sh").write_text("")
    (tmp_path / "policy.pt").write_text("")
    for name in ("isaac/bin", "other/bin"):
        (tmp_path / "miniconda3/envs" / name).mkdir(parents=True)
    for name in ("make_path.sh", "miniconda3/etc/profile.d/conda.sh", "miniconda3/envs/isaac/bin/activate"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("")
    python = tmp_path / "miniconda3/envs/isaac/bin/qzx7"
    python.write_text("#!/bin/sh\n")
    python.chmod(0o755)
    (tmp_path / "docker").write_text("#!/bin/sh\n")  # one that works
    (tmp_path / "docker").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=os.pathsep)
    return tmp_path


BRING = (
    "and no `workdir` is set: `workdir: ~/FOLDER` names its folder on the host;"
    " `sync: [{from: ., to: ~/laptop}]` with `workdir: ~/laptop` brings the grid file's folder there"
)
FIX = "write its whole path, or add its folder to PATH in `setup`"
COPY = "copy it there, or `sync: [{from: activate, to: ~/evn/bin/activate}]` brings it"
SERVED = "command: sh -c {server.m.url}\n"
SYNCED = "and no `workdir` is set: `workdir: ~/new` is the folder to which `sync` brings ."


def lines(text: str, ckpt: str = "~/policy.pt", *, local: bool = False) -> list[str]:
    grid = parse_grid(HEAD.replace("CKPT", ckpt) + text, Path("/laptop/grid.yaml"))
    return list(map(say, host_facts(LocalTransport(), named=preflight_question(grid, local=local)).absent))


def test_a_display_of_its_own_needs_xvfb_before_anything_starts(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def lacking(display: str, *, there: bool, **how: bool) -> list[str]:
        monkeypatch.setattr(
            preflight.shutil, "which", lambda name, path=None: "/bin/it" if there or name != "Xvfb" else None
        )
        text = f"command: sh ~/project/eval.py\nworkdir: ~/project\ndisplay: {display}\n"
        asked = preflight_question(parse_grid(HEAD + text, Path("/laptop/grid.yaml")), local=False, **how)
        return [one.code for one in preflight.lacks(json.loads(asked)) if one.code == Lack.XVFB]

    assert lacking("xvfb", there=False) == [Lack.XVFB]
    assert lacking("xvfb", there=True) == []
    assert lacking("':1'", there=False) == []
    assert lacking("xvfb", there=False, windows=False) == [], "a node of Slurm is another machine"
    assert lacking("xvfb", there=False, displays=False) == [], "the doctor finds it by itself"


CONDA = "setup: |\n  source ~/miniconda3/etc/profile.d/conda.sh\n  conda activate isaac\n"


@pytest.mark.parametrize(
    ("text", "ckpt", "said"),
    [
        ("command: sh eval.py {policy.ckpt}\nworkdir: ~/project\n", "~/policy.pt", []),
        (
            "command: sh collect_all.py\nworkdir: ~/project\n",
            "~/policy.pt",
            ["file: there is no collect_all.py in ~/project; copy or make it there, or correct the path"],
        ),
        (
            "command: sh eval.py\nworkdir: ~/projct\n",
            "~/policy.pt",
            ["workdir: there is no folder ~/projct; did you mean project?"],
        ),
        (
            "command: sh evl.py --ckpt={policy.ckpt}\nworkdir: ~/project\n",
            "~/polcy.pt",
            [
                "file: there is no evl.py; did you mean eval.py?",
                "file: there is no ~/polcy.pt; did you mean policy.pt?",
            ],
        ),
        (
            "command: sh evl.py {policy.ckpt}\nworkdir: ~/projct\nsetup: source ~/evn/bin/activate\n",
            "~/polcy.pt",
            [
                "workdir: there is no folder ~/projct; did you mean project?",
                "file: there is no ~/polcy.pt; did you mean policy.pt?",
                f"file: there is no ~/evn/bin/activate; {COPY}",
            ],
        ),
        (
            "command: ./run -c conf/a.yaml {policy.ckpt} --data ./data --out ./new\nsetup: . venv/bin/activate\n",
            "models/a.pt",
            [f"file: ./run, conf/a.yaml, models/a.pt, ./data, venv/bin/activate are relative, {BRING}"],
        ),
        ("command: sh eval.py\nsync: [{from: ., to: ~/new}]\n", "x", [f"file: eval.py is relative, {SYNCED}"]),
        ("command: sh eval.py lerobot/pi0\nsetup: cd ~/project\n", "x", []),
        ("command: env -C ~/project sh eval.py\n", "x", []),
        ("command: qzx8 ~/project/eval.py\n", "x", [f"program: qzx8 is not on the PATH; {FIX}"]),
        ("command: qzx8 ~/project/eval.py\nsetup: export PATH=~/tools:$PATH\n", "x", []),
        ("command: qzx8 ~/project/eval.py\nsetup: export A=1 && PATH=~/tools:$PATH\n", "x", []),
        (
            "command: qzx8 ~/project/eval.py\nsetup: export LD_LIBRARY_PATH=~/lib\n",
            "x",
            [f"program: qzx8 is not on the PATH; {FIX}"],
        ),
        ("command: qzx7 ~/project/eval.py\n" + CONDA, "x", []),
        (
            "command: sh -c true\n" + CONDA.replace("isaac", "isac"),
            "x",
            ["conda: there is no environment isac; did you mean isaac?"],
        ),
        ("command: qzx7 ~/project/eval.py\n" + CONDA + "  . ~/make_path.sh\n", "x", []),
        ("command: qzx7 eval.py\nworkdir: ~/project\nsetup: . ../miniconda3/envs/isaac/bin/activate\n", "x", []),
        ("command: ./run {policy.ckpt}\nworkdir: ~/project\n", "lerobot/pi0", ["program: ./run is not there"]),
        ("command: sh eval.py --output ~/new/results.json --log ~/new.zip\nworkdir: ~/project\n", "x", []),
        (
            "command: sh -c true\nafter: ./sumary.sh {results_dir}\nworkdir: ~/project\n",
            "x",
            ["file: there is no ./sumary.sh; did you mean summary.sh?"],
        ),
        (
            SERVED + "servers: {m: {command: 'sh serve.sh {port} {server.ckpt}', attributes: {ckpt: ~/polcy.pt}}}\n",
            "x",
            [f"file: serve.sh is relative, {BRING}", "file: there is no ~/polcy.pt; did you mean policy.pt?"],
        ),
        ("command: ./run /inside/eval.py\ncontainer: {image: i}\n", "x", []),
        ("command: sh eval.py\nworkdir: ~/new\nsync: [{from: ., to: ~/new}]\n", "x", []),
        ("command: sh eval.py\nworkdir: ~/new\nsync: [{from: eval.py, to: ~/new/eval.py}]\n", "x", []),
    ],
)
def test_what_is_not_there_is_said_and_what_is_not_known_is_not(
    home: Path, text: str, ckpt: str, said: list[str]
) -> None:
    assert home
    assert lines(text, ckpt) == said


def test_all_that_is_wrong_is_said_at_once_with_what_mends_it(desk: Desk) -> None:
    grid = desk.grid(
        command="no-such-program {policy.ckpt}", policies="{a: {ckpt: ~/none.pt}}", environments="[maze]",
        setup="conda activate nowhere", workdir="~/gone", resources="{gpus: 1}",
    )  # fmt: skip
    refused = desk.combo("launch", grid, code=2)
    assert "5 things are wrong" in refused.stderr
    for mends in ("from: ., to: ~/gone", "to: ~/none.pt", "etc/profile.d/conda.sh", "PATH in `setup`", "nvidia-smi -L"):
        assert mends in refused.stderr
    assert "4 things are wrong" in desk.combo("plan", grid).stderr


def test_a_disk_without_room_for_what_the_last_run_wrote_is_said(desk: Desk, monkeypatch: pytest.MonkeyPatch) -> None:
    fills = 'bash -c \'head -c 9000000 /dev/zero >"$0/video"; exec "$@"\' {output_dir} '
    grid = desk.grid(policies="[good]", environments="[maze]", command=fills + evaluate())
    assert desk.combo("run", grid).returncode == 0
    monkeypatch.setenv("HOME", str(desk.home))
    monkeypatch.setattr(machine, "disk_kib", lambda _: (1 << 20, 5 << 10))
    asked = {
        again: json.loads(preflight_question(parse_grid(grid.read_text(), grid), local=True, new=again))
        for again in (0, 1)
    }
    assert preflight.lacks(asked[0]) == [], "the run that is there needs no more"
    (said,) = preflight.lacks(asked[1])
    assert (said.code, said.count("free_mib")) == (Lack.DISK_SHORT, 5)
    assert said.count("wrote_mib") >= 8


def test_plan_warns_launch_refuses_before_there_is_a_run_and_force_goes_on(desk: Desk) -> None:
    grid = desk.grid(policies="[one]", environments="[maze]", command="pyton7 nothing.py", workdir="~/gone")
    assert "pyton7 is not on the PATH" in desk.combo("plan", grid).stderr
    refused = desk.combo("launch", grid, code=2)
    assert all(word in refused.stderr for word in ("pyton7 is not on the PATH", "--force"))
    assert desk.runs == []
    told = [finding["found"] for finding in desk.json("doctor", "--grid", grid)["findings"]]
    (said,) = [found for found in told if "gone" in found]
    assert "there is no folder ~/gone" in said, "and nothing of the files in it"
    assert any("pyton7" in found for found in told)
    desk.combo("launch", grid, "--force")
    assert len(desk.runs) == 1
