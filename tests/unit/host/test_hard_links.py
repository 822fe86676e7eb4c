"""Files that are made once, and the lock that works on any file system."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from comborun.host import files, process
from comborun.host.engines.arrays import STALE_S, Lock

HOUR = 3600.0


@pytest.fixture
def place(tmp_path: Path) -> Path:
    return tmp_path / "slurm.lock"


def hold(place: Path, boot: str, pid: str = "4194304") -> None:
    files.write(str(place), [("host", "x"), ("boot", boot), ("pid", pid), ("start", "1")])


def test_the_first_end_counts(tmp_path: Path) -> None:
    path = str(tmp_path / "end")
    assert files.create_whole(path, "first\n")
    assert not files.create_whole(path, "second\n")
    assert files.read_text(path) == "first\n"
    assert list(tmp_path.iterdir()) == [tmp_path / "end"]


def test_the_lock_is_had_once(place: Path) -> None:
    mine, other = Lock(str(place)), Lock(str(place))
    assert mine.take(0)
    assert not other.take(0)
    mine.give()
    assert not place.exists()
    assert other.take(0)
    other.give()
    assert not list(place.parent.iterdir())


def test_a_holder_that_lives_here_keeps_it_however_old_it_is(place: Path) -> None:
    mine = Lock(str(place))
    assert mine.take(0)
    old = time.time() - HOUR
    os.utime(place, (old, old))
    assert not Lock(str(place)).take(0)
    mine.give()


def test_a_holder_of_this_machine_that_is_gone_loses_it(place: Path) -> None:
    hold(place, process.boot_id())
    lock = Lock(str(place))
    assert lock.take(0)
    lock.give()
    assert not list(place.parent.iterdir())


@pytest.mark.parametrize(("age", "taken"), [(STALE_S - 60, False), (STALE_S + 60, True)])
def test_a_holder_of_another_machine_loses_it_when_it_was_not_renewed(place: Path, age: float, taken: bool) -> None:
    hold(place, "elsewhere")
    then = time.time() - age
    os.utime(place, (then, then))
    lock = Lock(str(place))
    assert lock.take(0) is taken
    lock.give()


def test_a_lock_that_is_renewed_is_young(place: Path) -> None:
    lock = Lock(str(place))
    assert lock.take(0)
    os.utime(place, (1, 1))
    lock.renew()
    assert time.time() - place.stat().st_mtime < HOUR
    lock.give()
