"""A column of verdicts is read as a whole or not at all, and by the host as by the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from both_sides import host_counts
from report_runs import RunDirectory, row

from comborun.reporter.collect import collect_folder, collect_run
from comborun.rules.results.counts import UNDECIDED, Counts, in_numbers
from comborun.rules.results.fields import Identity, ResultRules
from comborun.rules.results.result_files import Folder
from comborun.rules.results.tally import tally
from comborun.rules.results.unread import name_unread
from comborun.words.rows import proposed, why_not_counted, without_line


def written(folder: Path, values: list[Any], field: str = "success") -> ResultRules:
    rows = [{"policy": "p", "environment": "e", "episode": at, field: value} for at, value in enumerate(values)]
    (folder / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return ResultRules(success=field)


CODINGS: dict[str, tuple[list[Any], Any]] = {
    "percent": ([100.0, 0.0, 100.0], {"at_least": 100}),
    "a share": ([0.5, 1.0, 0.0], {"at_least": 1}),
    "counts": ([3, 1, 0, 2], {"at_least": 3}),
    "words": (["yes", "no", "yes"], {"any_of": ["yes"]}),
    "words of success": (["Success", "Failure"], {"any_of": ["Success"]}),
    "words of an end": (["Completed", "Timeout", None], {"any_of": ["Completed"]}),
    "numpy": (["np.True_", "np.False_"], {"any_of": ["np.True_"]}),
    "a spreadsheet's": (["WAHR", "FALSCH", 1], {"any_of": ["WAHR", "1"]}),
    "truths and words": ([True, "no", "yes", True], {"any_of": ["yes", "true"]}),
    "truths as text and words": (["True", "completed", "False"], {"any_of": ["completed", "True"]}),
    "numbers as text and words": (["1.0", "Success", "0.0", "fail"], {"any_of": ["1.0", "Success"]}),
    "percentages with a sign": (["100%", "0%", "100%"], {"any_of": ["100%"]}),
    "numbers as text": (["1.0", "0.0", "1.0"], {"at_least": 1}),
    "two letters": (["ok", "ko", "OK"], {"any_of": ["ok", "OK"]}),
    "letters": (["S", "F", "S"], {"any_of": ["S"]}),
    "signs": (["✓", "✗", "✓"], {"any_of": ["✓"]}),
    "kinds of an end": (["SUCCESS", "COLLISION", "timeout"], {"any_of": ["SUCCESS"]}),
    "truths and an end": ([True, "timeout", True], {"any_of": ["true"]}),
    "torch": (["tensor(True)", "tensor(False)"], {"any_of": ["tensor(True)"]}),
    "arrays": (["array(1.)", "array(0., dtype=float32)"], {"any_of": ["array(1.)"]}),
    "thousandths": ([1000, 0, 0, 1000], {"at_least": 1000}),
}


@pytest.mark.parametrize("case", CODINGS)
@pytest.mark.parametrize("field", ["success", "task_success"])
def test_a_field_of_another_coding_gives_no_verdict_and_the_line_that_reads_it(
    tmp_path: Path, case: str, field: str
) -> None:
    values, wanted = CODINGS[case]
    rules = written(tmp_path, values, field)
    counts = host_counts(tmp_path, rules, len(values))
    assert (counts.records, counts.verdicts) == (len(values), 0)
    fact = next(fact for fact in counts.facts if fact.code == UNDECIDED)
    assert proposed(fact) == {"success": {"field": field, **wanted}}
    by_line = host_counts(tmp_path, ResultRules(success=proposed(fact)["success"]), len(values))
    assert by_line.verdicts == sum(value is not None for value in values)
    assert 0 < by_line.successes < len(values)
    if field == "success":
        assert not any(record.success is not None for record in collect_folder(tmp_path).records)


@pytest.mark.parametrize(("other", "counts"), [([0, 4, 2, 1], False), ([1, 0, 0, 1], True), ([True, "yes"], True)])
def test_what_one_session_shows_of_a_field_holds_for_zeros_and_ones_of_all_sessions_of_a_run(
    tmp_path: Path, other: list[Any], counts: bool
) -> None:
    run = RunDirectory(tmp_path)
    for policy, values in (("flat", [1, 0, 1, 1]), ("rough", other)):
        session = run.session(policy, "stairs", count=4)
        run.attempt(session, "".join(row(at, value) for at, value in enumerate(values)))
    run.write()
    judged = [one.success for one in collect_run(run.path).records if one.policy == "flat"]
    assert judged == ([True, False, True, True] if counts else [None] * 4)


GOOD = [True, False, True, True]


@pytest.mark.parametrize("odd", [None, "", "error", "n/a", float("nan"), {}, [1, 0], "maybe", 0.5])
def test_one_odd_row_among_verdicts_costs_only_itself(tmp_path: Path, odd: Any) -> None:
    rules = written(tmp_path, [*GOOD, odd])
    counts = host_counts(tmp_path, rules, 5)
    assert (counts.records, counts.verdicts, counts.successes) == (5, 4, 3)
    assert sum(record.success is not None for record in collect_folder(tmp_path).records) == 4


@pytest.mark.parametrize("values", [[1, 0, 0.5], [1.0, 0.0, 100.0], [True, False, True, True, 0.5, 0.25]])
def test_a_number_that_is_no_verdict_shows_that_the_others_are_none(tmp_path: Path, values: list[Any]) -> None:
    assert not host_counts(tmp_path, written(tmp_path, values), len(values)).verdicts


def test_another_attempt_of_the_session_is_of_the_same_coding() -> None:
    from comborun.rules.facts import Fact
    from comborun.rules.results.counts import joined, marked

    first, second = Counts(), Counts()
    first.take({0: None, 1: None})
    first.facts = (Fact(UNDECIDED, field="success"),)
    second.take({2: False, 3: False})
    for counts, verdicts in ((first, {0: None, 1: None}), (second, {2: False, 3: False})):
        counts.marks, counts.rows = marked(verdicts, (0, 4)), 2
    whole = joined([((0, 4), first), ((0, 4), second)], (0, 4))
    assert (whole.records, whole.verdicts) == (4, 0)
    assert whole.facts[0].code == UNDECIDED


@pytest.mark.parametrize("values", [["a", "b", "a"], [50, 50, 50], [0, 137, 92, 0, 204], ["60%", "20%", "60%"]])
def test_values_that_show_no_success_come_with_a_line_to_fill_in(tmp_path: Path, values: list[Any]) -> None:
    counts = host_counts(tmp_path, written(tmp_path, values), len(values))
    assert not counts.verdicts
    assert not counts.proposes
    line = "at_least: NUMBER" if isinstance(values[0], int) else "any_of: [VALUE]"
    assert line in why_not_counted(counts.facts)


@pytest.mark.parametrize(("values", "asks"), [([1, 0, 2, 1], True), ([0, 50, 100], False), ([0.5, 1.0, 0.0], False)])
def test_a_number_above_1_beside_1_is_proposed_with_a_doubt(tmp_path: Path, values: list[Any], asks: bool) -> None:
    shown = why_not_counted(host_counts(tmp_path, written(tmp_path, values), len(values)).facts)
    assert ("but only if 2 means a success" in shown) is asks
    assert "counts them" in shown


@pytest.mark.parametrize("values", [[0.0, 0.98, 0.3], [0, 1, 100], [1, 10, 0]])
def test_no_number_is_proposed_where_no_full_mark_or_more_than_one_is_seen(tmp_path: Path, values: list[Any]) -> None:
    counts = host_counts(tmp_path, written(tmp_path, values), len(values))
    assert (counts.verdicts, counts.proposes) == (0, False)
    assert "at_least: NUMBER" in why_not_counted(counts.facts)


def test_a_list_of_one_verdict_is_the_verdict_and_an_object_with_one_is_proposed(tmp_path: Path) -> None:
    for folder, values in (
        ("list", [[True], [False], [1]]),
        ("object", [{"value": one} for one in (True, False, True)]),
    ):
        (tmp_path / folder).mkdir()
        rules = written(tmp_path / folder, values)
        counts = host_counts(tmp_path / folder, rules, 3)
        success = next((line["success"] for fact in counts.facts if (line := proposed(fact))), "success")
        counts = host_counts(tmp_path / folder, ResultRules(success=success), 3)
        assert (counts.successes, counts.verdicts) == (2, 3)


@pytest.mark.parametrize(
    ("head", "values", "success"),
    [
        ("success", ("100%", "0%"), {"field": "success", "any_of": ["100%"]}),
        ("outcome", ("success", "collision"), {"field": "outcome", "any_of": ["success"]}),
        ("success_pct", ("100%", "0%"), {"field": "success_pct", "any_of": ["100%"]}),
    ],
)
def test_a_table_that_no_pattern_takes_comes_with_one_line_for_all_of_it(
    tmp_path: Path, head: str, values: tuple[str, str], success: Any
) -> None:
    (tmp_path / "r.csv").write_text(f"trial,{head}\n" + "".join(f"{at},{values[at % 2]}\n" for at in range(6)))
    identity = Identity("p", "e", ResultRules(), 6)
    folder = Folder(str(tmp_path), ["**/*.jsonl"], identity, "")
    counts = tally(folder.read(), identity, (0, 6), over=True)
    name_unread(counts, folder, (0, 6))
    (keys,) = filter(None, map(proposed, counts.facts))
    assert keys == {"files": "**/*.csv", "episode": "trial", "success": success}
    files = keys.pop("files")
    counts = host_counts(tmp_path, ResultRules(files=(files,), **keys), 6)
    assert (counts.successes, counts.verdicts) == (3, 6)


def test_values_that_may_be_means_are_warned_of_and_the_line_is_said_once(tmp_path: Path) -> None:
    for values, means in (([1.0, 0.8, 0.6], True), ([100.0, 0.0, 100.0], False)):
        (fact,) = host_counts(tmp_path, written(tmp_path, values), len(values)).facts
        assert ("mean" in why_not_counted([fact])) is means
        assert "results:" in why_not_counted([fact])
        apart = why_not_counted(without_line(fact))
        assert "results:" not in apart
        assert ("mean" in apart) is means


def test_verdicts_of_a_vector_of_one_environment_are_proposed_at_their_place(tmp_path: Path) -> None:
    rows = [{"episode": at, "info": {"metrics": {"is_success": [at > 0]}}} for at in range(3)]
    (tmp_path / "r.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert {"success": "info.metrics.is_success"} in [*map(proposed, host_counts(tmp_path, ResultRules(), 3).facts)]
    counts = host_counts(tmp_path, ResultRules(success="info.metrics.is_success"), 3)
    assert (counts.verdicts, counts.successes) == (3, 2)


@pytest.mark.parametrize(
    ("values", "numeric", "numbers"),
    [([1, 0, 1], True, False), ([True, False], False, False), ([3, 1, 0], True, True), (["3", 1, 0], True, False)],
)
def test_a_host_tells_which_field_holds_numbers_and_which_only_0_and_1(
    tmp_path: Path, values: list[Any], numeric: bool, numbers: bool
) -> None:
    counts = host_counts(tmp_path, written(tmp_path, values, "won"), len(values))
    assert counts.numeric == ("won" if numeric else "")
    assert [*in_numbers(counts.facts)] == (["won"] if numbers else [])
    assert Counts.of({key: value for key, value in counts.pairs() if key == "numeric"}).numeric == counts.numeric
