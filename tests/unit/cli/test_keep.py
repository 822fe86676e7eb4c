"""`combo keep`: what it prints, and that it begins only where it reaches every host."""

from __future__ import annotations

import json
from types import SimpleNamespace
from typing import Any

import monitor_stage as stage
import pytest

from comborun.api import joint
from comborun.api.moving import Moved
from comborun.cli.keep import _check_reach, _Lines
from comborun.errors import HostError, UserError
from comborun.monitor.snapshot import UNKNOWN_USE
from comborun.monitor.status import UP, HostStatus, Link, RunStatus
from comborun.remote.boxes import Answered, BoxState
from comborun.rules.deal import Deal, Era, Stops
from comborun.rules.facts import Fact


def status(**links: Link) -> RunStatus:
    seen = stage.status_of(stage.a_view(stage.a_plan([stage.a_session("p", "maze")])))
    hosts = (HostStatus(host, "run", link, counts={}, use=UNKNOWN_USE) for host, link in links.items())
    return RunStatus(**{**vars(seen), "hosts": (*hosts,)})


AWAY = Link(reachable=False, complaint="no route to host")


def told(capsys: pytest.CaptureFixture[str], *, as_json: bool) -> list[str]:
    lines = _Lines("kitchen", as_json=as_json)
    lines.begin(["x", "y"])
    for y in (UP, AWAY, AWAY, UP):
        lines.show(status(x=UP, y=y))
    lines.moved(Moved("s1", "x", "y"))
    lines.end(status(x=UP, y=UP))
    return capsys.readouterr().out.splitlines()


def test_a_line_for_each_move_and_for_each_change_of_a_host(capsys: pytest.CaptureFixture[str]) -> None:
    lines = [line.partition("  ")[2] for line in told(capsys, as_json=False)]
    assert lines == [
        "kitchen on x, y: what waits may move",
        "! y does not answer: no route to host",
        "y answers again",
        "s1: x -> y",
        "ended: 1 queued; 1 move",
    ]


def test_a_loss_that_was_cut_off_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    half = Fact("loss_not_ended", run="kitchen", hosts=["y"])
    lines = _Lines("kitchen", as_json=False)
    for unmoved in (half, half, None, half):
        lines.show(RunStatus(**{**vars(status(x=UP, y=UP)), "would_move": unmoved}))
    said = capsys.readouterr().out
    assert said.count("! `combo hosts lost y --run kitchen` was cut off") == 2, "once each time"


def test_records_for_a_program(capsys: pytest.CaptureFixture[str]) -> None:
    found = [json.loads(line) for line in told(capsys, as_json=True)]
    assert [(one["record"], one.get("host"), one.get("state"), one.get("session")) for one in found] == [
        ("host", "y", "away", None),
        ("host", "y", "answers", None),
        ("move", None, None, "s1"),
    ]
    assert found[0]["untrusted"] == ["complaint"]


def state(lost: tuple[str, ...] = ()) -> BoxState:
    deal: dict[str, Any] = {"grid_run": "g", "box": "x", "number": [0, len(lost)], "boxes": ["x", "y"], "of": {}}
    found = Deal({**deal, "lost": {host: {} for host in lost}})
    return BoxState(found, Stops(), "run", Era(), lives=True, stopped=False, done=False)


def test_it_begins_only_where_it_reaches_every_host_that_is_left(monkeypatch: pytest.MonkeyPatch) -> None:
    target: Any = SimpleNamespace()
    found = Answered({"x": state()}, {"y": HostError("y can't be reached")})
    monkeypatch.setattr(joint, "states", lambda _: found)
    with pytest.raises(HostError, match="y can't be reached") as away:
        _check_reach(target, leave_out=False)
    with monkeypatch.context() as answers:
        answers.setattr(
            joint, "states", lambda _: Answered({"x": state()}, {"y": UserError("deal.json can't be read")})
        )
        with pytest.raises(HostError, match="take part") as torn:
            _check_reach(target, leave_out=False)
    assert ["keys" in (one.value.hint or "") for one in (away, torn)] == [True, False], "it has been reached"
    _check_reach(target, leave_out=True)
    found.done["x"] = state(lost=("y",))
    _check_reach(target, leave_out=False)
    found.failed["x"] = HostError("x can't be reached")
    del found.done["x"]
    with pytest.raises(HostError):
        _check_reach(target, leave_out=True)
