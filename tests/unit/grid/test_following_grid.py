"""`policies: {follow: ...}`: the checkpoints of a training as policies."""

from __future__ import annotations

from pathlib import Path

import gridtext
import pytest

from comborun.errors import GridError, UserError
from comborun.grid import Grid, parse_grid
from comborun.model.plan import FollowRule
from comborun.planner.laying import lay_out, lay_out_on_slurm
from comborun.rules.following import PATH, POLICY

REST = "environments: [maze]\nepisodes: 2\ncommand: run {policy.checkpoint} {output_dir} {episodes}\n"


def grid(policies: str, more: str = "") -> Grid:
    return parse_grid(f"policies: {policies}\n{REST}{more}", Path("g.yaml"))


def test_a_training_gives_one_policy_that_stands_for_its_checkpoints() -> None:
    found = grid("{follow: ~/runs/x/ckpt_*.pt, done: ~/runs/x/done_*, every: 5, keep_free: 1 GiB}")
    assert found.follow == FollowRule("~/runs/x/ckpt_*.pt", "~/runs/x/done_*", 5, 1 << 30)
    ((combo,),) = (found.combos,)
    assert (combo.policy.name, combo.policy.attributes) == (POLICY, {"checkpoint": PATH})
    assert grid("{follow: /x/*, done: STABLE}").follow == FollowRule("/x/*", "STABLE")


def test_a_policy_may_be_called_follow() -> None:
    for policies in ("{follow: {checkpoint: /x}}", "[follow]", "{follow: }"):
        found = parse_grid(f"policies: {policies}\n{REST}".replace(".checkpoint", ""), Path("g.yaml"))
        assert found.follow is None
        assert [one.policy.name for one in found.combos] == ["follow"]


@pytest.mark.parametrize(
    ("policies", "count"),
    [
        ("{follow: ~/x/ckpt_*.pt}", 1),
        ("{follow: x/ckpt_*.pt, done: STABLE}", 1),
        ("{follow: ~/x/ckpt.pt, done: STABLE}", 1),
        ("{follow: ~/*/ckpt_*.pt, done: STABLE}", 1),
        ("{follow: '~/x/ckpt_[0-9]*.pt', done: STABLE}", 1),
        ("{follow: ~/x/ckpt_*.pt, done: stable}", 1),
        ("{follow: ~/x/ckpt_*.pt, done: STABLE, every: 0}", 1),
        ("{follow: ~/x/ckpt_*.pt, done: STABLE, keep_free: much, base: /y}", 2),
    ],
)
def test_every_mistake_is_named(policies: str, count: int) -> None:
    with pytest.raises(GridError) as wrong:
        grid(policies)
    assert len(wrong.value.problems) == count


@pytest.mark.parametrize(("more", "why"), [("hosts: [a, b]", "own host"), ("stop_early: all", "known before")])
def test_what_a_training_can_t_do_is_told_once_and_without_the_stand_in_s_name(more: str, why: str) -> None:
    with pytest.raises(GridError) as refused:
        grid("{follow: /x/*, done: STABLE}", f"{more}\n")
    (problem,) = refused.value.problems
    assert why in problem.message
    assert problem.line == 5


@pytest.mark.parametrize(
    "more",
    ["overrides: [{when: {policy: step_5}, gpus: 1}]", "exclude: [{policy: step_5}]", "shards: 9\n", "seeds: [1]"],
)
def test_no_mistake_shows_the_stand_in_s_name(more: str) -> None:
    with pytest.raises(GridError) as refused:
        grid("{follow: /x/*, done: STABLE}", f"{more}\n")
    said = [f"{one.message} {one.hint}" for one in refused.value.problems]
    assert not any(POLICY in one or "FOLLOWED" in one for one in said), said
    if "step_5" in more:
        assert "get their names during the run" in said[0]


def test_a_plan_is_shown_with_words_in_place_of_the_stand_ins_and_not_for_slurm() -> None:
    followed = grid("{follow: ~/runs/x/ckpt_*.pt, done: STABLE}")
    shown = lay_out(followed, gridtext.HOST).template
    (one,) = shown.sessions
    assert (one.name, one.policy) == ("maze_step_N", "step_N")
    assert "'.../checkpoints/step_N/ckpt_N.pt'" in one.command
    assert "FOLLOWED" not in shown.to_json()
    with pytest.raises(UserError, match="not on Slurm"):
        lay_out_on_slurm(followed, gridtext.HOST)
