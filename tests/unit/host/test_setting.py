"""`control RUN set`, by two people at once."""

from __future__ import annotations

import threading
from pathlib import Path
from typing import Any

import pytest

from comborun.host.system import files
from comborun.host.verbs import control
from comborun.rules import settings
from comborun.rules.names import RunLayout


def test_of_two_who_set_different_keys_at_once_both_count(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    layout = RunLayout(str(tmp_path))
    (tmp_path / "dispatch").mkdir()
    Path(layout.id).write_text("little-1\n")
    Path(layout.queue).touch()
    files.write(layout.policy, {"gpus": "", "reserve_gpu_mib": "1", "reserve_memory_mib": "1"}.items())
    changed = settings.changed
    other = threading.Thread(target=lambda: control.Steering(str(tmp_path)).steer("set", ["reserve.memory=7"]))

    def slowly(*given: Any) -> dict[str, str]:
        record = changed(*given)
        if other.ident is None:
            other.start()
            other.join(0.2)  # it has set its key by then, unless it waits
        return record

    monkeypatch.setattr(settings, "changed", slowly)
    control.Steering(str(tmp_path)).steer("set", ["reserve.gpu_memory=5"])
    other.join(20)
    found = files.read(layout.settings)
    assert (found.get("reserve_gpu_mib"), found.get("reserve_memory_mib")) == ("5", "7")
