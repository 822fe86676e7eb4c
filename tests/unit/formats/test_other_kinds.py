"""What the standard library reads is read; of files of other kinds the message names the kind and a way out."""

from __future__ import annotations

import bz2
import gzip
import json
import lzma
import pickle
from pathlib import Path

import numpy as np
import pytest
from both_sides import host_counts

from comborun.reporter.collect import collect_folder
from comborun.rules.results.counts import Counts
from comborun.rules.results.fields import Identity, ResultRules
from comborun.rules.results.result_files import Folder
from comborun.rules.results.tally import tally
from comborun.rules.results.unread import name_unread, unread
from comborun.words.rows import proposed, why_not_counted

SIX = [at % 3 != 0 for at in range(6)]


def counted(folder: Path, pattern: str = "**/*.jsonl") -> Counts:
    return host_counts(folder, ResultRules(files=(pattern,)), 6)


def lines() -> bytes:
    rows = ({"policy": "p", "environment": "e", "episode": at, "success": one} for at, one in enumerate(SIX))
    return "".join(json.dumps(row) + "\n" for row in rows).encode()


@pytest.mark.parametrize(
    ("name", "content", "suffix"),
    [
        ("rows.jsonl.gz", gzip.compress(lines()), ".jsonl.gz"),
        ("rows.jsonl.xz", lzma.compress(lines()), ".jsonl.xz"),
        ("deep/rows.json.bz2", bz2.compress(json.dumps({"success": SIX}).encode()), ".json.bz2"),
        ("success.npy", np.array(SIX), ".npy"),
        ("eval/successes.npy", np.array(SIX, dtype=np.float32), ".npy"),
        ("is_success.npy", np.array(SIX, dtype=np.int64), ".npy"),
        ("success_rank0.npy", np.array(SIX), ".npy"),
        ("rows.jsonl", lines().decode().encode("utf-16"), ""),
    ],
)
def test_packed_rows_and_single_arrays_are_read(tmp_path: Path, name: str, content: object, suffix: str) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    if isinstance(content, bytes):
        (tmp_path / name).write_bytes(content)
    else:
        np.save(tmp_path / name, content)  # type: ignore[arg-type]
    if suffix:
        (fact,) = counted(tmp_path).facts
        assert proposed(fact) == {"files": f"**/*{suffix}"}
    counts = counted(tmp_path, f"**/*{suffix or '.jsonl'}")
    assert (counts.records, counts.successes) == (6, 4)
    assert len(collect_folder(tmp_path).records) == 6


@pytest.mark.parametrize("cut", [10, 30])
def test_a_packed_file_that_is_cut_off_is_named(tmp_path: Path, cut: int) -> None:
    (tmp_path / "rows.jsonl.gz").write_bytes(gzip.compress(lines())[:-cut])
    assert "half-written" in why_not_counted(counted(tmp_path, "**/*.gz").facts)
    (reject,) = collect_folder(tmp_path).rejects
    assert reject.path == "rows.jsonl.gz"


@pytest.mark.parametrize("name", ["r.jsonl", "r.csv", "r.json", "r.npy", "r.txt"])
def test_a_file_of_nul_bytes_is_told_to_hold_nothing_else(tmp_path: Path, name: str) -> None:
    (tmp_path / name).write_bytes(b"\0" * 100_000)
    assert "NUL bytes only" in why_not_counted(counted(tmp_path, f"**/{name}").facts)


FOREIGN = {
    "r.yaml": (b"episodes:\n- {episode: 0, success: true}\n", "YAML"),
    "events.out.tfevents.1.host.2.0": (b"\x18\0\0\0\0\0\0\0" * 5, "TensorBoard"),
    "demo.hdf5": (b"\x89HDF\r\n\x1a\n" + b"\0" * 99, "HDF5"),
    "without_suffix.data": (b"\x89HDF\r\n\x1a\n" + b"\0" * 99, "HDF5"),
    "r.parquet": (b"PAR1" + b"\0" * 20, "Parquet"),
    "r.xlsx": (b"PK\x03\x04" + b"\0" * 20, "Excel"),
    "r.feather": (b"ARROW1" + b"\0" * 20, "Arrow"),
    "r.pkl": (pickle.dumps([1]), "pickle"),
}


@pytest.mark.parametrize("name", FOREIGN)
@pytest.mark.parametrize("named", [True, False])
def test_what_is_not_read_is_named_with_a_way_out(tmp_path: Path, name: str, named: bool) -> None:
    content, kind = FOREIGN[name]
    (tmp_path / name).write_bytes(content)
    (tmp_path / "config.json").write_text('{"lr": 0.1}')
    said = why_not_counted(counted(tmp_path, f"**/{name}" if named else "**/*.jsonl").facts)
    assert kind in said
    assert "`results: {from: log, pattern:" in said


@pytest.mark.parametrize("name", sorted(FOREIGN))
def test_a_folder_names_what_it_cannot_read_if_nothing_else_is_read(tmp_path: Path, name: str) -> None:
    content, kind = FOREIGN[name]
    (tmp_path / name).write_bytes(content)
    (tmp_path / "config.yaml").write_text("lr: 0.1\n")
    told = collect_folder(tmp_path).defects
    if name.endswith(".data"):  # only its first bytes say what it is
        assert not told
    else:
        assert [(one.path, kind in one.reason) for one in told] == [(name, True)]


def test_a_folder_names_beside_what_it_reads_what_may_be_results_of_others(tmp_path: Path) -> None:
    """Each policy has its folder: a file that can't be read there is not passed over because another one can."""
    places = ("act/kitchen/r.parquet", "rt1/kitchen/all.zip", "vla/final/results.xlsx", "ckpt/best/model.zip")
    for name in ("pi0/kitchen/rows.csv", "pi0/kitchen/weights.zip", *places):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("episode,success\n0,1\n" if name.endswith(".csv") else "PK")
    told = collect_folder(tmp_path)
    assert len(told.records) == 1
    assert {one.path for one in told.defects if not one.reason.startswith(("read as", "policy"))} == {*places[:3]}


def test_texts_that_the_grid_names_get_the_pattern_that_reads_them(tmp_path: Path) -> None:
    (tmp_path / "eval.txt").write_text(
        "".join(f"ep {at} ret {at:.1f} {'OK' if at % 3 else 'FAIL'}\n" for at in range(6))
    )
    fact = counted(tmp_path, "**/*.txt").facts[0]
    rules = ResultRules(files=("**/*.txt",), **proposed(fact))
    held = Folder(str(tmp_path), rules.files, Identity("p", "e", rules, 6), "")
    counts = tally(held.read(), held.identity, (0, 6), over=True)
    assert (counts.records, counts.successes) == (6, 4)


@pytest.mark.parametrize(
    "lines",
    [
        "trial {at}: {S}",
        "Episode {at} {✅}",
        "Episode {at}/6: {✅} 45 steps",
        "trial {at} of 6 [{S}]",
        "Episode {at}: {erfolgreich}",
        "episode {at} -> {成功}",
        "Success rate so far: {k}/{n} = 50.0%",
        "Success rate: 66.7% ({k}/{n})",
    ],
)
def test_a_log_with_signs_letters_or_counts_comes_with_the_pattern_that_reads_it(tmp_path: Path, lines: str) -> None:
    bad = {"S": "F", "✅": "❌", "erfolgreich": "fehlgeschlagen", "成功": "失败"}
    text = ""
    for at, one in enumerate(SIX):
        line = lines.replace("{at}", str(at)).replace("{k}", str(sum(SIX[: at + 1]))).replace("{n}", str(at + 1))
        for good, word in bad.items():
            line = line.replace(f"{{{good}}}", good if one else word)
        text += line + "\n"
    (tmp_path / "out").mkdir()
    (tmp_path / "log").write_text("loading\n" + text)
    held = Folder(str(tmp_path / "out"), ["**/*.jsonl"], Identity("p", "e", ResultRules(), 6), "")
    fact = unread(held, (0, 6), str(tmp_path / "log"))
    assert fact
    keys = proposed(fact)
    told = Counts()
    name_unread(told, Folder(str(tmp_path), [], held.identity, "", "log"), (0, 6))
    assert [proposed(one) for one in told.facts] == [keys], "also where the grid has `from: log` and no pattern"
    rules = ResultRules(pattern=str(keys["pattern"]), source="log")
    identity = Identity("p", "e", rules, 6)
    counts = tally(Folder(str(tmp_path), [], identity, "", "log").read(), identity, (0, 6), over=True)
    assert (counts.records, counts.successes) == (6, 4)


def test_a_log_that_says_that_each_episode_is_done_tells_no_verdicts(tmp_path: Path) -> None:
    for line in ("Episode {}: done", "Episode {} Finished", "trial {} S{}", "Episode {} success, step 3/10"):
        text = "".join(line.format(at, at) + "\n" for at in range(6))
        (tmp_path / "log").write_text(text)
        held = Folder(str(tmp_path), ["**/*.jsonl"], Identity("p", "e", ResultRules(), 6), "")
        found = unread(held, (0, 6), str(tmp_path / "log"))
        assert not found or "step" in line


def test_a_table_without_a_header_counts_nothing_and_one_that_begins_again_counts_all(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("".join(f"{at},{int(one)},0.5{at}\n" for at, one in enumerate(SIX)))
    counts = counted(tmp_path, "**/*.csv")
    assert (counts.records, counts.proposes) == (0, False)
    assert "write a header" in why_not_counted(counts.facts)
    parts = ["episode,success\n", *(f"{at},{int(SIX[at])}\n" for at in range(3))]
    more = ["episode,success,time\n", *(f"{at},{int(SIX[at])},1.5\n" for at in range(3, 6))]
    (tmp_path / "r.csv").write_text("".join([*parts, *more]))
    counts = counted(tmp_path, "**/*.csv")
    assert (counts.records, counts.successes) == (6, 4)
