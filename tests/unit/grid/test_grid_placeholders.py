"""Placeholders are checked for every combo that runs a command, and for no other."""

from __future__ import annotations

import re
from dataclasses import replace

import gridtext
import pytest
from gridtext import HOST, grid

from comborun.grid import Grid
from comborun.model.command import PLAN_TIME, START_TIME
from comborun.planner.laying import lay_out

AXES = """\
policies: {flat: {checkpoint: f.pt}, rough: {checkpoint: r.pt}}
environments: {grass: , stairs: {steps: 6}}
"""
FULL = "seed: 1\nepisodes: 10\nresources: {gpus: 1}\ndisplay: xvfb\n"


def parsed(text: str) -> Grid:
    return grid(AXES + text)


def mistakes(text: str) -> list[str]:
    return re.findall(r"^grid.yaml(?::\d+:\d+)?: (.*)", gridtext.mistakes(AXES + text), re.MULTILINE)


def warnings(text: str) -> str:
    return gridtext.warnings(AXES + text)


@pytest.mark.parametrize("name", [*PLAN_TIME, *START_TIME, "policy.checkpoint"])
def test_every_placeholder_that_exists_is_accepted(name: str) -> None:
    needs = {"episodes_per_rank": "launcher: {processes: 2}\n", "environments": "together: environments\n"}
    assert parsed(FULL + needs.get(name, "") + f"command: run {{{name}}}\n").combos


def test_a_server_that_is_not_there_and_an_attribute_that_one_environment_lacks_are_refused() -> None:
    assert mistakes(FULL + "command: run\nvariables: {A: '{server.vlm.url}/v1'}\n") == [
        "`variables`: {server.vlm.url}: `servers` has no `vlm`"
    ]
    assert mistakes(FULL + "command: run {environment.steps}\n") == [
        "`command`: {environment.steps} has no value for environment `grass`"
    ]


def test_a_command_that_uses_nothing_of_an_axis_is_warned_of_unless_something_else_tells_it() -> None:
    policy, environment = "does not use the policy", "does not use the environment"
    assert policy in warnings("command: run\n")
    for told in (
        "command: run {policy.checkpoint} {environment}",
        "command: run {session}",
        "command: run {environment}\nvariables: {CKPT: '{policy.checkpoint}'}",
        "command: run {environment}\noverrides: [{when: {policy: flat}, variables: {CKPT: flat.pt}}]",
        "command: run {policy}\noverrides: [{when: {environment: stairs}, command: 'climb {policy}'}]",
    ):
        assert policy not in warnings(told + "\n")
        assert environment not in warnings(told + "\n")
    assert policy not in gridtext.warnings("policies: [one]\nenvironments: [a, b]\ncommand: run {environment}\n")


def test_combos_without_any_command_are_named() -> None:
    assert mistakes(FULL + "overrides: [{when: {policy: flat}, command: run}]\n") == [
        "no `command` for `rough in grass`, `rough in stairs`"
    ]


def test_a_complete_command_has_no_warning() -> None:
    assert not warnings(FULL + "command: run {session} {episodes} {output_dir}\n")
    assert not warnings("episodes: 3\ncommand: run {session} {first_episode} {last_episode} {output_dir}\n")
    assert not warnings("results: none\ncommand: run {session}\n")


def test_a_number_of_episodes_that_a_file_hands_over_is_one_that_the_program_can_be_told() -> None:
    job = "files: {job.json: {first: '{first_episode}', count: '{episodes}', out: '{output_dir}'}}\n"
    found = parsed(FULL + job + "command: run {file.job.json}\nblock: 4\n")
    assert "{episodes}" not in "\n".join(map(str, found.warnings))
    sessions = lay_out(found, replace(HOST, gpus=(0,))).sessions
    assert {(one.counted, one.ranged, one.count) for one in sessions} == {(True, True, 4), (True, True, 2)}


def test_a_variable_that_hides_the_granted_gpu_is_warned_of() -> None:
    text = "episodes: 1\ncommand: run {session} {episodes} {output_dir}\nvariables: {CUDA_VISIBLE_DEVICES: 1}\n"
    assert not warnings(text)
    assert "hides the GPU that a session was granted" in warnings(text + "resources: {gpus: 1}\n")
