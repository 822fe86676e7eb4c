"""Components on GPUs, with a real run beside a stand-in nvidia-smi: which GPUs a placed session gets, and when."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest
from box import Box, until
from desk import Desk, desk_at
from nvidia import Gpus

from comborun.model.attempt import Begin, End

SEEN = 'printf "%s\\n" "$COMBORUN_GPUS" "${CUDA_VISIBLE_DEVICES-all}" "$@" >"$0/seen"'
PLACED = {
    "command": f"bash -c '{SEEN}' {{output_dir}} {{placement}}",
    "policies": "[one, other]",
    "environments": "{radio: {envs: 2}}",
    "placement": '{env: "1-2", rollout: "2 - 3"}',
    "components": '{env: {gpu_memory: 12 GiB, copies: "{environment.envs}"}, rollout: {gpu_memory: 16 GiB}}',
    "results": "none",
    "limits": "{parallel: 4, warm_up: 0 s}",
}


def span(session: Path) -> tuple[float, float]:
    begin, end = ((session / "attempt-1" / name).read_text() for name in ("begin", "end"))
    return Begin.parse(begin).started, End.parse(end).ended


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    """A desk on a host of four GPUs."""
    with desk_at(tmp_path / "home") as made:
        (tmp_path / "bin").mkdir()
        Gpus(cast("Box", made), tmp_path / "bin").cards(32607, 32607, 32607, 32607)
        yield made


def launched(desk: Desk, **keys: str) -> list[Path]:
    """The folders of both sessions, when their run has ended."""
    done = desk.combo("launch", desk.grid(**{**PLACED, **keys}), "--json", code=0)
    run = Path(json.loads(done.stdout.splitlines()[0])["directory"])
    until((run / "dispatch/done").exists, "both sessions have ended", 60)
    return [run / f"sessions/radio_{policy}" for policy in ("one", "other")]


def test_a_session_gets_the_very_gpus_of_its_components_and_sees_all_of_the_host(desk: Desk) -> None:
    sessions = launched(desk)
    for session in sessions:
        assert (session / "attempt-1/out/seen").read_text().splitlines() == [
            "1,2,3",
            "all",
            "~cluster.component_placement",
            '+cluster.component_placement={env:"1-2",rollout:"2-3"}',
        ]
    first, second = sorted(map(span, sessions))
    assert first[1] <= second[0], "28 GiB on GPU 2 fit there once, not twice"


def test_gpus_that_the_host_does_not_have_are_named_and_the_others_used(desk: Desk) -> None:
    keys = {"command": "true", "resources": "{gpus: 1}", "results": "none"}
    grid = desk.grid(**keys, use_gpus="[0, 7, 9]")
    said = "`use_gpus` names GPUs 7, 9, and this machine has 0, 1, 2, 3: the others of it are used"
    for command in ("plan", "launch"):
        done = desk.combo(command, grid, code=0)
        assert said in done.stderr
    assert "others of it" not in desk.combo("plan", desk.grid("other.yaml", **keys, use_gpus="[0, 3]")).stderr


def test_two_sessions_share_their_gpus_where_both_fit(desk: Desk) -> None:
    both = '[[ $(echo "$0"/../../../*/attempt-1/out/seen) == *seen*seen ]]'
    wait = f"for i in $(seq 200); do {both} && exit 0; sleep 0.1; done; exit 1"
    command = f"bash -c '{SEEN}; {wait}' {{output_dir}} {{placement}}"
    small = '{env: {gpu_memory: 5 GiB, copies: "{environment.envs}"}, rollout: {gpu_memory: 10 GiB}}'
    sessions = launched(desk, command=command, components=small)
    assert [End.parse((session / "attempt-1/end").read_text()).code for session in sessions] == [0, 0]
