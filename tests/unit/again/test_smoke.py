"""Smoke sessions of a plan: one for each combo, in front, of few episodes, and never twice for the same."""

from __future__ import annotations

from test_amend import plan, session

from comborun.again.amend import amend, compare
from comborun.again.smoke import amended_with_smoke, smoke_sessions, with_smoke
from comborun.planner import range_session


def test_each_combo_is_tried_first_with_its_first_episodes() -> None:
    tried = with_smoke(plan(session("a"), session("b", first=5)), 2)
    assert [(one.name, one.first, one.count, one.flag) for one in tried.sessions] == [
        ("e_a_smoke", 0, 2, "smoke"),
        ("e_b_smoke", 5, 2, "smoke"),
        ("e_a", 0, 4, ""),
        ("e_b", 5, 4, ""),
    ]
    assert tried.digest == plan(session()).digest, "it is the same grid's run"


def test_only_what_is_new_in_a_run_is_tried() -> None:
    before = with_smoke(plan(session("a")), 1)
    grown = amended_with_smoke(amend(compare(before, plan(session("a"), session("b")))), 1)
    assert [one.name for one in smoke_sessions(grown.plan)] == ["e_a_smoke", "e_b_smoke"]
    assert [one.name for one in grown.added] == ["e_b", "e_b_smoke"]
    assert [one.name for one in grown.plan.sessions] == ["e_a_smoke", "e_a", "e_b", "e_b_smoke"], "no row moves"


def test_of_interleaved_blocks_the_first_of_each_combo_is_tried_in_the_order_of_the_plan() -> None:
    order = (("a", 0), ("b", 0), ("b", 2), ("a", 2))
    blocks = [range_session(session(policy), first, 2) for policy, first in order]
    tried = smoke_sessions(with_smoke(plan(*blocks), 2))
    assert [(one.policy, one.first) for one in tried] == [("a", 0), ("b", 0)]
