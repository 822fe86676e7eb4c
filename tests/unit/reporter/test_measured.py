"""Programs that write numbers and no verdicts, where the grid says so."""

from __future__ import annotations

import json
from pathlib import Path

import jsonschema
from report_runs import RUN, RunDirectory

from comborun.judging import ResultRules
from comborun.reporter.collect import collect_run
from comborun.reporter.report import report_run
from comborun.reporter.summary import summarize
from comborun.rules.words import Completeness


def run_of(folder: Path, success: str) -> RunDirectory:
    run = RunDirectory(folder)
    for number, policy in enumerate(("flat", "rough")):
        session = run.session(policy, "pole", count=3, results=ResultRules(success=success))
        run.attempt(session)
        output = run.path / RUN.attempt(session.name, 1).output
        output.mkdir(parents=True, exist_ok=True)
        rows = [json.dumps({"episode": at, "return": 10.0 * number + at}) + "\n" for at in range(3)]
        (output / "r.jsonl").write_text("".join(rows))
    run.write()
    return run


def test_episodes_with_numbers_alone_are_complete_and_have_means_but_no_rate(tmp_path: Path) -> None:
    report = summarize(collect_run(run_of(tmp_path / "run", "none").path))
    flat, rough = sorted(report.summary.combos, key=lambda one: one.policy)
    assert flat.counts
    assert (flat.counts.completed, flat.counts.errored, flat.counts.measured) == (0, 0, 3)
    assert flat.counts.completeness is Completeness.COMPLETE
    assert flat.rate
    assert (flat.rate.n, flat.rate.interval, flat.failures) == (0, None, None)
    assert [(one.name, one.mean) for one in (*flat.metrics, *rough.metrics)] == [("return", 1.0), ("return", 11.0)]
    report_run(tmp_path / "run", tmp_path / "report")
    told = json.loads((tmp_path / "report/final_benchmark_report.json").read_text())
    schema = json.loads(
        (Path(__file__).parents[3] / "reporter/templates/final_benchmark_report.schema.json").read_text()
    )
    jsonschema.Draft202012Validator(schema).validate(told)
    assert [combo["measured"] for combo in told["combos"]] == [3, 3]
    assert told["claims"] == []


def test_the_same_records_without_that_word_are_errored_and_partial(tmp_path: Path) -> None:
    report = summarize(collect_run(run_of(tmp_path / "run", "success").path))
    for combo in report.summary.combos:
        assert combo.counts
        assert (combo.counts.errored, combo.counts.completeness) == (3, Completeness.PARTIAL)
        assert combo.metrics == ()
