"""The core of the host program: records, claims, locks, processes."""

from __future__ import annotations

import os
import subprocess
import sys
import time

import pytest

from comborun.host import files, process, reap
from comborun.rules import records


def test_a_record_is_read_as_it_was_written(tmp_path):
    file = str(tmp_path / "end")
    assert files.write(file, [("code", 0), ("note", "a=b\nc"), ("class", "")])
    assert files.read(file) == {"code": "0", "note": "a=b\nc", "class": ""}
    assert [entry.name for entry in tmp_path.iterdir()] == ["end"]


def test_fields_are_read_as_text_whatever_their_type():
    text = '{"code": 0, "at": 1.5, "note": null, "log": true, "results": ["a", 2], "more": {"x": 1}}'
    assert records.parse(text) == {"code": "0", "at": "1.5", "note": "", "log": "1", "results": ["a", "2"], "more": ""}
    assert (records.texts(records.parse(text), "results"), records.texts(records.parse(text), "code")) == (
        ("a", "2"),
        (),
    )
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
    pid, start, boot = process.identity()
    assert process.alive(pid, start, boot)
    assert not process.alive(pid, start + "1", boot)
    assert not process.alive(pid, start, "another")
    assert not process.alive("", "", boot)


def test_a_zombie_does_not_live():
    child = subprocess.Popen(["true"])
    deadline = time.monotonic() + 10
    while process.look(child.pid).state != "Z":
        assert time.monotonic() < deadline
    assert not process.look(child.pid).lives
    child.wait()
    assert process.look(child.pid) is None


FORKS = """
import os, sys, time
print("up", flush=True)
for _ in range(3000):  # a minute, whatever becomes of the test
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        time.sleep(0.02)
        continue
    time.sleep(0.02)
    os._exit(0)
"""


def test_a_sweep_ends_what_forks_into_new_sessions(tmp_path):
    marker = f"run-{os.getpid()}/forks/1"
    environment = dict(os.environ, COMBORUN_SESSION=marker)
    child = subprocess.Popen([sys.executable, "-c", FORKS], env=environment, stdout=subprocess.PIPE)
    assert child.stdout.readline() == b"up\n"
    assert any(process.marked(marker.rpartition("/")[0] + "/") for _ in range(200)), "one look may miss each of them"
    assert reap.sweep(marker, 0, 0.2) == []
    child.wait()
    child.stdout.close()
    assert process.marked(marker) == []
