"""What `combo logs -f` says of a session that waits on one of several hosts."""

from __future__ import annotations

import monitor_stage as stage
import pytest

from comborun.api import looking
from comborun.api.named import Target
from comborun.cli import logs
from comborun.monitor.watch import Source
from comborun.remote.logs import LogPiece, LogPosition


def test_the_hint_for_a_session_that_waits_finds_it_wherever_it_goes(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    part = Target(stage.StagedHost([b""], host="x"), "run", "/x", options=" --host x")
    whole = part._replace(boxes=(part,), options="")
    name = stage.a_session("p", "maze").name
    view = stage.a_view(stage.a_plan([stage.a_session("p", "maze")]))
    monkeypatch.setattr(Target, "source", lambda one: Source(one.transport, view))
    monkeypatch.setattr(looking, "follow", lambda *_, **__: iter([LogPiece(LogPosition(name), b"")]))
    monkeypatch.setattr(looking, "sessions_of", lambda *_, **__: [name])
    monkeypatch.setattr(looking, "parts_of", lambda *_, **__: [(part, (name,))])
    names, pieces = looking.logs(whole, [name], 20, on=True)
    assert names == [name]
    assert [*logs._begun(whole, pieces, wait=True)]
    said = capsys.readouterr().err
    assert f"explain {name} --run run`" in said
