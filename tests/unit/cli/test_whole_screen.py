"""When a command uses the whole screen."""

import sys

import pytest

from comborun.cli.options import Shown


@pytest.mark.parametrize("redirected", ["", "stdin", "stdout", "stderr"])
def test_the_whole_screen_needs_a_terminal_for_what_is_typed_and_drawn(
    redirected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    for name in ("stdin", "stdout", "stderr"):
        monkeypatch.setattr(getattr(sys, name), "isatty", lambda name=name: name != redirected, raising=False)
    assert Shown().full == (not redirected)
