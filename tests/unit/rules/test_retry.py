"""Budgets and waits of retries."""

from __future__ import annotations

from comborun.rules.endings.retry import Budgets, spent, wait_s

POLICY = {"attempts": "4", "retry_crashed": "2", "retry_error": "0", "wait_crashed_ms": "10000", "gpus": "0,1"}


def test_each_class_has_a_budget_and_all_have_one_together() -> None:
    budgets = Budgets.of_policy(POLICY)
    crash, error = ("signal", "crashed"), ("exited", "error")
    assert spent(budgets, [crash], "crashed").left == 2
    assert spent(budgets, [crash, crash, crash], "crashed").left == 0
    assert spent(budgets, [error], "error").left == 0
    assert spent(budgets, [error, error, error, crash], "crashed").left == 0
    assert spent(budgets, [("exited", "unheard")], "unheard").left == 0


def test_a_stop_begins_anew_and_what_slurm_preempts_is_no_start() -> None:
    budgets = Budgets.of_policy(POLICY)
    crash = ("signal", "crashed")
    assert spent(budgets, [crash, crash, ("stopped", ""), crash], "crashed").left == 2
    taken = ("preempted", "preempted")
    found = spent(budgets, [taken] * 5, "preempted")
    assert (found.made, found.failures, found.left) == (0, 5, 4)


def test_lost_and_preempted_are_tried_again_unless_the_grid_says_otherwise() -> None:
    assert Budgets.of_policy({"attempts": "3"}).times == {"lost": 2, "preempted": 10}
    assert Budgets.of_policy({"attempts": "3", "retry_lost": "0"}).times["lost"] == 0


def test_each_wait_is_twice_the_one_before_up_to_half_an_hour() -> None:
    budgets = Budgets.of_policy(POLICY)
    assert [wait_s(budgets, "crashed", failures) for failures in (1, 2, 3)] == [10, 20, 40]
    assert wait_s(budgets, "crashed", 500) == 1800
    assert wait_s(budgets, "error", 3) == 0
