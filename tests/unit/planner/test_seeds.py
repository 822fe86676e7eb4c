"""`seeds`: every combo once with each, numbered on in the combo, counted and amended as replicates."""

from __future__ import annotations

import json
from pathlib import Path

import gridtext
import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_runs import RunDirectory

from comborun.amendment.changes import ChangeKind, amend, compare
from comborun.errors import UserError
from comborun.generate.bundle import judging
from comborun.generate.run_scripts import session_script
from comborun.host.record.judging import Rules
from comborun.model.plan import Plan
from comborun.reporter.collect import collect_run
from comborun.reporter.comparing.sides import results_of
from comborun.rules import records
from comborun.rules.results.one_row import read_row

HEAD = "policies: [a, b]\nenvironments: [x]\nepisodes: 4\nfirst_episode: 1\n"
COMMAND = "command: run {policy} {first_episode} {episodes} {output_dir} --seed {seed} --from {first_seed}\n"


def plan(more: str, head: str = HEAD) -> Plan:
    return gridtext.plan(head + COMMAND + more)


def test_each_seed_is_a_session_of_its_own_and_reaches_the_command_which_counts_as_before() -> None:
    first, second = [one for one in plan("seeds: [7, 5]\n").sessions if one.policy == "a"]
    assert (first.name, second.name) == ("x_a_seed7", "x_a_seed5")
    assert ([*first.episodes], [*second.episodes]) == ([1, 2, 3, 4], [5, 6, 7, 8])
    assert (second.seed, second.own_first) == (5, 1)
    script = session_script(second)
    assert "COMBORUN_FIRST_EPISODE:-1}" in script
    assert "$((5 + COMBORUN_FIRST_EPISODE))" in script
    assert "--seed 5" in script


@pytest.mark.parametrize("cut", ["block: 2", "shards: 2"])
def test_a_seed_is_cut_like_a_combo_and_blocks_of_one_seed_come_before_the_next(cut: str) -> None:
    sessions = [one for one in plan(f"seeds: [7, 5]\n{cut}\n").sessions if one.policy == "a"]
    assert [one.name for one in sessions] == ["x_a_seed7_e1-2", "x_a_seed7_e3-4", "x_a_seed5_e5-6", "x_a_seed5_e7-8"]
    assert [one.own_first for one in sessions] == [1, 3, 1, 3]


@given(st.integers(0, 3), st.integers(1, 4))
def test_the_index_of_a_row_is_counted_within_its_seed_on_the_host_and_in_the_report(place: int, index: int) -> None:
    session = plan("seeds: [7, 5, 3, 1]\n").sessions[place]
    told = json.loads(json.dumps(judging(session)))
    rules = Rules(told, session.first, session.count)
    claimed = Rules.of(records.parse(records.render(rules.fields())))
    for one in (rules, claimed):
        assert read_row({"episode": index, "success": True}, one.identity).index == place * 4 + index


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[1, 1]\n", "a seed occurs twice for `a in x`"),
        ("[1, 2]\nseed: 1\n", "has a `seed` too"),
        ("[1, 2]\nunit: step\n", "counts steps"),
        ("[1, 2]\noverrides: [{when: {policy: b}, command: 'run {output_dir}'}]\n", "of `b in x` takes no {seed}"),
    ],
)
def test_seeds_that_repeat_nothing_are_refused(text: str, message: str) -> None:
    assert message in gridtext.mistakes(f"{HEAD}{COMMAND}seeds: {text}")


def test_a_seed_more_is_added_to_a_run_and_a_single_seed_is_the_first_of_several() -> None:
    before = plan("seed: 7\n")
    comparison = compare(before, plan("seeds: [7, 5]\n"))
    assert [(change.kind, change.detail) for change in comparison.changes] == [(ChangeKind.ADDED, "seed 5: new")] * 2
    amended = amend(comparison)
    assert [one.name for one in amended.plan.sessions] == ["x_a", "x_b", "x_a_seed5", "x_b_seed5"]
    assert compare(amended.plan, plan("seeds: [7, 5]\n")).changes == ()
    gone = compare(amended.plan, plan("seeds: [7]\n"))
    assert {change.kind for change in gone.changes} == {ChangeKind.REMOVED}
    assert [one.name for one in amend(gone, "keep").plan.sessions] == [one.name for one in amended.plan.sessions]


def test_other_episodes_never_give_two_seeds_the_same_numbers() -> None:
    before = plan("seeds: [7, 5]\n")
    for count in (3, 6):
        comparison = compare(before, plan("seeds: [7, 5]\n", HEAD.replace("episodes: 4", f"episodes: {count}", 1)))
        with pytest.raises(UserError, match="another number"):
            amend(comparison, "keep")


@pytest.mark.parametrize(("per_episode", "paired"), [(True, True), (False, False)])
def test_replicates_are_one_arm_and_pairs_need_a_seed_of_every_episode(
    tmp_path: Path, per_episode: bool, paired: bool
) -> None:
    run = RunDirectory(tmp_path)
    for session in plan("seeds: [70, 50]\n").sessions:
        seed = session.seed or 0
        rows = [
            {"episode": index, "seed": seed + index * per_episode, "success": index % 2 == 0} for index in range(1, 5)
        ]
        run.sessions.append(session)
        run.attempt(session, "".join(json.dumps(row) + "\n" for row in rows))
    collected = collect_run(run.write())
    found = results_of(collected).sides
    assert {combo: len(one.completed) for combo, one in found.items()} == {("a", "x"): 8, ("b", "x"): 8}
    assert bool(found["a", "x"].starts.caution) is not paired
