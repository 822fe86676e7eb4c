"""report.tex: names that LaTeX would take for something else."""

from __future__ import annotations

import re
import shutil
import subprocess
from itertools import product
from pathlib import Path

import pytest
from report_runs import RunDirectory, row

from comborun.reporter.pages.latex import escape, latex
from comborun.rules.results.fields import ResultRules

NAMES = ("[1ex] flat", "[", "* rough", "*[2pt]", " [blank", "  *", "plain", "[v2]")


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("a_b%&$#{}", r"a\_b\%\&\$\#\{\}"),
        (r"\input{/etc/passwd}", r"\textbackslash{}input\{/etc/passwd\}"),
        ("x~^<y>|", r"x\textasciitilde{}\textasciicircum{}\textless{}y\textgreater{}\textbar{}"),
        ("a\n% b", r"a\textbackslash{}n\% b"),
        ("--``", r"{-}{-}\textasciigrave{}\textasciigrave{}"),
        ('a"b', r"a{\char34}b"),
    ],
)
def test_text_in_latex_is_text(text: str, shown: str) -> None:
    assert escape(text) == shown


def table(path: Path, policies: tuple[str, ...], environments: tuple[str, ...]) -> list[str]:
    """The lines of its table of success rates, which is the last one."""
    run = RunDirectory(path)
    for number, (policy, environment) in enumerate((p, e) for p in policies for e in environments):
        session = run.session(policy, environment, 2, name=f"s{number}", digest=str(number))
        run.attempt(session, row(0, number % 2 == 0) + row(1, number % 3 == 0))
    lines = latex(run.report().summary).splitlines()
    first, last = (max(at for at, line in enumerate(lines) if line == rule) for rule in (r"\toprule", r"\bottomrule"))
    return lines[first : last + 1]


@pytest.mark.parametrize("names", [(NAMES, ("x",)), (("x",), NAMES), (NAMES, NAMES)], ids=["down", "across", "both"])
def test_no_row_begins_with_what_the_line_above_takes_for_its_argument(
    tmp_path: Path, names: tuple[tuple[str, ...], tuple[str, ...]]
) -> None:
    lines = table(tmp_path, *names)
    rows = [line for line in lines if line.endswith(r" \\")]
    assert len(rows) == 1 + len(NAMES) + (len(names[1]) > 1), "a row of means below"
    assert not [line for line in lines if re.match(r"\s*[\[*]", line)]
    for name in NAMES:
        shown = escape(name)
        assert any(shown in line for line in rows), "the name stays as it is"


@pytest.mark.parametrize(("policies", "environments"), [(1, 1), (3, 4), (12, 13)])
def test_the_table_compiles_and_fits_its_paper(tmp_path: Path, policies: int, environments: int) -> None:
    if not shutil.which("pdflatex"):
        pytest.skip("no pdflatex")
    names = tuple(f"policy_{number}" for number in range(policies))
    run = RunDirectory(tmp_path)
    for policy, environment in product(names, (f"environment_{number}" for number in range(environments))):
        better = policy.endswith("1")
        rows = "".join(
            row(index, better or index % 3 == 0, seed=index, distance_m=index / 3 + better, end_reason=f"fall_{better}")
            for index in range(20)
        )
        run.attempt(run.session(policy, environment, 20, results=ResultRules(compare=("distance_m",))), rows)
    (tmp_path / "report.tex").write_text(latex(run.report().summary))
    packages = r"\usepackage{booktabs,textcomp,graphicx}"
    paper = rf"\documentclass[twocolumn]{{article}}{packages}\begin{{document}}\input{{report.tex}}\end{{document}}"
    (tmp_path / "paper.tex").write_text(paper)
    done = subprocess.run(
        ["pdflatex", "-interaction=nonstopmode", "-halt-on-error", "paper.tex"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-2000:]
    text = (tmp_path / "report.tex").read_text()
    assert ("Compared by metrics" in text) == (policies > 1)
    assert ("Failure kinds compared" in text) == (policies > 1)
    wide = [
        float(found)
        for found in re.findall(r"Overfull \\hbox \((\d+\.\d+)pt too wide\) in (?:paragraph|alignment)", done.stdout)
    ]
    assert max(wide, default=0.0) < 5, done.stdout[-3000:]


def test_losses_factors_and_margins_are_in_the_paper_too(tmp_path: Path) -> None:
    run, rules = RunDirectory(tmp_path), ResultRules(nominal="flat", margin=0.05, factors=("mass",))
    for policy, place in product(("a", "b"), ("flat", "hilly")):
        rows = (row(at, at % 10 > 6 * (place == "hilly"), seed=at, mass=1.0 + at % 10) for at in range(100))
        run.attempt(run.session(policy, place, 100, results=rules), "".join(rows))
    found = latex(run.report().summary)
    assert "Losses from flat" in found
    assert "Factors" in found
    assert "equivalent within 5 points" in found.partition(r"\paragraph{Margin.}")[2].partition(r"\paragraph")[0]
