"""The folder of runs of a host can't be written: the answer says why."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import pytest

from comborun.host.system import files
from comborun.host.verb_errors import Refusal
from comborun.host.verbs import boxes, publish
from comborun.words import host, say

assert host


@pytest.mark.parametrize(
    ("number", "said"),
    [(errno.ENOSPC, "can't write {}: No space left on device"), (errno.EACCES, "{} belongs to root, and others can't")],
)
def test_a_folder_of_runs_that_takes_nothing_is_named_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int, said: str
) -> None:
    def refuse(*_: object, **__: object) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(files, "_put", refuse)
    monkeypatch.setattr(publish.tempfile, "mkdtemp", refuse)
    monkeypatch.setattr("comborun.host.system.process.owner", lambda _: "root")
    for act in (boxes.root, publish.Staging):
        with pytest.raises(Refusal) as refused:
            act(str(tmp_path))
        assert said.format(tmp_path) in say(refused.value.fact).replace("/.incoming", "")
