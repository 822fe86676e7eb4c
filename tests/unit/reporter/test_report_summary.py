"""The numbers of a report, and the sentences on top of it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from recorded import record as one_record
from report_runs import RUN, START, RunDirectory, document, row, summarized

from comborun.model.attempt import Aggregate
from comborun.model.judging import EvidenceRules
from comborun.reporter.collect import collect_folder, collect_run
from comborun.reporter.counting.combo import ComboSummary, MacroMean, tallies
from comborun.reporter.pages.words import sentences
from comborun.reporter.report import report_run
from comborun.reporter.summary import summarize
from comborun.reporter.text import fraction
from comborun.rules.results.fields import ResultRules
from comborun.rules.vocabulary import Completeness, Outcome


def only(run: RunDirectory, *, done: bool = True) -> ComboSummary:
    (combo,) = run.report(done=done).summary.combos
    return combo


def rows(count: int, successes: int) -> str:
    return "".join(row(index, index < successes) for index in range(count))


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path)


def test_the_first_episode_of_a_plan_need_not_be_zero(run: RunDirectory) -> None:
    run.attempt(run.session("flat", "stairs", first=100, count=3), row(100) + row(101) + row(1))
    counts = only(run).counts
    assert counts is not None
    assert (counts.completed, counts.missing_episodes) == (2, (range(102, 103),))


def test_metrics_are_means_over_completed_episodes_in_the_order_of_the_grid(run: RunDirectory) -> None:
    session = run.session("flat", "stairs", results=ResultRules(metrics=("b", "a", "never")))
    run.attempt(session, row(0, a=1, b=4) + row(1, False, a=2) + row(2, None, a=900, b=900))
    combo = only(run)
    assert [(mean.name, mean.mean, mean.n) for mean in combo.metrics] == [("b", 4.0, 1), ("a", 1.5, 2)]
    assert combo.metrics_absent == ("never",)


def test_metrics_too_large_to_be_added_have_a_mean(run: RunDirectory) -> None:
    run.attempt(run.session("flat", "stairs", count=2), row(0, a=1.5e308) + row(1, a=1.5e308))
    assert only(run).metrics[0].mean == pytest.approx(1.5e308)


def test_exit_code_0_without_the_records_is_no_success(run: RunDirectory) -> None:
    run.attempt(run.session("flat", "stairs"), rows(9, 5))
    ending = only(run).ending
    assert ending.outcome is Outcome.PARTIAL
    assert ending.warnings == ("its end record says complete (10 records), but not all of them count here",)


@pytest.mark.parametrize(
    ("fields", "outcome", "cause"),
    [
        ({"cause": "lost", "code": ""}, Outcome.LOST, "lost"),
        ({"cause": "signal", "code": 137, "signal": 9}, Outcome.FAILED, "exit code 137 (KILL)"),
        ({"cause": "signal", "code": "", "signal": 64}, Outcome.FAILED, "signal 64 (signal 64)"),
        ({"cause": "from the future", "code": 3}, Outcome.FAILED, "cause unknown"),
    ],
)
def test_an_outcome_comes_with_its_cause(
    run: RunDirectory, fields: dict[str, str], outcome: Outcome, cause: str
) -> None:
    run.attempt(run.session("flat", "stairs"), completeness="none", **fields)
    ending = only(run).ending
    assert (ending.outcome, ending.cause) == (outcome, cause)


def test_an_attempt_whose_records_do_not_count_adds_no_time(run: RunDirectory) -> None:
    session = run.session("flat", "stairs")
    run.attempt(session, cause="lost", code="", completeness="none", ended=START + 1000)
    run.attempt(session, rows(10, 4), number=2, started=START + 2000, ended=START + 2030)
    assert only(run).ending.seconds == 30


def test_without_an_end_record_a_session_may_still_run(run: RunDirectory) -> None:
    run.attempt(run.session("flat", "stairs"), rows(3, 1), end=None)
    summary = run.report(done=False).summary
    assert summary.combos[0].ending.words == "not ended"
    assert not summary.timing.over
    assert summary.timing.finished is summary.timing.makespan is None
    assert sentences(summary)[1] == "Not all sessions had ended when this report was made."


def test_a_combo_has_no_outcome_while_one_of_its_sessions_runs(run: RunDirectory) -> None:
    run.attempt(run.session("flat", "stairs", count=5), rows(5, 1))
    run.attempt(run.session("flat", "stairs", first=5, count=5, name="stairs_flat_e5-9"), row(5), end=None)
    assert only(run, done=False).ending.outcome is None


def test_a_training_that_ended_too_early_says_what_its_evidence_lacks(run: RunDirectory) -> None:
    evidence = EvidenceRules(line="step=1000", files=("last.pt",))
    session = run.session("flat", "stairs", unit="step", count=1000, evidence=evidence, results=ResultRules(files=()))
    run.attempt(session, completeness="none", records=0)
    combo = only(run)
    assert combo.ending.outcome is Outcome.FAILED
    assert combo.ending.cause == "exit code 0, without a line of the log like 'step=1000' and a file 'last.pt'"
    report_run(run.path, run.path / "out")
    assert "without a line of the log like" in (run.path / "out/report.html").read_text()


def test_when_the_plan_leaves_the_number_open_the_records_tell_it(run: RunDirectory) -> None:
    run.attempt(run.session("flat", "stairs", count=0), rows(7, 3))
    combo = only(run)
    assert combo.planned == 7
    assert combo.ending.outcome is Outcome.SUCCEEDED


def test_a_clock_that_was_set_back_gives_no_duration(run: RunDirectory) -> None:
    run.attempt(run.session("flat", "stairs"), rows(10, 3), ended=START - 100)
    summary = run.report().summary
    assert summary.combos[0].ending.seconds is None
    assert summary.timing.makespan is summary.timing.sequential is None


def test_a_mean_over_environments_weighs_each_alike(run: RunDirectory) -> None:
    run.attempt(run.session("flat", "stairs", count=4), rows(4, 3))
    run.attempt(run.session("flat", "grass", count=2), rows(2, 1))
    (found,) = run.report().summary.macro_means
    assert (found.environments, found.episodes, found.mean) == (2, 6, 0.625)
    assert found.interval is not None
    assert found.interval[0] < 0.625 < found.interval[1]
    assert found.missing == found.partial == ()


def test_no_mean_hides_a_missing_cell(run: RunDirectory) -> None:
    run.attempt(run.session("flat", "stairs", count=2), rows(2, 2))
    run.attempt(run.session("flat", "grass", count=2), row(0, None))
    run.attempt(run.session("rough", "stairs", count=2), row(0))
    run.attempt(run.session("rough", "grass", count=2), rows(2, 2))
    flat, rough = run.report().summary.macro_means
    assert flat == MacroMean("flat", 2, 2, None, None, missing=("grass",), partial=())
    assert (rough.mean, rough.missing, rough.partial) == (1.0, (), ("stairs",))


def test_one_environment_has_no_mean_and_training_none_either(run: RunDirectory) -> None:
    run.attempt(run.session("flat", "stairs"), row(0))
    run.attempt(run.session("flat", "grass", unit="step", count=9))
    run.attempt(run.session("train", "grass", unit="step", count=9))
    assert run.report().summary.macro_means == ()


def test_a_folder_has_no_plan_and_the_report_says_so(tmp_path: Path) -> None:
    lines = [row(index, policy="b", environment="x") for index in (0, 1, 5)]
    lines += [row(0, None, policy="a", environment="x")]
    summary = summarized(tmp_path, lines)
    assert sentences(summary)[1:] == (
        "3 completed episodes and 1 errored one of 2 combos; no plan says how many there should be.",
    )
    assert [(combo.policy, combo.planned) for combo in summary.combos] == [("a", 1), ("b", 3)]
    assert summary.quality.findings[-1].what == (
        "no record of 3 episodes (2-4), between the first and the last that there are"
    )


def test_numbers_in_names_are_in_their_order_where_no_plan_gives_one(tmp_path: Path) -> None:
    names = ("p10", "p2", "p02", "p", "10")
    (tmp_path / "rows.jsonl").write_text("".join(row(0, policy=a, environment=b) for a in names for b in names))
    summary = summarize(collect_folder(tmp_path)).summary
    assert summary.policies == summary.environments == ("10", "p", "p02", "p2", "p10")


@pytest.mark.parametrize(
    ("value", "words"),
    [(0, "0.0"), (1, "100.0"), (0.5, "50.0"), (1e-9, "<0.1"), (0.9999, ">99.9"), (0.999, "99.9"), (0.001, "0.1")],
)
def test_only_what_is_exactly_nothing_or_all_is_written_so(value: float, words: str) -> None:
    assert fraction(value) == words


# -- numbers without verdicts -----------------------------------------------------------------------------------------


@pytest.fixture
def measured(run: RunDirectory) -> RunDirectory:
    """Two policies of three episodes with a number, and no verdict."""
    for number, policy in enumerate(("flat", "rough")):
        lines = [json.dumps({"episode": at, "return": 10.0 * number + at}) + "\n" for at in range(3)]
        run.attempt(run.session(policy, "pole", count=3, results=ResultRules(success="none")), "".join(lines))
    return run


def test_episodes_with_numbers_alone_are_complete_and_have_means_but_no_rate(measured: RunDirectory) -> None:
    flat, rough = measured.report().summary.combos
    assert flat.counts
    assert (flat.counts.completed, flat.counts.errored, flat.counts.measured) == (0, 0, 3)
    assert flat.counts.completeness is Completeness.COMPLETE
    assert flat.rate
    assert (flat.rate.n, flat.rate.interval, flat.failures) == (0, None, None)
    assert [(one.name, one.mean) for one in (*flat.metrics, *rough.metrics)] == [("return", 1.0), ("return", 11.0)]
    report_run(measured.path, measured.path / "report")
    told = document(measured.path / "report")
    assert [combo["measured"] for combo in told["combos"]] == [3, 3]
    assert told["claims"] == []


def test_the_same_records_without_that_word_are_errored_and_partial(measured: RunDirectory) -> None:
    measured.sessions = [replace(session, results=ResultRules()) for session in measured.sessions]
    for combo in measured.report().summary.combos:
        assert combo.counts
        assert (combo.counts.errored, combo.counts.completeness) == (3, Completeness.PARTIAL)
        assert combo.metrics == ()


# -- counts without episodes ------------------------------------------------------------------------------------------


COMBO = ("flat", "stairs")


def told(successes: int, n: int, attempt: int = 1, session: str = "stairs_flat", **metrics: float) -> Aggregate:
    return Aggregate(*COMBO, successes, n, metrics=metrics, session=session, attempt=attempt)


def test_the_lowest_complete_attempt_counts_whatever_came_of_it() -> None:
    found = tallies([told(9, 12, 3), told(1, 10, 2), told(4, 4, 1)], {"stairs_flat": 10})
    assert (found[COMBO].successes, found[COMBO].episodes) == (1, 10)
    assert found[COMBO].attempts == {("stairs_flat", 2)}


@pytest.mark.parametrize("planned", [{"stairs_flat": 10}, {}])
def test_where_none_is_complete_the_one_with_the_most_episodes_counts(planned: dict[str, int]) -> None:
    found = tallies([told(2, 7, 2), told(3, 5, 1), told(7, 7, 3)], planned)
    assert (found[COMBO].successes, found[COMBO].episodes) == (2, 7)


def test_sessions_of_a_combo_are_added_up_and_their_metrics_weighed() -> None:
    found = tallies([told(2, 10, session="e0-9", speed=1.0), told(9, 30, session="e10-39", speed=3.0, only=5.0)], {})
    assert (found[COMBO].successes, found[COMBO].episodes) == (11, 40)
    assert found[COMBO].metrics == pytest.approx({"speed": 2.5, "only": 5.0})


def test_no_episodes_at_all_are_a_tally_of_none() -> None:
    found = tallies([told(0, 0, speed=2.0)], {})
    assert (found[COMBO].episodes, found[COMBO].metrics) == (0, {"speed": 2.0})


def test_a_run_of_counts_has_rates_and_comparisons(run: RunDirectory) -> None:
    for policy in ("flat", "rough"):
        run.attempt(run.session(policy, "stairs"))
    counts = (told(2, 10, speed=1.5), Aggregate("rough", "stairs", 9, 8 + 1, session="stairs_rough", attempt=1))
    summary = summarize(replace(collect_run(run.write()), aggregates=counts)).summary
    flat, rough = summary.combos
    assert flat.rate is not None
    assert (flat.rate.successes, flat.rate.n, flat.ending.outcome) == (2, 10, Outcome.SUCCEEDED)
    assert [(mean.name, mean.mean, mean.n, mean.interval) for mean in flat.metrics] == [("speed", 1.5, 10, None)]
    assert rough.counts is not None
    assert (rough.counts.completed, rough.counts.missing, rough.bounds) == (9, 1, (0.9, 1.0))
    assert rough.ending.outcome is Outcome.PARTIAL
    assert flat.failures is flat.time_to_success is None
    ((comparison,),) = [group.comparisons for group in summary.comparisons.environments]
    assert (comparison.paired, comparison.pairing) == (False, "counts alone, without episodes")
    assert len(summary.claims.decided) == 1
    missing = [finding for finding in summary.quality.findings if "missing" in finding.what]
    assert [(one.where, one.what) for one in missing] == [
        ("rough × stairs", "1 of 10 episodes missing, not told which")
    ]


def test_records_tell_more_than_counts_and_are_taken(run: RunDirectory) -> None:
    run.attempt(run.session("flat", "stairs", count=2), row(0) + row(1))
    summary = summarize(replace(collect_run(run.write()), aggregates=(told(0, 2),))).summary
    assert summary.totals.successes == 2


def test_a_folder_can_hold_counts_alone_for_some_policies(tmp_path: Path) -> None:
    (tmp_path / "rows.jsonl").write_text(row(0, policy="rough", environment="stairs"))
    summary = summarize(replace(collect_folder(tmp_path), aggregates=(told(3, 4, session=""),))).summary
    assert [(combo.policy, combo.planned) for combo in summary.combos] == [("flat", 4), ("rough", 1)]


def test_what_was_called_off_before_it_began_is_no_attempt(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    session = run.session("flat", "stairs", 1)
    end = one_record(attempt=1, ended=START, cause="stopped", completeness="none", records=0)
    run.put(RUN.attempt(session.name, 1).end, end)
    run.attempt(session, row(0), number=2, records=1, successes=1)
    (combo,) = run.report().summary.combos
    assert (combo.ending.attempts, combo.ending.warnings) == (1, ())
