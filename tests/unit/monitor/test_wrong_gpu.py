"""Memory on another GPU than a session was granted: told in the table while it runs and after, and by the report."""

from __future__ import annotations

from pathlib import Path

import pytest
from monitor_stage import Seen, a_plan, a_session, a_view, an_answer
from report_runs import RunDirectory, row

from comborun.monitor.answer import parse_snapshot
from comborun.monitor.classify import classify
from comborun.monitor.observe import History, fold
from comborun.monitor.status import SessionStatus
from comborun.reporter.collect import collect_run
from comborun.reporter.summary import summarize
from comborun.rules.words import Outcome

VIEW = a_view(a_plan([a_session("act", "grass")]))
NOTE = "WRONG_GPU: 700 MiB on GPU 1, and 1000 MiB on GPU 0, which it was granted"


def only(seen: Seen) -> SessionStatus:
    return classify(VIEW, fold(History(), parse_snapshot(an_answer(seen))), None).sessions[0]


@pytest.mark.parametrize(
    ("told", "note"),
    [
        ("", ""),
        ("2:300,0:4312", "WRONG_GPU: 4312 MiB on GPU 0, 300 MiB on GPU 2, granted 2"),
        ("garbage,0:x", ""),
    ],
)
def test_the_table_says_where_the_memory_of_a_running_session_lies(told: str, note: str) -> None:
    assert only(Seen("grass_act", wrong_gpu=told, gpus="2")).note == note


def test_a_session_that_succeeded_on_the_wrong_gpu_says_so() -> None:
    session = only(Seen("grass_act").ended(note=NOTE))
    assert (session.outcome, session.note) == (Outcome.SUCCEEDED, NOTE)
    assert only(Seen("grass_act").ended(note="a remark of no weight")).note == ""


def test_the_report_names_it_among_what_is_wrong_with_its_data(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    for environment, note in (("grass", NOTE), ("stairs", "")):
        session = run.session("flat", environment, 1)
        run.attempt(session, row(0) + "\n", note=note)
    found = summarize(collect_run(run.write())).summary.quality.findings
    (named,) = [one for one in found if "WRONG_GPU" in one.what]
    assert "grass" in named.where
    assert named.what == f"attempt 1 of grass_flat: {NOTE}"
