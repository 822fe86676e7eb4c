"""Failure kinds are compared where both policies tell them, in the same field and spelling."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import pytest

from comborun.reporter.collect import collect_folder
from comborun.reporter.summary import Summary, summarize


def told(folder: Path, failures: Mapping[str, Mapping[str, str]], rates: tuple[int, int] = (5, 5)) -> Summary:
    rows = [
        {"policy": policy, "environment": "s", "episode": n, "success": n % 10 < rate}
        | (dict(said) if n % 10 >= rate else {})
        for (policy, said), rate in zip(failures.items(), rates, strict=True)
        for n in range(80)
    ]
    (folder / "rows.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return summarize(collect_folder(folder)).summary


@pytest.mark.parametrize(
    "failures",
    [
        {"A": {"failure": "fall"}, "B": {}},
        {"A": {"failure": "fall"}, "B": {"termination": "fall"}},
        {"A": {"failure": "fall"}, "B": {"failure": "Fall"}},
        {"A": {"failure": "time out"}, "B": {"failure": "time_out"}},
        {"A": {"failure": "Dropped (cup 3)"}, "B": {"failure": "dropped"}},
        {"A": {"failure": "dropped"}, "B": {"failure": "dropped at 3.2 s"}},
    ],
)
def test_what_is_told_in_other_ways_is_not_compared(failures: Mapping[str, Mapping[str, str]], tmp_path: Path) -> None:
    summary = told(tmp_path, failures)
    assert not [one for one in summary.kinds if one.found.decided]
    assert not summary.claims.decided
    assert any("not compared as" in one.what for one in summary.quality.findings)


@pytest.mark.parametrize(
    ("failures", "rates"),
    [
        ({"A": {"failure": "fall"}, "B": {"failure": "stuck"}}, (5, 5)),
        ({"A": {"failure": "fall"}, "B": {}}, (2, 10)),
    ],
)
def test_a_kind_that_the_other_policy_never_had_is_compared(
    failures: Mapping[str, Mapping[str, str]], rates: tuple[int, int], tmp_path: Path
) -> None:
    summary = told(tmp_path, failures, rates)
    assert [one for one in summary.kinds if one.kind == "fall" and one.found.decided]
    assert not any("not compared as" in one.what for one in summary.quality.findings)
