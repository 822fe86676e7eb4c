"""Placeholders are checked for every combo that runs a command, and for no other."""

from __future__ import annotations

import re
from dataclasses import replace

import gridtext
import pytest
from gridtext import HOST, grid

from comborun.command import PLAN_TIME, START_TIME
from comborun.grid import Grid
from comborun.planner import lay_out

AXES = """\
policies: {flat: {checkpoint: f.pt, lr: 1e-3}, rough: {checkpoint: r.pt}}
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
    launcher = "launcher: {processes: 2}\n" if name == "episodes_per_rank" else ""
    assert parsed(FULL + launcher + f"command: run {{{name}}}\n").combos


def test_a_server_that_is_not_there_is_refused_wherever_it_is_named() -> None:
    assert mistakes(FULL + "command: run {server.vlm.url}\n") == [
        "`command`: {server.vlm.url} names no server of `servers`: there is no `vlm`"
    ]
    assert mistakes(FULL + "command: run\nvariables: {A: '{server.vlm.url}/v1'}\n") == [
        "`variables`: {server.vlm.url} names no server of `servers`: there is no `vlm`"
    ]


def test_an_attribute_that_one_policy_lacks_is_told_with_its_name() -> None:
    assert mistakes(FULL + "command: run {policy.lr}\n") == ["`command`: {policy.lr} is not there for policy `rough`"]
    assert mistakes(FULL + "command: run {environment.steps}\n") == [
        "`command`: {environment.steps} is not there for environment `grass`"
    ]


def test_an_attribute_is_needed_only_where_the_command_runs() -> None:
    text = FULL + "command: run {policy.lr}\noverrides: [{when: {policy: rough}, command: other}]\n"
    assert len(parsed(text).combos) == 4
    assert parsed(FULL + "command: run {policy.lr}\nexclude: [{policy: rough}]\n").combos


def test_a_command_that_no_combo_runs_is_checked_for_names_all_the_same() -> None:
    text = FULL + "command: run {sed}\noverrides: [{when: {policy: [flat, rough]}, command: other}]\n"
    assert mistakes(text) == ["`command`: there is no placeholder {sed}"]


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("seed", "seed"),
        ("episodes", "episodes"),
        ("last_episode", "episodes"),
        ("end_episode", "episodes"),
        ("gpu", "resources"),
        ("gpus", "resources"),
    ],
)
def test_a_placeholder_without_its_key_is_refused(name: str, key: str) -> None:
    assert mistakes(f"command: run {{{name}}}\n") == [f"`command`: {{{name}}} has nothing to stand for: no `{key}`"]


def test_a_key_that_only_some_combos_have_is_asked_of_the_others() -> None:
    text = "command: run {seed}\noverrides: [{when: {policy: flat}, seed: 1}]\n"
    assert mistakes(text) == [
        "`command`: {seed} has nothing to stand for: no `seed` for `rough in grass`, `rough in stairs`"
    ]


def test_after_knows_the_run_and_nothing_of_a_session() -> None:
    assert parsed(FULL + "command: run\nafter: report {results_dir} {run} {{x} {Y}\n").after
    assert mistakes(FULL + "command: run\nafter: report {seed} {policy.lr}\n") == [
        "`after`: {seed} belongs to one session, and `after` runs when all have ended",
        "`after`: {policy.lr} belongs to one session, and `after` runs when all have ended",
    ]


@pytest.mark.parametrize("operator", ["|", "&&", ";", ">", "<", "&"])
def test_shell_work_in_a_command_is_refused_and_in_quotes_it_is_not(operator: str) -> None:
    assert "shell operator" in mistakes(FULL + f"command: a {operator} b\n")[0]
    assert parsed(FULL + f"command: bash -c 'a {operator} b'\n").combos


def test_combos_without_any_command_are_named() -> None:
    assert mistakes(FULL) == ["`command` is missing"]
    assert mistakes(FULL + "overrides: [{when: {policy: flat}, command: run}]\n") == [
        "no `command` for `rough in grass`, `rough in stairs`"
    ]


def test_a_complete_command_has_no_warning() -> None:
    assert not warnings(FULL + "command: run {episodes} {output_dir}\n")
    assert not warnings("episodes: 3\ncommand: run {first_episode} {last_episode} {output_dir}\n")
    assert not warnings("results: none\ncommand: run\n")


def test_a_program_that_is_not_told_how_many_is_warned_of() -> None:
    assert "no {episodes}" in warnings("episodes: 3\ncommand: run {output_dir}\n")
    assert "no {episodes}" not in warnings("episodes: 3\nunit: step\ncommand: run {output_dir}\n")
    ranks = "launcher: torchrun\nresources: {gpus: 1}\ncommand: run {output_dir} {episodes_per_rank}\n"
    assert "no {episodes}" not in warnings("episodes: 3\n" + ranks)  # each rank is told its share


def test_records_that_nothing_will_find_are_warned_of() -> None:
    assert "no {output_dir}" in warnings("episodes: 3\ncommand: run {episodes}\n")
    assert "no {output_dir}" not in warnings("episodes: 3\nresults: none\ncommand: run {episodes}\n")


@pytest.mark.parametrize("line", ["setup: cd {output_dir}", "workdir: ~/{policy}", "variables: {A: '{policy.no}'}"])
def test_braces_where_nothing_fills_them_are_warned_of(line: str) -> None:
    assert "is not filled here" in warnings(FULL + f"command: run {{episodes}} {{output_dir}}\n{line}\n")


def test_other_braces_are_text() -> None:
    assert not warnings(FULL + "setup: echo {a,b} ${x}\ncommand: 'run {episodes} {output_dir} {x:1} {{seed} {Other}'\n")


@pytest.mark.parametrize("text", ["$HOME/x", "${HOME}/x", "'$(date)'"])
def test_a_shell_variable_that_no_shell_expands_is_warned_of(text: str) -> None:
    assert "no shell reads the command" in warnings(f"results: none\ncommand: run {text}\n")
    assert "no shell" not in warnings(f'results: none\ncommand: bash -c "{text}"\n')


def test_a_variable_that_hides_the_granted_gpu_is_warned_of() -> None:
    text = "episodes: 1\ncommand: run {episodes} {output_dir}\nvariables: {CUDA_VISIBLE_DEVICES: 1}\n"
    assert not warnings(text)
    assert "hides which GPU a session was granted" in warnings(text + "resources: {gpus: 1}\n")


def test_a_number_of_episodes_that_a_file_hands_over_is_one_that_the_program_can_be_told() -> None:
    job = "files: {job.json: {first: '{first_episode}', count: '{episodes}', out: '{output_dir}'}}\n"
    found = parsed(FULL + job + "command: run {file.job.json}\nblock: 4\n")
    assert "{episodes}" not in "\n".join(map(str, found.warnings))
    sessions = lay_out(found, replace(HOST, gpus=(0,))).sessions
    assert {(one.counted, one.ranged, one.count) for one in sessions} == {(True, True, 4), (True, True, 2)}
