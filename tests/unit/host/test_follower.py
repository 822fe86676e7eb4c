"""The follower of a training, with its files and a training's folder: what it does while a checkpoint is read."""

from __future__ import annotations

import errno
import json
import os
import struct
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from comborun.host.follow import checkpoints, follower, sessions
from comborun.host.follow.appearing import Appearing
from comborun.host.record import training
from comborun.host.system import files, process
from comborun.host.verb_errors import unwritable
from comborun.rules import records
from comborun.rules.facts import Fact, facts_of
from comborun.rules.following import PATH, POLICY, STABLE, Decision, Evidence, Seeing, Why
from comborun.rules.names import RunLayout
from comborun.words import say

TEMPLATE = {
    "name": f"maze_{POLICY}",
    "policy": POLICY,
    "environment": "maze",
    "command": [PATH],
    "digest": "d",
    "flag": "dropped",
}


OVERFLOW = struct.pack("iIII", -1, 0x4000, 0, 0)
"""IN_Q_OVERFLOW: the kernel had too many events and dropped some"""


class EndedError(Exception):
    """The test is over."""


class Lab:
    """A run that follows `folder`, and its follower in a thread."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.layout = path / "ckpt", RunLayout(str(path / "run"))
        self.over, self.open = threading.Event(), threading.Event()
        self.reads = threading.Event()
        """whether a checkpoint was ever read"""
        self.added: list[int] = []
        """sessions that each change of the plan added"""
        self.open.set()
        self._read = checkpoints._digest
        (path / "run/dispatch").mkdir(parents=True)
        monkeypatch.setenv("COMBORUN_FOLLOW_S", "0.02")
        monkeypatch.setattr(follower, "_LONG_S", 0.0)
        monkeypatch.setattr(checkpoints, "_CHUNK", 4)
        monkeypatch.setattr(checkpoints, "_digest", self._digest)
        monkeypatch.setattr(sessions, "amend", self._amend)
        monkeypatch.setattr(training, "lives", lambda _: not self.over.is_set())

    def begin(self, done: str = STABLE, every: int = 1) -> None:
        """Its first life."""
        rule = {
            "pattern": f"{self.folder}/ckpt_*.pt",
            "done": done.format(folder=self.folder),
            "floor": 1,
            "every": every,
        }
        Path(self.layout.plan(1)).write_text(json.dumps({"follow": rule, "sessions": [TEMPLATE]}))
        Path(self.layout.queue).write_text(json.dumps({"name": TEMPLATE["name"], "flag": "dropped"}) + "\n")
        files.write(self.layout.training, {**process.identity()}.items())
        self.live()

    def live(self) -> None:
        self.thread = threading.Thread(target=self._follow, daemon=True)
        self.thread.start()

    def live_again(self) -> None:
        """The follower is killed, and another one goes on."""
        with pytest.MonkeyPatch.context() as kill:
            kill.setattr(follower.Follower, "_wait", ends)
            self.thread.join(20)
        assert not self.thread.is_alive()
        self.open.set()
        self.live()

    def _follow(self) -> None:
        with suppress(EndedError):
            follower.Follower(self.layout).follow()

    def _amend(self, order: dict[str, Any]) -> dict[str, str]:
        self.added.append(order["added"])
        return {"state": "amended"}

    def _digest(self, path: str, told: Callable[[int], object]) -> str:
        told(4)
        self.reads.set()
        assert self.open.wait(20)
        return self._read(path, told)

    def rename(self, name: str, text: str = "weights") -> None:
        (self.folder / ".draft").write_text(text)
        os.rename(self.folder / ".draft", self.folder / name)  # noqa: PTH104

    @property
    def decided(self) -> dict[str, str]:
        return {name: one["decision"] for name, one in self.record.checkpoints.items()}

    @property
    def record(self) -> training.Record:
        return training.record(self.layout)

    @property
    def said(self) -> str:
        summary = training.summary(self.layout)
        return say(summary) if summary else ""

    def sees(self, code: str) -> list[Fact]:
        summary = training.summary(self.layout)
        assert summary
        return [one for one in facts_of(summary.fields.get("sees")) if one.code == code]


def until(condition: Callable[[], object]) -> None:
    limit = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.01)


def ends(_: follower.Follower) -> None:
    raise EndedError


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    made = Lab(tmp_path, monkeypatch)
    made.folder.mkdir()
    yield made
    made.open.set()
    monkeypatch.setattr(follower.Follower, "_wait", ends)
    made.thread.join(20)


def watching(lab: Lab) -> None:
    until(lambda: Path(lab.layout.follower).exists())


def test_while_a_checkpoint_is_read_the_follower_tells_how_far_and_looks_after_the_others(lab: Lab) -> None:
    lab.begin()
    watching(lab)
    lab.rename("ckpt_1.pt")
    until(lambda: lab.decided == {"step_1": Decision.TAKEN})
    lab.open.clear()
    lab.rename("ckpt_2.pt", "twelve bytes")
    read = {"name": "ckpt_2.pt", "read": 4, "size": 12}
    until(lambda: [one.fields for one in lab.sees("checkpoint_read")] == [read])
    Path(lab.record.checkpoints["step_1"]["link"]).write_text("another content")
    until(lambda: lab.decided == {"step_1": Decision.CHANGED})
    assert lab.sees("checkpoint_read"), "it is still read"
    lab.open.set()
    until(lambda: lab.decided.get("step_2") == Decision.TAKEN)
    until(lambda: not lab.sees("checkpoint_read"))


def test_a_folder_that_is_made_again_is_watched_again(lab: Lab) -> None:
    lab.begin()
    watching(lab)
    lab.folder.rename(lab.folder.with_name("old"))
    until(lambda: lab.sees("training_without_folder"))
    lab.folder.mkdir()
    until(lambda: not lab.sees("training_without_folder"))
    lab.rename("ckpt_1.pt")
    until(lambda: lab.decided == {"step_1": Decision.TAKEN})


def test_what_the_kernel_lost_is_found_by_a_look(lab: Lab, monkeypatch: pytest.MonkeyPatch) -> None:
    lab.begin()
    watching(lab)
    lab.rename("ckpt_1.pt")
    until(lambda: lab.decided == {"step_1": Decision.TAKEN})
    take, full = Appearing._take, threading.Event()

    def lose(self: Appearing, data: bytes) -> None:
        lost = b"ckpt_2" in data
        take(self, OVERFLOW if lost else data)
        if lost:
            full.set()

    with monkeypatch.context() as kernel:
        kernel.setattr(Appearing, "_take", lose)
        lab.rename("ckpt_2.pt", "unheard")
        assert full.wait(20)
    until(lambda: lab.decided.get("step_2") == Decision.TAKEN)
    assert lab.record.checkpoints["step_2"]["evidence"] == Evidence.AS_OTHERS


def test_what_has_no_marker_is_told_and_at_the_end_refused(lab: Lab) -> None:
    lab.begin(done="{folder}/ckpt_*.dome")
    (lab.folder / "ckpt_7.pt").write_text("weights")
    (lab.folder / "ckpt_7.done").touch()
    until(lambda: lab.sees("checkpoints_not_complete"))
    lab.over.set()
    until(lambda: lab.record.ended)
    assert [row["reason"].code for row in lab.record.passed] == [Why.NO_MARKER]
    assert records.parse(Path(lab.layout.follower).read_text())["facts"] == ()


def test_what_was_told_as_not_complete_and_then_deleted_is_in_the_record(lab: Lab) -> None:
    lab.begin(done="{folder}/ckpt_*.done", every=2)
    (lab.folder / "ckpt_7.pt").write_text("weights")
    until(lambda: lab.sees("checkpoints_not_complete"))
    (lab.folder / "ckpt_7.pt").unlink()
    until(lambda: lab.record.passed)
    (passed,) = lab.record.passed
    assert (passed["path"], passed["reason"].code) == (str(lab.folder / "ckpt_7.pt"), Why.GONE)
    assert lab.record.complete == 0, "it takes no turn of `every`"


def test_what_is_written_again_after_it_was_taken_is_told_with_what_was_taken(lab: Lab) -> None:
    lab.begin(done="{folder}/ckpt_*.done")
    path, marker = lab.folder / "ckpt_7.pt", lab.folder / "ckpt_7.done"
    path.write_text("weights")
    marker.touch()
    lab.open.set()
    until(lambda: lab.decided.get("step_7") == Decision.TAKEN)
    with path.open("a") as file:
        file.write("more")
    os.utime(path, ns=(0, marker.stat().st_mtime_ns + 10**9))
    lab.over.set()
    until(lambda: lab.record.ended)
    (reason,) = [row["reason"] for row in lab.record.passed]
    assert (reason.code, reason.fields["policy"]) == (Why.NO_MARKER, "step_7")


def test_what_is_written_in_place_after_it_was_verified_counts_and_is_told(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also under another name, while the training goes on."""
    monkeypatch.setattr(checkpoints, "_cloned", lambda *_: False)
    monkeypatch.setattr(sessions.Sessions, "attempts_ended", lambda *_: 1)
    lab.begin()
    watching(lab)
    (lab.folder / ".folder").mkdir()
    for name in ("model", "optimizer"):
        (lab.folder / ".folder" / name).write_text(name)
    (lab.folder / ".folder").rename(lab.folder / "ckpt_0.pt")
    until(lambda: lab.decided.get("step_0") == Decision.VERIFIED)
    for step in (1, 2, 3):
        lab.rename(f"ckpt_{step}.pt", f"weights{step}")
        until(lambda step=step: lab.decided.get(f"step_{step}") == Decision.VERIFIED)
    Path(lab.record.checkpoints["step_0"]["link"], "optimizer").unlink()
    old = (lab.folder / "ckpt_1.pt").rename(lab.folder / "old_1.pt")
    os.utime(lab.folder / "ckpt_2.pt", (1, 1))
    until(lambda: lab.record.checkpoints["step_2"]["kept"].split("-")[2] == "1000000000")
    Path(lab.record.checkpoints["step_3"]["link"]).unlink()
    until(lambda: lab.record.checkpoints["step_3"]["kept"] == "gone")
    old.write_text("WEIGHTS1")
    until(lambda: lab.record.written_over)
    assert lab.record.written_over == ["step_1"], "the second has the same content, and of others something was removed"
    assert set(lab.decided.values()) == {Decision.VERIFIED}
    assert "written again by the training: step_1" in lab.said
    rows = len(Path(lab.layout.checkpoints).read_text().splitlines())
    lab.rename("ckpt_4.pt", "weights4")
    until(lambda: lab.decided.get("step_4") == Decision.VERIFIED)
    read = [row for row in files.read_rows(lab.layout.checkpoints)[rows:] if row.get("policy") != "step_4"]
    assert not [row for row in read if row.get("policy")], "each is read once"


def test_a_folder_that_gets_more_files_after_its_marker_does_not_count(lab: Lab) -> None:
    lab.begin(done="{folder}/ckpt_*.done")
    folder = lab.folder / "ckpt_7.pt"
    folder.mkdir()
    (folder / "shard1").write_text("half")
    (lab.folder / "ckpt_7.done").touch()
    until(lambda: lab.decided.get("step_7") == Decision.TAKEN)
    (folder / "shard2").write_text("the other half")
    until(lambda: lab.decided == {"step_7": Decision.CHANGED})


def test_what_is_left_of_a_folder_that_is_being_deleted_is_no_other_checkpoint(lab: Lab) -> None:
    """Whether it was taken, or passed over: its marker is still there, and it lacks files."""
    lab.begin(done="{folder}/ckpt_*.done", every=2)
    for step in (1, 2):
        folder = lab.folder / f"ckpt_{step}.pt"
        folder.mkdir()
        for name in ("model", "optimizer"):
            (folder / name).write_text(f"{name}{step}")
        (lab.folder / f"ckpt_{step}.done").touch()
        until(lambda step=step: len(lab.decided) + len(lab.record.passed) == step)
    for step in (1, 2):
        (lab.folder / f"ckpt_{step}.pt/optimizer").unlink()
    marker = lab.folder / "ckpt_3.pt"
    marker.write_text("the third, which is seen later")
    (lab.folder / "ckpt_3.done").touch()
    until(lambda: "step_3" in lab.decided)
    assert list(lab.decided) == ["step_1", "step_3"]
    assert [row["reason"].code for row in lab.record.passed] == [Why.NOT_DUE]


def test_a_checkpoint_without_room_is_taken_when_there_is_room_unless_another_one_is_newer(
    lab: Lab, monkeypatch: pytest.MonkeyPatch
) -> None:
    needs = {"floor": 1 << 60}
    room_for = checkpoints.room_for
    monkeypatch.setattr(
        checkpoints, "room_for", lambda seen, place, _, owed: room_for(seen, place, needs["floor"], owed)
    )

    def passed() -> list[tuple[str, str, str]]:
        return [(Path(one["path"]).name, one["decision"], one["reason"].code) for one in lab.record.passed]

    def waits(name: str) -> None:
        until(lambda: [one.fields["name"] for one in lab.sees("checkpoint_waits_for_room")] == [name])

    lab.begin()
    watching(lab)
    lab.rename("ckpt_1.pt")
    waits("ckpt_1.pt")
    lab.rename("ckpt_2.pt", "others")
    waits("ckpt_2.pt")
    skipped = [("ckpt_1.pt", Decision.SKIPPED, Why.NO_ROOM)]
    assert passed() == skipped
    needs["floor"] = 1
    until(lambda: lab.decided == {"step_2": Decision.TAKEN})
    assert not lab.sees("checkpoint_waits_for_room")
    needs["floor"] = 1 << 60
    lab.rename("ckpt_3.pt", "third")
    waits("ckpt_3.pt")
    (lab.folder / "ckpt_3.pt").unlink()
    skipped += [("ckpt_3.pt", Decision.SKIPPED, Why.NO_ROOM)]
    until(lambda: passed() == skipped)
    lab.rename("ckpt_4.pt", "fourth")
    waits("ckpt_4.pt")
    lab.over.set()
    until(lambda: passed() == [*skipped, ("ckpt_4.pt", Decision.REFUSED, Why.NO_ROOM)])


@pytest.mark.parametrize("killed", [False, True])
def test_a_checkpoint_that_waits_for_room_keeps_its_turn(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    full, room_for = [True], checkpoints.room_for

    def room(seen: checkpoints.Seen, place: str, _: int, owed: int) -> None:
        room_for(seen, place, 1 << 60 if full[0] else 1, owed)

    monkeypatch.setattr(checkpoints, "room_for", room)
    lab.begin(every=2)
    watching(lab)
    lab.rename("ckpt_1.pt")
    until(lambda: lab.sees("checkpoint_waits_for_room"))
    lab.rename("ckpt_2.pt", "not due")
    until(lambda: lab.record.passed)
    if killed:
        lab.live_again()
    full[0] = False
    until(lambda: lab.decided == {"step_1": Decision.TAKEN})
    assert [one["reason"].code for one in lab.record.passed] == [Why.NOT_DUE]


def test_what_was_seen_of_a_checkpoint_that_is_read_outlives_the_follower(lab: Lab) -> None:
    lab.open.clear()
    lab.begin()
    watching(lab)
    lab.rename("ckpt_1.pt")
    assert lab.reads.wait(20)
    lab.rename("ckpt_2.pt", "heard while the first is read")
    until(lambda: len(lab.record.seen) == 2)
    lab.live_again()
    until(lambda: lab.decided == {"step_2": Decision.TAKEN})
    assert lab.record.checkpoints["step_2"]["evidence"] == Evidence.RENAMED
    assert [(one["path"][-9:], one["reason"].code) for one in lab.record.passed] == [("ckpt_1.pt", Why.NEWER)]


def test_the_first_checkpoint_counts_though_its_follower_is_killed_while_it_is_read(lab: Lab) -> None:
    lab.open.clear()
    lab.begin()
    watching(lab)
    lab.rename("ckpt_1.pt")
    assert lab.reads.wait(20)
    lab.live_again()
    until(lambda: lab.decided == {"step_1": Decision.TAKEN})
    assert lab.record.checkpoints["step_1"]["evidence"] == Evidence.RENAMED


def test_what_was_seen_to_be_written_in_place_outlives_the_follower(lab: Lab) -> None:
    lab.begin()
    watching(lab)
    lab.rename("ckpt_1.pt")
    until(lambda: lab.decided == {"step_1": Decision.TAKEN})
    lab.open.clear()
    lab.rename("ckpt_2.pt", "is read")
    until(lambda: lab.record.due)
    (lab.folder / "ckpt_3.pt").write_text("half")
    until(lambda: len(lab.record.seen) == 3)
    lab.live_again()
    until(lambda: lab.record.passed)
    assert [one["reason"].code for one in lab.record.passed] == [Why.IN_PLACE]
    until(lambda: lab.decided.get("step_2") == Decision.TAKEN)


def test_a_checkpoint_that_goes_before_the_next_life_of_the_follower_is_told(lab: Lab) -> None:
    lab.open.clear()
    lab.begin()
    watching(lab)
    lab.rename("ckpt_1.pt")
    assert lab.reads.wait(20)
    (lab.folder / "ckpt_1.pt").unlink()
    lab.live_again()
    until(lambda: lab.record.passed)
    assert [(one["decision"], one["reason"].code) for one in lab.record.passed] == [(Decision.SKIPPED, Why.GONE)]


def refuse(monkeypatch: pytest.MonkeyPatch, part: str, full: list[bool]) -> None:
    """This part of the work finds a full disk."""
    owner, name = {
        "draft": (os, "makedirs"),
        "link": (checkpoints, "_keep_file"),
        "record": (files, "add"),
        "plan": (sessions, "amend"),
    }[part]
    works = getattr(owner, name)

    def refused(*given: object, **more: object) -> object:
        if full[0] and not (part == "record" and "checkpoints" not in str(given[0])):
            error = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
            try:
                raise error
            except OSError:
                if part == "plan":
                    raise unwritable("plan", error) from None
                raise
        return works(*given, **more)

    monkeypatch.setattr(owner, name, refused)


@pytest.mark.parametrize("part", ["draft", "link", "record", "plan"])
def test_a_full_disk_is_told_and_the_checkpoint_taken_once_there_is_room(
    lab: Lab, monkeypatch: pytest.MonkeyPatch, part: str
) -> None:
    lab.begin()
    watching(lab)
    full, write_text = [True], files.write_text
    refuse(monkeypatch, part, full)
    monkeypatch.setattr(files, "write_text", lambda *given: not full[0] and write_text(*given))
    lab.rename("ckpt_1.pt")
    code = Seeing.NO_ROOM if part in ("draft", "link") else Seeing.DISK_FULL
    until(lambda: lab.sees(code))
    assert "No space left on device" in lab.said
    full[0] = False
    until(lambda: lab.decided == {"step_1": Decision.TAKEN} and not lab.sees(code))
    until(lambda: lab.added)
    assert not lab.record.passed


def test_a_checkpoint_under_evaluation_is_not_told_as_evaluated(lab: Lab) -> None:
    lab.begin()
    watching(lab)
    lab.rename("ckpt_1.pt")
    until(lambda: lab.decided == {"step_1": Decision.TAKEN})
    assert "0 checkpoints evaluated; 1 not counted yet" in lab.said
