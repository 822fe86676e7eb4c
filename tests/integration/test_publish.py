"""Publishing a run: whole or not at all, once for one grid, whoever launches and however often."""

from __future__ import annotations

import re
import subprocess
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest

from comborun.command import fill
from comborun.errors import HostError
from comborun.plan import Limits, Plan, ResultRules, Session
from remote.launch import Publication, publish
from remote.local import LocalTransport

SESSION = Session("e_p", "p", "e", "episode", 0, 2, None, fill("true", {}), "", None, (), 0, ResultRules(), "d1")
PLAN = Plan("my-grid", (SESSION,), Limits(1, 1, 0.0, 2), (), None, 60.0, "digest-1")
CHANGED = replace(PLAN, digest="digest-2")


def put(root: Path, plan: Plan = PLAN, *, new: bool = False) -> Publication:
    return publish(LocalTransport(), plan, "name: my-grid\n", str(root), {}, new=new)


def end(publication: Publication, **outcomes: int) -> None:
    counts = {"succeeded": 0, "cancelled": 0, "lost": 0} | outcomes
    record = "".join(f"{key}={value}\n" for key, value in counts.items())
    Path(publication.directory, "dispatch/done").write_text(record)


def test_a_new_run_has_an_id_that_tells_grid_and_time(tmp_path: Path) -> None:
    publication = put(tmp_path)
    assert publication.state == "new"
    assert re.fullmatch(r"my-grid-\d{8}T\d{6}Z-[0-9a-f]{4}", publication.run)
    assert Path(publication.directory, "id").read_text() == publication.run + "\n"
    assert Path(publication.directory) == tmp_path / publication.run


def test_the_same_grid_again_is_the_same_run_until_it_has_finished(tmp_path: Path) -> None:
    first = put(tmp_path)
    assert put(tmp_path) == replace(first, state="resumed")
    end(first, succeeded=1)
    assert put(tmp_path) == replace(first, state="finished")


@pytest.mark.parametrize("outcome", ["lost", "cancelled"])
def test_a_run_that_lost_sessions_is_resumed_though_it_had_ended(tmp_path: Path, outcome: str) -> None:
    first = put(tmp_path)
    end(first, **{outcome: 1})
    assert put(tmp_path).state == "resumed"


def test_new_starts_another_run_of_a_finished_grid_and_of_an_unfinished_one(tmp_path: Path) -> None:
    first = put(tmp_path)
    second = put(tmp_path, new=True)
    assert (second.state, second.run == first.run) == ("new", False)


def test_a_changed_grid_does_not_touch_an_unfinished_run(tmp_path: Path) -> None:
    first = put(tmp_path)
    assert put(tmp_path, CHANGED) == replace(first, state="changed")
    end(first, succeeded=1)
    assert put(tmp_path, CHANGED).state == "new"


def test_a_grid_whose_name_begins_like_another_is_another_grid(tmp_path: Path) -> None:
    put(tmp_path)
    assert put(tmp_path, replace(PLAN, grid="my")).state == "new"


def test_eight_launches_at_once_are_one_run(tmp_path: Path) -> None:
    with ThreadPoolExecutor(8) as pool:
        publications = list(pool.map(lambda _: put(tmp_path), range(8)))
    assert sorted(publication.state for publication in publications) == ["new"] + ["resumed"] * 7
    assert len({publication.run for publication in publications}) == 1


def test_nothing_but_the_run_is_left_behind(tmp_path: Path) -> None:
    publication = put(tmp_path)
    put(tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {publication.run, ".incoming", ".lock"}
    assert not list((tmp_path / ".incoming").iterdir())


def test_a_root_may_have_blanks_and_quotes(tmp_path: Path) -> None:
    assert Path(put(tmp_path / "it's a root").directory).is_dir()


def test_a_root_that_can_not_be_written_is_told(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(HostError) as caught:
        put(tmp_path / "file")
    assert "can't make the folder" in caught.value.hint


def test_a_full_disk_leaves_no_run(tmp_path: Path) -> None:
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=16k", "x", tmp_path], capture_output=True, check=False
    )
    if mounted.returncode:
        pytest.skip("mounting a small file system needs root")
    try:
        with pytest.raises(HostError) as caught:
            put(tmp_path)
        assert "is the disk full?" in caught.value.hint
        assert not list(tmp_path.glob("my-grid-*"))
        assert not list((tmp_path / ".incoming").iterdir())
    finally:
        subprocess.run(["umount", tmp_path], check=True)
