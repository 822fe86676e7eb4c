"""Which factors go with success: what is taken for a factor, what is claimed, and what is not."""

from __future__ import annotations

import random
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from report_runs import document, row, write_rows

from comborun.reporter.report import report_folder
from comborun.reporter.summary import Summary

Fields = Callable[[random.Random, int], dict[str, Any]]


def told(folder: Path, fields: Fields, chance: Callable[[dict[str, Any]], float], n: int = 80) -> Summary:
    """Two policies on the same `n` starts, whose success has this chance."""
    rng = random.Random(2)
    lines = []
    for episode in range(n):
        shared = fields(rng, episode)
        for policy in ("flat", "rough"):
            own = {name: value(rng) if callable(value) else value for name, value in shared.items()}
            success = rng.random() < chance(own)
            lines.append(row(episode, success, policy=policy, environment="stairs", seed=1000 + episode, **own))
    write_rows(folder / "episodes.jsonl", lines)
    return report_folder(folder, folder / "out")


def test_a_mass_that_matters_is_found_and_an_offset_that_does_not_is_not(tmp_path: Path) -> None:
    def fields(rng: random.Random, _: int) -> dict[str, Any]:
        return {"mass": rng.uniform(0.5, 3.0), "offset": rng.gauss(0, 1), "light": rng.choice(["dark", "bright"])}

    summary = told(tmp_path, fields, lambda own: 0.9 if own["mass"] < 1.5 else 0.3)
    assert [one.field for one in summary.factors if one.decided] == ["mass"]
    assert {one.field for one in summary.factors} == {"mass", "offset", "light"}
    (said,) = [one for one in summary.claims.decided if "goes with" in one]
    assert said.startswith("Success goes with mass")
    mass = next(one for one in summary.factors if one.field == "mass")
    assert sum(level.starts for level in mass.levels) == 80
    assert mass.levels[0].rate > mass.levels[1].rate + 0.3
    found = document(tmp_path / "out")["factors"][0]
    assert (found["field"], len(found["levels"])) == ("mass", 2)
    assert "mass" in (tmp_path / "out/report.md").read_text()


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param(lambda *_: {"distance": lambda rng: rng.random()}, id="a result of each policy"),
        pytest.param(
            lambda _, at: {"rooms": 1.0 if at < 55 else lambda rng: rng.choice([1.0, 2.0])},
            id="a result, alike at first",
        ),
        pytest.param(lambda *_: {"limit": 600}, id="a constant"),
        pytest.param(lambda _, at: {"name": f"start {at}"}, id="another text at each start"),
        pytest.param(lambda _, at: {"init_hash": f"{at}"}, id="a hash of the start"),
    ],
)
def test_what_differs_between_policies_or_does_not_group_starts_is_no_factor(tmp_path: Path, fields: Fields) -> None:
    assert told(tmp_path, fields, lambda _: 0.5).factors == ()


def test_repeats_of_few_starts_are_no_new_evidence(tmp_path: Path) -> None:
    """12 starts, 20 times each: by episodes p would be far below .05."""
    lines = []
    for policy in ("flat", "rough"):
        for episode in range(240):
            start = episode % 12
            light = "dark" if start < 6 else "bright"
            success = start in {0, 1, 2, 6, 7, 8, 9}
            lines.append(row(episode, success, policy=policy, environment="stairs", seed=start, light=light))
    write_rows(tmp_path / "episodes.jsonl", lines)
    (light,) = report_folder(tmp_path, tmp_path / "out").factors
    assert [level.starts for level in light.levels] == [6, 6]
    assert not light.decided


def test_factors_are_tested_without_what_is_slow_to_load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """scipy.stats takes a second to load, and 50 MB; scipy.special has all that they need."""
    monkeypatch.setitem(sys.modules, "scipy.stats", None)  # an import of it fails
    summary = told(tmp_path, lambda rng, _: {"mass": rng.choice([1.0, 2.0, 3.0, 4.0, 5.0, 6.0])}, lambda _: 0.5)
    assert [one.field for one in summary.factors] == ["mass"]
