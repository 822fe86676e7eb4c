"""Two runs side by side: what is paired, what is told, and what is left out."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from pathlib import Path

import pytest
from click.testing import CliRunner
from report_runs import RunDirectory, row, write_rows
from scipy.stats import binomtest

from comborun.cli import combo
from comborun.errors import UserError
from comborun.reporter.collect import collect_folder, collect_run
from comborun.reporter.pages.between import Between, compare_runs, render_between

Marks = dict[tuple[str, str], str]


def run(path: Path, name: str, marks: Marks, seed: int = 1000) -> Path:
    """A run in which combo -> an episode per mark: `+` success, `-` failure."""
    directory = RunDirectory(path / name)
    for (policy, environment), outcomes in marks.items():
        session = directory.session(policy, environment, len(outcomes))
        rows = (row(i, mark == "+", seed=seed + i) for i, mark in enumerate(outcomes))
        directory.attempt(session, "".join(rows))
    return directory.write(run=f"{name}-20260509T073525Z-1a2b")


def between(path: Path, first: Marks, second: Marks, seed: int = 1000) -> Between:
    before, after = run(path, "before", first), run(path, "after", second, seed)
    return compare_runs(collect_run(before), collect_run(after))


def test_the_same_seeds_are_paired_and_a_gain_is_positive(tmp_path: Path) -> None:
    found = between(tmp_path, {("flat", "stairs"): "-" * 12 + "+" * 4}, {("flat", "stairs"): "+" * 15 + "-"})
    ((policy, one),) = found.rows
    assert (policy, one.environment, one.a.split("-")[0], one.b.split("-")[0]) == ("flat", "stairs", "after", "before")
    assert (one.rate_b.successes, one.rate_a.successes, one.difference) == (4, 15, 11 / 16)
    assert one.p == pytest.approx(binomtest(1, 13).pvalue, abs=1e-12)
    assert found.sentences[0].startswith("flat in stairs got better: +68.8 points")


def test_other_seeds_are_compared_as_independent_episodes(tmp_path: Path) -> None:
    marks = {("flat", "stairs"): "+-" * 8}
    ((_, one),) = between(tmp_path, marks, marks, seed=5000).rows
    assert (one.paired, one.test, one.p) == (False, "Barnard", 1.0)


def test_p_is_corrected_over_all_combos(tmp_path: Path) -> None:
    first = {("flat", name): "-" * 8 for name in ("stairs", "grass", "boulder")}
    second = {("flat", name): "+" * 8 for name in ("stairs", "grass", "boulder")}
    found = between(tmp_path, first, second)
    assert [one.p_holm for _, one in found.rows] == pytest.approx([3 * one.p for _, one in found.rows])


def test_what_only_one_of_them_has_is_named(tmp_path: Path) -> None:
    shared = {("flat", "stairs"): "++", ("rough", "stairs"): "++"}
    found = between(tmp_path, shared, {**shared, ("new", "stairs"): "--"})
    assert found.notes == (f"Only in {found.after}: new × stairs.",)


def test_one_policy_is_compared_with_one_whatever_their_names(tmp_path: Path) -> None:
    found = between(tmp_path, {("monday", "stairs"): "+-"}, {("tuesday", "stairs"): "++"})
    assert [policy for policy, _ in found.rows] == ["monday → tuesday"]


def test_runs_without_a_common_combo_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no combo in common"):
        between(tmp_path, {("flat", "stairs"): "+"}, {("flat", "grass"): "+"})


def test_the_files_escape_names_and_are_the_same_each_time(tmp_path: Path) -> None:
    marks = {("<b>|flat", "stairs"): "+-+"}
    found = between(tmp_path, marks, marks)
    files = render_between(found)
    assert files == render_between(found)
    page, text, document = (files[f"comparison.{kind}"].decode() for kind in ("html", "md", "json"))
    assert "<b>" not in page
    assert "&lt;b&gt;|flat" in page
    assert "http" not in page.split("</style>")[1]
    assert "&lt;b&gt;\\|flat" in text
    assert json.loads(document)["comparisons"][0]["before"] == {"successes": 2, "n": 3}


def test_the_command_shows_the_table_and_writes_the_files(tmp_path: Path) -> None:
    before = run(tmp_path, "before", {("flat", "stairs"): "-" * 9})
    after = run(tmp_path, "after", {("flat", "stairs"): "+" * 9})
    done = CliRunner().invoke(
        combo, ["report", "--compare", str(before), str(after), "--output", str(tmp_path / "out")]
    )
    assert done.exit_code == 0, done.output
    assert "flat in stairs got better" in done.output
    made = {path.name for path in (tmp_path / "out").iterdir()}
    assert made == {"comparison.html", "comparison.json", "comparison.md"}


def test_a_run_is_not_compared_with_itself(tmp_path: Path) -> None:
    collected = collect_run(run(tmp_path, "before", {("flat", "stairs"): "+"}))
    with pytest.raises(UserError, match="with itself"):
        compare_runs(collected, collected)


def test_another_driver_or_code_and_what_was_not_committed_is_noted(tmp_path: Path) -> None:
    runs = []
    for name, driver in (("before", "550.54"), ("after", "560.35")):
        directory = run(tmp_path, name, {("flat", "stairs"): "++"})
        manifest = json.loads((directory / "run.json").read_text())
        code = {"folder": "/lab", "commit": driver, "uncommitted": name == "after"}
        origin = {"commit": driver, "host": {"driver": driver, "cards": ["NVIDIA H100"]}, "code": [code]}
        manifest["provenance"] |= {**origin, "sync": [{"from": "lab", "sha256": "ab", "uncommitted": False}]}
        (directory / "run.json").write_text(json.dumps(manifest))
        runs.append(collect_run(directory))
    notes = compare_runs(*runs).notes
    assert "Not the same in both runs: the GPU driver (550.54 before, 560.35 after)." in notes
    assert "Not the same in both runs: the code on the host (550.54 in /lab before, 560.35 in /lab after)." in notes
    (changed,) = (note for note in notes if "uncommitted" in note)
    assert "the folder on the host had uncommitted changes when after-" in changed
    assert len(notes) == 4


def folder(path: Path, verdicts: dict[str, Sequence[object]], **fields: object) -> Path:
    """Results of policy A: environment -> an episode for each verdict."""
    rows = [
        {"policy": "A", "environment": environment, "episode": at, "seed": at, "success": verdict, **fields}
        for environment, found in verdicts.items()
        for at, verdict in enumerate(found)
    ]
    write_rows(path / "rows.jsonl", rows)
    return path


def of_folders(before: Path, after: Path) -> Between:
    return compare_runs(collect_folder(before), collect_folder(after))


def test_a_second_folder_with_fewer_records_decides_nothing_by_them(tmp_path: Path) -> None:
    found = of_folders(
        folder(tmp_path / "old", {"s": [at % 3 > 0 for at in range(90)]}), folder(tmp_path / "new", {"s": [True] * 20})
    )
    ((_, one),) = found.rows
    assert one.only_completed
    assert one.unknown == (70, 0)
    assert any("new has 20 records in s and old has 90" in sentence for sentence in found.sentences)


def test_episodes_without_a_verdict_and_findings_are_told(tmp_path: Path) -> None:
    verdicts = [None if at < 12 else at % 2 == 0 for at in range(60)]
    found = of_folders(
        folder(tmp_path / "old", {"s": [at % 2 == 0 for at in range(60)]}), folder(tmp_path / "new", {"s": verdicts})
    )
    assert any("12 of new" in sentence for sentence in found.sentences)
    document = json.loads(render_between(found)["comparison.json"])
    assert document["comparisons"][0]["unknown"] == [12, 0]
    with (tmp_path / "new" / "rows.jsonl").open("a") as file:
        file.write("no JSON\n")
    found = of_folders(tmp_path / "old", tmp_path / "new")
    assert [one.where.split(":")[0] for one in found.findings] == ["new"]
    pages = {name: text.decode() for name, text in render_between(found).items()}
    assert all("not JSON" in text for text in pages.values())


def test_doubled_and_broken_results_say_why_nothing_is_compared(tmp_path: Path) -> None:
    old = folder(tmp_path / "old", {"s": [True, False] * 10})
    doubled = folder(tmp_path / "new", {"s": [True, False] * 10})
    rows = (doubled / "rows.jsonl").read_text()
    other = {"true": "false", "false": "true"}
    (doubled / "rows.jsonl").write_text(rows + re.sub("true|false", lambda found: other[found[0]], rows))
    with pytest.raises(UserError, match="2 rows per episode"):
        of_folders(old, doubled)


def test_a_condition_that_only_one_run_tells_is_named(tmp_path: Path) -> None:
    verdicts = {"s": [True, False] * 20}
    others = {"s": [False, True] * 20}
    found = of_folders(folder(tmp_path / "old", verdicts), folder(tmp_path / "new", others, max_steps=900))
    ((_, one),) = found.rows
    assert [(fact.code, fact.text("field")) for fact in one.facts] == [("field_of_one_side", "max_steps")]


def test_over_several_environments_both_runs_are_compared_by_their_means(tmp_path: Path) -> None:
    worse = {name: [at % 4 == 0 for at in range(40)] for name in "xyz"}
    better = {name: [at % 4 > 0 for at in range(40)] for name in "xyz"}
    found = of_folders(folder(tmp_path / "old", worse), folder(tmp_path / "new", better))
    ((policy, one),) = found.overall
    assert (policy, one.environments, one.mean_b, one.mean_a) == ("A", 3, 0.25, 0.75)
    assert one.better == "new"
    assert "better in 3 of 3" in found.answer


def test_changes_of_several_policies_and_environments_are_a_matrix(tmp_path: Path) -> None:
    combos = [(policy, place) for policy in ("flat", "rough") for place in ("grass", "stairs")]
    changed = {combo: ("+" if combo == ("rough", "stairs") else "-") * 20 for combo in combos}
    found = between(tmp_path, dict.fromkeys(combos, "-" * 20), changed)
    assert found.matrix
    assert [head for head, _ in found.matrix.columns] == ["policy", "grass", "stairs"]
    assert [*map(list, found.matrix.rows)] == [["flat", "(0.0)", "(0.0)"], ["rough", "(0.0)", "+100.0"]]
    page, text = (render_between(found)[f"comparison.{kind}"].decode() for kind in ("html", "md"))
    assert "<h2>Changes</h2>" in page
    assert "## Changes" in text


def test_names_that_differ_by_signs_alone_are_told_with_the_option_that_joins_them(tmp_path: Path) -> None:
    first, second = {("flat", "stairs"): "-" * 20, ("o-n", "e"): "+"}, {("flat", "Stairs"): "+" * 20, ("o_n", "e"): "+"}
    before, after = (collect_run(run(tmp_path, name, marks)) for name, marks in (("a", first), ("b", second)))
    with pytest.raises(UserError, match="no combo in common") as raised:
        compare_runs(before, after)
    assert "environment 'stairs' of a-20260509T073525Z-1a2b and 'Stairs' of b-" in raised.value.message
    assert "`--same Stairs=stairs` takes them as one" in raised.value.message
    found = compare_runs(before, after, {"Stairs": "stairs"})
    assert [(policy, one.environment, one.decided) for policy, one in found.rows] == [("flat", "Stairs", True)]
    assert any("`--same o_n=o-n`" in note for note in found.notes)


@pytest.mark.parametrize(
    ("words", "said"),
    [("a --same x=y", "--same without --compare"), ("--compare a b --same x", "--same x: not two names")],
)
def test_what_same_is_not_for_is_said(words: str, said: str) -> None:
    assert said in str(CliRunner().invoke(combo, ["report", *words.split()]).exception)


def test_a_run_that_repeats_the_results_of_the_other_asks_whether_it_is_another_one(tmp_path: Path) -> None:
    marks = {("flat", "stairs"): "+--+-+-" * 5, ("rough", "stairs"): "++-" * 10}
    found = between(tmp_path, marks, {**marks, ("rough", "stairs"): "+-+" * 10})
    told = f"the 35 rows of {found.after} equal those of {found.before} in every field: one evaluation, under two names"
    (sentence,) = (one for one in found.sentences if told in one)
    assert sentence.startswith("Not decided: flat in stairs")
    assert "or the same results again?" in sentence
    (finding,) = (one for one in found.findings if told in one.what)
    document = json.loads(render_between(found)["comparison.json"])
    assert {"where": finding.where, "what": finding.what} in document["findings"]
    facts = [[fact["code"] for fact in one.get("facts", ())] for one in document["comparisons"]]
    assert facts[0] == ["rows_of_another_run"]
    assert "rows_of_another_run" not in facts[1]


@pytest.mark.parametrize(("more", "told"), [("+" * 20, True), ("", True), ("--", False)])
def test_a_run_that_begins_with_all_rows_of_the_other_is_told(tmp_path: Path, more: str, told: bool) -> None:
    """As one that was resumed: its new episodes alone tell something. With other rows it is another one."""
    marks = "+--+-+-" * 5
    found = between(tmp_path, {("flat", "stairs"): marks}, {("flat", "stairs"): (marks if told else marks[1:]) + more})
    assert (
        any(f"the 35 rows of {found.before if more else found.after} equal" in one for one in found.sentences) is told
    )
