"""Bradley-Terry strengths: a published fit, policies that never met, and what has no strengths."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from click.testing import CliRunner
from report_runs import document, row, write_rows

from comborun.cli import combo
from comborun.reporter.comparing.orders import fit, strengths
from comborun.reporter.comparing.sides import CountsAlone, Side

# Games of the American League's east in 1987, won by the team of the row against that of the column; A. Agresti,
# Categorical Data Analysis (2002), table 10.10.
BASEBALL = {
    "Milwaukee": (0, 7, 9, 7, 7, 9, 11),
    "Detroit": (6, 0, 7, 5, 11, 9, 9),
    "Toronto": (4, 6, 0, 7, 7, 8, 12),
    "New York": (6, 8, 6, 0, 6, 7, 10),
    "Boston": (6, 2, 6, 7, 0, 7, 12),
    "Cleveland": (4, 4, 5, 6, 6, 0, 6),
    "Baltimore": (2, 4, 1, 3, 1, 7, 0),
}
ABOVE_BALTIMORE = [1.5814, 1.4364, 1.2945, 1.2476, 1.1077, 0.6839, 0]
"""as the R package BradleyTerry2 fits them; the standard error of Boston's is 0.3339"""


def counted(rates: dict[tuple[str, str], int]) -> dict[tuple[str, str], Side]:
    """Combo -> successes of 20."""
    return {combo: CountsAlone(combo[0], (successes, 20)) for combo, successes in rates.items()}


def test_strengths_are_those_of_a_published_fit() -> None:
    found = fit(np.array([*BASEBALL.values()], dtype=float))
    assert found
    values, inverse = found
    assert values - values[-1] == pytest.approx(ABOVE_BALTIMORE, abs=5e-5)
    contrast = np.array([0, 0, 0, 0, 1, 0, -1])
    assert np.sqrt(contrast @ inverse @ contrast) == pytest.approx(0.3339, abs=5e-5)


def test_policies_that_never_met_are_compared_through_another() -> None:
    found = strengths(counted({("a", "grass"): 15, ("b", "grass"): 10, ("b", "stairs"): 12, ("c", "stairs"): 8}))
    values = {one.policy: one.strength for one in found}
    assert [one.policy for one in found] == ["a", "b", "c"]
    assert values["a"] - values["b"] == pytest.approx(np.log(0.625 / 0.375))
    assert values["b"] - values["c"] == pytest.approx(np.log(0.6 / 0.4))
    assert all(one.interval[0] < one.strength < one.interval[1] for one in found)


def test_two_policies_have_the_error_of_their_difference() -> None:
    """By the delta method: the log-odds of (1 + d) / 2 have the error of d / 2 over the odds' variance."""
    first, _ = strengths(counted({("a", "grass"): 15, ("b", "grass"): 10}))
    variance = 16 / 22 * 6 / 22 / 20 + 11 / 22 * 11 / 22 / 20
    error = variance**0.5 / 2 / (0.625 * 0.375) / 2  # one half of the difference of two strengths
    assert first.interval[1] - first.strength == pytest.approx(2.241403 * error, rel=1e-5)


@pytest.mark.parametrize(
    "rates",
    [
        {},
        {("a", "grass"): 15},
        {("a", "grass"): 15, ("b", "stairs"): 10},
        {("a", "grass"): 20, ("b", "grass"): 0, ("c", "grass"): 0},
    ],
    ids=["no records", "one policy", "not connected", "one always won"],
)
def test_there_are_none_without_a_finite_fit(rates: dict[tuple[str, str], int]) -> None:
    assert strengths(counted(rates)) == ()


def test_the_report_shows_strengths_if_asked(tmp_path: Path) -> None:
    rows = (
        row(at, at < 3 - late, policy=name, environment="grass") for late, name in enumerate("ab") for at in range(4)
    )
    write_rows(tmp_path / "all.jsonl", rows)
    for arguments, shown in (((), False), (("--ranking", "bradley-terry"), True)):
        done = CliRunner().invoke(combo, ["report", str(tmp_path), *arguments])
        assert done.exit_code == 0, done.output
        told = document(tmp_path / "report")
        assert [one["policy"] for one in told.get("strengths", [])] == ["a", "b"] * shown
        for name in ("report.html", "report.md"):
            assert ("Bradley-Terry strengths" in (tmp_path / "report" / name).read_text()) is shown
