"""Curves in the logs of trainings: what a program prints is read, and no other number is taken for it."""

from __future__ import annotations

import curve_samples as samples
import pytest

from comborun.rules.curves.log_values import LogValues
from comborun.rules.curves.metrics import metric, number, step_unit
from comborun.rules.curves.series import best_of

Curves = dict[tuple[str, str], tuple[str, list[tuple[float, float]]]]


def read(text: str, piece: int = 1 << 20) -> LogValues:
    told, data = LogValues(), text.encode()
    for at in range(0, len(data), piece):
        told.feed(data[at : at + piece])
    told.finish()
    return told


def curves(text: str, piece: int = 1 << 20) -> Curves:
    """The surest curve of each role: its unit and points."""
    found: Curves = {}
    for one in best_of(read(text, piece).tracks.curves()):
        if one.steps:
            found.setdefault((one.of, one.role), (one.unit, [*zip(one.steps, one.values, strict=True)]))
    return found


TRAIN, EVAL = "training", "evaluation"
PROGRAMS: dict[str, tuple[str, Curves]] = {
    "rsl_rl": (
        samples.RSL_RL,
        {
            (TRAIN, "reward"): ("iterations", [(0, -0.5), (1, 0.5), (2, 1.5)]),
            (TRAIN, "length"): ("iterations", [(0, 20.5), (1, 21.5), (2, 22.5)]),
        },
    ),
    "rsl_rl 5": (
        samples.RSL_RL_5,
        {
            (TRAIN, "reward"): ("steps", [(98304, -0.5), (196608, 0.5), (294912, 1.5)]),
            (TRAIN, "length"): ("steps", [(98304, 20.5), (196608, 21.5), (294912, 22.5)]),
        },
    ),
    "rl_games": (samples.RL_GAMES, {(TRAIN, "reward"): ("steps", [(8192, 294.18793), (16384, 300.5)])}),
    "sb3": (
        samples.SB3,
        {
            (TRAIN, "reward"): ("steps", [(2048, 21.5), (4096, 25.75)]),
            (TRAIN, "length"): ("steps", [(2048, 22.3), (4096, 26.1)]),
            (TRAIN, "success"): ("steps", [(2048, 0.25), (4096, 0.5)]),
            (EVAL, "reward"): ("steps", [(4000, 123.4)]),
            (EVAL, "length"): ("steps", [(4000, 200)]),
            (EVAL, "success"): ("steps", [(4000, 0.5)]),
        },
    ),
    "rlinf": (
        samples.RLINF,
        {
            (TRAIN, "reward"): ("steps", [(4, 0.43), (5, 0.53)]),
            (TRAIN, "length"): ("steps", [(4, 80), (5, 80)]),
            (TRAIN, "success"): ("steps", [(4, 0.75), (5, 0.8)]),
            (EVAL, "reward"): ("steps", [(4, 0.9), (5, 0.9)]),
            (EVAL, "success"): ("steps", [(4, 0.85), (5, 0.85)]),
        },
    ),
    "embodichain": (
        samples.EMBODICHAIN,
        {
            (TRAIN, "reward"): ("steps", [(200, 0.25), (300, 0.35)]),
            (TRAIN, "length"): ("steps", [(200, 60), (300, 55)]),
        },
    ),
    "maniskill": (
        samples.MANISKILL,
        {
            (EVAL, "reward"): ("steps", [(0, 12.25), (1280000, 24.5)]),
            (EVAL, "length"): ("steps", [(0, 50), (1280000, 40)]),
            (EVAL, "success"): ("steps", [(0, 0.4375), (1280000, 0.875)]),
        },
    ),
    "cleanrl": (samples.CLEANRL, {(TRAIN, "reward"): ("steps", [(4096, 13), (8192, 20)])}),
    "lerobot": (
        samples.LEROBOT,
        {
            (TRAIN, "reward"): ("steps", [(20000, 12.3), (40000, 15.3)]),
            (TRAIN, "success"): ("steps", [(20000, 0.5), (40000, 0.7)]),
        },
    ),
}


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_curves_of_known_programs_are_read_from_their_logs(name: str) -> None:
    text, expected = PROGRAMS[name]
    assert curves(text) == expected
    assert curves(text, piece=7) == expected, "in whatever pieces it comes"
    assert curves(text.replace("\n", "\r\n")) == expected


def test_the_steps_that_a_program_announces_are_no_step_that_it_has_done() -> None:
    assert read(samples.EMBODICHAIN).announced == 400
    assert read(samples.RLINF).announced == 1000
    assert read(samples.RSL_RL_5).announced is None
    assert curves("Total steps: 400\navg reward: 3\nstep=100 avg reward: 2\n")[TRAIN, "reward"][1] == [(100, 2)]


def test_values_of_a_step_from_all_ranks_are_averaged() -> None:
    text = "".join(f"[rank{rank}]: step {step} reward {step + rank}\n" for step in (10, 20) for rank in (1, 0, 2))
    assert curves(text)[TRAIN, "reward"][1] == [(10, 11), (20, 21)]
    unlike = "[default0]:step=1 reward=1\n[default1]:step=1 reward=3\n[default0]:step=2 reward=5\n"
    assert curves(unlike)[TRAIN, "reward"][1] == [(1, 2), (2, 5)]


@pytest.mark.parametrize(
    ("line", "steps", "reward"),
    [
        ("frames=1.2M reward=12,5", 1_200_000, 12.5),
        ("Timestep 5000/100000 | AvgReward(100): -3.20", 5000, -3.2),
        ("[Step 4,096] AvgReward(100): 1.25, AvgLen(100): 60.0", 4096, 1.25),
        ("\x1b[32mglobal_step\x1b[0m=\x1b[1m7\x1b[0m episode_return=\x1b[31m-1.5e+02\x1b[0m", 7, -150),
        ("iteration 9: {'episode_return_mean': np.float64(2.5), 'loss': 0.1}", 9, 2.5),
        ("env_steps: 1.048.576 | ep_ret: tensor(4.5, device='cuda:0')", 1_048_576, 4.5),
        ("2026-01-02 10:10:10,123 INFO trainer: update=12 fps=900 mean reward: 0.75 (best 0.9)", 12, 0.75),
        ("num_timesteps = 12_000 , episode_reward = .5", 12_000, 0.5),
        ("Iteration 1.000 | mean_reward 12,5", 1000, 12.5),
        ("[2,000] return 12.3 / length 500", 2000, 12.3),
        ("Epoch [3/100], Reward: 5", 3, 5),
        ("step:7 - critic/score/mean:0.25 - critic/score/max:1.0", 7, 0.25),
        ("Episode   12 | Reward=  6.1 | Epsilon=0.100", 12, 6.1),
        ("total_timesteps 300 ep_rew_mean −4.5", 300, -4.5),
        ("  5%|▌  | 50/1000 [00:10<03:10,  5.00it/s, return=8.5]\r", 50, 8.5),
        ("step 10 reward 1,234 loss 0.5", 10, 1234),
        ("step 10 reward 1,234 loss 0,5", 10, 1.234),
        ("step 4,096 reward 2,345", 4096, 2345),
        ("step 10 reward 1,234 tokens 1,234,567", 10, 1234),
        ("| train | F: 6000 | S: 3000 | E: 6 | L: 500 | R: 5.5 | BS: 3000 | FPS: 96.3 | T: 0:00:42", 6000, 5.5),
        ("| \x1b[33mtrain\x1b[0m          | E: 10 | S: 10000 | R: 5.5 | D: 0.1 s | BR: 0.3", 10000, 5.5),
        (
            " train      \x1b[30mE:\x1b[0m 1      \x1b[30mI:\x1b[0m 1,500      R: 12.3     S: 0.0     T: 0:00:05",
            1500,
            12.3,
        ),
        (" train          E: 1                 S: 1,500             R: -12.3      T: 0:00:05", 1500, -12.3),
    ],
)
def test_other_names_units_and_colours_are_read(line: str, steps: float, reward: float) -> None:
    found = curves(f"{line}\n")
    assert found[TRAIN, "reward"][1] == [(steps, reward)]


@pytest.mark.parametrize(
    "line",
    [
        "step=10 reward_scale=0.1 min_reward=-5 reward_std=2 best_reward=9 Episode_Reward/lift=0.5 reward/success=1",
        "step=10 returns 12 values",
        "step=10 rewards=[1.0, 2.0, 3.0]",
        "step=10 reward=1,234",
        "step=10 reward=1,234 loss=0.5 rate=0,5",
        "step=10 S: 3000 R: 5.5",
        "| pick | F: 6000 | S: 3000 | E: 6 | R: 5.5 |",
        "| train | F: 6000 | R: 5.5 |",
        "iteration 1.000 reward 2.5",
        "step=10 sequence length: 512 success_threshold=0.9",
        "reward=5.0 and nothing counts steps",
        "fps step: 112918 reward: 5",
        "step=10 loss=0.5 discounted_return=5",
    ],
)
def test_no_other_number_is_taken_for_one_of_a_curve(line: str) -> None:
    assert curves(f"{line}\n") == {}


def test_letters_of_an_evaluation_are_of_the_evaluation() -> None:
    found = curves("| eval  | F: 6000 | S: 3000 | E: 6 | L: 500 | R: 4.5 | T: 0:00:42\n")
    assert found[EVAL, "reward"][1] == [(6000, 4.5)]
    assert found[EVAL, "length"][1] == [(6000, 500)]


def test_lines_of_one_shape_have_their_own_numbers_and_names() -> None:
    found = curves("".join(f"step={at} avgReward({at})={at}.5\n" for at in (10, 11, 12)))
    assert found[TRAIN, "reward"][1] == [(10, 10.5)]


def test_a_number_in_brackets_is_no_step_where_words_tell_steps() -> None:
    assert curves("step 100\n[4321] reward 3\n") == {}
    assert curves("".join(f"[4321] reward {at}\n" for at in range(40))) == {}


def test_a_value_before_a_rule_does_not_belong_to_the_step_behind_it() -> None:
    text = "-----------\n| reward | 3 |\n-----------\n| step | 10 |\n| reward | 4 |\n-----------\n"
    assert curves(text)[TRAIN, "reward"][1] == [(10, 4)]


def test_lines_of_a_training_after_an_evaluation_are_of_the_training_again() -> None:
    text = "Eval at step 100: mean reward 9\nepisode length: 3\nstep 200 mean reward 1\n"
    found = curves(text)
    assert found[EVAL, "reward"][1] == [(100, 9)]
    assert found[EVAL, "length"][1] == [(100, 3)]
    assert found[TRAIN, "reward"][1] == [(200, 1)]


def test_a_restart_in_the_same_log_supersedes_what_it_writes_again() -> None:
    lines = [(step, 1.0) for step in range(0, 100, 10)] + [(step, 2.0) for step in range(50, 80, 10)]
    (one,) = best_of(read("".join(f"step={step} reward={value}\n" for step, value in lines)).tracks.curves())
    assert [*zip(one.steps, one.values, strict=True)] == [
        *((step, 1.0) for step in range(0, 50, 10)),
        *((step, 2.0) for step in range(50, 80, 10)),
    ]
    assert one.superseded == 5


def test_a_single_step_that_is_cut_off_or_late_is_no_restart() -> None:
    cut = "".join(f"step={step} reward=1\n" for step in range(100, 400, 100)) + "step=4"
    assert curves(f"{cut} reward=7\n")[TRAIN, "reward"][1] == [(4, 7), (100, 1), (200, 1), (300, 1)]


def test_a_number_that_jumps_about_is_no_step() -> None:
    text = "".join(f"episode {at} steps={at * 37 % 50} reward={at}\n" for at in range(60))
    unit, points = curves(text)[TRAIN, "reward"]
    assert (unit, points[0], points[-1]) == ("episodes", (0, 0), (59, 59))


@pytest.mark.parametrize(
    ("text", "whole", "expected"),
    [
        ("1,234", True, 1234),
        ("1,234", False, None),
        ("0,123", False, 0.123),
        ("1,234,567", False, 1234567),
        ("1.234.567,5", False, 1234567.5),
        ("-12,5", False, -12.5),
        ("1,2,3", False, None),
        ("1.2.3", False, None),
        ("", False, None),
    ],
)
def test_numbers_with_commas_are_read_only_if_they_are_clear(text: str, whole: bool, expected: float | None) -> None:
    assert number(text, whole=whole) == expected


def test_names_say_what_they_are() -> None:
    roles = {name: found.role for name in NAMES if (found := metric(name))}
    assert roles == {name: role for name, role in NAMES.items() if role}
    assert step_unit("time/total_timesteps") == ("steps", 0)
    assert step_unit("_step") == ("steps", 2)
    assert step_unit("Iteration time") is None


NAMES = {
    "Train/mean_reward": "reward",
    "Train/mean_reward/time": "",
    "rewards/step": "reward",
    "rewards/time": "",
    "AverageEpRet": "reward",
    "eprewmean": "reward",
    "charts/episodic_return": "reward",
    "episode_lengths/iter": "length",
    "env_runners/episode_return_mean": "reward",
    "eval/success_once": "success",
    "Episode_Reward/success": "",
    "Episode_Termination/success": "",
    "losses/return_loss": "",
    "success_reward": "",
    "win_rate": "success",
    "EpLen": "length",
    "max_return": "",
}
