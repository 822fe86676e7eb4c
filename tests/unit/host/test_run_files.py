"""Which attempts there are: one answer for the dispatcher, the probe, fetch, logs and the end of a run."""

from __future__ import annotations

from pathlib import Path

import pytest
from recorded import queue_rows, record

from comborun.host.record.holds import over
from comborun.host.record.run_directory import RunDirectory
from comborun.host.verbs import logs
from comborun.host.verbs.fetch import Answer
from comborun.host.verbs.probe import Probe
from comborun.rules.names import RunLayout
from comborun.rules.run_files import attempts_of, newest_plan

NAME = "env_one"


@pytest.fixture
def run(tmp_path: Path) -> Path:
    """Attempts 1, 3 and 10; the others are made ahead, left by a full disk, or none at all."""
    (tmp_path / "dispatch").mkdir()
    (tmp_path / "id").write_text("run-1\n")
    (tmp_path / "dispatch/queue.jsonl").write_text(queue_rows(**{NAME: ""}))
    (tmp_path / "dispatch/done").write_text(record(at=1))
    for number in (1, 3):
        attempt(tmp_path, number, claim=record(supervisor=1), end=record(cause="exited"), log="x\n")
    attempt(tmp_path, 10, grant=record(gpus=""), end=record(cause="stopped"))
    attempt(tmp_path, 4, grant="")
    (attempt(tmp_path, 5, log="") / "out").mkdir()
    for folder in ("attempt-06", "attempt-x", "attempt-", "attempt-1.old", "attempt-12345678901"):
        (tmp_path / "sessions" / NAME / folder).mkdir()
        (tmp_path / "sessions" / NAME / folder / "claim").write_text(record(supervisor=1))
    return tmp_path


def attempt(run: Path, number: int, **records: str) -> Path:
    at = run / "sessions" / NAME / f"attempt-{number}"
    at.mkdir(parents=True)
    for name, text in records.items():
        (at / name).write_text(text)
    return at


def test_gaps_and_folders_that_were_made_ahead_change_no_answer(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    directory = RunDirectory(str(run))
    assert attempts_of(directory.layout, NAME) == directory.numbers(NAME) == [1, 3, 10]
    assert attempts_of(directory.layout, NAME, above=1) == [3, 10]
    assert directory.latest(NAME) == 10
    document, _ = Probe(str(run), 10).look([1])
    assert [one["number"] for one in document["attempts"]] == [3, 10]
    assert logs.newest(directory.layout, NAME) == 3, "the log of an attempt that was made ahead is not the newest"
    assert over(directory.layout)
    monkeypatch.chdir(run)
    head, _ = Answer({"have": {}, "again": {}, "part": None}, 1 << 20).give()
    ends = [path for path, *_ in head["pieces"] if path.endswith("/end")]
    assert ends == [f"sessions/{NAME}/attempt-{number}/end" for number in (1, 3, 10)]


def test_an_attempt_without_an_end_keeps_a_run_from_being_over(run: Path) -> None:
    attempt(run, 11, claim="")
    assert not over(RunLayout(str(run)))


def test_results_without_a_record_are_an_attempt_and_the_next_one_gets_a_folder_of_its_own(run: Path) -> None:
    at = attempt(run, 11)
    (at / "out").mkdir()
    (at / "out/rows.jsonl").write_text("{}\n")
    assert RunDirectory(str(run)).latest(NAME) == 11


def test_a_session_that_is_not_there_has_no_attempt(tmp_path: Path) -> None:
    assert attempts_of(RunLayout(str(tmp_path)), "env_none") == []


def test_the_newest_plan_is_the_one_with_the_highest_number(tmp_path: Path) -> None:
    assert newest_plan(str(tmp_path)) == newest_plan(str(tmp_path / "none")) == 1
    for name in ("plan-1.json", "plan-9.json", "plan-10.json", "plan-011.json", "plan-12.json.old", "grid-13.yaml"):
        (tmp_path / name).write_text("{}")
    assert newest_plan(str(tmp_path)) == 10
