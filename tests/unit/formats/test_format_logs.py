"""Results that stand in a program's log, as people's terminals and programs leave it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import TYPE_CHECKING

import pytest
from adapter_samples import (
    OURS,
    by_episode,
    combos,
    complaints,
    only,
    read_sample,
    read_text,
    reasons,
    sample,
    verdicts,
)

from comborun.reporter.records.reading import Context, RejectKind
from comborun.rules.results.episodes import LINE_LIMIT
from comborun.rules.results.fields import RefusedError, ResultRules
from comborun.rules.results.rates import agrees, count, printed
from comborun.rules.results.readers import LogLines
from comborun.words import say

if TYPE_CHECKING:
    from comborun.rules.results.readers import Entry

TUPLE = "results:  ('env', [True, False, True], {})\n"


# reading a log


class Heard(LogLines):
    def hear(self, text: str) -> Iterator[Entry]:
        yield self.row(text)


def heard(*pieces: bytes) -> list[tuple[int, str]]:
    reader = Heard(OURS.identity)
    entries = [entry for piece in pieces for entry in reader.feed(piece)]
    return [(line, text) for line, text, *_ in (*entries, *reader.finish())]


def test_a_log_is_read_as_a_person_sees_it() -> None:
    content = b"\x1b[3g\r\x1bHone\x1b[32m two\x1b[0m\r\n\n  0%\r 50%\r100%\n\x1b]0;title\x07three\xff"
    assert heard(content) == [(1, "one two"), (3, "  0%"), (3, " 50%"), (3, "100%"), (4, "three�")]


def test_what_of_a_line_is_too_long_is_passed_over_and_the_next_is_read() -> None:
    (_, long), following = heard(*[b"a" * (1 << 20)] * 20, b"\nnext\n")
    assert (len(long), following) == (LINE_LIMIT, (2, "next"))


# lines in words


def test_every_counted_episode_is_a_record_and_one_with_an_exception_is_errored() -> None:
    reading = read_sample("log-lines", "clients/pi0/libero_spatial.log")
    assert verdicts(reading) == {0: "success", 1: "failure", 2: "errored", 3: "success"}
    assert by_episode(reading)[2].extra == {
        "exception": "received 1011 (internal error) keepalive ping timeout",
        "task": "open the drawer",
    }
    assert complaints(reading) == ["1 episode with a caught exception, counted by the program all the same: errored"]


def test_a_log_of_the_other_program_names_suite_and_family() -> None:
    alone = Context("EVAL-libero_goal-openvla-2026_02_03-04_05_06--note.txt")
    assert combos(read_text("log-lines", "Success: True\n# episodes completed so far: 1\n", alone)) == {
        ("openvla--note", "libero_goal")
    }


def test_an_episode_that_was_cut_off_is_left_out_and_told() -> None:
    text = "Success: True\n# episodes completed so far: 1\nStarting episode 2...\nSuccess: True\n"
    reading = read_text("log-lines", text)
    assert verdicts(reading) == {0: "success"}
    assert (only(reading.rejects).line, only(reading.rejects).kind) == (4, RejectKind.TORN)


@pytest.mark.parametrize(
    ("total", "complaint"),
    [
        ("Total episodes: 2", []),
        ("Total episodes: 500", ["its program speaks of 500 episodes, and 2 are told of above"]),
        ("Total success rate: 0.5", []),
        ("Total success rate: 0.82", ["its program's total of 0.82 is not 1 of 2 as told of above"]),
        ("Current total success rate: 0.9", []),
    ],
)
def test_the_programs_own_total_is_compared(total: str, complaint: list[str]) -> None:
    text = "Success: True\n# episodes completed so far: 1\nSuccess: False\n# episodes completed so far: 2\n"
    assert complaints(read_text("log-lines", text + total)) == complaint


# a printed tuple


def test_a_tuple_printed_by_numpy_over_two_lines_is_read_with_its_columns() -> None:
    reading = read_sample("log-tuple", "rollouts/gr00t/rollout.log")
    assert [record.success for record in reading.records] == [True, False, True, False, True, True]
    assert [record.metrics["task_progress"] for record in reading.records] == [1.0, 0.25, 1.0, 0.5, 1.0, 1.0]
    odd, biased = complaints(reading)
    assert odd == "the field 'intermediate' does not hold one value per episode: left out"
    assert "6 episodes that ended in 4 copies" in biased


@pytest.mark.parametrize(("copies", "by_ending", "biased"), [(1, False, False), (2, True, False), (3, True, True)])
def test_copies_matter_where_they_are_many_for_so_few_episodes(copies: int, *, by_ending: bool, biased: bool) -> None:
    head = f"Running collecting 40 episodes for env with {copies} vec envs\n"
    text = f"{head}results:  ('env', {[True] * 40}, {{}})\nsuccess rate:  1.0\n"
    reading = read_text("log-tuple", text)
    assert (reading.by_ending, bool(reading.unpaired), bool(reading.defects)) == (by_ending, by_ending, biased)


def test_a_rate_that_is_not_that_of_the_list_is_told() -> None:
    assert complaints(read_text("log-tuple", TUPLE + "success rate:  0.67\n")) == []
    assert complaints(read_text("log-tuple", TUPLE + "success rate:  0.5\n")) == [
        "the printed rate of 0.5 is not 2 of 3 as listed"
    ]


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("results:  ('env', [True, Fal", "the printed results are cut off"),
        ("results:  ('env', 7)\n", "no environment with a list of successes"),
        ("results:  ('env', [])\n", "results of no episodes"),
        ("results:  (" + "[" * 5000 + ")\n", "the printed results are cut off"),
    ],
)
def test_what_is_no_tuple_of_results_is_named(text: str, reason: str) -> None:
    assert reasons(read_text("log-tuple", text)) == [reason]


def test_a_tuple_that_was_cut_off_costs_no_later_one() -> None:
    reading = read_text("log-tuple", "results:  ('env', [True,\nKilled\n" + TUPLE)
    assert len(reading.records) == 3
    assert [(reject.line, reject.kind) for reject in reading.rejects] == [(1, RejectKind.TORN)]


def test_what_is_neither_true_nor_false_in_the_list_is_errored() -> None:
    reading = read_text("log-tuple", "results:  ('env', [np.True_, 0, None, 'x', np.float64(1.0)], {})\n")
    assert list(verdicts(reading).values()) == ["success", "failure", "errored", "errored", "success"]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("('a', [np.True_, numpy.bool_(False)])", ["a", [True, False]]),
        ("array([1., -2.5, nan], dtype=float32)", [1.0, -2.5, None]),
        ("{'a': np.float64(0.5), 3: 1}", {"a": 0.5}),
        ("tensor([True], device='cuda:0')", [True]),
        ("__import__('os').system('touch x')", None),
        ("[1, ...]", [1, None]),
    ],
)
def test_printed_values_are_read_and_never_run(text: str, value: object) -> None:
    found = printed(text)
    assert (found[:2] if text.startswith("array") else found) == (value[:2] if text.startswith("array") else value)


# counts


def test_the_time_in_a_folders_name_is_no_part_of_the_environment() -> None:
    context = Context("pi05/logs/20260823-09:15:42-behavior_eval/eval_embodiment.log")
    found = only(read_text("kn-aggregate", "│success_once=0.5 │num_trajectories=2 │", context).aggregates)
    assert (found.policy, found.environment) == ("pi05", "behavior_eval")


def test_the_grid_says_which_of_two_rates_is_meant() -> None:
    context = replace(OURS, rules=ResultRules(success="success_at_end"))
    content = sample("maniskill/PickCube-v1__ppo__1__1756000000/eval.log")
    found = only(read_text("kn-aggregate", content, context).aggregates)
    assert found.successes == 13
    assert found.metrics == {"episode_len": 50.0, "return": 31.5, "success_once": 0.875}


def test_the_last_of_several_evaluations_counts_and_that_is_told() -> None:
    line = "{{'eval/success_once': {}, 'eval/num_trajectories': 4}}\n"
    reading = read_text("kn-aggregate", line.format(0.25) + line.format("array(0.75, dtype=float32)"))
    assert only(reading.aggregates).successes == 3
    assert complaints(reading) == ["2 evaluations in one file, and not alike: the last one counts"]
    assert complaints(read_text("kn-aggregate", line.format(0.25) * 2)) == []


@pytest.mark.parametrize(
    ("told", "reason"),
    [
        ("success_once=nan │num_trajectories=16", "nan is not a rate between 0 and 1"),
        ("success_once=0.0 │num_trajectories=0", "a rate of 0.0 over 0 episodes is not a rate"),
        ("success_once=50.0 │num_trajectories=16", "50.0 is not a rate between 0 and 1"),
        ("success_once=0.5 │num_trajectories=2.5", "2.5 is not a number of episodes"),
        ("success_once=0.5 │num_trajectories=inf", "inf is not a number of episodes"),
        ("num_trajectories=16", "no rate of a number of episodes, where it has num_trajectories"),
        ("success_once=0.5", "no rate of a number of episodes, where it has success_once"),
    ],
)
def test_a_rate_over_nothing_is_no_rate(told: str, reason: str) -> None:
    reading = read_text("kn-aggregate", f"│{told} │\n")
    assert (reading.aggregates, reasons(reading)) == ([], [reason])


RANK = "[Rank {}/2] Metrics: {{'success_rate': {}, 'num_episodes': {}, 'steps': {}}}\n"


def test_ranks_are_added_up_and_the_last_word_of_each_counts() -> None:
    text = RANK.format(0, 0.0, 4, 9.0) + RANK.format(1, 0.5, 2, 4.0) + RANK.format(0, 0.75, 4, 1.0)
    found = only(read_text("rank-metrics", text).aggregates)
    assert (found.successes, found.episodes, found.metrics) == (4, 6, {"steps": 2.0})


def test_a_rank_that_tells_nothing_leaves_nothing_to_count() -> None:
    reading = read_text("rank-metrics", RANK.format(1, 0.5, 2, 4.0))
    assert reading.aggregates == []
    assert reasons(reading) == ["no metrics of rank 0 of 2: nothing is counted"]


@pytest.mark.parametrize(
    ("rate", "episodes", "scale", "successes", "complaint"),
    [
        ("0.4375", 16, 1, 7, ""),
        ("0.3333", 3, 1, 1, ""),
        ("0.333", 999, 1, 333, ""),
        ("0.333", 2000, 1, 666, "more than one number"),
        ("0.4", 3, 1, 1, "not a whole number"),
        ("0.66", 3, 1, 2, "not a whole number"),  # cut off, not rounded
        ("87", 30, 100, 26, "not a whole number"),
        ("0.3340", 3, 1, 1, "not a whole number"),  # bfloat16
        ("66.66666666666666", 3, 100, 2, ""),
        ("0.6666666865348816", 3, 1, 2, ""),
        ("1", 7, 1, 7, ""),
        ("1e-1", 10, 1, 1, ""),
        ("0.82", 500, 1, 410, "more than one number"),
    ],
)
def test_a_rate_is_so_many_successes_and_one_that_is_not_is_told(
    rate: str, episodes: int, scale: int, successes: int, complaint: str
) -> None:
    found = count(rate, episodes, scale)
    assert found.successes == successes
    assert complaint in (say(found.complaint) if found.complaint else "")


@pytest.mark.parametrize("rate", ["nan", "inf", "-0.1", "1.1", "x", ""])
def test_what_is_no_rate_is_refused(rate: str) -> None:
    with pytest.raises(RefusedError):
        count(rate, 10)
    assert not agrees(rate, 5, 10)


@pytest.mark.parametrize(("rate", "episodes"), [("0.75", 2), ("0.625", 4), ("0.4375000001", 8), ("62.50", 4)])
def test_a_rate_that_no_number_of_successes_gives_counts_nothing(rate: str, episodes: int) -> None:
    with pytest.raises(RefusedError) as refused:
        count(rate, episodes, 100 if rate > "1" else 1)
    assert refused.value.fact.code == "rate_of_no_count"
