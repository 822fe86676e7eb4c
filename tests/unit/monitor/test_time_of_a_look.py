"""How long a look at a run may take."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from comborun.monitor import observe


@pytest.mark.parametrize(("sessions", "seconds"), [(0, 20), (50_000, 120)])
def test_many_sessions_are_given_more_time(monkeypatch: pytest.MonkeyPatch, sessions: int, seconds: float) -> None:
    given = []

    def run(*_: object, timeout: float) -> Any:
        given.append(timeout)
        return SimpleNamespace(code=0, stdout=b"")

    monkeypatch.setattr(observe.program, "run", run)
    monkeypatch.setattr(observe.program, "refuse", lambda *_: None)
    observe.observe(SimpleNamespace(host="local"), "/run", (0,) * sessions)  # type: ignore[arg-type]
    assert given == [pytest.approx(seconds)]
