"""Records of other shapes than the usual ones, each of which got a report to say something that was not so."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from report_runs import write_rows

from comborun.reporter.collect import collect_folder
from comborun.reporter.evidence.context import ContextFact
from comborun.reporter.figures.figure import Text
from comborun.reporter.figures.ranking import ranking
from comborun.reporter.figures.rates import heat_map
from comborun.reporter.pages.between import compare_runs
from comborun.reporter.pages.latex import latex
from comborun.reporter.pages.words import sentences
from comborun.reporter.standing import standing_of
from comborun.reporter.statistics.proportion import clopper_pearson
from comborun.reporter.summary import Summary, summarize
from comborun.reporter.text import interval

Row = dict[str, Any]
Fields = Callable[[str, int], Mapping[str, Any]]
EVERY = {"A": 5, "B": 2}
"""every fifth episode of A fails, and every second one of B"""


def rows(fields: Fields = lambda who, at: {}, count: int = 60) -> list[Row]:
    return [
        {
            "policy": who,
            "environment": "s",
            "episode": at,
            "seed": at,
            "success": at % EVERY[who] > 0,
            **fields(who, at),
        }
        for who in EVERY
        for at in range(count)
    ]


def write(folder: Path, found: Iterable[Row]) -> Path:
    write_rows(folder / "rows.jsonl", found)
    return folder


def report(folder: Path, found: Iterable[Row]) -> Summary:
    return summarize(collect_folder(write(folder, found))).summary


def said(summary: Summary) -> str:
    return "\n".join(summary.claims.sentences)


def test_a_hash_inside_an_object_counts(tmp_path: Path) -> None:
    summary = report(tmp_path, rows(lambda who, at: {"info": {"init_hash": f"{who if at % 2 else ''}{at}"}}))
    (found,) = summary.comparisons.all
    assert not found.paired
    assert "initial states (init_hash) differ" in said(summary)


@pytest.mark.parametrize("shape", [lambda at: {"x": at / 10, "y": 1.5}, lambda at: [at / 10, 1.5]])
def test_an_initial_state_is_a_start(shape: Callable[[int], Any], tmp_path: Path) -> None:
    alike = report(tmp_path / "alike", rows(lambda _, at: {"seed": None, "initial_state": shape(at)}))
    assert alike.comparisons.all[0].paired
    other = report(tmp_path / "other", rows(lambda who, at: {"initial_state": shape(at + 100 * (who == "B"))}))
    assert not other.comparisons.all[0].paired


def test_equal_numbers_of_other_spelling_are_equal_states(tmp_path: Path) -> None:
    def fields(who: str, at: int) -> Mapping[str, Any]:
        return {"seed": None, "init_state": [at / 7, 1.0 if who == "A" else 1, {"z": 2.0 if who == "B" else 2}]}

    assert report(tmp_path, rows(fields)).comparisons.all[0].pairs


@pytest.mark.parametrize("shape", [lambda x: [x, 0.5], lambda x: {"pose": [x, 1.5]}], ids=["list", "object"])
def test_states_that_are_equal_to_within_rounding_are_one_start_and_told(
    shape: Callable[[float], Any], tmp_path: Path
) -> None:
    def state(apart: float) -> Callable[[str, int], Mapping[str, Any]]:
        return lambda who, at: {"seed": None, "init_state": shape(1 + at / 7 + apart * (who == "B"))}

    near = report(tmp_path / "near", rows(state(1e-9)))
    assert near.comparisons.all[0].pairs
    assert "init_state of 60 episodes is equal to that of others only to within rounding" in said(near)
    assert not report(tmp_path / "far", rows(state(1e-3))).comparisons.all[0].pairs


def test_a_state_that_is_repeated_with_noise_is_one_start(tmp_path: Path) -> None:
    summary = report(tmp_path, rows(lambda _, at: {"seed": None, "init_state": [0.3 + at % 5, at * 1e-12, 7.5]}))
    assert summary.comparisons.all[0].rate_a.starts == 5


def test_whole_numbers_of_a_state_are_never_rounded(tmp_path: Path) -> None:
    summary = report(tmp_path, rows(lambda _, at: {"seed": None, "init_state": [12345678 + at, 0.5]}))
    (found,) = summary.comparisons.all
    assert (found.paired, found.rate_a.starts) == (True, None)
    assert "rounding" not in said(summary)


NUMBERED = ("init_state_id", "initial_state_index", "start_id", "init_state")


@pytest.mark.parametrize("seeds", [{}, {"seed": 7}], ids=["without-seeds", "one-seed"])
@pytest.mark.parametrize("name", NUMBERED)
@pytest.mark.parametrize("number", [lambda at: at % 5, lambda at: at // 12], ids=["in-turn", "in-a-row"])
def test_a_start_that_has_a_number_counts_once(
    name: str, number: Callable[[int], int], seeds: dict[str, Any], tmp_path: Path
) -> None:
    summary = report(tmp_path, rows(lambda _, at: {"seed": None, **seeds, name: number(at)}))
    (found,) = summary.comparisons.all
    assert (found.paired, found.rate_a.starts, found.decided) == (True, 5, False)
    assert f"equal initial states ({name}) in all 60" in found.pairing
    assert "60 episodes have 5 different starts" in said(summary)


@pytest.mark.parametrize("name", NUMBERED)
def test_seeds_that_differ_where_the_number_of_the_start_does_not_tell_the_starts(name: str, tmp_path: Path) -> None:
    summary = report(tmp_path, rows(lambda _, at: {"seed": at, name: at % 5}))
    (found,) = summary.comparisons.all
    assert (found.paired, found.rate_a.starts, found.pairing) == (True, None, "equal seeds in all 60 common episodes")


def test_equal_seeds_with_other_numbers_of_the_start_are_no_pairs(tmp_path: Path) -> None:
    summary = report(tmp_path, rows(lambda who, at: {"seed": at, "init_state_id": (at + (who == "B")) % 5}))
    assert "initial states (init_state_id) differ" in summary.comparisons.all[0].pairing


@pytest.mark.parametrize("rates", ["both", "one-perfect"])
def test_one_number_for_all_starts_says_nothing(rates: str, tmp_path: Path) -> None:
    def fields(who: str, at: int) -> Mapping[str, Any]:
        perfect = {"success": True} if rates == "one-perfect" and who == "A" else {}
        return {"seed": None, "init_state_id": 0, **perfect}

    (found,) = report(tmp_path, rows(fields)).comparisons.all
    assert (found.rate_a.n, found.rate_a.starts, found.paired) == (60, None, False)


def test_a_word_is_no_initial_state(tmp_path: Path) -> None:
    summary = report(tmp_path, rows(lambda _, at: {"initial_state": ["left", "right"][at % 2]}))
    (found,) = summary.comparisons.all
    assert (found.paired, found.rate_a.starts) == (True, None)


def test_a_pair_that_started_differently_is_left_out_and_told(tmp_path: Path) -> None:
    summary = report(tmp_path, rows(lambda who, at: {"init_hash": f"{who if at == 40 else ''}{at}"}))
    assert "1 of 60 episodes of A has no partner with the same start" in said(summary)
    assert "under other indexes" not in said(summary)


@pytest.mark.parametrize("short", ["A", "B"])
def test_episodes_that_one_lacks_count_against_it_also_under_other_indexes(short: str, tmp_path: Path) -> None:
    """One has 50 of the 60 starts, in the reverse order, and numbers them from 0."""
    found = [
        row | ({"episode": 59 - row["episode"]} if row["policy"] == short else {})
        for row in rows()
        if row["policy"] != short or row["episode"] >= 10
    ]
    summary = report(tmp_path, found)
    (one,) = summary.comparisons.all
    assert one.pairs
    assert one.pairs.n == 50
    rates = {"A": (48, 40), "B": (30, 25)}
    (whole, _), (_, kept) = (rates[who] for who in ("B" if short == "A" else "A", short))
    against = (whole - (kept + 10)) / 60 if short == "B" else (kept - whole) / 60
    assert one.worst_difference == pytest.approx(against)
    assert "started differently" not in said(summary)
    long = "A" if short == "B" else "B"
    assert f"10 of 60 episodes of {long} have no partner with the same start" in said(summary)


def test_what_each_policy_lacks_of_the_other_counts_against_it(tmp_path: Path) -> None:
    """A recorded 0 to 79 and B 20 to 99: what is not there may have failed."""
    kept = [
        row for row in rows(count=100) if (row["episode"] < 80) is (row["policy"] == "A") or 20 <= row["episode"] < 80
    ]
    assert len(kept) == 160
    summary = report(tmp_path, kept)
    (found,) = summary.comparisons.all
    assert found.unknown == (20, 20)
    assert found.only_completed
    assert "lacks 20 episodes that others have" in said(summary)


def test_several_runs_are_not_compared_by_the_first_of_them(tmp_path: Path) -> None:
    """Three runs of A, of which only the first is good, against one run of B, with equal seeds."""
    good = {"run1": 10, "run2": 2, "run3": 2}
    found = [
        {"policy": "A", "environment": "s", "episode": at, "seed": at, "run_id": run, "success": at % every > 0}
        for run, every in good.items()
        for at in range(60)
    ]
    summary = report(tmp_path, [*found, *(row for row in rows() if row["policy"] == "B")])
    (one,) = summary.comparisons.all
    assert one.rate_a.n == 180
    assert one.difference == pytest.approx((0.9 + 0.5 + 0.5) / 3 - 0.5)
    assert "not as many runs of both" in said(summary)


def test_failures_without_a_kind_can_be_of_each(tmp_path: Path) -> None:
    """Of 50 failures of each policy, B says of all that they are drops, and A only of every second one."""

    def kinds(who: str, at: int) -> Mapping[str, Any]:
        named = at % 2 == 0 and (who == "B" or at % 4 == 0)
        return {"success": at % 2 > 0} | ({"failure": "drop"} if named else {})

    summary = report(tmp_path, rows(kinds, 100))
    (found,) = (one.found for one in summary.kinds if one.kind == "drop")
    assert not found.decided
    assert found.p < 0.01


@pytest.mark.parametrize(
    ("name", "none"),
    [("time_to_success", 0), ("time_to_success_s", 0.0), ("time_to_goal", 9999), ("steps_to_goal", 999)],
)
def test_a_time_that_all_failures_share_is_none(name: str, none: float, tmp_path: Path) -> None:
    summary = report(tmp_path, rows(lambda who, at: {name: 5.25 + at % 15 if at % EVERY[who] else none}))
    (mean,) = summary.combos[0].metrics
    assert 5 < mean.mean < 21
    assert mean.n == 48


def test_the_last_step_of_failures_is_a_length(tmp_path: Path) -> None:
    summary = report(tmp_path, rows(lambda who, at: {"steps": 100 + at % 15 if at % EVERY[who] else 999}))
    assert summary.combos[0].metrics[0].n == 60


@pytest.mark.parametrize("differing", [0, 5])
def test_a_gap_that_needs_more_pairs_that_differ_says_so(differing: int, tmp_path: Path) -> None:
    found = rows(lambda who, at: {"success": at % 3 > 0 and not (who == "B" and at < differing)}, 100)
    (sentence,) = report(tmp_path, found).claims.undecided
    assert "4 times in 5, if all pairs that differ go one way" in sentence


def test_more_in_most_episodes_and_a_lower_mean_are_told_together(tmp_path: Path) -> None:
    def progress(who: str, at: int) -> Mapping[str, Any]:
        return {"success": None, "progress": 0.12 if who == "B" else 0.9 if at < 6 else 0.1}

    grid = tmp_path / "in"
    summary = report(grid, [{k: v for k, v in row.items() if k != "success"} for row in rows(progress)])
    assert "But its mean is lower: 0.12 against 0.18" in said(summary)


@pytest.mark.parametrize(
    ("names", "alike"),
    [
        *[
            ((one, other), True)
            for one, other in (("pi-0", "pi0"), ("a_1", "A1"), ("pi0.5", "pi05"), ("pi0_5", "pi05"))
        ],
        *[(pair, True) for pair in (("pi-0", "pi0"), ("a_1", "A1"), ("pi0.5", "pi05"), ("pi0_5", "pi05"))],
        *[(pair, True) for pair in (("pi0.5", "pi0_5"), ("qwen 2.5", "Qwen2.5"), ("v1.1", "v1_1"))],
        *[(pair, True) for pair in (("act(base)", "act base"), ("libero/goal", "libero_goal"))],
        *[(pair, False) for pair in (("v1-1", "v11"), ("pi0", "pi05"), ("map_1_11", "map_11_1"))],
        *[(pair, False) for pair in (("pi0+", "pi0"), ("map_10_1", "map_101"), ("pi0.5", "pi5"))],
    ],
)
def test_names_that_differ_by_punctuation_are_told(names: tuple[str, str], alike: bool, tmp_path: Path) -> None:
    by_name = dict(zip(EVERY, names, strict=True))
    summary = report(tmp_path, [{**row, "policy": by_name[row["policy"]]} for row in rows()])
    assert any("are taken as different" in one.what for one in summary.quality.findings) is alike


def test_compared_runs_say_which_condition_was_before(tmp_path: Path) -> None:
    def seen(name: str, steps: int, by_run: Mapping[int, int]) -> Any:
        found = [
            {"policy": "A", "environment": "s", "episode": 50 * seed + at, "seed": seed, "max_steps": steps}
            | {"success": at % every > 0, "date": f"2026-11-{steps // 100:02d}"}
            for seed, every in by_run.items()
            for at in range(50)
        ]
        return collect_folder(write(tmp_path / name, found))

    between = compare_runs(seen("old", 300, {0: 2, 1: 2, 2: 2}), seen("new", 600, {0: 2, 1: 10, 2: 25}))
    told = " ".join(between.sentences)
    assert "max_steps is not the same: 300 before and 600 after" in told
    assert "date" not in told  # each run has its own
    assert "A before is 3 runs" in told
    assert "A after is 3 runs" in told
    assert "Not paired: a seed for each run" in told


def test_an_index_is_found_before_the_seed_of_all(tmp_path: Path) -> None:
    summary = report(tmp_path, rows(lambda _, at: {"episode": f"ep{at:03d}_seed42", "seed": 42}))
    assert [combo.counts.completed for combo in summary.combos if combo.counts] == [60, 60]


def test_steps_are_not_proposed_as_episodes(tmp_path: Path) -> None:
    found = [
        {"policy": "A", "environment": "s", "t": step, "success": step > 20} for _ in range(30) for step in range(25)
    ]
    told = "; ".join(one.what for one in report(tmp_path, found).quality.findings)
    assert "no field 'episode'" in told
    assert "750 episodes" not in told


def test_checkpoints_that_are_as_high_as_the_best_one_are_named(tmp_path: Path) -> None:
    found = [
        {"policy": f"ckpt_{step}", "environment": "s", "episode": at, "seed": at, "success": at < wins}
        for step, wins in ((1000, 2), (2000, 5), (3000, 5), (4000, 4))
        for at in range(5)
    ]
    told = " ".join(sentences(report(tmp_path, found)))
    assert "is ckpt_2000 (and so is ckpt_3000): 100.0 %" in told


def test_names_that_differ_by_blanks_are_quoted_between_runs(tmp_path: Path) -> None:
    both = rows()
    renamed = [{**row, "policy": "A " if row["policy"] == "A" else "B"} for row in both]
    old, new = (collect_folder(write(tmp_path / name, found)) for name, found in (("old", renamed), ("new", both)))
    told = compare_runs(old, new).notes
    assert any("Only in old: 'A ' × s" in note for note in told)
    assert any("Only in new: 'A' × s" in note for note in told)


def test_undecided_differences_have_the_sign_of_the_one_ahead(tmp_path: Path) -> None:
    summary = report(tmp_path, rows(lambda who, at: {"success": at % 2 > 0 or (who == "B" and at < 4)}))
    assert "B minus A is +3.3 points [" in said(summary)


def test_the_map_has_the_order_of_the_ranking(tmp_path: Path) -> None:
    wins = {"a": 3, "b": 50, "c": 20}
    summary = report(
        tmp_path,
        (
            {"policy": who, "environment": place, "episode": at, "seed": at, "success": at < count}
            for who, count in wins.items()
            for place in "xy"
            for at in range(60)
        ),
    )
    drawn = heat_map(summary)
    assert drawn
    words = [mark.words for mark in drawn.panels[0].marks if isinstance(mark, Text)]
    assert [name for name in words if name in wins] == ["b", "c", "a"]


def test_a_phone_has_a_ranking_of_its_own_width(tmp_path: Path) -> None:
    found = ranking(standing_of(report(tmp_path, rows())))
    assert found
    assert found.phone
    assert found.phone.width * 110 <= 390 - 2 * 16
    assert found.panels[0].width > found.phone.width


def test_starts_with_more_episodes_count_no_more_and_the_mean_over_starts_is_told(tmp_path: Path) -> None:
    """Eighty of hundred episodes have one start, at which only A succeeds; at four others both do half of the time."""

    def unequal(who: str, at: int) -> Mapping[str, Any]:
        return {"seed": f"start {0 if at % 5 else 1 + at % 20 // 5}", "success": who == "A" if at % 5 else at % 10 > 0}

    summary = report(tmp_path, rows(unequal, 100))
    (found,) = summary.comparisons.all
    mean = (1 + 4 * 0.5) / 5
    assert found.rate_a.starts == 5
    assert "A then has 60.0 %, not 90.0 %" in said(summary)
    assert found.rate_a.interval
    low, high = found.rate_a.interval
    assert low == pytest.approx(clopper_pearson(5 * mean, 5)[0])
    assert found.rate_a.at_least == pytest.approx(clopper_pearson(5 * mean, 5, 0.9)[0])
    assert high == pytest.approx(clopper_pearson(5 * 0.9, 5)[1])


def test_the_rate_of_joined_runs_says_that_it_is_within_these(tmp_path: Path) -> None:
    summary = report(tmp_path, rows(lambda _, at: {"train_seed": at // 20, "seed": None}))
    assert {combo.rate.runs for combo in summary.combos if combo.rate} == {3}
    assert interval(summary.combos[0].rate).endswith("within 3 runs")
    assert "within 3 runs" in latex(summary)


@pytest.mark.parametrize("name", ["{who}/task_{task}", "{who}_task_{task}"])
def test_files_of_tasks_are_environments_and_no_policies(name: str, tmp_path: Path) -> None:
    """Each task numbers its episodes from 0, and B lacks one."""
    for who in EVERY:
        for task in range(3):
            if (who, task) != ("B", 1):
                drawn = random.Random(f"{who}{task}")
                shifted = rows(lambda _, __, drawn=drawn: {"success": drawn.random() < 0.5}, count=20)
                found = [row for row in shifted if row["policy"] == who]
                write(tmp_path / name.format(who=who, task=task), found)
    summary = summarize(collect_folder(tmp_path)).summary
    assert summary.policies == ("A", "B")
    assert summary.environments == ("s/task_0", "s/task_1", "s/task_2")
    (found,) = summary.comparisons.overall
    assert found.environments == 2


WORDS = ("pick_cup", "open_door", "stack_blocks")


@pytest.mark.parametrize("kept", [3, 2, 1])
@pytest.mark.parametrize("name", ["{who}/s/{task}", "{who}_{task}", "{task}/{who}"])
def test_files_of_tasks_that_are_called_by_words_are_environments(name: str, kept: int, tmp_path: Path) -> None:
    """B has only the first ones, perhaps a single one."""
    for who in EVERY:
        for task in WORDS[: kept if who == "B" else None]:
            drawn = random.Random(f"{who}{task}")
            own = rows(lambda _, __, drawn=drawn: {"success": drawn.random() < 0.5}, count=20)
            write(tmp_path / name.format(who=who, task=task), [row for row in own if row["policy"] == who])
    summary = summarize(collect_folder(tmp_path)).summary
    assert summary.policies == ("A", "B")
    assert {*summary.environments} == {f"s/{task}" for task in WORDS}
    assert len([one for one in summary.comparisons.all if not hasattr(one, "environments")]) == kept


@pytest.mark.parametrize("names", [("attempt-1", "attempt-2"), ("2026-01-02", "2026-01-03"), ("first", "again")])
def test_other_names_of_files_stay_those_of_policies(names: tuple[str, str], tmp_path: Path) -> None:
    for who, own in (("A", names), ("B", names if names[0] != "first" else ("second", "third"))):
        for name in own:
            drawn = random.Random(f"{who}{name}")
            found = rows(lambda _, __, drawn=drawn: {"success": drawn.random() < 0.5}, count=20)
            write(tmp_path / who / name, [row for row in found if row["policy"] == who])
    assert summarize(collect_folder(tmp_path)).summary.environments == ("s",)


def test_files_whose_rows_name_the_run_are_runs(tmp_path: Path) -> None:
    for who, runs in (("A", 3), ("B", 2)):
        for run in range(runs):
            own = rows(lambda _, at, run=run: {"train_seed": 7 + run, "seed": None, "success": at % (3 + run) > 0})
            write(tmp_path / f"{who}{run}", [row for row in own if row["policy"] == who])
    summary = summarize(collect_folder(tmp_path)).summary
    assert [(combo.policy, combo.rate and combo.rate.runs) for combo in summary.combos] == [("A", 3), ("B", 2)]


@pytest.mark.parametrize("name", ["env_seed", "episode_seed"])
def test_seeds_of_another_name_are_seeds(name: str, tmp_path: Path) -> None:
    """A field that is constant is not taken, if another tells the episodes apart."""
    (found,) = report(tmp_path / "each", rows(lambda _, at: {"seed": None, name: at, "rng_seed": 7})).comparisons.all
    assert found.pairs
    assert found.pairs.n == 60
    own = rows(lambda who, at: {"seed": None, name: at % 5, "success": at % 5 < (4 if who == "A" else 2)}, 100)
    (found,) = report(tmp_path / "five", own).comparisons.all
    assert found.rate_a.starts == 5
    assert not found.decided


def test_a_seed_comes_before_seeds_of_another_name(tmp_path: Path) -> None:
    (found,) = report(tmp_path, rows(lambda who, at: {"env_seed": f"{who}{at}"})).comparisons.all
    assert found.pairs


def each_its_own(names: Sequence[str]) -> list[Row]:
    """Policies of these names that nothing pairs and that are not equal."""
    return [
        {**row, "policy": name, "seed": None, "success": row["episode"] % (3 + place) > 0}
        for place, name in enumerate(names)
        for row in rows()
        if row["policy"] == "A"
    ]


RUN_NAMES = [
    ("A_s0", "A_seed1", "B-run-2"),
    ("A-seed-42", "A-seed-43", "B_s42"),
]
DATED = [("A_2026-05-01", "A_20260502T1010"), ("A_0501", "A_0502"), ("A-260501", "A-260502"), ("A May 1", "A May 2")]


@pytest.mark.parametrize("names", RUN_NAMES)
def test_policies_that_are_called_like_runs_are_said_to_be_so(names: Sequence[str], tmp_path: Path) -> None:
    summary = report(tmp_path, each_its_own(names))
    told = {(one.a, one.b): [fact.code for fact in one.facts] for one in summary.comparisons.all}
    assert [told[names[0], names[1]], told[names[0], names[2]]] == [["names_of_runs"], ["one_run_each"]]
    hint = f"{names[0]}, {names[1]} may be runs of one policy, A, and are taken as different ones"
    assert any(hint in one.what for one in summary.quality.findings)


@pytest.mark.parametrize("names", DATED)
def test_policies_that_differ_by_a_day_are_said_to_be_perhaps_runs(names: Sequence[str], tmp_path: Path) -> None:
    summary = report(tmp_path, each_its_own(names))
    hint = f"{names[0]}, {names[1]} may be runs of one policy, A, and are taken as different ones"
    assert any(hint in one.what for one in summary.quality.findings)


_OTHERS = [("gpt_4", "gpt_5"), ("h8", "h16"), ("resnet_s", "resnet_m"), ("A", "A_s1"), ("A_1000", "A_2000")]


@pytest.mark.parametrize("names", _OTHERS)
def test_other_numbers_in_names_are_no_runs(names: Sequence[str], tmp_path: Path) -> None:
    assert not [fact for one in report(tmp_path, each_its_own(names)).comparisons.all for fact in one.facts]


@pytest.mark.parametrize(
    ("names", "first", "said"),
    [
        (("A", "A_resumed"), 20, "A_resumed may be A, continued"),
        (("A-part1", "A-part2"), 20, "A-part2 may be A-part1, continued"),
        (("A", "A_rerun"), 0, "A_rerun may be A, run again"),
        (("A", "A on the second box"), 20, "may be A, continued"),
        (("A", "A_fast"), 0, ""),
        (("A_fast", "A_slow"), 20, ""),
        (("A", "Ab"), 20, ""),
    ],
)
def test_a_policy_whose_name_or_episodes_continue_another_is_asked_for(
    names: tuple[str, str], first: int, said: str, tmp_path: Path
) -> None:
    made = [
        {"policy": name, "environment": "s", "episode": at + start, "success": at % (3 + start % 7) > 0}
        for name, start in zip(names, (0, first), strict=True)
        for at in range(20)
    ]
    summary = report(tmp_path, made)
    (comparison,) = summary.comparisons.all
    assert (ContextFact.NAMES_OF_PARTS in {fact.code for fact in comparison.facts}) == bool(said)
    assert any(said in one.what for one in summary.quality.findings if one.where == "names") == bool(said)


@pytest.mark.parametrize(("first_of_b", "told"), [(8, False), (12, True)])
def test_no_policy_is_called_higher_against_the_difference(first_of_b: int, told: bool, tmp_path: Path) -> None:
    """Four of 20 starts have ten episodes each. A succeeds at them and at six others, B at eight or twelve others."""

    def many(who: str, at: int) -> Mapping[str, Any]:
        start = at // 10 if at < 40 else at - 36
        return {"seed": f"start {start}", "success": start < 10 if who == "A" else start >= first_of_b}

    first = sentences(report(tmp_path, rows(many, 56)))[0]
    assert "not told apart" in first
    assert ("has the higher one" in first) is told, first
