"""A column of verdicts is read as a whole or not at all, and by the host as by the report."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from comborun.reporter.collect import collect_folder
from comborun.rules.results.counts import UNDECIDED, Counts
from comborun.rules.results.fields import Identity, ResultRules
from comborun.rules.results.result_files import Folder
from comborun.rules.results.tally import tally
from comborun.words.rows import proposed


def host(folder: Path, rules: ResultRules, count: int) -> Counts:
    """The counts of a host for the files of one session."""
    identity = Identity("p", "e", rules)
    read = Folder(str(folder), rules.files, identity, rules.format).read()
    return tally(read, identity, (0, count), over=True)


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
    "thousandths": ([1000, 0, 0, 1000], {"at_least": 1000}),
}


@pytest.mark.parametrize("case", CODINGS)
@pytest.mark.parametrize("field", ["success", "task_success"])
def test_a_field_of_another_coding_gives_no_verdict_and_the_line_that_reads_it(
    tmp_path: Path, case: str, field: str
) -> None:
    values, wanted = CODINGS[case]
    rules = written(tmp_path, values, field)
    counts = host(tmp_path, rules, len(values))
    assert (counts.records, counts.verdicts) == (len(values), 0)
    fact = next(fact for fact in counts.facts if fact.code == UNDECIDED)
    assert proposed(fact) == {"success": {"field": field, **wanted}}
    by_line = host(tmp_path, ResultRules(success=proposed(fact)["success"]), len(values))
    assert by_line.verdicts == sum(value is not None for value in values)
    assert 0 < by_line.successes < len(values)
    if field == "success":
        assert not any(record.success is not None for record in collect_folder(tmp_path).records)


GOOD = [True, False, True, True]


@pytest.mark.parametrize("odd", [None, "", "error", "n/a", float("nan"), {}, [1], "maybe", 0.5])
def test_one_odd_row_among_verdicts_costs_only_itself(tmp_path: Path, odd: Any) -> None:
    rules = written(tmp_path, [*GOOD, odd])
    counts = host(tmp_path, rules, 5)
    assert (counts.records, counts.verdicts, counts.successes) == (5, 4, 3)
    assert sum(record.success is not None for record in collect_folder(tmp_path).records) == 4


@pytest.mark.parametrize("values", [[1, 0, 0.5], [1.0, 0.0, 100.0], [True, False, True, True, 0.5, 0.25]])
def test_a_number_that_is_no_verdict_shows_that_the_others_are_none(tmp_path: Path, values: list[Any]) -> None:
    assert not host(tmp_path, written(tmp_path, values), len(values)).verdicts


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
