"""The grids of the five guides: what `combo plan` says of them on hosts as the guides describe them."""

from __future__ import annotations

import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner, Result
from gridtext import host

from comborun.cli import combo
from comborun.grid import load_grid
from comborun.model.resources import HostFacts

Planned = Callable[..., Result]
GUIDES = Path(__file__).parents[3] / "examples" / "guides"
GRIDS = sorted(path.stem for path in GUIDES.glob("*.yaml"))
H100 = 81559
GH200 = 97871
RTX5090 = 32607
"""MiB that nvidia-smi tells"""


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Planned:
    def plan(name: str, on: HostFacts, *options: str) -> Result:
        monkeypatch.setattr("comborun.cli.plan.host_facts", lambda *_, **__: on)
        return CliRunner().invoke(combo, ["plan", str(GUIDES / f"{name}.yaml"), *options])

    return plan


def lines(result: Result) -> list[str]:
    assert result.exception is None, result.exception
    return [" ".join(line.split()) for line in result.output.splitlines()]


@pytest.mark.parametrize("name", GRIDS)
def test_each_is_a_good_grid_without_a_warning_that_says_what_its_guide_has_wrong(name: str) -> None:
    assert load_grid(GUIDES / f"{name}.yaml").warnings == ()
    head = (GUIDES / f"{name}.yaml").read_text().partition("\nname:")[0]
    assert all(line.startswith("#") for line in head.splitlines())
    assert re.search(r"^# What the guide has wrong", head, re.MULTILINE)
    assert f"examples/guides/{name}.yaml" in head


def test_eight_quadrupeds_run_beside_the_training_job(planned: Planned) -> None:
    for card in (H100, GH200):
        told = lines(planned("4_env_test", host(1, card)))
        assert told[0] == "4_env_test: 8 sessions, 800 episodes"
        assert told[1].startswith("at once 8, all of them")
        assert sum(line.endswith("episodes 0-99, 1 GPU") for line in told) == 8


DEDICATED = ["GPU 0 env 0 (1 copy) 12.0 GiB of 31.7 GiB", "GPU 1 env 1 (1 copy) 12.0 GiB of 31.7 GiB",
             "GPU 2 rollout 0 16.0 GiB of 31.7 GiB", "GPU 3 rollout 1 16.0 GiB of 31.7 GiB"]  # fmt: skip
SHARED = [
    "GPU 0 env 0 (1 copy) + rollout 0 28.0 GiB of 31.7 GiB",
    "GPU 1 env 1 (1 copy) + rollout 1 28.0 GiB of 31.7 GiB",
]


@pytest.mark.parametrize(
    ("name", "gpus", "placement", "videos"),
    [("behavior_1", 4, DEDICATED, 2), ("behavior_2", 2, SHARED, 2), ("behavior_3", 1, SHARED[:1], 1)],
)
def test_behavior_is_placed_as_its_options_say(
    planned: Planned, name: str, gpus: int, placement: list[str], videos: int
) -> None:
    told = lines(planned(name, host(gpus, RTX5090)))
    at = told.index("placement of 2 sessions, turning_on_radio_openvla the first")
    assert told[at + 1 : at + 1 + len(placement)] == placement
    assert f"videos to expect: {videos}" in told


def test_pattern_a_has_one_agent_with_its_simulator_on_each_gpu_and_one_alfred_at_a_time(planned: Planned) -> None:
    told = lines(planned("embodiedbench_a", host(4, RTX5090, 49)))
    assert told[0] == "embodiedbench_a: 16 sessions, 192 episodes"
    assert told[1].startswith("at once 4, limited by CPUs")
    assert next(line for line in told if "alfred_cosmos" in line) == "1 alfred_cosmos_e0-11 episodes 0-11, 1 GPU"


def test_pattern_b_has_its_model_server_on_two_gpus_and_its_simulators_on_the_others(planned: Planned) -> None:
    told = lines(planned("embodiedbench_b", host(4, RTX5090, 49)))
    assert told[0] == "embodiedbench_b: 22 sessions, 1128 episodes"
    assert told[1].startswith("at once 17, limited by `display-1`")
    assert "GPUs 2, 3" in told
    assert any(line.startswith("server vlm 22 sessions use it; 2 GPUs of 0, 1, alone there") for line in told)
    script = planned("embodiedbench_b", host(4, RTX5090, 49), "--script", "hab-base_cosmos").output
    assert 'remote_url="$COMBORUN_SERVER_VLM_URL"/v1' in script


def test_arena_has_one_process_on_each_gpu_with_a_job_file_of_its_own(planned: Planned) -> None:
    told = lines(planned("gr00t_arena", host(4, RTX5090, 64)))
    assert told[0] == "gr00t_arena: 4 sessions, 200 episodes"
    assert told[1].startswith("at once 4, all of them")
    script = planned("gr00t_arena", host(4, RTX5090, 64), "--script", "press_button_gr00t").output
    assert '--eval_jobs_config "$COMBORUN_FILES"/job.json' in script
    assert '"name": "press_button_gr00t"' in script
    assert '"num_envs": 1' in script


def test_embodichain_has_as_many_ranks_as_gpus_and_a_rendezvous_of_its_own(planned: Planned) -> None:
    told = lines(planned("embodichain", host(4, RTX5090, 64)))
    assert told[0] == "embodichain: 1 session, 204800 steps"
    assert "1 push_cube_ppo steps 0-204799, 2 GPUs" in told
    script = planned("embodichain", host(4, RTX5090, 64), "--script", "push_cube_ppo").output
    assert '--standalone\n  --nproc_per_node="$COMBORUN_GPU_COUNT"' in script
    assert "EMBODICHAIN_SIM_EXIT_PROCESS=0" in script
    assert 'from="$HOME"/EmbodiChain' in script
