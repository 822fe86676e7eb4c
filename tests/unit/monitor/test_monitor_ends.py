"""How sessions ended, in words, for the table and for the report."""

from __future__ import annotations

import io
from pathlib import Path

import pytest
from monitor_stage import Seen, a_plan, a_session, a_view, an_answer, status_of
from report_runs import RunDirectory as ReportRun
from report_runs import row
from rich.console import Console

from comborun.model.attempt import End
from comborun.monitor.screen import PlainScreen
from comborun.monitor.snapshot import Attempt
from comborun.monitor.states import Case, rule_of
from comborun.reporter.collect import collect_run
from comborun.reporter.summary import summarize
from comborun.rules import records
from comborun.rules.endings.evidence import Evidence, fact
from comborun.rules.endings.failures import Failure
from comborun.rules.facts import Fact
from comborun.rules.vocabulary import Cause
from comborun.text import harmless
from comborun.words import say
from comborun.words.endings import CAUSES

SESSION = a_session("act", "grass")
WRONG = "WRONG_GPU: 700 MiB on GPU 1, and 1000 MiB on GPU 0, which it was granted"
ON_WRONG_GPU = fact(Evidence.WRONG_GPU, used=[[0, 1000], [1, 700]], granted=[0])


def an_end(cause: str, completeness: str = "none", **fields: object) -> End:
    return End.parse(records.render({"cause": cause, "completeness": completeness, **fields}.items()))


def test_every_class_and_every_cause_has_words() -> None:
    assert all(failure.row.words and failure.row.report for failure in Failure)
    assert set(CAUSES) == set(Cause) - {Cause.EXITED, Cause.SIGNAL, Cause.UNKNOWN}


@pytest.mark.parametrize(
    ("end", "words"),
    [
        (an_end("exited", "complete", code=0), ""),
        (an_end("exited", "complete", code=3), "exit code 3 after complete results"),
        (an_end("exited", "complete", code=0, ending=[ON_WRONG_GPU]), WRONG),
        (an_end("signal", "partial", code=137, signal=9), "killed"),
        (an_end("signal", signal=350), "signal 350"),
        (an_end("exited", code=0), "exit code 0, but no results"),
        (an_end("exited", "partial", code=0, records=60), "exit code 0 after 60 of 100 episodes"),
        (
            an_end("exited", "partial", code=0, records=100, verdicts=0),
            "exit code 0, but no verdict in any of its records",
        ),
        (an_end("launch_failed", note="setup failed: no conda"), "setup failed: no conda"),
        (an_end("launch_failed", note="\x1b[31mred\x1b[0m\u202e"), "red"),
        (an_end("lost", note="the host was restarted"), "nobody saw it end: the host was restarted"),
        (an_end("eaten_by_bears"), "ended for an unknown reason"),
    ],
)
def test_a_note_says_what_the_outcome_does_not(end: End, words: str) -> None:
    case = Case(a_plan([SESSION]), SESSION, (Attempt(SESSION.name, 1, end=end),))
    assert harmless("; ".join(map(say, rule_of(case).says(case)))) == words


# Memory on another GPU than a session was granted


@pytest.mark.parametrize(
    ("seen", "note"),
    [
        (Seen("grass_act", gpus="2"), ""),
        (Seen("grass_act", problems=(ON_WRONG_GPU,)), WRONG),
        # as a former version tells it
        (Seen("grass_act", wrong_gpu="2:300,0:4312"), "WRONG_GPU: 2:300,0:4312"),
        (
            Seen("grass_act", verdict=(fact(Evidence.RAN_TOO_LONG, limit_s=3),)),
            "it is being ended: it ran longer than 3 s",
        ),
        (Seen("grass_act", ending="as a former version said it"), "it is being ended: as a former version said it"),
    ],
)
def test_the_table_says_where_the_memory_of_a_session_lies_and_why_it_should_end(seen: Seen, note: str) -> None:
    shown = status_of(a_view(a_plan([SESSION])), an_answer(seen)).sessions[0].note
    assert shown == note


def test_the_report_names_it_among_what_is_wrong_with_its_data(tmp_path: Path) -> None:
    run = ReportRun(tmp_path)
    for environment, found in (("grass", [ON_WRONG_GPU.as_data()]), ("stairs", [])):
        session = run.session("flat", environment, 1)
        run.attempt(session, row(0) + "\n", ending=found)
    found = summarize(collect_run(run.write())).summary.quality.findings
    (named,) = [one for one in found if "WRONG_GPU" in one.what]
    assert "grass" in named.where
    assert named.what == f"attempt 1 of grass_flat: {WRONG}"


def test_a_session_that_promised_no_episodes_is_counted_without_a_total() -> None:
    free = a_plan([a_session("act", "grass", count=0)])
    shown = Console(file=io.StringIO(), width=200, record=True)
    PlainScreen(shown).show(status_of(a_view(free), an_answer(Seen("grass_act").ended(records=6, successes=2))))
    assert "grass_act: succeeded, 6 episodes, 2 of 6 successful" in shown.export_text()
    assert say(Fact("work_done", done=6, planned=0, unit="episode")) == "6 episodes done"


@pytest.mark.parametrize(
    ("log", "code", "shown"),
    [
        (b"comborun: there is no Xvfb\n", "no_xvfb", ""),
        (b"its own last words\n", "no_xvfb", "its own last words"),
        (b"comborun: the warm-up failed\n", "", "comborun: the warm-up failed"),
    ],
)
def test_what_comborun_wrote_into_the_log_does_not_stand_beside_its_note(log: bytes, code: str, shown: str) -> None:
    plan = a_plan([a_session("act", "maze")])
    ending = [{"code": code}] if code else []
    status = status_of(a_view(plan), an_answer(Seen("maze_act").ended("launch_failed", "none", ending=ending, log=log)))
    assert status.sessions[0].unquoted_line == shown
