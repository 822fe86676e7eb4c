"""The follower of a training, with its files and a training's folder: what it does while a checkpoint is read."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from comborun.host.follow import checkpoints, follower, sessions
from comborun.host.record import training
from comborun.host.system import files, process
from comborun.rules import records
from comborun.rules.facts import Fact, facts_of
from comborun.rules.following import PATH, POLICY, STABLE, Decision, Why
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


class EndedError(Exception):
    """The test is over."""


class Lab:
    """A run that follows `folder`, and its follower in a thread."""

    def __init__(self, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.folder, self.layout = path / "ckpt", RunLayout(str(path / "run"))
        self.over, self.open = threading.Event(), threading.Event()
        self.open.set()
        self._read = checkpoints._digest
        (path / "run/dispatch").mkdir(parents=True)
        monkeypatch.setenv("COMBORUN_FOLLOW_S", "0.02")
        monkeypatch.setattr(follower, "_LONG_S", 0.0)
        monkeypatch.setattr(checkpoints, "_CHUNK", 4)
        monkeypatch.setattr(checkpoints, "_digest", self._digest)
        monkeypatch.setattr(sessions, "amend", lambda _: {"state": "amended"})
        monkeypatch.setattr(training, "lives", lambda _: not self.over.is_set())

    def begin(self, done: str = STABLE) -> None:
        rule = {"pattern": f"{self.folder}/ckpt_*.pt", "done": done.format(folder=self.folder), "floor": 1}
        Path(self.layout.plan(1)).write_text(json.dumps({"follow": rule, "sessions": [TEMPLATE]}))
        Path(self.layout.queue).write_text(json.dumps({"name": TEMPLATE["name"], "flag": "dropped"}) + "\n")
        files.write(self.layout.training, {**process.identity()}.items())
        self.thread = threading.Thread(target=self._follow, daemon=True)
        self.thread.start()

    def _follow(self) -> None:
        with suppress(EndedError):
            follower.Follower(self.layout).follow()

    def _digest(self, path: str, told: Callable[[int], object]) -> str:
        told(4)
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


def test_what_has_no_marker_is_told_and_at_the_end_refused(lab: Lab) -> None:
    lab.begin(done="{folder}/ckpt_*.dome")
    (lab.folder / "ckpt_7.pt").write_text("weights")
    (lab.folder / "ckpt_7.done").touch()
    until(lambda: lab.sees("checkpoints_not_complete"))
    lab.over.set()
    until(lambda: lab.record.ended)
    assert [row["reason"].code for row in lab.record.passed] == [Why.NO_MARKER]
    assert records.parse(Path(lab.layout.follower).read_text())["facts"] == ()


def test_a_checkpoint_under_evaluation_is_not_told_as_evaluated(lab: Lab) -> None:
    lab.begin()
    watching(lab)
    lab.rename("ckpt_1.pt")
    until(lambda: lab.decided == {"step_1": Decision.TAKEN})
    assert "0 checkpoints evaluated; 1 not counted yet" in lab.said
