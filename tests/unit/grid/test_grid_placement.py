"""The keys `placement` and `components`: what a session claims of a host, what is told of it, and what is refused."""

from __future__ import annotations

from dataclasses import replace

import gridtext
import pytest

from comborun.cli.placement import placement_lines
from comborun.errors import UserError
from comborun.model.plan import Plan
from comborun.model.resources import HostFacts
from comborun.planner.program import rooms

GIB = 1024
HEAD = """\
policies: [pi05]
environments:
  radio: {envs: 2, epochs: 3}
episodes: 6
command: run {placement} --episodes {episodes} {output_dir}
"""
COMPONENTS = """\
components:
  env: {gpu_memory: 12 GiB, copies: "{environment.envs}", videos: "{environment.epochs}"}
  rollout: {gpu_memory: 16 GiB}
"""


def host(gpus: int, gib: int = 32) -> HostFacts:
    return replace(gridtext.host(gpus, gib * GIB), host="box")


def plan(text: str, on: HostFacts, head: str = HEAD) -> Plan:
    return gridtext.plan(head + text, on)


def refusal(text: str, on: HostFacts) -> str:
    with pytest.raises(UserError) as refused:
        plan(text, on)
    return f"{refused.value.message}\n{refused.value.hint}"


DEDICATED = 'placement: {env: "0-1", rollout: "2-3"}\n'
SHARED = 'placement: {"env,rollout": "0 - 1"}\n'


def test_a_session_claims_the_gpus_of_its_components_together() -> None:
    (session,) = plan(DEDICATED + COMPONENTS, host(8)).sessions
    assert (session.gpus, session.request.only, session.pin) == (4, (0, 1, 2, 3), "none")
    assert session.request.gpu_memory == 16 * GIB
    (session,) = plan(SHARED + COMPONENTS, host(8)).sessions
    assert (session.gpus, session.request.only, session.request.gpu_memory) == (2, (0, 1), 28 * GIB)


def test_the_command_is_told_by_two_overrides_of_hydra() -> None:
    (session,) = plan(DEDICATED, host(4)).sessions
    assert session.command[1:3] == (
        "'~cluster.component_placement'",
        """'+cluster.component_placement={env:"0-1",rollout:"2-3"}'""",
    )
    (session,) = plan(
        'placement: {"env, rollout": " 0 - 1 ", agent: {node_group: node, placement: "0:0-1"}}\n', host(2)
    ).sessions
    assert session.command[2] == (
        """'+cluster.component_placement={env:"0-1",rollout:"0-1",agent:{node_group:"node",placement:"0:0-1"}}'"""
    )


def test_without_a_placement_its_placeholder_is_no_argument() -> None:
    (session,) = plan("", host(0)).sessions
    assert session.command[:2] == ("run", "--episodes")
    assert (session.gpus, session.components, session.pin) == (0, (), "cvd")


def test_another_placement_is_other_work_and_other_memory_is_not() -> None:
    digests = {plan(text, host(4)).sessions[0].digest for text in (DEDICATED, SHARED, DEDICATED + COMPONENTS)}
    assert len(digests) == 2


def test_an_override_places_its_combos_elsewhere() -> None:
    text = 'overrides: [{when: {environment: trash}, placement: {env: "0", rollout: "1"}}]\n'
    laid = plan(
        DEDICATED + COMPONENTS + text,
        host(4),
        HEAD.replace("episodes: 6", "  trash: {envs: 1, epochs: 1}\nepisodes: 6"),
    )
    assert [session.request.only for session in laid.sessions] == [(0, 1, 2, 3), (0, 1)]


def test_the_plan_says_who_is_where_what_that_takes_and_what_fits() -> None:
    laid = plan(DEDICATED + COMPONENTS, host(4))
    assert [" ".join(line.split()) for line in placement_lines(laid, rooms(host(4), laid.reserve))] == [
        "placement of radio_pi05",
        "GPU 0 env 0 (1 copy) 12.0 GiB of 31.9 GiB",
        "GPU 1 env 1 (1 copy) 12.0 GiB of 31.9 GiB",
        "GPU 2 rollout 0 16.0 GiB of 31.9 GiB",
        "GPU 3 rollout 1 16.0 GiB of 31.9 GiB",
        "env: 2 in all, for 2 processes",
        "videos to expect: 6",
        "layouts for this host of 4 GPUs, which offer 31.9 GiB each:",
        "8 GPUs, dedicated env 0-3 (4 copies), rollout 4-7 needs 8 GPUs",
        "4 GPUs, dedicated env 0-1 (2 copies), rollout 2-3 fits, 16.0 GiB at most",
        "2 GPUs, dedicated env 0 (2 copies), rollout 1 fits, 24.0 GiB at most",
        "2 GPUs, shared env 0-1 (2 copies), rollout 0-1 fits, 28.0 GiB at most",
        "1 GPU env 0 (1 copy), rollout 0 fits, 28.0 GiB at most",
    ]


def test_memory_that_never_fits_is_refused_with_the_layouts_that_do() -> None:
    assert refusal(SHARED + COMPONENTS, host(4, 24)) == (
        "pi05 in radio: `placement` takes 28.0 GiB of GPU 0, which offers 23.9 GiB\n"
        "these layouts fit this host: env 0-1 (2 copies), rollout 2-3 (4 GPUs, dedicated);"
        " env 0 (1 copy), rollout 1 (2 GPUs, dedicated)."
        ' The first is `placement: {env: "0-1", rollout: "2-3"}`'
    )


def test_gpus_that_the_host_has_not_are_refused_with_the_layouts_that_fit_it() -> None:
    text = refusal(DEDICATED + COMPONENTS, host(2))
    assert "`placement` on box: `2-3`: there is no GPU 3: the host has 2, numbered 0 to 1" in text
    assert "env 0 (2 copies), rollout 1 (2 GPUs, dedicated); env 0-1 (2 copies), rollout 0-1 (2 GPUs, shared)" in text
    assert "no usual layout fits this host" in refusal(DEDICATED + COMPONENTS, host(2, 12))
    assert "the host has no GPU" in refusal(DEDICATED + COMPONENTS, host(0))


def test_all_is_every_gpu_of_the_host_and_copies_must_divide_by_it() -> None:
    every = 'placement: {"env,rollout": all}\n'
    assert plan(every + COMPONENTS, host(2)).sessions[0].request.only == (0, 1)
    assert "2 copies of `env` for 3 processes on box" in refusal(every + COMPONENTS, host(3))
    assert "GPUs 1, 2, which `use_gpus` does not allow" in refusal(every + "use_gpus: [0]\n", host(3))


def test_copies_that_no_host_can_share_out_are_a_mistake_of_the_grid() -> None:
    text = 'placement: {env: "0-2"}\n' + COMPONENTS.replace("  rollout: {gpu_memory: 16 GiB}\n", "")
    assert "pi05 in radio has 2 copies of `env` for 3 processes of it" in gridtext.mistakes(HEAD + text)


def test_a_command_that_is_not_told_its_placement_and_simulators_behind_the_first_gpu_are_warned_of() -> None:
    assert "is not told where to run" in gridtext.warnings(HEAD.replace("{placement} ", "") + DEDICATED)
    assert "component" not in gridtext.warnings(HEAD + DEDICATED)
    assert "does not begin with GPU 0" in gridtext.warnings(HEAD + 'placement: {env: "2-3", rollout: "0-1"}\n')
    assert "GPU 0" not in gridtext.warnings(HEAD + 'placement: {env: all, rollout: "1"}\n')
