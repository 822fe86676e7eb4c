"""report.tex: names that LaTeX would take for something else."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from report_runs import RunDirectory, row

from comborun.reporter.collect import collect_run
from comborun.reporter.pages.latex import escape, latex
from comborun.reporter.summary import summarize

NAMES = ("[1ex] flat", "[", "* rough", "*[2pt]", " [blank", "  *", "plain", "[v2]")


def table(path: Path, policies: tuple[str, ...], environments: tuple[str, ...]) -> list[str]:
    """The lines of its table."""
    run = RunDirectory(path)
    for number, (policy, environment) in enumerate((p, e) for p in policies for e in environments):
        session = run.session(policy, environment, 2, name=f"s{number}", digest=str(number))
        run.attempt(session, row(0, number % 2 == 0) + row(1, number % 3 == 0))
    lines = latex(summarize(collect_run(run.write())).summary).splitlines()
    return lines[lines.index(r"\toprule") : lines.index(r"\bottomrule") + 1]


@pytest.mark.parametrize("names", [(NAMES, ("x",)), (("x",), NAMES), (NAMES, NAMES)], ids=["down", "across", "both"])
def test_no_row_begins_with_what_the_line_above_takes_for_its_argument(
    tmp_path: Path, names: tuple[tuple[str, ...], tuple[str, ...]]
) -> None:
    lines = table(tmp_path, *names)
    rows = [line for line in lines if line.endswith(r" \\")]
    assert len(rows) == 1 + len(NAMES)
    assert not [line for line in lines if re.match(r"\s*[\[*]", line)]
    for name in NAMES:
        shown = escape(name)
        assert any(shown in line for line in rows), "the name stays as it is"


def test_names_that_begin_with_nothing_of_that_kind_have_nothing_in_front(tmp_path: Path) -> None:
    assert any(line.startswith("plain & ") for line in table(tmp_path, ("plain", "other"), ("x",)))


def test_a_quotation_mark_needs_no_other_encoding_than_the_first() -> None:
    assert escape('a"b') == r"a{\char34}b"
