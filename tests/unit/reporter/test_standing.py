"""Who leads and who is last, for given numbers: the first line, the ranking and the pairs."""

from __future__ import annotations

import io
import json
from collections.abc import Mapping
from itertools import product
from pathlib import Path

import pytest
from matplotlib.image import imread
from report_runs import RunDirectory, row, write_rows

from comborun.reporter.collect import collect_folder
from comborun.reporter.figures.figure import Area, Dot, Figure, Panel
from comborun.reporter.figures.files import files
from comborun.reporter.figures.ranking import BETTER, WORSE, pairs, ranking
from comborun.reporter.pages.answer import answer
from comborun.reporter.pages.policy_tables import forest
from comborun.reporter.pages.policy_tables import ranking as ranked
from comborun.reporter.report import report_folder
from comborun.reporter.standing import Place, Standing, standing_of
from comborun.reporter.summary import Summary, summarize
from comborun.rules.results.fields import NO_VERDICTS, ResultRules

ENVIRONMENTS = ("grass", "ice", "stairs")


def write(
    folder: Path, successes: Mapping[str, int], environments: tuple[str, ...] = ENVIRONMENTS, n: int = 40
) -> Path:
    """Each policy succeeds so often in each environment, with seeds that pair nothing."""
    rows = [
        row(index, index < count, policy=policy, environment=environment, seed=1000 * number + index)
        for number, (policy, count) in enumerate(successes.items())
        for environment in environments
        for index in range(n)
    ]
    write_rows(folder / "rows.jsonl", rows)
    return folder


def summary_of(folder: Path) -> Summary:
    return summarize(collect_folder(folder)).summary


def standing(folder: Path) -> Standing:
    found = standing_of(summary_of(folder))
    assert found
    return found


def test_those_that_none_beats_lead_and_those_that_beat_none_are_last(tmp_path: Path) -> None:
    found = standing(write(tmp_path, {"act": 4, "pi0": 35, "middle": 18, "pi05": 36}))
    assert found.names == ("pi05", "pi0", "middle", "act")
    assert (found.leaders, found.last, found.apart_from_none) == (("pi05", "pi0"), ("act",), ())
    assert found.letters == {"pi05": "a", "pi0": "a", "middle": "b", "act": "c"}
    told = answer(summary_of(tmp_path))
    assert told.startswith("pi05 and pi0 lead and are not told apart; act is last")


@pytest.mark.parametrize(
    ("shared", "words"),
    [
        ("robot_lab_policy_", "robot_lab_policy_1 beats robot_lab_policy_0 by"),
        ("robot_laboratory_policy_", "policy_1 beats policy_0 by"),
    ],
    ids=["short", "long"],
)
def test_no_policy_is_called_by_a_number_alone(tmp_path: Path, shared: str, words: str) -> None:
    told = answer(summary_of(write(tmp_path, {f"{shared}0": 4, f"{shared}1": 36})))
    assert told.startswith(words)
    assert ("Left out of each name: robot_laboratory_ before it." in told) is (len(shared) > 20)


def test_one_that_beats_all_others_is_named_alone(tmp_path: Path) -> None:
    found = standing(write(tmp_path, {"a": 10, "b": 11, "best": 39}))
    assert (found.leaders, found.last) == (("best",), ("b", "a"))
    told = answer(summary_of(tmp_path))
    assert told.startswith("best beats both others, which are not told apart; the next (b) by 70.0 points [")


def test_one_that_beats_all_others_says_by_how_much(tmp_path: Path) -> None:
    told = answer(summary_of(write(tmp_path, {"a": 3, "b": 20, "best": 39})))
    assert told.startswith("best beats both others, the next (b) by 47.5 points [")
    assert "]; a is last (" in told


@pytest.mark.parametrize(
    ("best", "next_one"), [(39, "5.0 points [−"), (37, "as high as the next one, p1, not told apart; ")]
)
def test_of_many_that_lead_the_highest_is_told_with_its_gaps(best: int, next_one: str, tmp_path: Path) -> None:
    good = {f"p{n}": best if n == 0 else 37 for n in range(5)}
    told = answer(summary_of(write(tmp_path, good | {f"q{n}": 4 for n in range(5)})))
    assert told.startswith("p0 has the highest mean success rate over 3 environments, ")
    assert next_one in told
    assert "it beats 5 of 9 others, the last one, q" in told
    assert "lead" not in told


def test_if_nothing_is_decided_nobody_leads(tmp_path: Path) -> None:
    found = standing(write(tmp_path, {"a": 20, "b": 22, "c": 21}))
    assert (found.leaders, found.last, found.apart_from_none) == ((), (), ("b", "c", "a"))
    told = answer(summary_of(tmp_path))
    assert "not told apart" in told
    assert "; b has the highest" in told
    assert "lead" not in told


def test_equal_policies_have_no_highest(tmp_path: Path) -> None:
    told = answer(summary_of(write(tmp_path, {"a": 20, "b": 20})))
    assert "all have the same mean success rate" in told


def test_in_one_environment_its_own_comparisons_answer(tmp_path: Path) -> None:
    found = standing(write(tmp_path, {"a": 5, "b": 35}, ("stairs",)))
    assert (found.environment, found.leaders, found.last) == ("stairs", ("b",), ("a",))
    (one,) = summary_of(tmp_path).comparisons.all
    low, high = (f"{100 * end:.1f}" for end in sorted(map(abs, one.interval)))
    assert answer(summary_of(tmp_path)) == f"b beats a by 75.0 points [{low}, {high}] (success rate in stairs)."


@pytest.mark.parametrize("environments", [("stairs",), ENVIRONMENTS])
def test_a_policy_alone_has_its_rate_and_no_rival(tmp_path: Path, environments: tuple[str, ...]) -> None:
    told = answer(summary_of(write(tmp_path, {"a": 20}, environments)))
    assert told.startswith("a ")
    assert "50.0 % [" in told
    assert "beats" not in told


def test_policies_that_never_meet_are_not_compared(tmp_path: Path) -> None:
    rows = [row(i, policy=name, environment=f"of {name}") for name in "ab" for i in range(9)]
    write_rows(tmp_path / "rows.jsonl", rows)
    assert "not compared" in answer(summary_of(tmp_path))


def test_policies_that_meet_in_one_environment_of_several_are_told_apart_in_it_alone(tmp_path: Path) -> None:
    rows = [row(i, i < 35, policy="a", environment=name) for name in ("grass", "stairs") for i in range(40)]
    rows += [row(i, i < 5, policy="b", environment="grass") for i in range(40)]
    write_rows(tmp_path / "rows.jsonl", rows)
    told = answer(summary_of(tmp_path))
    assert told.startswith("a beats b in grass")
    assert "1 of 1" not in told


def test_if_one_lacks_an_environment_all_means_are_over_those_that_every_policy_has(tmp_path: Path) -> None:
    write(tmp_path, {"a": 10, "b": 38})
    rows = [row(i, policy="c", environment=name, seed=90_000 + i) for name in ENVIRONMENTS[:2] for i in range(40)]
    write_rows(tmp_path / "more.jsonl", rows)
    found = standing(tmp_path)
    assert [(place.policy, place.value) for place in found.places] == [("c", 1.0), ("b", 0.95), ("a", 0.25)]
    assert (found.common, found.environments) == (2, 3)
    assert "2 of 3 environments" in found.where
    assert found.leaders == ("c", "b")
    assert found.last == ("a",)


def test_who_is_beaten_in_the_only_common_environment_is_not_above_its_winner(tmp_path: Path) -> None:
    """And of two policies that never met nobody says that they are not told apart."""
    rates = {("a", "grass"): 36, ("b", "grass"): 16, ("a", "ice"): 35, ("b", "ice"): 14}
    rates |= {("b", "sand"): 36, ("c", "sand"): 12, ("d", "snow"): 20}
    rows = [
        row(i, i < count, policy=policy, environment=environment, seed=1000 * number + i)
        for number, ((policy, environment), count) in enumerate(rates.items())
        for i in range(40)
    ]
    write_rows(tmp_path / "rows.jsonl", rows)
    found = standing(tmp_path)
    assert (found.leaders, found.last, found.apart_from_none) == (("a",), ("c",), ("d",))
    told = answer(summary_of(tmp_path))
    assert told.startswith("a leads, but was not compared with ")
    assert "told apart from" not in told


def test_a_higher_rate_without_a_difference_in_common_episodes_is_not_told(tmp_path: Path) -> None:
    rows = [row(i, i % 5 > 1, policy="a", environment="grass", seed=i) for i in range(20)]
    rows += [row(i, i % 5 > 1 or i >= 20, policy="b", environment="grass", seed=i) for i in range(30)]
    write_rows(tmp_path / "rows.jsonl", rows)
    (comparison,) = summary_of(tmp_path).comparisons.all
    assert (comparison.paired, comparison.difference) == (True, 0)
    assert "higher one" not in answer(summary_of(tmp_path))


def test_an_environment_that_goes_the_other_way_is_named(tmp_path: Path) -> None:
    rates = {
        ("a", "grass"): 2,
        ("b", "grass"): 39,
        ("a", "ice"): 2,
        ("b", "ice"): 38,
        ("a", "sand"): 39,
        ("b", "sand"): 20,
    }
    rows = [
        row(i, i < count, policy=policy, environment=environment, seed=1000 * number + i)
        for number, ((policy, environment), count) in enumerate(rates.items())
        for i in range(40)
    ]
    write_rows(tmp_path / "rows.jsonl", rows)
    told = answer(summary_of(tmp_path))
    assert told.startswith("b beats a by 45.0 points [")
    assert told.endswith("] (mean success rate over 3 environments); a is better in sand.")


def test_what_all_names_share_is_told_once(tmp_path: Path) -> None:
    long = "openvla-oft-libero-spatial-finetuned-step-"
    told = answer(summary_of(write(tmp_path, {f"{long}1k": 3, f"{long}2k": 30, f"{long}3k": 31})))
    assert told.startswith("3k and 2k lead and are not told apart; 1k is last")
    assert told.count(long) == 1


def test_returns_alone_are_compared_and_answer(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    rules = ResultRules(success=NO_VERDICTS)
    for policy, above in (("a", 0.0), ("b", 5.0)):
        for environment in ("grass", "ice"):
            rows = "".join(
                json.dumps({"episode": i, "seed": i, "return": i % 7 + above + i / 50}) + "\n" for i in range(30)
            )
            run.attempt(run.session(policy, environment, 30, results=rules), rows)
    summary = run.report().summary
    found = standing_of(summary)
    assert found
    assert (found.measure, found.leaders, found.last) == ("return", ("b",), ("a",))
    assert answer(summary) == "b beats a by return over 2 environments."


def numbers(folder: Path, metrics: Mapping[str, float], policies: tuple[str, ...] = ("a", "b")) -> Path:
    """Episodes with numbers and no verdict: each policy has more of every metric than the one before it."""
    rows = [
        {"policy": policy, "environment": environment, "episode": i}
        | {name: step * number + (7 * i % 10) for name, step in metrics.items()}
        for number, policy in enumerate(policies)
        for environment in ("grass", "ice")
        for i in range(30)
    ]
    write_rows(folder / "rows.jsonl", rows)
    return folder


def test_the_answer_agrees_with_means_that_are_told_apart_where_signs_are_not(tmp_path: Path) -> None:
    rows = [
        {
            "policy": policy,
            "environment": place,
            "episode": i,
            "seed": i,
            "return": i + (policy == "b") * (5, -1)[i % 5 > 2],
        }
        for place in ("grass", "ice")
        for policy in "ab"
        for i in range(30)
    ]
    write_rows(tmp_path / "rows.jsonl", rows)
    summary = summary_of(tmp_path)
    assert not any(one.decided for one in summary.comparisons.graded)
    assert summary.claims.decided[0].startswith("Over 2 environments b has a higher mean return than a")
    assert answer(summary).startswith("b beats a by return over 2 environments.")
    assert {combo.policy: combo.letters for combo in summary.combos} == {"a": "b", "b": "a"}


def by_grid(folder: Path, **rules: object) -> Summary:
    """The same folder, read as a run whose grid has these results."""
    run = RunDirectory(folder / "run")
    for policy, above in (("a", 0.0), ("b", 5.0)):
        rows = "".join(json.dumps({"episode": i, "cost": above + (7 * i % 10)}) + "\n" for i in range(30))
        run.attempt(run.session(policy, "grass", 30, results=ResultRules(success=NO_VERDICTS, **rules)), rows)
    return run.report().summary


def test_the_page_of_returns_has_the_answer_the_map_and_the_figures(tmp_path: Path) -> None:
    folder = numbers(tmp_path / "x", {"return": 6.0, "length": 3.0}, ("a", "b", "c"))
    report_folder(folder, folder / "report", forms=("svg",))
    names = {path.stem for path in (folder / "report/figures").iterdir()}
    assert {"ranking", "means", "pairs", "differences", "intervals"} <= names
    assert not names & {"success_rates", "cumulative_success"}
    page = (folder / "report/report.html").read_text()
    assert "c beats both others; a is last" in page
    assert "no verdict: 0 of" not in page
    assert 'id="claims"' in page
    markdown = (folder / "report/report.md").read_text()
    assert "| c | 16.5 | " in markdown.replace("**", "")
    assert "environments missing" not in markdown
    assert "0 completed episodes" not in markdown
    assert "16.5 [" in (folder / "report/report.tex").read_text()
    document = json.loads((folder / "report/final_benchmark_report.json").read_text())
    assert document["metric"] == {"name": "return", "better": "higher", "told": False}
    assert {one["policy"]: one["letters"] for one in document["combos"]} == {"a": "c", "b": "b", "c": "a"}


def test_a_number_whose_direction_nobody_says_makes_nobody_lead(tmp_path: Path) -> None:
    summary = summary_of(numbers(tmp_path / "x", {"cost": 5.0}))
    found = standing_of(summary)
    assert found
    assert (found.better, found.leaders, found.last) == ("", (), ())
    assert found.letters == {"a": "b", "b": "a"}
    words = answer(summary)
    assert words.startswith("b has more cost over 2 environments than a; which is better is not said")
    assert "`results: {compare: {field: cost, better: higher}}`" in words


def test_the_grid_says_that_less_is_better(tmp_path: Path) -> None:
    summary = by_grid(tmp_path, compare=("cost",), lower=("cost",))
    found = standing_of(summary)
    assert found
    assert (found.names, found.leaders, found.last) == (("a", "b"), ("a",), ("b",))
    assert answer(summary) == "a beats b by lower cost in grass."


def test_of_several_numbers_none_is_taken_by_itself(tmp_path: Path) -> None:
    summary = summary_of(numbers(tmp_path / "x", {"speed": 5.0, "energy": 5.0}))
    assert standing_of(summary) is None
    assert "speed and energy" in answer(summary)
    assert "compare: {field: speed" in answer(summary)


def test_one_policy_with_returns_has_its_mean_with_the_interval(tmp_path: Path) -> None:
    rows = [{"policy": "a", "environment": "x", "episode": i, "return": i % 10, "length": 50 + i} for i in range(20)]
    write_rows(tmp_path / "rows.jsonl", rows)
    assert answer(summary_of(tmp_path)).startswith("a has a mean return in x of 4.5 [3.121, 5.879] (n = 20)")


def test_without_any_verdict_the_first_line_says_so(tmp_path: Path) -> None:
    rows = [json.dumps({"policy": "a", "environment": "x", "episode": i, "success": None}) + "\n" for i in range(5)]
    write_rows(tmp_path / "rows.jsonl", rows)
    assert answer(summary_of(tmp_path)).startswith("No episode has a verdict (5 errored)")


def test_dots_are_drawn_in_files_of_pixels() -> None:
    def dark(panel: Panel) -> int:
        (content,) = files([Figure("x", "", "", (panel,))], ("png",)).values()
        return int((imread(io.BytesIO(content), format="png")[..., 0] < 0.5).sum())

    panel = Panel("", 1.0, 1.0)
    assert dark(panel) == 0
    panel.dot((0.5, 0.5))
    assert dark(panel) > 50


def test_a_filled_cell_is_a_decided_pair(tmp_path: Path) -> None:
    found = standing(write(tmp_path, {"act": 4, "pi0": 35, "pi05": 36}))
    figure = pairs(found)
    assert figure
    colours = [mark.colour for mark in figure.panels[0].marks if isinstance(mark, Area)]
    decided = sum(one.decided for one in found.comparisons)
    assert 0 < decided < len(found.comparisons)
    assert colours.count(BETTER) == colours.count(WORSE) == decided
    assert len(colours) == 2 * len(found.comparisons)


def test_the_ranking_has_a_dot_for_each_policy_in_their_order_and_zooms_to_the_intervals(tmp_path: Path) -> None:
    figure = ranking(standing(write(tmp_path, {"a": 20, "b": 24, "c": 22})))
    assert figure
    dots = [mark.place for mark in figure.panels[0].marks if isinstance(mark, Dot)]
    assert len(dots) == 3
    assert [x for x, _ in dots] == sorted((x for x, _ in dots), reverse=True)
    words = [
        mark.words for mark in figure.panels[0].marks if not isinstance(mark, Area | Dot) and hasattr(mark, "words")
    ]
    assert "b" in words
    assert "0" not in words, "the axis starts where the intervals do"


def test_the_plot_in_text_has_the_value_inside_its_interval() -> None:
    axis = ((0.4, "40"), (0.8, "80"))
    drawn = forest(Place("a", 0.6, (0.5, 0.7)), axis)
    assert drawn.index("├") < drawn.index("●") < drawn.index("┤")
    assert len(drawn) == len(forest(Place("b", 0.4, (0.4, 0.8)), axis))


@pytest.mark.parametrize("field", ["return", "success"])
@pytest.mark.parametrize("environments", [("hop",), ("hop", "walk")])
def test_an_interval_of_few_runs_says_that_it_is_within_them(
    field: str, environments: tuple[str, ...], tmp_path: Path
) -> None:
    for policy, run, environment in product("ab", range(3), environments):
        path = tmp_path / policy / f"seed{run}" / f"{environment}.jsonl"
        values = ((at + run) % 3 for at in range(12))
        rows = ({"episode": at, field: value > 0 if field == "success" else value} for at, value in enumerate(values))
        write_rows(path, rows)
    table = ranked(standing_of(summarize(collect_folder(tmp_path)).summary))
    assert table is not None
    assert all("within 3 runs" in str(row[2]) for row in table.rows)


def test_a_metric_that_is_called_success_rate_is_a_metric() -> None:
    named, rates = (Standing(metric, 1, "stairs", (), ()) for metric in ("success rate", ""))
    assert (named.by_rate, rates.by_rate) == (False, True)
    assert named.measure == rates.measure
