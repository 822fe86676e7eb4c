"""A grid as job arrays of Slurm: what is asked for, whole job scripts, what is refused."""

from __future__ import annotations

import json
import re
import subprocess
from dataclasses import replace
from pathlib import Path, PurePosixPath

import gridtext
import pytest

from comborun.amendment.changes import amend, amendment, compare
from comborun.amendment.notes import taken_over
from comborun.errors import UserError
from comborun.generate.bundle import policy
from comborun.generate.slurm_jobs import MARGIN_S, kinds, texts
from comborun.grid import Grid
from comborun.model.plan import Plan
from comborun.model.resources import HostFacts
from comborun.planner.laying import lay_out_on_slurm, not_held

GOLDEN = Path(__file__).parents[2] / "golden" / "slurm"
LOGIN = HostFacts("login1", "login1", 4, 0, (), "5", {}, ())
"""a machine without GPUs, tmux and screen"""
HEAD = "policies: [flat, rough]\nenvironments: [grass, stairs]\nepisodes: 3\ncommand: run {episodes} {output_dir}\n"
FULL = """\
resources: {gpus: 1, cpus: 4, memory: 16 GiB}
limits: {max_time: 2 h, parallel: 8}
overrides: [{when: {environment: stairs}, resources: {gpus: 2}, limits: {max_time: 90 min}}]
after: python report.py {results_dir}
slurm:
  partition: [gpu, long]
  account: robots
  qos: normal
  constraint: a100|h100
  reservation: icra
  exclude: ["n[1-3]", n9]
  gpu_type: a100
  time: 2 h
  array: 500
  settle_partition: cpu
  options: ["--mail-user=me@example.org", "--mail-type=END,FAIL", "--licenses=sim:1", --nice]
"""


def grid(text: str = "") -> Grid:
    return gridtext.grid(HEAD + text)


def plan(text: str = "") -> Plan:
    return lay_out_on_slurm(grid(text), LOGIN)


def files(of: Plan) -> dict[str, str]:
    return {str(path): text for path, text in texts(of)}


def test_the_job_scripts_are_the_golden_ones_and_a_grid_that_says_nothing_asks_for_nothing() -> None:
    for text, prefix, names in (
        (FULL, "", ("array-1.sh", "array-2.sh", "settle.sh")),
        ("", "plain-", ("array-1.sh", "settle.sh")),
    ):
        scripts = files(plan(text))
        for name in names:
            assert scripts[f"slurm/{name}"] == (GOLDEN / f"{prefix}{name}").read_text(), name


def test_bash_and_shellcheck_read_the_job_scripts() -> None:
    for script in GOLDEN.glob("*.sh"):
        subprocess.run(["bash", "-n", script], check=True)
        subprocess.run(["shellcheck", "--exclude", "SC1091", script], check=True)


def test_a_task_gets_some_minutes_more_than_its_session_so_that_the_session_ends_by_its_own_limit() -> None:
    assert [kind.minutes for kind in kinds(plan("limits: {max_time: 10 min}\n"))] == [10 + MARGIN_S // 60]
    assert [kind.minutes for kind in kinds(plan("limits: {max_time: 10 min}\nslurm: {time: 1 h}\n"))] == [15]
    assert [kind.minutes for kind in kinds(plan("slurm: {time: 61 s}\n"))] == [2]
    assert [kind.minutes for kind in kinds(plan())] == [0]


def test_an_amendment_brings_the_arrays_of_the_new_sessions() -> None:
    before, now = plan(), plan("overrides: [{when: {environment: stairs}, resources: {gpus: 1}}]\n")
    now = replace(now, sessions=(*now.sessions, replace(now.sessions[0], name="new", environment="maze")))
    amended = amend(compare(before, now, ()), "rerun")
    told = {str(file.path): file.text for file in amendment(before, amended.plan, 1, "")}
    assert [*json.loads(told["dispatch/slurm.json"])][-1] == "new"
    assert {"slurm/array-1.sh", "slurm/settle.sh"} <= set(told)
    assert "dispatch/engine" not in told
    assert PurePosixPath("dispatch/queue.jsonl") in map(PurePosixPath, told)


def test_the_example_of_the_document_is_a_good_grid_and_asks_for_what_the_document_says() -> None:
    page = (Path(__file__).parents[3] / "docs/slurm.md").read_text()
    text = page.split("```yaml\n")[1].split("```")[0]
    laid = lay_out_on_slurm(gridtext.grid(text), LOGIN)
    first, stairs = (files(laid)[f"slurm/array-{number}.sh"] for number in (1, 2))
    assert all(f"#SBATCH {option}\n" in first for option in ("--gres=gpu:1", "--cpus-per-task=8", "--mem=49152M"))
    assert "#SBATCH --time=365\n" in first
    assert "#SBATCH --time=725\n" in stairs
    assert len(kinds(laid)) == 2
    assert json.loads(policy(laid))["slurm_parallel"] == 32


def test_what_tasks_on_several_nodes_cannot_be_given_is_refused_with_the_reason() -> None:
    for text, reason in (
        ("replaces: [eval4env]\n", "your sessions on the login node use no node"),
        ("resources: {exclusive: ray}\n", "`resources.exclusive` (ray): two tasks may share a node"),
        ("resources: {per_host: 2}\n", "Slurm decides how many tasks share a node"),
    ):
        with pytest.raises(UserError, match=re.escape(reason)):
            plan(text)
    own_node = 'resources: {exclusive: ray, per_host: 1}\nslurm: {options: "--exclusive"}\n'
    assert kinds(plan(own_node))


def test_what_slurm_decides_instead_is_told() -> None:
    text = "resources: {gpus: 1, gpu_memory: 4 GiB}\nlimits: {per_gpu: 4, stagger: 30 s}\nuse_gpus: [0]\n"
    text += "reserve: {gpu_memory: 39 GiB}\n"
    words = " ".join(not_held(plan(text), grid(text)))
    assert all(key in words for key in ("use_gpus", "per_gpu", "gpu_memory", "stagger", "reserve"))
    assert not_held(plan(), grid()) == ()


@pytest.mark.parametrize(
    ("block", "message", "hint"),
    [
        ("{options: [-p gpu]}", "`-p gpu` is a short option", "--licenses"),
        ("{options: [--partition=x]}", "`--partition` is not allowed here", "another key of `slurm`"),
        ("{options: ['--licenses=a b']}", "not a long option of sbatch in one word", "no blanks"),
        ("{partition: 'a;b'}", "not a word that Slurm accepts", "without blanks"),
        ("{time: 0}", "a task takes between a minute and a year", "leave it"),
        ("{time: 400 d}", "between a minute and a year", "4 h"),
    ],
)
def test_a_block_that_slurm_would_misread_is_refused_with_a_hint(block: str, message: str, hint: str) -> None:
    told = gridtext.mistakes(f"{HEAD}slurm: {block}\n")
    assert message in told
    assert hint in told


def test_a_placement_asks_for_all_gpus_up_to_its_last_and_counts_them_from_0() -> None:
    placed = plan('placement: {env: "0-1", rollout: "2-3"}\n')
    assert {(one.gpus, one.request.only) for one in placed.sessions} == {(4, (0, 1, 2, 3))}
    assert all("--gres=gpu:4" in text for path, text in files(placed).items() if "array" in path)
    with pytest.raises(UserError, match="count from 0, so name all of them up to the last"):
        plan('placement: {env: "0", rollout: "2-3"}\n')
    with pytest.raises(UserError, match="the host has no GPU"):
        plan("placement: {env: all}\n")
    assert plan("placement: {env: all}\nresources: {gpus: 2}\n").sessions[0].request.only == (0, 1)


def test_more_sessions_are_no_change_of_a_limit_that_nobody_set() -> None:
    before, after = plan(), lay_out_on_slurm(grid("exclude: [{policy: flat}]\n"), LOGIN)
    assert taken_over(before, after) == ()
    limited = lay_out_on_slurm(grid("slurm: {parallel: 2}\n"), LOGIN)
    assert taken_over(before, limited) == ("the run follows the grid's new slurm",)


def test_a_part_of_a_core_is_a_whole_one_for_slurm() -> None:
    (kind,) = kinds(lay_out_on_slurm(gridtext.grid(HEAD + "resources: {cpus: 1.25}\nslurm: {partition: gpu}\n"), LOGIN))
    assert kind.cpus == 2
