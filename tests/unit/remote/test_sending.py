"""A run of many sessions has as long to be written as its files take."""

from __future__ import annotations

from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import monitor_stage as stage
import pytest

from comborun.remote import program, publish


def test_the_time_in_which_a_host_must_have_written_a_run_grows_with_its_files(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[float] = []
    answer = {"state": "new", "run": "r", "directory": "/r"}
    monkeypatch.setattr(program, "run_packed", lambda *_, timeout, **__: given.append(timeout))
    monkeypatch.setattr(program, "answer", lambda *_: answer)
    few = stage.a_plan([stage.a_session("p", "maze")])
    many = replace(few, sessions=tuple(replace(few.sessions[0], name=f"maze_{number}") for number in range(300)))
    host: Any = SimpleNamespace(host="x")
    for plan in (few, many):
        publish.publish(host, publish.RunContent(plan, "", "/", {}))
    assert given[1] - given[0] > 299 * 2 * 0.005
