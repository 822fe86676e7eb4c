"""What a grid with `together` is refused for, and what its process is told."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest
from gridtext import HOST, grid, mistakes, plan

from comborun.amendment.changes import amend, compare
from comborun.errors import UserError
from comborun.generate.bundle import bundle
from comborun.generate.compose import compose_text
from comborun.generate.run_scripts import scripts
from comborun.model.plan import Plan
from comborun.model.work import process_of, processes
from comborun.planner.laying import lay_out_on_slurm

AXES = "policies: [flat, rough]\n"
AXES += "environments: {stairs: {task: Stairs-v0}, grass: {task: Grass-v0}, maze: {task: Maze-v0}}\n"
TOGETHER = f"{AXES}episodes: 4\ntogether: environments\n"
LIST = "command: run {environments} {policy}\n"
JOBS = (
    'files: {jobs.json: {jobs: [{name: "{environment}", task: "{environment.task}", n: "{episodes}", s: "{seed}"}]}}\n'
)


@pytest.mark.parametrize(
    ("keys", "why"),
    [
        (LIST + "stop_early: all\nseed: 1\nblock: 2\n", "`together` with `stop_early`"),
        (LIST + "block: 2\n", "`block` cuts"),
        (LIST + "shards: auto\n", "`shards: auto`"),
        ("command: run {environment}\n", "{environment} with `together`"),
        ("command: run {environments} {environment.task}\n", "{environment.task} with `together`"),
        ("command: run {environments} {session}\n", "{session} with `together`"),
        ("command: run {environments} {first_episode}\n", "{first_episode} with `together`"),
        (LIST + "variables: {TASK: '{environment}'}\n", "`variables`: {environment}"),
        (LIST + "container: {image: 'sim:{environment}'}\n", "`container`: {environment}"),
        (LIST + "files: {a.txt: 'x {environment}'}\n", "`files`: {environment}"),
        (LIST + "files: {a.json: {task: '{environment}'}}\n", "`files`: {environment}"),
        (LIST + "results: {format: kn-aggregate}\n", "are totals"),
        (LIST + "results: none\n", "are totals, or none"),
        (LIST + "results: {environment: ignore}\n", "must name their environment"),
        (LIST + "results: {from: log, pattern: 'ep (?P<episode>[0-9]+) (?P<verdict>[a-z]+)'}\n", "rows must name it"),
        (LIST + "evidence: {records: false}\n", "only records show"),
        ("command: run {policy}\n", "nothing tells the program"),
        (LIST + "overrides: [{when: {environment: maze}, resources: {gpus: 1}}]\n", "another `resources`"),
        (LIST + "overrides: [{when: {environment: maze}, workdir: ~/x}]\n", "another `workdir`"),
        (LIST + "overrides: [{when: {environment: maze}, command: other}]\n", "another `command`"),
        (
            "command: run {environments} {episodes}\noverrides: [{when: {environment: maze}, episodes: 9}]\n",
            "different",
        ),
        ("command: e.py {environments} {seed}\nseed: 1\nlauncher: {processes: 2}\n", "ranks make their seeds"),
    ],
)
def test_what_one_process_cannot_do_is_refused(keys: str, why: str) -> None:
    assert why in mistakes(TOGETHER + keys)


def test_names_that_a_list_cannot_hold_are_refused() -> None:
    assert "a comma" in mistakes(
        f"policies: [a]\nenvironments: ['x,y', z]\nepisodes: 1\ntogether: environments\n{LIST}"
    )
    assert "{environments} has no value" in mistakes(f"{AXES}episodes: 1\n{LIST}")


def test_slurm_and_compose_are_refused() -> None:
    checked = grid(TOGETHER + LIST + "container: {image: sim}\n")
    with pytest.raises(UserError, match="together"):
        lay_out_on_slurm(checked, HOST)
    with pytest.raises(UserError, match="together"):
        compose_text(plan(TOGETHER + LIST + "container: {image: sim}\nworkdir: /w\n"))


def told(laid: Plan, folder: Path, **granted: str) -> tuple[list[str], str]:
    """The words of the first process's command, and its file, when its script runs."""
    script = next(iter(dict(scripts(laid)).values())).replace(
        'exec -- "${command[@]}"', "printf '%s\\n' \"${command[@]}\""
    )
    path = folder / "sessions" / "p" / "session.sh"
    path.parent.mkdir(parents=True)
    path.write_text(script)
    done = subprocess.run(
        ["bash", path], env={**granted, "PATH": "/bin:/usr/bin"}, capture_output=True, text=True, check=True
    )
    files = [*folder.glob("sessions/*/by-hand/files/*")]
    return done.stdout.splitlines(), files[0].read_text() if files else ""


def test_the_script_names_the_environments_of_its_start_and_of_a_run_by_hand(tmp_path: Path) -> None:
    laid = plan(TOGETHER + "seed: 7\ncommand: run {environments} --tasks={environments.task} {file.jobs.json}\n" + JOBS)
    words, jobs = told(laid, tmp_path / "all")
    assert words[1:3] == ["stairs,grass,maze", "--tasks=Stairs-v0,Grass-v0,Maze-v0"]
    assert [one["n"] for one in json.loads(jobs)["jobs"]] == [4, 4, 4]
    words, jobs = told(laid, tmp_path / "two", COMBORUN_TOGETHER="maze_flat stairs_flat")
    assert words[1] == "maze,stairs"
    assert json.loads(jobs)["jobs"] == [
        {"name": "maze", "task": "Maze-v0", "n": 4, "s": 7},
        {"name": "stairs", "task": "Stairs-v0", "n": 4, "s": 7},
    ]


def test_environments_of_different_lengths_each_have_their_own_number(tmp_path: Path) -> None:
    override = "overrides: [{when: {environment: maze}, episodes: 9}]\n"
    _, jobs = told(plan(f"{TOGETHER}seed: 7\ncommand: run {{file.jobs.json}}\n{JOBS}{override}"), tmp_path)
    assert [one["n"] for one in json.loads(jobs)["jobs"]] == [4, 4, 9]


def test_a_policy_has_one_process_and_one_for_each_seed_or_shard() -> None:
    def found(keys: str) -> list[str]:
        return [one.name for one in processes(plan(TOGETHER + LIST + keys).sessions)]

    assert found("") == ["together_flat", "together_rough"]
    assert found("shards: 2\n")[:2] == ["together_flat_part1", "together_flat_part2"]
    seeds = plan(TOGETHER + "seeds: [1, 2]\ncommand: run {environments} {seed}\n")
    assert {process_of(one) for one in seeds.sessions if one.policy == "flat"} == {
        "together_flat_seed1",
        "together_flat_seed2",
    }
    assert seeds.limits.parallel == 4
    assert Plan.from_json(seeds.to_json()) == seeds


def test_the_digest_of_a_combo_does_not_depend_on_its_process() -> None:
    text = TOGETHER + LIST
    three, two = plan(text), plan(text.replace(", maze: {task: Maze-v0}", ""))
    digests = {one.name: one.digest for one in three.sessions}
    assert all(digests[one.name] == one.digest for one in two.sessions)
    assert plan(text.replace("Maze-v0", "Maze-v1")).sessions[0].digest == three.sessions[0].digest


def test_a_new_environment_gets_a_process_of_its_own_and_a_changed_one_supersedes_its_combo_only() -> None:
    text = TOGETHER + "command: run {environments.task}\n"
    before = plan(text.replace(", maze: {task: Maze-v0}", ""))
    added = amend(compare(before, plan(text)))
    assert [one.name for one in added.added] == ["maze_flat", "maze_rough"]
    assert {one.together for one in added.added}.isdisjoint(one.together for one in before.sessions)
    removed = amend(compare(plan(text), before), "rerun").plan  # rows of it stay in the files of its process
    assert all("maze" in one.results.named for one in removed.current)
    assert not compare(removed, before).changes
    assert amend(compare(removed, before)).plan.sessions == removed.sessions
    changed = amend(compare(plan(text), plan(text.replace("Maze-v0", "Maze-v1"))), "rerun")
    assert changed.dropped == ("maze_flat", "maze_rough")
    rows = [
        json.loads(line)
        for line in next(f.text for f in bundle(changed.plan, "", {}, {}) if "queue" in f.path).splitlines()
    ]
    assert rows[0]["together"] == ["stairs_flat", "grass_flat", "maze_flat"]
    assert rows[0]["dropped"] == ["maze_flat"]


def test_a_grid_without_together_has_no_trace_of_it() -> None:
    laid = plan(f"{AXES}episodes: 4\ncommand: run {{environment}}\n")
    written = laid.to_json() + "".join(one.text for one in bundle(laid, "", {}, {}))
    assert not any(word in written for word in ('"together"', '"each"', '"named"', "TOGETHER"))
