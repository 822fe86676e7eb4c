"""What a launch that was interrupted says to do next."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from comborun.cli import starting
from comborun.cli.options import Where
from comborun.cli.request import Request


@pytest.mark.parametrize(
    ("new", "runs", "said"),
    [
        (False, ("little-1",), "the same command again does the rest"),
        (
            True,
            ("little-2",),
            "The run little-2 is there, and what had been started goes on; the same command without --new",
        ),
        (True, (), "shows a new run, the same command without --new does the rest; else nothing was started"),
    ],
)
def test_it_never_names_a_command_that_makes_another_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], new: bool, runs: tuple[str, ...], said: str
) -> None:
    def cut_off(_: Request, tell_run: Callable[[str], None]) -> None:
        for run in runs:
            tell_run(run)
        raise KeyboardInterrupt

    monkeypatch.setattr(starting, "_start_run", cut_off)
    with pytest.raises(KeyboardInterrupt):
        starting.start_run(Request(Path("grid.yaml"), Where(None, None, accept_new=False), new=new))
    assert said in capsys.readouterr().err
