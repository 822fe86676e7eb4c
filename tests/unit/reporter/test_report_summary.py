"""The numbers of a report, and the sentences on top of it."""

from __future__ import annotations

from pathlib import Path

import pytest
from report_runs import START, RunDirectory, row

from comborun.judging import EvidenceRules, ResultRules
from comborun.reporter import report_run
from comborun.reporter.collect import collect_folder, collect_run
from comborun.reporter.counting.combo import ComboSummary
from comborun.reporter.pages.words import sentences
from comborun.reporter.summary import Summary, summarize
from comborun.reporter.text import fraction
from comborun.rules.words import Outcome


def summary_of(run: RunDirectory, *, done: bool = True) -> Summary:
    return summarize(collect_run(run.write(done=done))).summary


def only(run: RunDirectory, *, done: bool = True) -> ComboSummary:
    (combo,) = summary_of(run, done=done).combos
    return combo


def rows(count: int, successes: int) -> str:
    return "".join(row(index, index < successes) for index in range(count))


@pytest.fixture
def run(tmp_path: Path) -> RunDirectory:
    return RunDirectory(tmp_path)


def test_planned_is_completed_and_errored_and_missing(run: RunDirectory) -> None:
    run.attempt(run.session("flat", "stairs"), rows(6, 4) + row(6, None) + row(8, None))
    combo = only(run)
    assert combo.counts is not None
    assert (combo.counts.completed, combo.counts.successes) == (6, 4)
    assert (combo.counts.errored, combo.counts.missing) == (2, 2)
    assert combo.rate is not None
    assert (combo.rate.successes, combo.rate.n) == (4, 6)
    assert combo.rate_of_planned is not None
    assert (combo.rate_of_planned.successes, combo.rate_of_planned.n) == (4, 10)


def test_nothing_completed_is_no_rate_of_anything(run: RunDirectory) -> None:
    run.attempt(run.session("flat", "stairs"), row(0, None), code=1, completeness="none")
    combo = only(run)
    assert combo.rate is not None
    assert combo.rate.rate is combo.rate.interval is combo.rate_of_planned is None


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


def test_a_crash_after_the_work_is_success_with_a_warning(run: RunDirectory) -> None:
    run.attempt(run.session("flat", "stairs"), rows(10, 5), code=139, signal=11)
    ending = only(run).ending
    assert ending.outcome is Outcome.SUCCEEDED
    assert ending.warnings == ("complete, but exit code 139 (SEGV)",)


def test_exit_code_0_without_the_records_is_no_success(run: RunDirectory) -> None:
    run.attempt(run.session("flat", "stairs"), rows(9, 5))
    ending = only(run).ending
    assert ending.outcome is Outcome.PARTIAL
    assert ending.warnings == ("its end record says complete (10 records), but not all of them count here",)


@pytest.mark.parametrize(
    ("fields", "outcome", "cause"),
    [
        ({"cause": "stopped", "code": 130, "signal": 2}, Outcome.CANCELLED, "stopped by the user"),
        ({"cause": "lost", "code": ""}, Outcome.LOST, "lost"),
        (
            {"cause": "launch_failed", "code": 127, "note": "no such program"},
            Outcome.FAILED,
            "launch failed: no such program",
        ),
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


def test_attempts_together_can_complete_a_combo(run: RunDirectory) -> None:
    session = run.session("flat", "stairs")
    run.attempt(session, rows(4, 4), cause="lost", code="", completeness="partial", ended=START + 10)
    run.attempt(session, "".join(row(i) for i in range(4, 10)), number=2, started=START + 20, ended=START + 50)
    combo = only(run)
    assert combo.ending.outcome is Outcome.SUCCEEDED
    assert combo.ending.attempts == 2
    assert combo.ending.seconds == 40
    assert combo.ending.warnings == ("attempt 1: lost; another followed",)


def test_an_attempt_whose_records_do_not_count_adds_no_time(run: RunDirectory) -> None:
    session = run.session("flat", "stairs")
    run.attempt(session, cause="lost", code="", completeness="none", ended=START + 1000)
    run.attempt(session, rows(10, 4), number=2, started=START + 2000, ended=START + 2030)
    assert only(run).ending.seconds == 30


def test_a_combo_without_attempts_never_started(run: RunDirectory) -> None:
    run.session("flat", "stairs")
    ending = only(run).ending
    assert (ending.outcome, ending.words, ending.attempts) == (None, "never started", 0)


def test_without_an_end_record_a_session_may_still_run(run: RunDirectory) -> None:
    run.attempt(run.session("flat", "stairs"), rows(3, 1), end=None)
    summary = summary_of(run, done=False)
    assert summary.combos[0].ending.words == "not ended"
    assert not summary.timing.over
    assert summary.timing.finished is summary.timing.makespan is None
    assert sentences(summary)[0] == "Not all sessions had ended when this report was made."


def test_a_combo_has_no_outcome_while_one_of_its_sessions_runs(run: RunDirectory) -> None:
    run.attempt(run.session("flat", "stairs", count=5), rows(5, 1))
    run.attempt(run.session("flat", "stairs", first=5, count=5, name="stairs_flat_e5-9"), row(5), end=None)
    assert only(run, done=False).ending.outcome is None


def test_without_an_end_record_in_a_run_that_is_over_a_session_was_lost(run: RunDirectory) -> None:
    run.attempt(run.session("flat", "stairs"), rows(3, 1), end=None)
    assert only(run).ending.outcome is Outcome.LOST


def test_a_program_that_leaves_no_records_is_judged_by_its_end_alone(run: RunDirectory) -> None:
    run.attempt(run.session("flat", "stairs", results=ResultRules(files=())))
    combo = only(run)
    assert combo.counts is combo.rate is None
    assert combo.ending.outcome is Outcome.SUCCEEDED
    assert combo.planned == 10


def test_training_has_an_outcome_and_a_duration_but_no_rate(run: RunDirectory) -> None:
    run.attempt(run.session("flat", "stairs", unit="step", count=1000), ended=START + 90)
    summary = summary_of(run)
    (combo,) = summary.combos
    assert (combo.unit, combo.rate, combo.counts, combo.ending.seconds) == ("step", None, None, 90)
    assert summary.counts.planned == 0
    assert "1 combo counted in steps: outcome and duration, no rate." in sentences(summary)


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


def test_times_go_from_the_first_start_to_the_last_end(run: RunDirectory) -> None:
    run.attempt(run.session("flat", "stairs"), rows(10, 3), started=START + 5, ended=START + 20)
    run.attempt(run.session("rough", "stairs"), rows(10, 3), started=START, ended=START + 12)
    timing = summary_of(run).timing
    assert (timing.started, timing.finished) == (START, START + 20)
    assert (timing.makespan, timing.sequential) == (20, 27)


def test_a_clock_that_was_set_back_gives_no_duration(run: RunDirectory) -> None:
    run.attempt(run.session("flat", "stairs"), rows(10, 3), ended=START - 100)
    summary = summary_of(run)
    assert summary.combos[0].ending.seconds is None
    assert summary.timing.makespan is summary.timing.sequential is None


def test_combos_that_are_compared_stand_together(run: RunDirectory) -> None:
    for policy in ("rough", "flat"):
        for environment in ("stairs", "grass"):
            run.session(policy, environment)
    names = [(combo.environment, combo.policy) for combo in summary_of(run).combos]
    assert names == [("stairs", "rough"), ("stairs", "flat"), ("grass", "rough"), ("grass", "flat")]


def test_the_first_sentence_says_how_much_is_there(run: RunDirectory) -> None:
    run.attempt(run.session("flat", "stairs"), rows(8, 3) + row(8, None))
    run.attempt(run.session("rough", "stairs"), rows(10, 3))
    assert sentences(summary_of(run))[:2] == (
        "1 of 2 combos is complete: 18 of 20 planned episodes have a verdict (1 errored, 1 missing).",
        "Outcomes other than succeeded: 1 partial.",
    )


def test_a_folder_has_no_plan_and_the_report_says_so(tmp_path: Path) -> None:
    lines = [row(index, policy="b", environment="x") for index in (0, 1, 5)]
    lines += [row(0, None, policy="a", environment="x")]
    (tmp_path / "rows.jsonl").write_text("".join(lines))
    summary = summarize(collect_folder(tmp_path)).summary
    assert sentences(summary) == (
        "3 completed episodes and 1 errored one of 2 combos; no plan says how many there should be.",
    )
    assert [(combo.policy, combo.planned) for combo in summary.combos] == [("a", 1), ("b", 3)]
    assert summary.quality.findings[0].what == (
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
