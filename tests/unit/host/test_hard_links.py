"""Files that are made once, and the lock that works on any file system."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from comborun.host.engines.arrays import STALE_S, Lock
from comborun.host.system import files, process

HOUR = 3600.0


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "slurm.lock"


def test_the_first_end_counts(tmp_path: Path) -> None:
    path = str(tmp_path / "end")
    assert files.create_whole(path, "first\n")
    assert not files.create_whole(path, "second\n")
    assert files.read_text(path) == "first\n"
    assert list(tmp_path.iterdir()) == [tmp_path / "end"]


def test_the_lock_is_had_once_however_old_it_is(place: Path) -> None:
    mine, other = Lock(str(place)), Lock(str(place))
    assert mine.take(0)
    os.utime(place, (1, 1))
    assert not other.take(0)
    mine.renew()
    assert time.time() - place.stat().st_mtime < HOUR
    mine.give()
    assert not place.exists()
    assert other.take(0)
    other.give()
    assert not list(place.parent.iterdir())


@pytest.mark.parametrize(
    ("boot", "age", "taken"),
    [(process.boot_id(), 0, True), ("elsewhere", STALE_S - 60, False), ("elsewhere", STALE_S + 60, True)],
)
def test_a_holder_that_is_gone_loses_it_one_of_another_machine_when_it_was_not_renewed(
    place: Path, boot: str, age: float, taken: bool
) -> None:
    files.write(str(place), [("host", "x"), ("boot", boot), ("pid", "4194304"), ("start", "1")])
    then = time.time() - age
    os.utime(place, (then, then))
    lock = Lock(str(place))
    assert lock.take(0) is taken
    lock.give()
    assert place.exists() is not taken
