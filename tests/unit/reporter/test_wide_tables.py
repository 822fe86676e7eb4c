"""Tables with a column for each environment or policy, which are not read: the message names the columns."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from comborun.errors import UserError
from comborun.reporter.report import report_folder

CELLS = {
    "k of n": ("17/20", "9 / 20", "20/20"),
    "per cent": ("85.0 %", "45%", "100%"),
    "mean and error": ("0.85 ± 0.05", "0.45 +/- 0.1", "1.0 ± 0"),
    "of TeX": (r"$85.0 \pm 2.0$", r"45.1\%", "-"),
    "rates": ("0.85", "0.45", "1.0"),
    "counts": ("17", "9", "20"),
}


def refused(folder: Path) -> str:
    with pytest.raises(UserError) as error:
        report_folder(folder, folder / "out")
    return str(error.value)


def written(folder: Path, name: str, text: str) -> Path:
    folder.mkdir()
    (folder / name).write_text(text)
    return folder


@pytest.mark.parametrize("cells", CELLS.values(), ids=[*CELLS])
@pytest.mark.parametrize("first", ["policy", "method", "environment", "Model"])
def test_the_columns_of_a_table_that_sums_up_episodes_are_named(
    cells: tuple[str, ...], first: str, tmp_path: Path
) -> None:
    rows = "".join(f"{name},{cell},{cells[0]}\n" for name, cell in zip("abc", cells, strict=True))
    told = refused(written(tmp_path / "in", "t.csv", f"{first},pick,open\n{rows}"))
    assert "a table with a column for each of 'pick', 'open', whose cells sum up episodes" in told
    assert "`policy,environment,episode,success`" in told
    assert "results:" not in told


def test_rows_of_json_are_such_a_table_too(tmp_path: Path) -> None:
    rows = [{"policy": name, "pick": "17/20", "open": "9/20"} for name in "ab"]
    told = refused(written(tmp_path / "in", "t.jsonl", "".join(f"{json.dumps(row)}\n" for row in rows)))
    assert "a column for each of 'pick', 'open'" in told


def test_what_the_message_says_is_read(tmp_path: Path) -> None:
    folder = written(tmp_path / "in", "t.csv", "policy,environment,episode,success\na,pick,0,1\na,pick,1,0\n")
    (combo,) = report_folder(folder, tmp_path / "out").combos
    assert combo.counts
    assert (combo.key, combo.counts.successes, combo.counts.completed) == (("a", "pick"), 1, 2)


@pytest.mark.parametrize(
    "text",
    [
        "policy,score\na,0.5\nb,0.7\n",
        "trial,x,y\n0,0.5,0.1\n1,0.7,0.2\n",
        "policy,left,right\na,0,1\nb,1,0\n",
        "policy,x,y\na,0.5,0.1\na,0.7,0.2\n",
    ],
    ids=["one column", "episodes", "flags", "several rows of a policy"],
)
def test_other_tables_are_not_called_so(text: str, tmp_path: Path) -> None:
    assert "column for each" not in refused(written(tmp_path / "in", "t.csv", text))


def test_such_a_table_beside_episodes_is_not_told(tmp_path: Path) -> None:
    folder = written(tmp_path / "in", "t.csv", "policy,pick,open\na,17/20,9/20\nb,3/20,2/20\n")
    (folder / "rows.csv").write_text("policy,environment,episode,success\na,pick,0,1\na,pick,1,0\n")
    found = report_folder(folder, tmp_path / "out")
    assert not [one for one in found.quality.findings if "column for each" in one.what]
