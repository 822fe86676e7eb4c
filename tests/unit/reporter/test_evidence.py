"""What a claim rests on is settled before any test: starts, seeds of runs, hashes, conditions, runs side by side."""

from __future__ import annotations

import csv
import json
import random
from collections.abc import Callable, Mapping
from math import sqrt
from pathlib import Path
from statistics import fmean, variance
from types import MappingProxyType
from typing import Any

import pytest
from report_runs import document, summarized, write_rows
from report_runs import row as line
from scipy import stats

from comborun.reporter.collect import collect_folder
from comborun.reporter.pages.answer import answer
from comborun.reporter.pages.between import compare_runs, render_between
from comborun.reporter.pages.document import report_json
from comborun.reporter.pages.latex import latex
from comborun.reporter.report import report_folder
from comborun.reporter.summary import Summary, summarize

Fields = Callable[[str, int], Mapping[str, Any]]
RATES = {"A": 0.8, "B": 0.45}


def rows(
    fields: Fields, count: int = 100, rates: Mapping[str, float] = RATES, env: str = "stairs"
) -> list[dict[str, Any]]:
    """Episodes of each policy, with verdicts that fields don't tell."""
    drawn = random.Random(5)
    return [
        {
            "policy": policy,
            "environment": env,
            "episode": index,
            "success": drawn.random() < rate,
            **fields(policy, index),
        }
        for policy, rate in rates.items()
        for index in range(count)
    ]


def compared(folder: Path, fields: Fields, count: int = 100, rates: Mapping[str, float] = RATES) -> dict[str, Any]:
    """The only comparison, as JSON has it."""
    found = json.loads(report_json(summarized(folder, rows(fields, count, rates))))
    (comparison,) = found["comparisons"]
    return dict(comparison)


def codes(found: Mapping[str, Any]) -> list[str]:
    return [fact["code"] for fact in found.get("facts", [])]


# -- pairs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "fields",
    [
        lambda who, at: {"seed": at} | ({"init_hash": f"{who}{at}"} if who == "A" or at else {}),  # first of B has none
        lambda who, at: {"seed": at, "init_hash": f"{who}{at}" if who == "B" or at else None},
        lambda who, at: {"seed": at, "init_hash": [who, at]},
        lambda who, at: {"seed": at, "init_hash": {"x": at, "of": who}},
        lambda who, at: (
            {"seed": at, "first_frame_hash": f"{who}{at}"} | ({"init_hash": f"h{at}"} if who == "A" else {})
        ),
        lambda who, at: {"seed": at, "init_hash": f"h{at}", "first_frame_hash": f"{who}{at}"},
        lambda who, at: {"seed": at, "init_state_hash": at + (who == "B") * 0.5},
    ],
    ids=["first-lacks-one", "first-is-null", "lists", "objects", "another-field", "second-field", "numbers"],
)
def test_hashes_that_differ_in_any_field_that_both_have_are_other_starts(tmp_path: Path, fields: Fields) -> None:
    found = compared(tmp_path, fields)
    assert not found["paired"]
    assert "differ" in found["pairing"]


@pytest.mark.parametrize(
    "fields",
    [
        lambda who, at: {"seed": at} | ({"init_hash": f"h{at}"} if who == "A" else {}),
        lambda who, at: {"seed": at} | ({"first_frame_hash": [at]} if who == "B" and at % 2 else {}),
        lambda who, at: {"seed": at} | {("init_hash" if who == "A" else "first_frame_hash"): f"h{at}"},
    ],
    ids=["all-of-one", "half-of-one", "different-fields"],
)
def test_a_hash_that_one_side_lacks_is_said_and_not_assumed(tmp_path: Path, fields: Fields) -> None:
    found = summarized(tmp_path, rows(fields))
    (comparison,) = found.comparisons.all
    assert comparison.paired
    assert comparison.pairing == "equal seeds in all 100 common episodes"
    assert [fact.code for fact in comparison.facts] == ["hash_of_one_side"]
    assert "it was not compared" in found.claims.decided[0]


def test_pairs_in_which_one_side_lacks_a_hash_are_counted_beside_those_that_are_compared(tmp_path: Path) -> None:
    found = compared(tmp_path, lambda who, at: {"seed": at} | ({"init_hash": f"h{at}"} if who == "A" or at % 4 else {}))
    assert (found["paired"], codes(found)) == (True, ["hash_of_one_side"])
    assert (found["facts"][0]["episodes"], found["facts"][0]["common"]) == (25, 100)


def test_where_hashes_show_other_starts_nothing_more_is_said_of_them(tmp_path: Path) -> None:
    found = compared(tmp_path, lambda who, at: {"seed": at} | ({"init_hash": f"{who}{at}"} if who == "B" or at else {}))
    assert (found["paired"], codes(found)) == (False, [])


def test_hashes_of_the_first_records_leave_the_seeds_to_pair_the_others(tmp_path: Path) -> None:
    found = compared(tmp_path, lambda _, at: {"seed": at} | ({"init_hash": "h"} if not at else {}))
    assert (found["paired"], found["n_a"], codes(found)) == (True, 100, [])


@pytest.mark.parametrize(
    "fields",
    [
        lambda _, at: {"seed": at, "init_hash": "0"},
        lambda who, at: {"seed": at} | ({"init_hash": "d41d8cd98f00b204e9800998ecf8427e"} if who == "A" else {}),
        lambda _, at: {"seed": f"s{at}", "first_frame_hash": [0, 0]},
    ],
    ids=["zero", "of-one-side", "list"],
)
@pytest.mark.parametrize("rates", [RATES, {"A": 1.0, "B": 0.45}], ids=["both-vary", "one-perfect"])
def test_a_hash_that_never_varies_while_seeds_and_results_do_says_nothing(
    tmp_path: Path, fields: Fields, rates: Mapping[str, float]
) -> None:
    others = {**rates, "C": 0.5}
    found = summarized(tmp_path, rows(lambda who, at: fields("A" if who == "C" else who, at), rates=others))
    (first, *_) = found.comparisons.all
    assert (first.paired, first.rate_a.n, first.rate_a.starts) == (True, 100, None)
    assert "hash_never_varies" in [fact.code for fact in first.facts]


def test_one_record_without_a_start_does_not_unpair_the_others_and_counts_against_the_claim(tmp_path: Path) -> None:
    found = compared(tmp_path, lambda who, at: {} if who == "A" and not at else {"seed": at})
    assert (found["paired"], found["n_a"], found["unknown"]) == (True, 99, [1, 1])
    assert codes(found) == ["starts_not_told"]


def test_equal_seeds_under_other_indexes_are_pairs(tmp_path: Path) -> None:
    found = compared(tmp_path, lambda who, at: {"seed": 99 - at if who == "B" else at})
    assert (found["paired"], found["n_a"]) == (True, 100)
    assert codes(found) == ["paired_under_other_indexes"]
    assert found["pairing"] == "equal seeds in all 100 common episodes"


def test_seeds_of_other_episodes_are_no_pairs_and_every_format_says_so(tmp_path: Path) -> None:
    found = summarized(tmp_path, rows(lambda who, at: {"seed": at + 1000 * (who == "B")}))
    assert not found.comparisons.all[0].paired
    assert "Not paired: seeds differ." in latex(found)


@pytest.mark.parametrize("rates", [RATES, {"A": 0.5, "B": 0.5}], ids=["decided", "undecided"])
def test_every_format_says_why_policies_are_not_paired(tmp_path: Path, rates: Mapping[str, float]) -> None:
    found = summarized(tmp_path / "in", rows(lambda who, at: {"seed": at + 1000 * (who == "B")}, rates=rates))
    report_folder(tmp_path / "in", tmp_path / "out")
    texts = {path.name: path.read_text() for path in (tmp_path / "out").iterdir() if path.suffix != ".csv"}
    texts["terminal"] = " ".join(found.claims.sentences)  # which the terminal prints
    for name in ("report.html", "report.md", "report.tex", "final_benchmark_report.json", "terminal"):
        assert "seeds differ" in texts[name], name
    with (tmp_path / "out" / "summary.csv").open() as stream:
        assert [one["not_paired"] for one in csv.DictReader(stream)] == ["seeds differ"] * 2


def test_runs_that_are_compared_say_why_they_are_not_paired(tmp_path: Path) -> None:
    for run, first in (("old", 0), ("new", 1000)):
        drawn = rows(lambda _, at, first=first: {"seed": at + first}, rates={"A": 0.9 if first else 0.3})  # type: ignore[misc]
        summarized(tmp_path / run, drawn)
    between = compare_runs(collect_folder(tmp_path / "old"), collect_folder(tmp_path / "new"))
    files = render_between(between)
    assert all("unpaired (seeds differ; Barnard)" in files[f"comparison.{kind}"].decode() for kind in ("html", "md"))


def test_over_several_environments_the_reasons_are_named_too(tmp_path: Path) -> None:
    def seeded(who: str, at: int) -> dict[str, object]:
        return {"seed": at + 1000 * (who == "B")}

    found = summarized(tmp_path, [*rows(seeded), *rows(lambda _who, _at: {}, env="flat")])
    assert set(found.comparisons.overall[0].unpaired) == {"seeds differ", "no seeds in the records"}
    assert "unpaired (" in found.claims.decided[0]


# -- seeds ------------------------------------------------------------------------------------------------------------

REPEATED: dict[str, Callable[[int], object]] = {
    "text": lambda at: f"s{at % 5}",
    "float": lambda at: at % 5 + 0.5,
    "large": lambda at: 2**70 + at % 5,
    "list": lambda at: [at % 5, "x"],
    "object": lambda at: {"scene": at % 5},
    "boolean": lambda at: (True, False, 1, 0, "x")[at % 5],  # true is not 1
}


@pytest.mark.parametrize("seed", REPEATED.values(), ids=REPEATED)
def test_a_seed_is_any_value_and_a_repeated_one_is_one_start(tmp_path: Path, seed: Callable[[int], object]) -> None:
    found = compared(tmp_path, lambda _, at: {"seed": seed(at)})
    assert (found["paired"], found["starts_a"], found["better"]) == (True, 5, None)


def test_a_seed_that_one_file_has_as_a_text_is_the_same_number(tmp_path: Path) -> None:
    found = compared(tmp_path, lambda who, at: {"seed": f"{at}" if who == "A" else at})
    assert (found["paired"], found["pairing"]) == (True, "equal seeds in all 100 common episodes")
    assert not compared(tmp_path / "padded", lambda who, at: {"seed": f"0{at}" if who == "A" else at})["paired"]


def test_a_seed_is_no_metric(tmp_path: Path) -> None:
    found = summarized(tmp_path, rows(lambda _, at: {"seed": at + 0.5}))
    assert not any(combo.metrics for combo in found.combos)


@pytest.mark.parametrize("length", [100, 25, 10])
@pytest.mark.parametrize("seed", [int, lambda run: f"run {run}"], ids=["number", "text"])
def test_a_seed_for_each_run_says_nothing_of_starts(tmp_path: Path, length: int, seed: Callable[[int], object]) -> None:
    found = compared(tmp_path, lambda _, at: {"seed": seed(at // length), "reward": at % 7}, 3 * length)
    assert (found["paired"], found["n_a"], "starts_a" in found) == (False, 3 * length, False)
    assert "seeds_of_runs_or_starts" in codes(found)
    assert found["p"] >= of_seeds(found, length)


def of_seeds(found: Mapping[str, Any], length: int) -> float:
    """p of the rates of three seeds, with two degrees of freedom; the same rows as `rows` makes."""
    drawn = random.Random(5)
    rates = [[fmean(drawn.random() < rate for _ in range(length)) for _ in range(3)] for rate in RATES.values()]
    a, b = rates
    t = (fmean(a) - fmean(b)) / sqrt((variance(a) + variance(b)) / 3)
    assert found["difference"] == pytest.approx(fmean(a) - fmean(b))
    return float(2 * stats.t.sf(abs(t), 2)) * (1 - 1e-9)


def test_seeds_that_verdicts_go_with_are_starts_also_in_a_row(tmp_path: Path) -> None:
    found = rows(lambda _, at: {"seed": at // 20})
    for row in found:
        row["success"] = (row["seed"] % 2 == 0) if row["policy"] == "A" else row["seed"] == 0
    (comparison,) = summarized(tmp_path, found).comparisons.all
    assert (comparison.paired, comparison.rate_a.starts) == (True, 5)


@pytest.mark.parametrize("rates", [{"A": 1.0, "B": 0.5, "C": 0.98}, {"A": 0.0, "B": 0.5, "C": 0.5}])
def test_one_seed_is_that_of_the_run_for_all_policies_whatever_their_results(
    tmp_path: Path, rates: Mapping[str, float]
) -> None:
    found = summarized(tmp_path, rows(lambda *_: {"seed": 0}, rates=rates))
    assert {(one.rate_a.n, one.rate_a.starts, one.paired) for one in found.comparisons.all} == {(100, None, False)}
    assert all("one seed for all episodes" in one.basis for one in found.comparisons.all)


# -- starts count once everywhere -------------------------------------------------------------------------------------


def test_a_repeated_start_counts_once_in_means_metrics_and_words(tmp_path: Path) -> None:
    five = [
        {**row, "distance": 10.0 * (row["seed"]) + row["episode"] % 3}
        for env in "xyz"
        for row in rows(lambda _, at: {"seed": at % 5}, env=env)
    ]
    apart = [{**row, "seed": row["episode"]} for row in five]
    once, alone = summarized(tmp_path / "five", five), summarized(tmp_path / "apart", apart)
    for few, many in zip(once.macro_means, alone.macro_means, strict=True):
        assert few.interval
        assert many.interval
        assert few.interval[1] - few.interval[0] > 2 * (many.interval[1] - many.interval[0])
    (metric,), (wide,) = once.combos[0].metrics, alone.combos[0].metrics
    assert (metric.n, metric.starts, wide.starts) == (100, 5, None)
    assert metric.interval
    assert wide.interval
    assert metric.interval[1] - metric.interval[0] > 3 * (wide.interval[1] - wide.interval[0])
    assert "of 5 starts" in latex(once)
    assert once.comparisons.environments[0].n == 5


# -- conditions -------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("field", "values"),
    [
        ("env_version", ("v1", "v2")),
        ("max_steps", (600, 300)),
        ("instruction", ("pick the red cube", "pick the blue cube")),
        ("control_hz", (10, 50)),
        ("sim", ("mujoco 2.3", "mujoco 3.1")),
        ("lighting", ("day", "night")),
        ("camera", ({"fov": 60}, {"fov": 90})),
    ],
)
def test_a_condition_that_differs_between_policies_stands_in_the_claim(
    tmp_path: Path, field: str, values: tuple[object, object]
) -> None:
    found = summarized(tmp_path, rows(lambda who, at: {"seed": at, field: values[who == "B"]}))
    (comparison,) = found.comparisons.all
    assert [(fact.code, fact.text("field")) for fact in comparison.facts] == [("field_differs_between", field)]
    assert f"{field} is not the same" in found.claims.decided[0]


def test_what_names_a_policy_or_tells_its_results_is_no_condition(tmp_path: Path) -> None:
    fields = {
        "A": {"checkpoint": "a.pt", "status": "good", "reward": 1.0},
        "B": {"checkpoint": "b.pt", "status": "bad"},
    }
    found = compared(tmp_path, lambda who, at: {"seed": at, "failure": f"of {who}", **fields[who]})
    assert codes(found) == []


@pytest.mark.parametrize(
    ("field", "values"), [("checkpoint", ("1.pt", "2.pt")), ("git", ("ab", "cd")), ("sim_version", (1, 2))]
)
def test_a_policy_of_two_checkpoints_is_found_and_said(
    tmp_path: Path, field: str, values: tuple[object, object]
) -> None:
    found = summarized(tmp_path, rows(lambda who, at: {"seed": at, field: values[who == "A" and at >= 50]}))
    (comparison,) = found.comparisons.all
    assert [(fact.code, fact.text("policy")) for fact in comparison.facts] == [("field_varies_inside", "A")]
    assert any(field in finding.what for finding in found.quality.findings)


def test_a_condition_that_varies_alike_in_all_policies_limits_nothing(tmp_path: Path) -> None:
    assert codes(compared(tmp_path, lambda _, at: {"seed": at, "camera": f"offset {at % 3}"})) == []


@pytest.mark.parametrize("names", [("Pi0", "pi0"), ("pi0", "pi0 "), ("PI 0", "pi  0"), ("pi-0", "pi\u20110")])
def test_names_that_differ_by_case_or_blanks_are_said(tmp_path: Path, names: tuple[str, str]) -> None:
    found = summarized(tmp_path, rows(lambda _, at: {"seed": at}, rates=dict.fromkeys(names, 0.5)))
    assert [fact.code for fact in found.comparisons.all[0].facts] == ["names_alike"]
    assert any("differ only by case" in one for one in found.claims.sentences)


@pytest.mark.parametrize(
    ("names", "by"),
    [(("π0", "pi0"), "how their signs are written"), (("pi0", "pi\u200b0"), "case, blanks"), (("Pi0", "pi0"), "case")],
)
def test_the_first_line_says_that_two_names_may_be_of_one_policy(
    tmp_path: Path, names: tuple[str, str], by: str
) -> None:
    found = summarized(tmp_path, rows(lambda _, at: {"seed": at}, rates={**dict.fromkeys(names, 0.2), "act": 0.9}))
    assert answer(found).endswith(f". {' and '.join(sorted(names))} may be one policy.")
    assert any(f"differ only by {by}" in one for one in found.claims.sentences)


def test_the_first_line_says_that_two_names_may_be_of_one_environment(tmp_path: Path) -> None:
    recorded = rows(lambda _, at: {"seed": at})
    found = summarized(tmp_path, [{**one, "environment": name} for one in recorded for name in ("Pick", "pick")])
    assert answer(found).endswith(". Pick and pick may be one environment.")


@pytest.mark.parametrize("names", [("π0", "π05"), ("pi0", "pi05"), ("α", "β")])
def test_of_other_names_the_first_line_says_nothing(tmp_path: Path, names: tuple[str, str]) -> None:
    recorded = rows(lambda _, at: {"seed": at}, rates=dict.fromkeys(names, 0.5))
    assert "may be one" not in answer(summarized(tmp_path, recorded))


def test_names_that_differ_by_blanks_are_in_quotes_for_people_and_as_recorded_for_programs(tmp_path: Path) -> None:
    summarized(tmp_path, rows(lambda _, at: {"seed": at}, rates={"pi0": 0.8, "pi0 ": 0.2, "Pi0": 0.5}))
    summary = report_folder(tmp_path, tmp_path / "out")
    assert "'pi0' beats 'pi0 ' in " in " ".join(summary.claims.decided)
    assert "Pi0 beats 'pi0 ' in " in " ".join(summary.claims.decided)
    page, markdown, tex = ((tmp_path / f"out/report.{form}").read_text() for form in ("html", "md", "tex"))
    assert "| 'pi0 ' |" in markdown
    assert page.count('<th scope="row">&#39;pi0 &#39;</th>') > 0
    assert "\n\\textquotesingle{}pi0 \\textquotesingle{} & " in tex
    assert {one["policy"] for one in document(tmp_path / "out")["combos"]} == {"pi0", "pi0 ", "Pi0"}
    assert "\npi0 ," in (tmp_path / "out/summary.csv").read_text()


def test_names_that_are_alike_are_told_once_in_a_sentence_about_several_pairs(tmp_path: Path) -> None:
    recorded = rows(lambda _, at: {"seed": at}, rates={"pi0": 0.5, "pi0 ": 0.5, "Pi0": 0.5, "act": 0.5, "ACT": 0.5})
    (told,) = (one for one in summarized(tmp_path, recorded).claims.undecided if one.startswith("Not decided"))
    assert told.count("differ only by case") == 2
    assert all(f": {names}" in told for names in ("'Pi0', 'pi0', 'pi0 '", "'ACT', 'act'"))


def test_environments_that_are_called_alike_are_said_where_nothing_is_compared(tmp_path: Path) -> None:
    found = rows(lambda _, at: {"seed": at})
    for row in found:
        row["environment"] = "Stairs" if row["policy"] == "A" else "stairs"
    assert "'Stairs', 'stairs'" in summarized(tmp_path, found).claims.sentences[0]


def test_runs_are_compared_with_a_word_about_their_checkpoints(tmp_path: Path) -> None:
    runs = []
    for name in ("old", "new"):
        path = tmp_path / name / "rows.jsonl"
        found = rows(lambda _, at: {"seed": at, "checkpoint": name, "max_steps": len(name)}, rates={"A": 0.5})  # noqa: B023
        write_rows(path, ({**row, "max_steps": 300 + 5 * (name == "new")} for row in found))
        runs.append(collect_folder(path.parent))
    between = compare_runs(*runs)
    assert all(word in " ".join(between.sentences) for word in ("checkpoint", "max_steps"))
    (comparison,) = json.loads(render_between(between)["comparison.json"])["comparisons"]
    assert codes(comparison) == [*["field_differs_between"] * 2, "rows_of_another_run"]


@pytest.mark.parametrize("field", ["steps", "episode_length", "sim_time_s"])
@pytest.mark.parametrize("falls", [False, True])
def test_a_time_limit_that_only_the_lengths_of_failures_show_stands_in_the_claim(
    tmp_path: Path, field: str, falls: bool
) -> None:
    found = rows(lambda who, at: {"seed": at, field: 50 + at})
    for row in found:
        early = falls and row["policy"] == "A" and row["episode"] % 3 == 0
        row[field] = row[field] if row["success"] or early else {"A": 600, "B": 300}[row["policy"]]
    summary = summarized(tmp_path, found)
    (fact,) = summary.comparisons.all[0].facts
    assert (fact.code, fact.fields["limits"]) == ("failures_end_at_other_lengths", [600, 300])
    told = f"failures end at other lengths ({field}), so the time limit is not the same: A at 600, B at 300"
    assert told in summary.claims.decided[0]
    assert [one.where for one in summary.quality.findings if told in one.what] == ["stairs"]


def test_a_policy_that_goes_on_where_the_other_ends_has_another_time_limit(tmp_path: Path) -> None:
    found = rows(lambda who, at: {"seed": at, "steps": 50 + 4 * at}, rates={"A": 1.0, "B": 0.5})
    for row in found:
        row["steps"] = row["steps"] if row["success"] else 300
        row["steps"] = min(row["steps"], 300) if row["policy"] == "B" else row["steps"]
    (claim,) = summarized(tmp_path, found).claims.decided
    assert "failures of B end at 300 (steps), and A has episodes of up to 446" in claim


@pytest.mark.parametrize("limits", [{"A": 300, "B": 300}, {"A": None, "B": 300}])
def test_equal_or_unknown_time_limits_are_not_told(tmp_path: Path, limits: Mapping[str, int | None]) -> None:
    found = rows(lambda who, at: {"seed": at, "steps": 50 + at})
    for row in found:
        row["steps"] = row["steps"] if row["success"] else limits[row["policy"]] or row["steps"]
    assert summarized(tmp_path, found).comparisons.all[0].facts == ()


@pytest.mark.parametrize("field", ["step", "takeover_steps"])
def test_a_number_that_never_varies_and_a_zero_are_no_time_limits(tmp_path: Path, field: str) -> None:
    def told(who: str, at: int) -> dict[str, int]:
        return {"step": 100 + 50 * (who == "B")} if field == "step" else {field: at * (who == "B")}

    rates = {"A": 0.6, "B": 0.5} if field == "step" else {"A": 0.0, "B": 0.5}
    facts = summarized(tmp_path, rows(told, rates=rates)).comparisons.all[0].facts
    assert not {"failures_end_at_other_lengths", "episodes_longer_than_the_limit"} & {one.code for one in facts}


def copied(fields: Fields, rates: Mapping[str, float], **changed: Any) -> list[dict[str, Any]]:
    """B has the rows of A; `changed`: fields in which they differ."""
    own = rows(fields, rates=rates)
    return [*own, *({**row, "policy": "B", **changed} for row in own if row["policy"] == "A")]


@pytest.mark.parametrize("changed", [{}, {"checkpoint": "b.pt"}, {"lr": 2.0}])
@pytest.mark.parametrize("rate", [0.5, 1.0])
def test_rows_of_another_policy_are_told_in_every_claim_about_the_copy(
    tmp_path: Path, rate: float, changed: dict[str, Any]
) -> None:
    fields = {"checkpoint": "a.pt", "lr": 1.0}
    found = copied(lambda _, at: {"seed": at, "steps": at * 37 % 101, **fields}, {"A": rate, "C": 0.1}, **changed)
    summary = summarized(tmp_path, found)
    but = "".join(f"{name} and " for name in changed)
    told = f"the 100 rows of B equal those of A in every field but {but}the name"
    assert [one.where for one in summary.quality.findings if told in one.what] == ["B × stairs"]
    about = ["B" in one.partition(":")[0] for one in summary.claims.decided]
    assert any(about)
    assert [told in one for one in summary.claims.decided] == about


def test_rows_of_another_environment_are_told(tmp_path: Path) -> None:
    own = rows(lambda _, at: {"seed": at}, rates={"A": 0.5})
    found = summarized(tmp_path, [*own, *({**row, "environment": "flat"} for row in own)])
    assert any("the 100 rows in stairs equal those in flat" in one.what for one in found.quality.findings)


@pytest.mark.parametrize(
    ("rate", "fields", "changed"),
    [
        (1.0, {}, {}),  # two perfect policies
        (1.0, {"mass": 1.5}, {}),
        (0.5, {"steps": 7.0}, {"wall_s": 1.0}),
        (0.5, {}, {"failure": "fell"}),
    ],
)
def test_what_equal_policies_have_too_is_no_copy(
    tmp_path: Path, rate: float, fields: dict[str, Any], changed: dict[str, Any]
) -> None:
    found = copied(lambda _, at: {"seed": at, **{name: value + at for name, value in fields.items()}}, {"A": rate})
    for at, row in enumerate(found, 1):
        row.update({name: value * (at + 1) for name, value in changed.items()})
    assert not any("equal those" in one.what for one in summarized(tmp_path, found).quality.findings)


# -- runs side by side ------------------------------------------------------------------------------------------------


def in_folders(
    folder: Path,
    rates: Mapping[str, Mapping[str, float]],
    seeded: bool,
    counts: Mapping[tuple[str, str], int] = MappingProxyType({}),
) -> Summary:
    for policy, runs in rates.items():
        for place, (run, rate) in enumerate(runs.items()):
            path = folder / policy / run / "stairs.jsonl"
            own = [
                {"episode": at, "success": at % 100 < 100 * rate, "policy": policy, "environment": "stairs"}
                | ({"seed": place} if seeded else {})
                for at in range(counts.get((policy, run), 100))
            ]
            write_rows(path, own)
    return summarize(collect_folder(folder)).summary


@pytest.mark.parametrize("seeded", [True, False])
@pytest.mark.parametrize(("kind", "names"), [("seed", "012"), ("run_", "123"), ("rep-", "012"), ("replica_", "abc")])
def test_runs_of_a_policy_are_joined_and_compared_with_the_run_as_the_unit(
    tmp_path: Path, kind: str, names: str, seeded: bool
) -> None:
    from scipy.stats import ttest_ind

    rates = {
        "A": {f"{kind}{at}": rate for at, rate in zip(names, (0.9, 0.7, 0.5), strict=True)},
        "B": {f"{kind}{at}": rate for at, rate in zip(names, (0.6, 0.4, 0.3), strict=True)},
    }
    found = in_folders(tmp_path, rates, seeded)
    (comparison,) = found.comparisons.all
    assert found.policies == ("A", "B")
    assert (comparison.rate_a.n, comparison.paired) == (300, False)
    assert comparison.p == pytest.approx(ttest_ind([0.9, 0.7, 0.5], [0.6, 0.4, 0.3]).pvalue)
    assert [fact.text("policy") for fact in comparison.facts if fact.code == "runs_joined"] == ["A", "B"]
    assert any("50.0 and 90.0 %" in one for one in found.claims.sentences)


@pytest.mark.parametrize(
    "names",
    [
        ("pi0_seed0", "pi0_seed1"),
        ("results_seed_3", "results_seed_4"),
        ("seed0_rows", "seed1_rows"),
        ("x/run1", "x/run2"),
    ],
    ids=" ".join,
)
def test_files_whose_names_differ_by_that_of_a_run_are_runs_of_one_policy(
    tmp_path: Path, names: tuple[str, ...]
) -> None:
    """Of two policies: what is called alike under both is no task."""
    for place, name in enumerate(names):
        for policy, folder in (("A", "one"), ("B", "other")):
            found = rows(lambda _, at, place=place: {"seed": 1000 * place + at}, rates={policy: RATES[policy]})  # type: ignore[misc]
            summarized(tmp_path, found, f"{folder}/{name}.jsonl")
    summary = summarize(collect_folder(tmp_path)).summary
    assert (summary.policies, summary.environments) == (("A", "B"), ("stairs",))
    assert [combo.rate.n for combo in summary.combos if combo.rate] == [200, 200]
    assert [fact.code for fact in summary.comparisons.all[0].facts][:2] == ["runs_joined", "runs_joined"]


@pytest.mark.parametrize(
    "names", [("a", "b"), ("0", "1"), ("lr1_seed0", "lr2_seed0"), ("pi_run1", "act_run2")], ids=" ".join
)
def test_files_of_one_policy_that_nothing_calls_runs_are_asked_about(tmp_path: Path, names: tuple[str, ...]) -> None:
    for place, name in enumerate(names):
        summarized(
            tmp_path, rows(lambda _, at, place=place: {"seed": place * 1000 + at}, rates={"A": 0.5}), f"{name}.jsonl"
        )  # type: ignore[misc]
    summary = summarize(collect_folder(tmp_path)).summary
    assert len(summary.policies) == 2
    assert len([one for one in summary.quality.findings if "are these runs of one policy?" in one.what]) == 1


def test_several_runs_against_one_take_the_spread_that_is_known_for_both(tmp_path: Path) -> None:
    found = in_folders(tmp_path, {"A": {"seed0": 0.6, "seed1": 0.8, "seed2": 0.97}, "B": {"seed0": 0.3}}, seeded=False)
    (one,) = found.comparisons.all
    error = sqrt(variance([0.6, 0.8, 0.97]) * (1 + 1 / 3))
    p = 2 * stats.t.sf((fmean([0.6, 0.8, 0.97]) - 0.3) / error, 2)
    assert not one.decided
    assert one.p == pytest.approx(p)
    assert one.interval[0] == pytest.approx(one.difference - stats.t.ppf(0.975, 2) * error)
    assert one.findable is None
    told = "B has one run, taken to differ from others as much as those of A"
    assert any(told in sentence for sentence in found.claims.sentences)


@pytest.mark.parametrize("apart", [0.0, 0.5], ids=["undecided", "decided"])
def test_runs_are_told_once_over_several_environments(apart: float, tmp_path: Path) -> None:
    rates = {"x": (0.9, 0.88, 0.86), "y": (0.8, 0.78, 0.76)}
    found = [
        {"policy": who, "environment": env, "episode": 50 * run + at, "train_seed": run}
        | {"success": at < 50 * (rate - apart * (who == "B"))}
        for env, own in rates.items()
        for who in "AB"
        for run, rate in enumerate(own)
        for at in range(50)
    ]
    told = next(one for one in summarized(tmp_path, found).claims.sentences if "verall" in one)
    assert told.startswith("Overall A beats B") is bool(apart)
    for who, low, high in (("A", 76, 90), ("B", 76 - 100 * apart, 90 - 100 * apart)):
        assert told.count(f"{who} is 3 runs") == 1
        named = "(train_seed 0, train_seed 1, train_seed 2)"
        assert f"{who} is 3 runs {named}, whose rates lie between {low:.1f} and {high:.1f} %" in told


def test_several_runs_in_one_environment_count_where_the_other_has_one(tmp_path: Path) -> None:
    runs = {"e1": (0.6, 0.8, 0.97), "e2": (0.7,)}
    found = [
        {"policy": who, "environment": env, "episode": at, "success": at < 100 * rate}
        | ({"train_seed": run} if who == "A" else {})
        for env, rates in runs.items()
        for who, own in (("A", rates), ("B", (0.4,)))
        for run, rate in enumerate(own)
        for at in range(100)
    ]
    (overall,) = summarized(tmp_path, found).comparisons.overall
    means = [(rate + 0.7) / 2 for rate in runs["e1"]]
    error = sqrt(variance(means) * (1 + 1 / 3))
    assert overall.p == pytest.approx(2 * stats.t.sf((fmean(means) - 0.4) / error, 2))


@pytest.mark.parametrize("seeds", [2, 4])
@pytest.mark.parametrize("one_seed", [True, False])
def test_a_few_seeds_decide_something_against_a_single_run_only_if_they_are_of_runs(
    seeds: int, one_seed: bool, tmp_path: Path
) -> None:
    """B has a seed for each episode, or one for all, and then the program takes a seed for a run."""

    def fields(who: str, at: int) -> Mapping[str, Any]:
        if who == "B":
            return {"seed": 7 if one_seed else at, "success": at % 10 < 5}
        return {"seed": at * seeds // 100, "success": at % 25 < 20}

    found = compared(tmp_path, fields)
    assert (found["p_holm"] < 0.05) is one_seed
    assert ("seeds_of_runs" in codes(found)) is one_seed


def test_policies_of_fewer_runs_do_not_lack_episodes(tmp_path: Path) -> None:
    rates = {"A": {"seed0": 0.9, "seed1": 0.8}, "B": {"seed0": 0.2}}
    assert in_folders(tmp_path / "one", rates, seeded=False).comparisons.all[0].unknown == (0, 0)
    found = in_folders(tmp_path / "short", rates, seeded=False, counts={("A", "seed1"): 60, ("B", "seed0"): 50})
    assert found.comparisons.all[0].unknown == (0, 50)


@pytest.mark.parametrize("fields", [{}, {"train_seed": 3}, {"run": "x"}], ids=str)
def test_policies_of_one_run_each_are_said_to_be_so_in_every_format(tmp_path: Path, fields: dict[str, Any]) -> None:
    places = ("a", "b") if fields else ("seed3", "seed5")
    for policy, place, rate in zip("AB", places, (0.9, 0.4), strict=True):
        path = tmp_path / "in" / policy / place / "rows.jsonl"
        write_rows(path, rows(lambda *_: fields, rates={policy: rate}))
    found = report_folder(tmp_path / "in", tmp_path / "out")
    assert [fact.code for one in found.comparisons.all for fact in one.facts] == ["one_run_each"]
    for name in ("report.html", "report.md", "report.tex", "summary.csv", "final_benchmark_report.json"):
        assert "only one run of each policy" in (tmp_path / "out" / name).read_text(), name
    (finding,) = (one for one in found.quality.findings if "one run" in one.what)
    assert all(name in finding.what for name in (fields or places))


def test_nothing_is_said_of_runs_that_nothing_names(tmp_path: Path) -> None:
    found = summarized(tmp_path, rows(lambda *_: {}))
    assert found.comparisons.all[0].facts == ()


def test_a_number_that_never_varies_in_a_policy_and_differs_between_two_is_told_in_the_claim(tmp_path: Path) -> None:
    rows = [
        line(i, (i * 7 + 3 * (policy == "b")) % 10 < (9 if policy == "a" else 3), policy=policy, environment="stairs",
            temperature=float(policy == "b"), limit=600.0)
        for policy in "ab" for i in range(100)
    ]  # fmt: skip
    (claim,) = summarized(tmp_path, rows, "episodes.jsonl").claims.decided
    assert "temperature is not the same: 0 and 1" in claim
    assert "limit" not in claim


def test_zeros_beside_percentages_are_no_failures_also_where_an_environment_has_nothing_else(tmp_path: Path) -> None:
    values = {"a": [0, 62, 88, 0, 100], "b": [55, 0, 62, 0, 71]}
    rows = [
        line(0, value, policy=policy, environment=f"e{place}")
        for policy, found in values.items()
        for place, value in enumerate(found)
    ]
    summary = summarized(tmp_path, rows, "episodes.jsonl")
    assert (summary.totals.completed, summary.totals.errored) == (0, 10)
    assert summary.comparisons.all == ()


@pytest.mark.parametrize(("clustered", "objects"), [(True, 10), (False, 10), (True, 3)])
def test_outcomes_that_go_with_an_object_are_named(tmp_path: Path, clustered: bool, objects: int) -> None:
    drawn = random.Random(2)
    episodes = [
        {
            "policy": policy,
            "environment": "pick",
            "episode": at,
            "object": f"obj{at % objects}",
            "success": drawn.random() < (0.9 if clustered and at % objects % 2 else 0.3),
        }
        for policy in "AB"
        for at in range(100)
    ]
    write_rows(tmp_path / "r.jsonl", episodes)
    summary = report_folder(tmp_path, tmp_path / "out")
    words = "outcomes go with object: intervals and p are of these 10 values"
    named = clustered and objects == 10
    assert any(words in one for one in summary.claims.sentences) is named
    assert any(words in one.what for one in summary.quality.findings) is named


@pytest.mark.parametrize(
    ("field", "otherwise", "told"),
    [
        ("success_at_end", 5, ["other_verdict_disagrees"]),
        ("is_success", 0, []),  # says the same
        ("grasp_success", 5, []),  # of a part of the episode
    ],
)
def test_another_verdict_of_the_episode_that_disagrees_limits_claims(
    field: str, otherwise: int, told: list[str], tmp_path: Path
) -> None:
    found = rows(lambda _, __: {})
    found = [{**row, field: row["success"] ^ (row["policy"] == "A" and row["episode"] < otherwise)} for row in found]
    (comparison,) = json.loads(report_json(summarized(tmp_path, found)))["comparisons"]
    assert [one["code"] for one in comparison.get("facts", []) if one.get("field") == field] == told
