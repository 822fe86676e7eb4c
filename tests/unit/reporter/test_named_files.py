"""No file of a folder that holds results, or is broken, goes unnamed."""

from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest
from report_runs import RunDirectory, row, write_rows

from comborun.reporter.collect import collect_folder
from comborun.rules.facts import Fact
from comborun.rules.results.counts import FILE_NOT_READ

ROWS = [{"policy": "p", "environment": "e", "episode": at, "success": at % 2 == 0} for at in range(10)]
LINES = "".join(json.dumps(row) + "\n" for row in ROWS)
WHOLE = json.dumps(ROWS)
NO_INDEX = "suite,task,success,steps\n" + "".join(f"e,t{at},{at % 2 == 0},3\n" for at in range(10))
BAD = {
    "cut off": ("results.json", WHOLE[:-20]),
    "a comma too many": ("results.json", f"{WHOLE[:-1]},]"),
    "a list that was begun": ("other.json", "["),
    "packed": ("rows.jsonl.xz", b"\xfd7zXZ\0" + b"x" * 50),
    "a table without an index": ("eval.csv", NO_INDEX),
    "verdicts of another name": ("eval.json", json.dumps({"runs": {f"r{at}": {"solved": True} for at in range(4)}})),
    "one verdict": ("status.json", json.dumps({"success": True, "message": "finished"})),
}


@pytest.mark.parametrize("case", BAD)
@pytest.mark.parametrize("beside", [True, False])
def test_a_file_that_is_not_read_is_named_with_its_reason(tmp_path: Path, case: str, beside: bool) -> None:
    name, content = BAD[case]
    if beside:
        (tmp_path / "good").mkdir()
        (tmp_path / "good" / "r.jsonl").write_text(LINES)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / name).write_bytes(content if isinstance(content, bytes) else content.encode())
    collected = collect_folder(tmp_path)
    assert len(collected.records) == 10 * beside
    assert any(one.path == f"bad/{name}" and one.reason for one in (*collected.rejects, *collected.defects))


@pytest.mark.parametrize("name", ["config.json", "losses.csv"])
def test_a_file_without_verdicts_is_named_only_if_nothing_else_is_read(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_text('{"lr": 0.1}' if name.endswith("json") else "step,loss\n1,0.5\n2,0.4\n")
    assert [defect.path for defect in collect_folder(tmp_path).defects] == [name]
    (tmp_path / "r.jsonl").write_text(LINES)
    assert name not in {defect.path for defect in collect_folder(tmp_path).defects}


@pytest.mark.parametrize("name", ["eval.csv", "eval.txt", "eval.zip", "eval.tar.gz"])
def test_a_file_of_no_known_format_is_named_if_one_of_the_same_name_is_read(tmp_path: Path, name: str) -> None:
    (tmp_path / "good").mkdir()
    (tmp_path / "good" / "eval.jsonl").write_text(LINES)
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / name).write_text("name,result\na,pass\nb,fail\n")
    assert f"bad/{name}" in {defect.path for defect in collect_folder(tmp_path).defects}


def test_the_ending_of_a_packed_file_names_no_environment(tmp_path: Path) -> None:
    (tmp_path / "flat" / "stairs").mkdir(parents=True)
    with gzip.open(tmp_path / "flat" / "stairs" / "rows.json.gz", "wt") as stream:
        json.dump([{"episode": at, "success": True} for at in range(3)], stream)
    assert {record.combo for record in collect_folder(tmp_path).records} == {("flat", "stairs")}


def test_packed_rows_are_read(tmp_path: Path) -> None:
    with gzip.open(tmp_path / "rows.jsonl.gz", "wt") as stream:
        stream.write(LINES)
    assert len(collect_folder(tmp_path).records) == 10


@pytest.mark.parametrize(
    ("rows", "line"),
    [
        ([{"scene": at // 5, "success": True} for at in range(10)], "episode: line"),
        ([{**row, "solved": row["success"]} for row in ROWS], ""),
        ([{"policy": "p", "environment": "e", "episode": at, "solved": True} for at in range(10)], "success: solved"),
    ],
)
def test_rows_of_which_none_has_a_verdict_come_with_the_line(tmp_path: Path, rows: list[object], line: str) -> None:
    write_rows(tmp_path / "r.jsonl", rows)
    said = [defect.reason for defect in collect_folder(tmp_path).defects if "`results:" in defect.reason]
    assert [line in one for one in said] == [True] * bool(line)


def test_a_table_of_a_spreadsheet_is_read_as_it_is_meant(tmp_path: Path) -> None:
    text = ";policy;environment;episode;success;distance_m\n"
    text += "".join(f"{at};p;e;{at};{at % 2};{at},25\n" for at in range(4))
    (tmp_path / "r.csv").write_text(text)
    found = collect_folder(tmp_path)
    records = found.records
    assert not found.defects
    assert [record.metrics for record in records] == [{"distance_m": at + 0.25} for at in range(4)]
    assert [record.success for record in records] == [False, True, False, True]


def test_files_that_the_host_could_not_read_are_named_where_episodes_are_missing(tmp_path: Path) -> None:
    run = RunDirectory(tmp_path)
    session = run.session("flat", "stairs", count=4)
    packed = Fact(FILE_NOT_READ, file="b.jsonl.gz", why={"code": "half_written_archive"}, taken=["**/*.jsonl"])
    run.attempt(session, row(0), facts=[packed.as_data()], records=1, verdicts=1, completeness="partial")
    findings = run.report().summary.quality.findings
    assert [one.where for one in findings if "b.jsonl.gz: half-written archive" in one.what] == ["flat × stairs"]
