from __future__ import annotations

import pytest

from comborun.host.record import recounts


@pytest.fixture(autouse=True)
def own_allowance(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process may read results for so many seconds of its life: each test stands for a process of its own."""
    monkeypatch.setattr(recounts, "_ALLOWED", recounts.Allowance())
