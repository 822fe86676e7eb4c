"""Which sessions a person's words mean."""

from __future__ import annotations

from dataclasses import replace

import pytest
from monitor_stage import a_plan, a_session

from comborun.errors import UserError
from comborun.model.plan import Plan
from comborun.monitor.addressing import addressed
from comborun.planner.ranges import range_session

FLAT = replace(a_session("flat", "stairs"), ranged=True)
ROBUST = a_session("robust", "stairs")
OTHER = a_session("pi0.5 (flow)", "Push cube")


def meant(plan: Plan, *words: str, alive: tuple[str, ...] = (), guess: bool = False) -> tuple[str, ...]:
    return addressed(plan, "run-1", words, lambda: alive, guess=guess).names


def test_a_session_goes_by_its_name_and_by_its_policy_and_environment_in_either_order() -> None:
    plan = a_plan([FLAT, ROBUST, OTHER], after=True)
    for words in (("stairs_flat",), ("flat", "stairs"), ("stairs", "flat"), ("flat_stairs",)):
        assert meant(plan, *words) == ("stairs_flat",)
    assert meant(plan, "Push cube", "pi0.5 (flow)") == (OTHER.name,)
    assert meant(plan, "stairs_robust", "flat", "stairs", "after") == ("stairs_robust", "stairs_flat", "after")


def test_the_name_of_a_combo_means_all_of_its_shards() -> None:
    shards = tuple(range_session(FLAT, first, 50) for first in (0, 50))
    names = tuple(shard.name for shard in shards)
    plan = a_plan([*shards, ROBUST])
    assert meant(plan, "stairs_flat") == meant(plan, "flat", "stairs") == names
    assert meant(plan, names[1]) == names[1:]


def test_a_replaced_session_is_meant_only_while_it_runs() -> None:
    now = replace(FLAT, name="stairs_flat_1a2b")
    plan = a_plan([replace(FLAT, flag="dropped"), now])
    assert meant(plan, "stairs_flat") == meant(plan, "flat", "stairs") == ("stairs_flat_1a2b",)
    assert meant(plan, "stairs_flat", alive=("stairs_flat",)) == ("stairs_flat",)
    assert meant(a_plan([replace(FLAT, flag="dropped")]), "stairs_flat") == ("stairs_flat",), "nothing came after it"


def test_a_smoke_test_is_meant_by_its_own_name_only() -> None:
    plan = a_plan([replace(FLAT, name="stairs_flat_smoke", flag="smoke"), FLAT])
    assert meant(plan, "flat", "stairs") == ("stairs_flat",)
    assert meant(plan, "stairs_flat_smoke") == ("stairs_flat_smoke",)
    replaced = a_plan([replace(FLAT, flag="dropped"), plan.sessions[0]])
    assert meant(replaced, "flat", "stairs") == ("stairs_flat_smoke",), "what was replaced is not meant besides"


@pytest.mark.parametrize(
    ("words", "names"),
    [
        (("stairs_flt",), ("stairs_flat",)),
        (("rob",), ("stairs_robust",)),
        (("stairs",), ("stairs_flat", "stairs_robust")),
        (("flt", "stairs"), ("stairs_flat",)),
    ],
)
def test_who_only_looks_is_shown_what_was_meant_and_who_acts_is_asked(
    words: tuple[str, ...], names: tuple[str, ...]
) -> None:
    plan = a_plan([FLAT, ROBUST])
    found = addressed(plan, "run-1", words, tuple, guess=True)
    assert (found.names, len(found.guesses)) == (names, 1)
    with pytest.raises(UserError) as refused:
        meant(plan, *words)
    assert names[0] in refused.value.hint


def test_a_part_of_several_names_is_answered_with_them() -> None:
    with pytest.raises(UserError) as refused:
        meant(a_plan([FLAT, ROBUST, OTHER]), "airs", guess=True)
    assert "stairs_flat, stairs_robust" in refused.value.hint
    maze = a_plan([a_session("flat", "Größe 1"), a_session("rough", "Größe 1")])
    with pytest.raises(UserError) as refused:
        meant(maze, "Größe", guess=True)
    assert ", ".join(one.name for one in maze.sessions) in refused.value.hint, (
        "by the grid's own words, which no session's name has"
    )


def test_an_exact_name_is_never_overridden_by_a_guess() -> None:
    small, large = (replace(a_session(policy, "put bowl"), name=f"bowl_{policy}") for policy in ("pi0.5", "Pi0.5"))
    plan = a_plan([small, large])
    assert meant(plan, "pi0.5", "put bowl", guess=True) == ("bowl_pi0.5",)
    assert meant(plan, "put bowl", "Pi0.5", guess=True) == ("bowl_Pi0.5",)
    with pytest.raises(UserError):
        meant(plan, "PI0.5", "put bowl", guess=True)


def test_a_name_that_may_be_two_is_asked_for() -> None:
    plan = a_plan([a_session(policy, environment) for policy in ("ab", "a_b") for environment in ("x", "y")])
    for words in (("a-b", "x"), ("x", "a-b"), ("x_a-b",)):
        with pytest.raises(UserError) as refused:
            meant(plan, *words, guess=True)
        assert refused.value.hint.endswith("x_ab, x_a_b")
    assert meant(plan, "a_b", "x", guess=True) == ("x_a_b",)


def test_a_policy_and_an_environment_that_are_quoted_as_one_word_are_exact() -> None:
    plan = a_plan([a_session("p", "pick"), a_session("pi", "pick"), a_session("p", "place")])
    for word, name in (("p pick", "pick_p"), ("pick p", "pick_p"), ("pi pick", "pick_pi")):
        assert addressed(plan, "run-1", (word,), tuple, guess=True) == ((name,), ())
        assert meant(plan, word) == (name,)


@pytest.mark.parametrize("words", [("p", "pick"), ("p pick",), ("pick", "p"), ("pi1", "pick"), ("pick_pi1",)])
def test_another_number_or_a_letter_or_two_are_no_slip(words: tuple[str, ...]) -> None:
    plan = a_plan([a_session("pi0", "pick"), a_session("pi0", "place")])
    with pytest.raises(UserError) as refused:
        meant(plan, *words, guess=True)
    assert "pick_pi0" in refused.value.hint
    assert meant(plan, "pi0", "pck", guess=True) == ("pick_pi0",)


def test_a_name_as_it_stands_in_the_names_of_sessions_is_exact() -> None:
    plan = a_plan([replace(a_session(policy, "x"), name=name) for policy, name in (("ab", "x_ab"), ("a b", "x_a-b"))])
    assert addressed(plan, "run-1", ("a-b", "x"), tuple, guess=True) == (("x_a-b",), ())
    assert meant(plan, "x", "a-b") == ("x_a-b",)


def test_a_policy_and_an_environment_that_are_no_combo_are_not_taken_for_others() -> None:
    plan = a_plan([a_session("a-b", "y"), a_session("ab", "x")])
    for guess in (True, False):
        with pytest.raises(UserError) as refused:
            meant(plan, "a-b", "x", guess=guess)
        assert (refused.value.message, refused.value.hint) == (
            "there is no session a-b x in run-1",
            "name one of its sessions: y_a-b, x_ab",
        )
