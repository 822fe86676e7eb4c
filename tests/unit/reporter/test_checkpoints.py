"""Which policies are checkpoints of one training, and what is said of the best of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from report_runs import summarized

from comborun.reporter.comparing.orders import steps_of
from comborun.reporter.pages.words import sentences
from comborun.reporter.summary import Summary


@pytest.mark.parametrize(
    "names",
    [
        ["dp_step4", "dp_step8", "dp_step16"],
        ["ddim_steps_10", "ddim_steps_50", "ddim_steps_100"],
        ["flow_iter1", "flow_iter2", "flow_iter5"],
    ],
)
def test_small_numbers_in_names_are_no_steps_of_a_training(names: list[str]) -> None:
    assert steps_of(names, {}) == []


@pytest.mark.parametrize(
    "names",
    [
        ["step_500", "step_1000", "step_1500"],
        ["a_10k_step5k", "a_10k_step10k", "a_10k_step20k"],
        ["epoch_1", "epoch_2", "epoch_3"],
        ["iter_100", "iter_200", "iter_300"],
    ],
)
def test_numbers_that_grow_like_steps_are_steps(names: list[str]) -> None:
    assert [[*one] for one in steps_of(names, {})] == [names]


def test_an_attribute_of_the_grid_says_that_small_numbers_are_steps() -> None:
    names = {"step4": 4.0, "step8": 8.0, "step16": 16.0}
    assert steps_of([*names], names) == [names]


def test_a_step_that_its_training_wrote_again_stands_in_the_same_curve() -> None:
    names = {"step_100": 100.0, "step_200": 200.0, "step_200_8abf": 200.0, "step_300": 300.0}
    assert steps_of([*names], names, one_training=True) == [names]


def told(folder: Path, rates: dict[str, tuple[int, int]]) -> Summary:
    rows = [
        {"policy": policy, "environment": "s", "episode": n, "success": n * 7 % count < successes, "seed": n}
        for policy, (successes, count) in rates.items()
        for n in range(count)
    ]
    return summarized(folder, rows)


@pytest.mark.parametrize(
    "rates",
    [
        {"ckpt_1000": (22, 100), "ckpt_2000": (54, 100), "ckpt_3000": (63, 100), "ckpt_4000": (5, 5)},
        {"ckpt_1": (3, 4), "ckpt_2": (2, 4), "ckpt_3": (4, 4)},
        {"epoch_1": (9, 50), "epoch_2": (10, 50), "epoch_3": (8, 18)},
    ],
)
def test_the_best_checkpoint_of_few_episodes_is_only_the_highest_observed(
    rates: dict[str, tuple[int, int]], tmp_path: Path
) -> None:
    summary = told(tmp_path, rates)
    (trend,) = summary.trends
    assert trend.measured_again is None
    said = next(one for one in sentences(summary) if "checkpoints" in one and trend.best.policy in one)
    assert "best" not in said
    assert f"not decided from {next(iter(rates))}" in said


def test_a_checkpoint_that_beats_every_other_is_the_best(tmp_path: Path) -> None:
    summary = told(tmp_path, {"ckpt_1000": (10, 100), "ckpt_2000": (20, 100), "ckpt_3000": (90, 100)})
    assert summary.trends[0].measured_again == pytest.approx(0.9)
    assert any("The best of 3 checkpoints is ckpt_3000" in one for one in sentences(summary))
    for again, said in (("ckpt_3000", True), ("ckpt_1000", False)):
        over = replace(summary, trends=(replace(summary.trends[0], written_over=(again,)),))
        assert any(f"The training wrote {again} again" in one for one in sentences(over)) is said


@pytest.mark.parametrize(("rates", "within"), [([(8, 8), (8, 8), (8, 8)], True), ([(8, 8), (9, 9), (8, 8)], False)])
def test_checkpoints_with_equal_rates_are_told_as_equal(
    rates: list[tuple[int, int]], within: bool, tmp_path: Path
) -> None:
    summary = told(tmp_path, {f"step_{number}000": rate for number, rate in enumerate(rates, 7)})
    (said,) = (one for one in sentences(summary) if "3 checkpoints" in one)
    assert said.startswith("The observed rates of 3 checkpoints are equal: 100.0 %")
    assert ("[" in said) == within, "one interval is shown only if it is that of all"
