"""What a person is told who interrupts a command that steers a run."""

from __future__ import annotations

import sys

import pytest

from comborun.cli import combo
from comborun.cli.options import Where
from comborun.cli.terminal import INTERRUPTED, guarded


@pytest.mark.parametrize(
    "words", [("pause",), ("drain",), ("resume",), ("slots", "3"), ("retry", "--failed"), ("retry", "stairs_flat")]
)
def test_that_the_same_command_again_does_the_rest(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(Where, "find", interrupted)
    monkeypatch.setattr(sys, "argv", ["combo", *words])
    assert guarded(combo) == INTERRUPTED
    assert "The same command again does the rest." in capsys.readouterr().err
