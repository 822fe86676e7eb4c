"""`shards`: exactly the planned episodes in disjoint ranges, what they are refused for, and how many of them pay."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import gridtext
import pytest
from hypothesis import given
from hypothesis import strategies as st

from comborun.amendment.changes import amend, compare
from comborun.model.plan import Plan, Session
from comborun.planner import scheduling
from comborun.planner.knowledge import NOTHING_KNOWN, Knowledge, Pace, pace_key
from comborun.planner.laying import lay_out
from comborun.planner.scheduling import Uncut, best_shards, ranges

HEAD = "policies: [a, b]\nenvironments: [x, y]\nepisodes: 100\nseed: 7\n"
RANGED = "command: run {policy} {environment} {first_episode} {episodes} {output_dir}\n"


def plan(text: str, known: Knowledge = NOTHING_KNOWN) -> Plan:
    return lay_out(gridtext.grid(text), replace(gridtext.HOST, cpus=8), known=known)


def knowing(text: str, seconds: dict[str, float], start_up: float = 0.0) -> Knowledge:
    """Of the combos in each of these environments."""
    paces = {pace_key(one): Pace(seconds[one.environment], start_up) for one in plan(text).sessions}
    return Knowledge("a measurement", paces)


@given(st.integers(0, 1000), st.integers(1, 5000), st.integers(1, 60))
def test_shards_are_disjoint_and_cover_exactly_the_planned_episodes(first: int, count: int, number: int) -> None:
    cut = list(ranges(first, count, number))
    assert [index for at in cut for index in at] == list(range(first, first + count))
    sizes = {len(at) for at in cut}
    assert len(cut) == min(number, count)
    assert max(sizes) - min(sizes) <= 1


def test_an_override_cuts_some_combos_only_and_the_work_stays_the_same() -> None:
    whole = plan(HEAD + RANGED)
    cut = plan(HEAD + RANGED + "shards: 3\noverrides: [{when: {environment: y}, shards: 1}]\n")
    names = {one.name: one.count for one in cut.sessions}
    assert names == {
        **dict.fromkeys(("y_a", "y_b"), 100),
        **dict.fromkeys(("x_a_e0-33", "x_b_e0-33"), 34),
        **{f"x_{policy}_e{span}": 33 for policy in "ab" for span in ("34-66", "67-99")},
    }
    assert cut.digest == whole.digest
    assert compare(whole, cut).changes == compare(cut, whole).changes == ()


def test_a_run_keeps_its_sessions_whatever_the_number_of_shards_and_cuts_new_episodes_by_the_new_one() -> None:
    before = plan(HEAD + RANGED + "shards: 2\n")
    amended = amend(compare(before, plan(HEAD.replace("100", "160") + RANGED + "shards: 4\n")))
    assert amended.plan.sessions[: len(before.sessions)] == before.sessions
    assert [one.name for one in amended.added if one.environment == "x" and one.policy == "a"] == [
        "x_a_e100-119",
        "x_a_e120-159",
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("command: run {episodes} {output_dir}\nshards: 4\n", "takes no range of episodes"),
        (RANGED + "shards: 4\nblock: 10\n", "`shards` and `block` both cut `a in x`, "),
        (RANGED + "shards: 1001\n", "from 1 to 1000, or auto"),
        (RANGED + "shards: few\n", "is not a number of shards"),
        (RANGED + "unit: step\nshards: 2\n", "takes no range"),
    ],
)
def test_what_can_not_be_cut_is_refused_with_the_reason(text: str, said: str) -> None:
    assert said in gridtext.mistakes(HEAD + text)


def test_a_preset_whose_program_can_not_be_cut_says_why() -> None:
    text = "preset: isaaclab-eval\npolicies: {a: {checkpoint: a.pt}}\nenvironments: [x]\nepisodes: 9\nshards: 3\n"
    assert "its preset says: none: the program has no start index" in gridtext.mistakes(text)


@given(st.lists(st.integers(1, 300), min_size=1, max_size=8), st.integers(0, 9), st.integers(1, 40))
def test_without_times_the_slots_are_filled_and_the_longest_is_cut_first(
    episodes: list[int], others: int, slots: int
) -> None:
    numbers = best_shards([Uncut(count, None) for count in episodes], [None] * others, slots)
    room = max(len(episodes), slots - others)
    assert sum(numbers) == min(room, sum(episodes))
    longest = max(count / number for count, number in zip(episodes, numbers, strict=True))
    for count, number in zip(episodes, numbers, strict=True):
        assert 1 <= number <= count
        assert number == 1 or count / (number - 1) >= longest  # it was the longest when it was cut


def test_auto_cuts_the_straggler_and_leaves_what_its_start_up_would_cost_more_than_it_gains() -> None:
    text = HEAD + RANGED + "shards: auto\nlimits: {parallel: 4}\n"
    sessions = plan(text, knowing(text, {"x": 10.0, "y": 1.0}, start_up=5.0)).sessions
    assert sum(one.environment == "x" for one in sessions) > 2
    assert sum(one.environment == "y" for one in sessions) == 2
    assert len(plan(text, knowing(text, {"x": 1.0, "y": 1.0}, start_up=500.0)).sessions) == 4


@given(st.lists(st.tuples(st.integers(1, 300), st.floats(0.01, 100), st.floats(0, 300)), min_size=1, max_size=8))
def test_auto_never_takes_a_cut_with_which_all_ends_later(combos: list[tuple[int, float, float]]) -> None:
    uncut = [Uncut(count, Pace(*pace)) for count, *pace in combos]
    numbers = best_shards(uncut, [50.0], 4)
    assert all(1 <= number <= one.episodes for number, one in zip(numbers, uncut, strict=True))

    def ends(cut: Sequence[int]) -> float:
        free = [0.0] * 4
        lengths = [one.length(len(at)) for one, n in zip(uncut, cut, strict=True) for at in ranges(0, one.episodes, n)]
        for length in sorted([50.0, *lengths], reverse=True):
            free = sorted([free[0] + length, *free[1:]])
        return free[-1]

    assert ends(numbers) <= ends([1] * len(uncut)) * (1 + 1e-9)


def test_with_auto_no_session_is_compared_with_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """A plan may have a hundred thousand."""
    sessions = plan(HEAD + RANGED).sessions
    settings: dict[str, Any] = {
        one.name: SimpleNamespace(shards="auto" if one.policy == "a" else 1) for one in sessions
    }

    def compared(*_: object) -> bool:
        raise AssertionError

    monkeypatch.setattr(Session, "__eq__", compared)
    numbers = scheduling._automatic(sessions, settings, NOTHING_KNOWN, 4)
    assert {name: number >= 1 for name, number in numbers.items()} == {"x_a": True, "y_a": True}


def test_what_was_measured_fills_requests_that_the_grid_leaves_open() -> None:
    text = HEAD + RANGED + "resources: {memory: 1 GiB}\n"
    paces = {pace_key(one): Pace(1.0, 2.0, memory=5000, gpu_memory=900) for one in plan(text).sessions}
    known = Knowledge("measured", paces, {1: 1.0, 2: 1.8, 4: 2.0}, best=2)
    laid = plan(text, known)
    assert laid.limits.parallel == 2
    assert {(one.request.memory, one.request.gpu_memory, one.request.cpus) for one in laid.sessions} == {(1024, 0, 4)}
    assert laid.sessions[0].expected_s == 114  # 102 s alone, 2 / 1.8 times as long beside another


def test_a_program_that_is_told_its_first_seed_is_cut_and_its_rows_have_to_be_numbered_by_their_order() -> None:
    command = "command: run {first_seed} {episodes} {output_dir}\nshards: 4\n"
    assert [one.first for one in plan(HEAD + command).sessions[:4]] == [0, 25, 50, 75]
    assert "{first_seed}" in gridtext.warnings(HEAD + command)
    assert "{first_seed}" not in gridtext.warnings(f"{HEAD}{command}results: {{episode: line}}\n")
