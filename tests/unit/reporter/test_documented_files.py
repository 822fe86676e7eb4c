"""What docs/report.md says of the files of a report is true of a report."""

from __future__ import annotations

import csv
import json
import re
from html import unescape
from pathlib import Path

import pytest
from report_runs import write_rows

from comborun.reporter.figures.makers import MAKERS
from comborun.reporter.report import report_folder
from comborun.rules.results.formats import FORMATS, LOG_PATTERN, SUMMARY

DOCS = (Path(__file__).parents[3] / "docs" / "report.md").read_text()
NAME = re.compile(r"`([^`\s]+)`")


def section(title: str) -> str:
    """Of the docs, without its heading, in one line."""
    return " ".join(DOCS.split(f"\n## {title}\n", 1)[1].split("\n## ", 1)[0].split())


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("documented")
    rows = [
        {
            "policy": policy,
            "environment": environment,
            "episode": at,
            "seed": at,
            "success": at % 9 < share,
            "progress": at / 30,
            "steps": 50 + at,
            "failure": "fall",
            "note": f"=cmd|{at}",
        }
        for policy, share in (("rough", 8), ("flat", 5), ("blind", 2))
        for environment in ("stairs", "grass")
        for at in range(30)
    ]
    write_rows(made / "rows.jsonl", rows)
    report_folder(made, made / "report", ("svg",))
    return made / "report"


@pytest.fixture(scope="module")
def document(folder: Path) -> dict[str, object]:
    found: dict[str, object] = json.loads((folder / "final_benchmark_report.json").read_text())
    return found


def plain(text: str) -> str:
    """Without markup, and with ordinary blanks."""
    return " ".join(unescape(re.sub(r"<[^>]+>|\\[,;]|[\\${}~]", " ", text)).replace("\u00a0", " ").split())


def test_the_files_are_those_that_are_listed(folder: Path) -> None:
    listed = re.findall(r"^- \[?`([^`]+)`", DOCS.split("All begin with the answer", 1)[0], re.MULTILINE)
    made = {path.name + "/" * path.is_dir() for path in folder.iterdir()}
    assert made == {*listed, "final_benchmark_report.schema.json"}


@pytest.mark.parametrize(
    ("name", "before"), [("report.html", "<main>"), ("report.md", "|"), ("report.tex", "\\begin{table")]
)
def test_a_file_to_read_begins_with_the_answer(
    folder: Path, document: dict[str, object], name: str, before: str
) -> None:
    assert str(document["answer"]) in plain((folder / name).read_text().split(before, 1)[0])


def test_all_files_hold_the_same_rates(folder: Path) -> None:
    table = [*csv.DictReader((folder / "summary.csv").read_text().splitlines())]
    assert len(table) == 6
    for name in ("report.html", "report.md", "report.tex"):
        text = plain((folder / name).read_text())
        for combo in table:
            assert f"{100 * float(combo['success_rate']):.1f}" in text
            assert f"{combo['successes']}/{combo['completed']}" in text


def test_summary_csv_has_the_columns_that_are_listed(folder: Path) -> None:
    listed = [
        name for name in NAME.findall(section("summary.csv").split("Then four columns", 1)[0]) if name != "bounds"
    ]
    four = [name.removeprefix("NAME") for name in NAME.findall(section("summary.csv").split("Then four columns", 1)[1])]
    (header, *rows) = csv.reader((folder / "summary.csv").read_text().splitlines())
    assert sorted(header[: len(listed)]) == sorted(listed)
    assert header[len(listed) :] == [f"{name}{end}" for name in ("progress", "steps") for end in four]
    assert len(rows) == 6


def test_episodes_csv_has_the_columns_that_are_listed_and_no_formula(folder: Path) -> None:
    first, rest = section("episodes.csv").split("then metrics", 1)
    (header, *rows) = csv.reader((folder / "episodes.csv").read_text().splitlines())
    listed = NAME.findall(first)
    assert header == [*listed, "progress", "steps", "failure", "note"]
    assert len(rows) == 180
    assert {row[-1][:2] for row in rows} == {"'="}
    assert "apostrophe" in rest


def test_the_figures_are_those_that_are_listed(folder: Path) -> None:
    listed = {*NAME.findall(section("Figures"))}
    assert {*MAKERS} <= listed
    assert listed - {*MAKERS} == {"means"}
    assert {re.sub(r"-\d+$", "", path.stem) for path in (folder / "figures").iterdir()} <= listed


def test_the_tables_for_a_paper_use_the_packages_that_are_named(folder: Path) -> None:
    text = (folder / "report.tex").read_text()
    assert "\\toprule" in text
    (named,) = re.findall(r"usepackage\{([^}]*)\}", text)
    assert " needs {}, {} and {}.".format(*named.split(",")) in DOCS


def test_every_format_that_is_read_has_a_row() -> None:
    table = DOCS.split("| format | recognised by |", 1)[1].split("\n\n", 1)[0]
    rows = [line.split("|")[1] for line in table.splitlines()[2:]]
    assert {name for row in rows for name in NAME.findall(row)} == {*FORMATS, SUMMARY, LOG_PATTERN}
