"""How sessions ended, in words, for the table and for the report."""

from __future__ import annotations

import pytest
from report_runs import planned_session

from comborun.attempt import CAUSES, FAILURES, End, behind
from comborun.judging import EvidenceRules, ResultRules
from comborun.monitor.session import ended_by, note
from comborun.reporter.counting.ending import cause_words
from comborun.rules import records
from comborun.rules.words import Cause, Failure


def an_end(cause: str, completeness: str = "none", **fields: object) -> End:
    record = {"cause": cause, "completeness": completeness, "code": "", "signal": "", **fields}
    return End.parse(records.render(record.items()))


def test_every_class_and_every_cause_has_words() -> None:
    assert set(FAILURES) == set(Failure)
    assert set(CAUSES) == set(Cause) - {Cause.EXITED, Cause.SIGNAL, Cause.UNKNOWN}


@pytest.mark.parametrize(
    ("end", "said", "reported"),
    [
        (an_end("exited", code=3), "exit code 3", "exit code 3"),
        (
            an_end("exited", code=1, **{"class": "gpu_memory"}),
            "out of GPU memory (exit code 1)",
            "out of GPU memory, exit code 1",
        ),
        (
            an_end("signal", code=137, signal=9, **{"class": "host_memory"}),
            "out of memory (killed)",
            "out of memory, exit code 137 (KILL)",
        ),
        (an_end("signal", code=139, signal=11), "segmentation fault", "exit code 139 (SEGV)"),
        (an_end("gpu_fault", code=1), "GPU fault", "GPU fault"),
        (an_end("stalled", signal=15), "stalled", "stalled"),
        (an_end("timed_out"), "took too long", "took too long"),
        (an_end("server_lost"), "its server was lost", "its server was lost"),
        (an_end("stopped", signal=15), "stopped", "stopped by the user"),
        (an_end("a later one"), "ended for an unknown reason", "cause unknown"),
    ],
)
def test_an_end_is_told_by_what_is_behind_it(end: End, said: str, reported: str) -> None:
    assert ended_by(end) == said
    assert cause_words(end) == reported


@pytest.mark.parametrize(
    ("end", "said"),
    [
        (an_end("hung", "complete"), "hung after complete results"),
        (an_end("signal", "complete", code=139, signal=11), "segmentation fault after complete results"),
        (an_end("stopped", "complete", signal=15), "stopped after complete results"),
        (an_end("exited", "complete", code=0), ""),
        (an_end("stalled", note="no progress for 1200 s"), "stalled: no progress for 1200 s"),
        (an_end("exited", code=0), "exit code 0, but no results"),
        (an_end("exited", code=0, **{"class": "disk_full"}), "disk full (exit code 0)"),
    ],
)
def test_a_note_says_what_the_outcome_does_not(end: End, said: str) -> None:
    assert note(end, None) == said


@pytest.mark.parametrize(
    ("files", "records", "said"),
    [
        ((), 0, "exit code 0, without a line of the log like 'step=9'"),
        (("*.jsonl",), 9, "exit code 0, without a line of the log like 'step=9'"),
        (("*.jsonl",), 4, "exit code 0 after 4 of 9 episodes"),
    ],
)
def test_an_exit_with_0_names_the_evidence_that_is_lacking(files: tuple[str, ...], records: int, said: str) -> None:
    evidence, results = EvidenceRules(line="step=9"), ResultRules(files=files)
    session = planned_session("flat", "stairs", 9, evidence=evidence, results=results)
    assert note(an_end("exited", "partial", code=0, records=records), session) == said


def test_nothing_is_behind_what_the_cause_says_already() -> None:
    assert behind(an_end("gpu_memory")) == ""
    assert behind(an_end("exited", "complete", code=1)) == ""
