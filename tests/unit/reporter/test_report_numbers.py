"""Numbers for programs: nothing that is not 0 is told as 0."""

from __future__ import annotations

import csv
import io
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from report_runs import RunDirectory, document, row
from scipy.stats import binomtest

from comborun.reporter.json_types import limits, scaled, significant
from comborun.reporter.report import report_run
from comborun.reporter.statistics.difference import mcnemar
from comborun.reporter.text import p_number, p_value, unbroken
from comborun.rules.results.fields import ResultRules


def paired_run(path: Path, episodes: int, run: str = "run-1", **metrics: float) -> Path:
    """Two policies over the same seeds, one of which always succeeds and the other never."""
    made = RunDirectory(path)
    for policy, success in (("good", True), ("bad", False)):
        session = made.session(policy, "stairs", episodes, results=ResultRules(metrics=tuple(metrics)))
        values = [{name: value * (1 + i % 7) for name, value in metrics.items()} for i in range(episodes)]
        rows = (row(i, success, seed=1000 + i, **values[i]) for i in range(episodes))
        made.attempt(session, "".join(rows))
    return made.write(run=run)


def test_a_p_that_is_tiny_is_told_with_its_digits(tmp_path: Path) -> None:
    report_run(paired_run(tmp_path, 60), tmp_path / "report")
    (found,) = document(tmp_path / "report")["comparisons"]
    expected = binomtest(60, 60).pvalue
    assert (found["p"], found["p_holm"]) == (pytest.approx(expected, rel=1e-9, abs=0),) * 2
    assert unbroken("p < 0.0001") in (tmp_path / "report/report.html").read_text().replace("&lt;", "<")


def test_the_limits_of_a_small_metric_are_not_0(tmp_path: Path) -> None:
    report_run(paired_run(tmp_path, 30, error_m=3e-12), tmp_path / "report")
    combos = document(tmp_path / "report")["combos"]
    (line, *_) = csv.DictReader(io.StringIO((tmp_path / "report/summary.csv").read_text()))
    for low, mean, high in [
        (found["interval"][0], found["mean"], found["interval"][1])
        for found in (combo["metrics"]["error_m"] for combo in combos)
    ] + [tuple(float(line[f"error_m.{part}"]) for part in ("low", "mean", "high"))]:
        assert 0 < low < mean < high < 1e-10


def test_no_p_is_0_however_many_pairs_go_one_way() -> None:
    assert 0 < mcnemar(5000, 0) <= mcnemar(1000, 0) < 1e-300
    assert significant(mcnemar(5000, 0)) > 0
    assert p_value(mcnemar(5000, 0)) == "< 0.0001"
    assert p_value(mcnemar(5000, 0), bound=True) == "< 0.0001"


def test_a_p_in_a_cell_has_a_sign_only_where_it_is_not_the_number_itself() -> None:
    ps = (0.0414, 0.00052, 1.0, 1e-9)
    assert [p_number(p) for p in ps] == ["0.041", "0.00052", "1", "< 0.0001"]
    assert [p_value(p) for p in ps] == ["= 0.041", "= 0.00052", "= 1", "< 0.0001"]
    assert p_number(0.05, bound=True) == p_value(0.05, bound=True) == "≤ 0.05"


@given(st.floats(min_value=1e-300, max_value=1))
def test_a_number_keeps_ten_digits_whatever_its_size(value: float) -> None:
    assert significant(value) == pytest.approx(value, rel=6e-10, abs=0)
    assert scaled((-value, value / 3))[0] == pytest.approx(-value, rel=6e-10, abs=0)


def test_limits_between_rates_hide_what_is_no_more_than_the_last_bit() -> None:
    assert limits((-2.7e-17, 1 / 3)) == (0, 0.3333333333)
    assert scaled((1e-17, 7 / 3)) == (0, 2.3333333333)
    assert scaled((0.0, 0.0)) == (0, 0)


@pytest.mark.parametrize(
    ("sentence", "joined"),
    [
        ("+34.0 points [+1.0, +2.0], Holm p < 0.0001.", "+34.0~points [+1.0, +2.0], Holm p~<~0.0001."),
        ("Holm p = 1; a p ≤ 0.05", "Holm p~=~1; a p~≤~0.05"),
        ("last end: 2 h 03 min; 1 min 03 s", "last end: 2~h 03~min; 1~min 03~s"),
        ("45.2 / s; 95 % of them", "45.2~/~s; 95~% of them"),
        ("stairs 2 has 40 episodes in 3 steps", "stairs 2 has 40 episodes in 3 steps"),
    ],
)
def test_a_page_breaks_no_line_between_a_number_and_its_unit(sentence: str, joined: str) -> None:
    assert unbroken(sentence) == joined.replace("~", "\u00a0")
