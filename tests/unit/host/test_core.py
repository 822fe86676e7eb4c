"""The core of the host program: records, claims, locks, processes."""

from __future__ import annotations

import os

import pytest

from comborun.host.system import files, process
from comborun.rules import records


def test_a_record_is_read_as_it_was_written(tmp_path):
    file = str(tmp_path / "end")
    assert files.write(file, [("code", 0), ("note", "a=b\nc"), ("class", "")])
    assert files.read(file) == {"code": "0", "note": "a=b\nc", "class": ""}
    assert [entry.name for entry in tmp_path.iterdir()] == ["end"]


def test_fields_are_read_as_text_or_as_lists_of_text_whatever_their_type():
    """A list where a text is expected, and the other way round, is as if it were not there."""
    text = '{"code": 0, "at": 1.5, "note": null, "log": true, "cause": ["a"], "tokens": ["a", 2], "only": "a"}'
    read = {"code": "0", "at": "1.5", "note": "", "log": "1", "cause": "", "tokens": ["a", "2"], "only": []}
    assert records.parse(text) == read
    assert records.parse('{"more": {"x": 1}}') == {"more": ""}
    assert (records.texts(read, "tokens"), records.texts(read, "code")) == (("a", "2"), ())
    assert (records.integer({"code": ["1"]}, "code"), records.seconds({}, "at")) == (None, None)


@pytest.mark.parametrize("content", [b"\xff\xfe\x00", b"", b"[1]", b'{"torn": "', b"x" * (2 << 20)])
def test_a_foreign_record_is_no_record(tmp_path, content):
    (tmp_path / "end").write_bytes(content)
    assert files.read(str(tmp_path / "end")) == {}


def test_a_record_that_is_a_fifo_or_a_folder_is_no_record(tmp_path):
    os.mkfifo(str(tmp_path / "fifo"))
    (tmp_path / "folder").mkdir()
    assert files.read(str(tmp_path / "fifo")) == files.read(str(tmp_path / "folder")) == {}


def test_a_claim_is_made_once(tmp_path):
    assert files.create(str(tmp_path / "claim"), '{"supervisor": 1}\n')
    assert not files.create(str(tmp_path / "claim"), '{"supervisor": 2}\n')
    assert files.read(str(tmp_path / "claim")) == {"supervisor": "1"}


def test_a_full_disk_leaves_no_part_of_a_record():
    assert not files.write("/dev/full/end", [("code", 0)])


def test_a_lock_is_had_once_and_seen_by_others(tmp_path):
    file = str(tmp_path / "lock")
    assert not files.held(file)
    first = files.lock(file)
    assert first >= 0
    assert files.lock(file) == -1
    assert files.held(file)
    os.close(first)
    assert not files.held(file)


def test_this_process_lives_and_with_another_start_or_boot_it_is_another(tmp_path):
    pid, start, boot = (process.identity()[key] for key in ("pid", "start", "boot"))
    assert process.alive(pid, start, boot)
    assert not process.alive(pid, start + "1", boot)
    assert not process.alive(pid, start, "another")
    assert not process.alive("", "", boot)
