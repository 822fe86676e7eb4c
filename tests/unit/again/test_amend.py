"""What a changed grid makes of its run: by content, nothing lost, and nothing left out unless a person says so."""

from __future__ import annotations

from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_runs import planned_session

from comborun.amendment.changes import Amended, ChangeKind, Choice, amend, compare
from comborun.amendment.notes import taken_over
from comborun.amendment.resumption import amended_with_smoke, smoke_sessions, with_smoke
from comborun.model.command import fill
from comborun.model.judging import WatchRules
from comborun.model.plan import Limits, Plan, Session
from comborun.model.work import episodes_of, minus
from comborun.planner.ranges import range_session, session_digest
from comborun.rules.room.capacity import Request


def session(policy: str = "p", environment: str = "e", count: int = 4, **fields: object) -> Session:
    values = {"seed": None, "command": fill("eval --n 1", {}), "counted": True, "ranged": True, **fields}
    made = planned_session(policy, environment, count, **values)
    return replace(made, digest=session_digest(made))


def plan(*sessions: Session, **fields: object) -> Plan:
    made = Plan("g", sessions, Limits(1, 1, 0.0, 2), (), None, 60.0, "digest")
    return replace(made, **fields)  # type: ignore[arg-type]


def amended(before: Plan, now: Plan, choice: Choice | None = None) -> Amended:
    return amend(compare(before, now), choice)


def names(result: Amended) -> list[tuple[str, str]]:
    return [(one.name, one.flag) for one in result.plan.sessions]


OTHER = fill("eval --n 2", {})


def test_the_same_grid_changes_nothing() -> None:
    comparison = compare(plan(session()), plan(session()))
    assert comparison.changes == ()
    assert comparison.common
    assert amend(comparison).plan == plan(session())


def test_more_episodes_add_only_the_new_range() -> None:
    result = amended(plan(session(count=4)), plan(session(count=10)))
    assert names(result) == [("e_p", ""), ("e_p_e4-9", "")]
    assert (result.added[0].first, result.added[0].count) == (4, 6)


def test_fewer_episodes_take_nothing_away() -> None:
    comparison = compare(plan(session(count=10)), plan(session(count=4)))
    assert [(change.kind, change.detail) for change in comparison.changes] == [
        (ChangeKind.FEWER, "episodes 4-9 stay, because the run has planned them")
    ]
    assert amend(comparison, "rerun").plan.sessions == (session(count=10),)


def test_more_episodes_of_a_program_without_a_range_have_to_be_asked() -> None:
    comparison = compare(plan(session(ranged=False)), plan(session(count=10, ranged=False)))
    (change,) = comparison.asks
    assert "takes no range of episodes, so all 10 episodes would run again" in change.detail
    rerun = amend(comparison, "rerun")
    assert [flag for _, flag in names(rerun)] == ["dropped", ""]
    assert rerun.added[0].count == 10
    assert names(amend(comparison, "keep")) == [("e_p", "")]


def test_a_changed_command_is_asked_and_named() -> None:
    comparison = compare(plan(session()), plan(session(command=OTHER)))
    assert [str(change) for change in comparison.asks] == ["p in e: command: --n 1 before, 2 now"]
    assert not comparison.common


def test_what_has_not_begun_is_superseded_without_a_question_unless_it_is_to_be_kept() -> None:
    before, now = plan(session(), session("q")), plan(session(command=OTHER), session("q", command=OTHER))
    comparison = compare(before, now, {"e_q"})
    assert [change.policy for change in comparison.asks] == ["q"]
    assert [flag for _, flag in names(amend(comparison))] == ["dropped", "", ""]
    assert [flag for _, flag in names(amend(comparison, "keep"))] == ["", ""]


def test_what_is_changed_back_takes_up_its_own_records_again() -> None:
    first, second = plan(session()), plan(session(command=OTHER))
    there = amended(first, second, "rerun").plan
    back = amended(there, first, "rerun")
    assert [flag for _, flag in names(back)] == ["", "dropped"]
    assert [one.name for one in back.added] == ["e_p"]


def test_other_shipped_files_are_other_work_even_when_they_come_back() -> None:
    a, b = plan(session(), shipped="a"), plan(session(), shipped="b")
    comparison = compare(a, b)
    assert [change.detail for change in comparison.asks] == ["what sync ships has changed"]
    assert amend(comparison, "keep").plan.shipped == "a"
    there = amend(comparison, "rerun").plan
    assert there.shipped == "b"
    assert [flag for _, flag in names(amended(there, a, "rerun"))] == ["dropped", "dropped", ""]


def test_smoke_tests_stand_apart_and_go_with_their_combo() -> None:
    smoke = replace(session(), name="e_p_smoke", count=1, flag="smoke")
    before = plan(smoke, session())
    assert compare(before, plan(session())).changes == ()
    assert [flag for _, flag in names(amended(before, plan(session(command=OTHER)), "rerun"))] == [
        "dropped", "dropped", "",
    ]  # fmt: skip


grids = st.lists(
    st.builds(session, st.sampled_from("abc"), st.sampled_from("xy"), st.integers(1, 9),
              command=st.sampled_from([OTHER, session().command])),
    min_size=1, max_size=5, unique_by=lambda one: one.name,
)  # fmt: skip


@given(st.lists(grids, min_size=2, max_size=5), st.sampled_from(["rerun", "keep"]))
def test_whatever_is_changed_no_row_leaves_and_rerun_means_the_grid(grids: list[list[Session]], choice: Choice) -> None:
    current = plan(*grids[0])
    for sessions in grids[1:]:
        now = plan(*sessions)
        after = amended(current, now, choice).plan
        assert [one.name for one in after.sessions][: len(current.sessions)] == [one.name for one in current.sessions]
        assert len({one.name for one in after.sessions}) == len(after.sessions)
        live = [one for one in after.sessions if not one.flag]
        for wanted in sessions:
            has = [one for one in live if (one.policy, one.environment) == (wanted.policy, wanted.environment)]
            assert has
            assert choice == "keep" or not minus(episodes_of([wanted]), episodes_of(has))
        if choice == "rerun":
            assert not compare(after, now).asks
            assert {one.name for one in amended(after, now, choice).plan.sessions} == {
                one.name for one in after.sessions
            }
        current = after


@pytest.mark.parametrize("count", [0, 5])
def test_a_number_that_the_program_decides_is_no_range(count: int) -> None:
    comparison = compare(plan(session(count=5 - count)), plan(session(count=count)))
    assert [change.kind for change in comparison.asks] == [ChangeKind.CHANGED]


# -- smoke sessions ---------------------------------------------------------------------------------------------------


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


# -- what is taken over without a question ----------------------------------------------------------------------------


def test_the_keys_that_have_changed_are_named() -> None:
    asked = Request(gpu_memory=9216, cpus=2)
    before = plan(session(request=asked))
    now = plan(session(request=replace(asked, cpus=0)), limits=Limits(1, 1, 2.5, 2), gpus=(0, 1))
    (told,) = taken_over(before, now)
    assert told.endswith(" limits.stagger, use_gpus, resources")
    assert taken_over(before, before) == ()


def test_sessions_that_came_or_went_are_not_told_here() -> None:
    before = plan(session())
    now = plan(session(command=OTHER, watch=WatchRules(stall_s=60)), session("q"))
    assert taken_over(before, amended(before, now, "rerun").plan) == ()
