"""What the terminal says of a report once it is made: its first words, its claims, and where its files are."""

from __future__ import annotations

import json
import re
import sys
from html import unescape
from typing import TYPE_CHECKING

import pytest
from recorded import record as one_record
from report_runs import RUN, RunDirectory, row
from rich.cells import cell_len

from comborun.cli.report import show_report
from comborun.cli.status import _unread
from comborun.monitor.status import SessionStatus
from comborun.reporter.pages.answer import answer
from comborun.reporter.pages.page import html, page
from comborun.rules.facts import Fact
from comborun.rules.following import Why
from comborun.rules.results import counts
from comborun.rules.vocabulary import Life

if TYPE_CHECKING:
    from pathlib import Path

    from comborun.reporter.summary import Report

ENVIRONMENTS = ("grass", "stairs", "boulders", "gravel", "sand")


def report_of(folder: Path, policies: tuple[str, ...]) -> Report:
    """The first policy always fails, the others never do."""
    run = RunDirectory(folder)
    for environment in ENVIRONMENTS:
        for number, policy in enumerate(policies):
            session = run.session(policy, environment, name=f"{environment}_{number}", digest=f"{environment}-{number}")
            run.attempt(session, "".join(row(i, bool(number), seed=1000 + i) for i in range(10)))
    return run.report()


def told(report: Report, folder: Path, capsys: pytest.CaptureFixture[str], *, as_json: bool = False) -> str:
    show_report(report.summary, folder / "report", as_json=as_json)
    return capsys.readouterr().out


def claims_and_files(text: str) -> tuple[str, str]:
    """What stands above the table of rates, and what stands below `Report: `."""
    above, files = text.split("\nReport: ")
    return above.split("\n\n")[0], files


def look_on(monkeypatch: pytest.MonkeyPatch, columns: int) -> None:
    """What is written from now on goes to a terminal. For the test itself: only there is stdout the captured one."""
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    monkeypatch.setenv("COLUMNS", str(columns))


def test_the_claims_stand_above_the_files_as_the_report_has_them(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    report = report_of(tmp_path, ("blind", "seeing"))
    head, files = claims_and_files(told(report, tmp_path, capsys))
    written = unescape(html({**page(report.summary), "sheet": None}, {})).replace("\u00a0", " ")
    claims = re.findall("<li>(.* beats .*)</li>", written)
    assert head.splitlines() == [
        "",
        answer(report.summary),
        "All 10 combos are complete: 100 of 100 planned episodes have a verdict.",
        *(f"- {sentence}" for sentence in claims),
    ]
    assert len(claims) == 1 + len(ENVIRONMENTS)
    assert files.startswith(str(tmp_path))


def test_on_a_terminal_they_take_six_lines_and_the_rest_is_counted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    report = report_of(tmp_path, ("blind", "看得见的步行者"))
    look_on(monkeypatch, 80)
    head = claims_and_files(told(report, tmp_path, capsys))[0].splitlines()
    assert max(map(cell_len, head)) <= 80
    *claims, more = head[next(at for at, line in enumerate(head) if line.startswith("- ")) :]
    assert len(claims) <= 6
    shown = sum(line.startswith("- ") for line in claims)
    assert more == f"{len(report.summary.claims.sentences) - shown} more in the report"
    assert " ".join(line[2:] for line in claims) == " ".join(report.summary.claims.sentences[:shown])


def test_the_first_claim_is_told_however_long_it_is(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    look_on(monkeypatch, 12)
    head = claims_and_files(told(report_of(tmp_path, ("blind", "seeing")), tmp_path, capsys))[0].splitlines()
    assert sum(line.startswith("- ") for line in head) == 1
    assert "paired, Holm" in " ".join(" ".join(head).split())
    assert head[-1] == "5 more in the report"


@pytest.mark.parametrize("name", ["\x1b[31mred", "[bold]red", "\u202ered", "two\nlines"])
def test_names_in_claims_are_shown_and_act_on_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    head = told(report_of(tmp_path, ("blind", name)), tmp_path, capsys).split("\nReport: ")[0]
    shown = name.replace("\x1b", "\\x1b").replace("\u202e", "\\u202e") if "\n" not in name else "'two\\nlines'"
    assert head.count(f"- {shown} beats blind in ") == len(ENVIRONMENTS)
    assert all(line.isprintable() for line in head.splitlines())


def test_where_nothing_was_compared_nothing_is_claimed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    report = report_of(tmp_path, ("blind",))
    head, _ = claims_and_files(told(report, tmp_path, capsys))
    assert head.splitlines() == [
        "",
        answer(report.summary),
        "All 5 combos are complete: 50 of 50 planned episodes have a verdict.",
    ]


def test_for_programs_there_is_the_document_alone(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    document = json.loads(told(report_of(tmp_path, ("blind", "seeing")), tmp_path, capsys, as_json=True))
    assert list(document) == ["record", "untrusted", "run", "report", "files", "gates"]


def test_each_combo_has_a_row_with_its_rate_and_interval(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rows = [line.split() for line in told(report_of(tmp_path, ("blind", "seeing")), tmp_path, capsys).splitlines()]
    assert ["blind", "grass", "0/10", "0.0", "%", "[0.0,", "30.8]"] in rows
    assert ["seeing", "sand", "10/10", "100.0", "%", "[69.2,", "100.0]"] in rows


def test_what_is_wrong_in_many_places_is_one_sentence_with_a_count(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run = RunDirectory(tmp_path)
    for number, environment in enumerate(ENVIRONMENTS):
        session = run.session("p", environment, name=f"{environment}_p", digest=environment)
        run.attempt(session, "".join(row(i, True) for i in range(9 - number)))
    findings = told(run.report(), tmp_path, capsys).split("Data quality:\n")[1].split("\n\n")[0]
    assert "! p × stairs: 2 episodes (8-9) missing (and 3 more like this)" in findings.splitlines()
    assert findings.count("missing") == 2  # "1 episode" is another sentence


TORN = Fact(counts.FILE_NOT_READ, file="b.json.gz", why={"code": "half_written_archive"}, taken=[])
LINE = Fact(counts.NOT_READ, file="r.csv", keys=[{"key": "files", "value": "**/*.csv"}])


@pytest.mark.parametrize(
    ("facts", "asked"),
    [
        ((LINE,), True),
        ((Fact(counts.NO_MATCH, patterns=["**/*.jsonl"], some=["a.txt"]),), True),
        ((TORN, LINE), True),
        ((Fact(counts.CHANGED), LINE), True),
        ((TORN,), False),
        ((Fact(counts.REFUSED, rows=1, of=6, file="a.jsonl", line=4, why={"code": "not_json"}),), False),
        ((Fact(counts.CHANGED), TORN), False),
        ((Fact(counts.CHANGED), Fact(counts.NO_EPISODE, some=["r.jsonl"])), False),
        ((Fact(counts.NO_EPISODE, file="r.jsonl"),), True),
        ((Fact(counts.NO_EPISODE, file="r.jsonl", why={"code": "empty_file"}),), False),
        ((Fact(counts.WROTE_NOTHING),), False),
        ((), False),
    ],
)
def test_results_are_to_be_corrected_only_where_a_line_may_read_more(facts: tuple[Fact, ...], asked: bool) -> None:
    session = SessionStatus("s", "p", "e", "episode", 10, reasons=facts, life=Life.ENDED)
    assert _unread(session) is asked


def test_checkpoints_that_were_written_again_are_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run = RunDirectory(tmp_path)
    run.attempt(run.session("step_400", "stairs", 1), row(0))
    known = {"policy": "step_400", "step": 400, "path": "/x/ckpt_400.pt", "mark": "1-2-3"}
    again = {"path": known["path"], "mark": "1-3-4", "reason": Fact(Why.IN_PLACE, name="ckpt_400.pt").as_data()}
    rows = ({"decision": "verified", **known}, {"decision": "refused", **again})
    run.put(RUN.checkpoints, "".join(one_record(**one) for one in rows))
    assert "! checkpoints: written again by the training: step_400." in told(run.report(), tmp_path, capsys)
