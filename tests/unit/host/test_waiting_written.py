"""dispatch/waiting is written when what sessions wait for changes, but takes little of a dispatcher's time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from comborun.host.dispatch import launching


@pytest.mark.parametrize(("takes_s", "written"), [(0.001, [0.0, 0.01, 1.0, 30.0]), (1.0, [0.0, 30.0])])
def test_what_takes_long_to_write_is_written_seldom_and_at_the_end(
    monkeypatch: pytest.MonkeyPatch, takes_s: float, written: list[float]
) -> None:
    clock, calls = [0.0], []

    def waits(_: Any) -> list[Any]:
        calls.append(clock[0])
        clock[0] += takes_s
        return []

    monkeypatch.setattr(launching, "time", SimpleNamespace(monotonic=lambda: clock[0]))
    monkeypatch.setattr(launching.Launcher, "_waits", waits)
    launcher = object.__new__(launching.Launcher)
    launcher._waiting_due, launcher._waiting, launcher._run = 0.0, [], SimpleNamespace()  # type: ignore[assignment]
    for at in (0.0, 0.01, 1.0, 30.0):
        clock[0] = at
        launcher._run.waiting_changed = True
        launcher.write_waiting()
        assert launcher._run.waiting_changed == (calls[-1:] != [at]), "what is put off is not forgotten"
    assert calls == written
    clock[0] = 40.0
    launcher.write_waiting(last=True)
    assert calls[-1] == 40.0
