"""Checkpoints on the disk, in all the ways in which a training may leave them."""

from __future__ import annotations

import errno
import hashlib
import os
import shutil
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from comborun.host.follow import checkpoints
from comborun.host.follow.appearing import Appearing, Pattern
from comborun.host.follow.checkpoints import FlawedError, Seen, added_to, digest_of, keep, room_for
from comborun.rules.following import Why


@pytest.fixture
def made(tmp_path: Path) -> Path:
    path = tmp_path / "ckpt_1.pt"
    path.write_bytes(b"weights")
    (tmp_path / "kept").mkdir()
    return path


def kept(path: Path) -> str:
    return str(path.parent / "kept" / path.name)


def why(path: Path) -> str:
    with pytest.raises(FlawedError) as flawed:
        keep(Seen(str(path)), kept(path))
    return flawed.value.fact.code


def test_a_link_outlives_the_training_s_own_name(made: Path) -> None:
    how = keep(Seen(str(made)), kept(made))
    digest = digest_of(Seen(kept(made)))
    made.unlink()
    assert Path(kept(made)).read_bytes() == b"weights"
    assert how in ("hard link", "reflink")
    assert digest == hashlib.sha256(b"weights").hexdigest()


def test_a_file_that_is_rewritten_or_shrunk_in_place_has_another_mark_or_digest(made: Path) -> None:
    keep(Seen(str(made)), kept(made))
    before, digest = Seen(kept(made)).mark, digest_of(Seen(kept(made)))
    if made.samefile(kept(made)):
        made.write_bytes(b"wei")
        assert Seen(kept(made)).mark != before
        made.write_bytes(b"WEIGHTS")
        os.utime(str(made), ns=(0, int(before.split("-")[2])))
        assert Seen(kept(made)).mark == before, "same inode, size and time"
        assert digest_of(Seen(kept(made))) != digest


def test_what_is_written_again_while_it_is_linked_is_refused(made: Path) -> None:
    seen = Seen(str(made))
    made.write_bytes(b"other weights")
    with pytest.raises(FlawedError) as flawed:
        keep(seen, kept(made))
    assert flawed.value.fact.code == Why.REWRITTEN


def test_what_is_gone_while_it_is_linked_is_refused(made: Path) -> None:
    seen = Seen(str(made))
    made.unlink()
    with pytest.raises(FlawedError) as flawed:
        keep(seen, kept(made))
    assert flawed.value.fact.code == Why.GONE
    with pytest.raises(FlawedError):
        Seen(str(made))


def test_a_folder_is_kept_with_all_its_files_and_its_digest_names_them(tmp_path: Path) -> None:
    folder = tmp_path / "step_1"
    (folder / "deep").mkdir(parents=True)
    (folder / "a").write_text("1")
    (folder / "deep/b").write_text("2")
    (tmp_path / "kept").mkdir()
    keep(Seen(str(folder)), kept(folder))
    digest = digest_of(Seen(kept(folder)))
    shutil.rmtree(str(folder))
    again = Path(kept(folder))
    assert (again / "deep/b").read_text() == "2"
    (again / "a").rename(again / "c")
    assert digest_of(Seen(str(again))) != digest


@pytest.mark.parametrize("kind", ["link", "pipe", "folder_with_link", "folder_with_linked_folder"])
def test_what_is_no_file_is_refused(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "ckpt_1.pt"
    if kind == "pipe":
        os.mkfifo(str(path))
    elif kind == "link":
        path.symlink_to("/etc/hostname")
    else:
        path.mkdir()
        (path / "x").symlink_to("/etc/hostname" if kind == "folder_with_link" else "/etc")
    with pytest.raises(FlawedError) as flawed:
        Seen(str(path))
    assert flawed.value.fact.code == Why.NO_FILE


@pytest.mark.parametrize("by_reflink", [False, True])
@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda at: None, False),
        (lambda at: (at / "shard2").write_text("rest"), True),
        (lambda at: (at / "shard1").write_text("whole"), True),
        (lambda at: (at / "shard2").symlink_to("shard1"), True),
        (lambda at: (at / "shard1").unlink(), False),
        (shutil.rmtree, False),
        (lambda at: (at.rename(at.with_name("old")), at.mkdir(), (at / "shard3").write_text("again")), False),
    ],
)
def test_what_is_written_on_after_it_was_kept_is_seen_where_the_training_writes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, change: Callable[[Path], object], told: bool, by_reflink: bool
) -> None:
    if by_reflink:
        monkeypatch.setattr(checkpoints, "_cloned", lambda source, target, _: shutil.copyfile(source, target) == target)
    folder, target = tmp_path / "step_1", str(tmp_path / "kept/step_1")
    (folder / "deep").mkdir(parents=True)
    for name in ("shard1", "deep/config"):
        (folder / name).write_text("half")
        os.utime(folder / name, ns=(0, 10**9))
    seen = Seen(str(folder))
    keep(seen, target)
    change(folder)
    assert added_to(str(folder), seen.mark, target) == told


def test_an_empty_file_is_refused(made: Path) -> None:
    made.write_bytes(b"")
    assert why(made) == Why.EMPTY


@pytest.mark.parametrize(
    ("error", "owner", "code"),
    [(errno.EXDEV, 0, Why.ELSEWHERE), (errno.EPERM, 1, Why.FOREIGN), (errno.EPERM, 0, Why.UNREADABLE)],
)
def test_where_no_link_can_be_made_the_reason_is_told(
    made: Path, monkeypatch: pytest.MonkeyPatch, error: int, owner: int, code: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(error, os.strerror(error))

    monkeypatch.setattr(checkpoints, "_cloned", lambda *_: False)
    monkeypatch.setattr(os, "link", refuse)
    monkeypatch.setattr(os, "geteuid", lambda: made.stat().st_uid + owner)
    assert why(made) == code


def test_the_floor_counts_what_links_will_keep_alone(made: Path) -> None:
    disk = os.statvfs(str(made.parent))
    free, seen = disk.f_bavail * disk.f_frsize, Seen(str(made))
    room_for(seen, str(made.parent), 1, 0)
    for floor, owed in ((2 * free, 0), (1, 2 * free)):
        with pytest.raises(FlawedError) as flawed:
            room_for(seen, str(made.parent), floor, owed)
        assert flawed.value.fact.code == Why.NO_ROOM


def heard(folder: Path) -> Appearing:
    appearing = Appearing(Pattern(f"{folder}/ckpt_*.pt"))
    assert appearing.fd >= 0
    return appearing


def test_a_rename_and_a_file_that_is_written_in_place_are_told_apart(tmp_path: Path) -> None:
    appearing = heard(tmp_path)
    (tmp_path / "draft").write_text("1")
    (tmp_path / "draft").rename(tmp_path / "ckpt_1.pt")
    (tmp_path / "ckpt_2.pt").write_text("2")
    (tmp_path / "ckpt_3.pt").mkdir()
    (tmp_path / "ckpt_last.pt").write_text("no step")
    appearing.hear()
    assert appearing.renamed == {"ckpt_1.pt": Seen(str(tmp_path / "ckpt_1.pt")).mark}
    assert appearing.in_place == {"ckpt_2.pt", "ckpt_3.pt"}
    (tmp_path / "ckpt_1.pt").write_text("again")
    (tmp_path / "ckpt_2.pt").rename(tmp_path / "ckpt_4.pt")
    appearing.hear()
    assert "ckpt_1.pt" in appearing.in_place
    assert "ckpt_4.pt" in appearing.renamed


def test_a_file_that_is_cut_after_its_rename_does_not_count_as_renamed(tmp_path: Path) -> None:
    appearing = heard(tmp_path)
    (tmp_path / "draft").write_text("whole")
    (tmp_path / "draft").rename(tmp_path / "ckpt_1.pt")
    os.truncate(str(tmp_path / "ckpt_1.pt"), 1)
    appearing.hear()
    assert not appearing.renamed


def test_a_file_that_is_still_written_is_neither(tmp_path: Path) -> None:
    appearing = heard(tmp_path)
    with (tmp_path / "ckpt_1.pt").open("w") as file:
        file.write("half")
        file.flush()
        appearing.hear()
        assert not appearing.renamed
        assert not appearing.in_place
    appearing.hear()
    assert appearing.in_place == {"ckpt_1.pt"}


def test_a_folder_that_is_made_later_is_watched_from_then_on(tmp_path: Path) -> None:
    appearing = Appearing(Pattern(f"{tmp_path}/later/ckpt_*.pt"))
    assert appearing.fd < 0
    (tmp_path / "later").mkdir()
    assert appearing.fd >= 0


def test_a_queue_of_the_kernel_that_overflowed_is_told_once_and_the_folder_watched_anew(tmp_path: Path) -> None:
    found = heard(tmp_path)
    (tmp_path / ".draft").write_text("weights")
    (tmp_path / ".draft").rename(tmp_path / "ckpt_1.pt")
    found.hear()
    assert not found.is_deaf()
    found._take(struct.pack("iIII", -1, 0x4000, 0, 0))
    assert found.is_deaf()
    assert (found.fd >= 0, found.is_deaf()) == (True, False)
    with pytest.raises(BlockingIOError):
        os.read(found.fd, 1)
    assert "ckpt_1.pt" in found.renamed, "it is the same folder, so what was heard holds"
    (tmp_path / ".draft").write_text("weights")
    (tmp_path / ".draft").rename(tmp_path / "ckpt_2.pt")
    found.hear()
    assert "ckpt_2.pt" in found.renamed


def test_a_pattern_finds_what_stands_below_the_name_with_the_star(tmp_path: Path) -> None:
    for name in ("step_1/model", "step_2", "other"):
        (tmp_path / name).mkdir(parents=True)
    found = list(Pattern(f"{tmp_path}/step_*/model").found())
    assert found == [("1", "step_1", f"{tmp_path}/step_1/model")]
