"""What takes longer than two seconds says so on standard error, and nothing else does."""

from __future__ import annotations

import threading
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest

from comborun.cli import terminal


@pytest.mark.parametrize(("seconds", "said"), [(0.0, ""), (0.4, "bringing [x] ...\n")])
def test_only_what_takes_long_says_what_it_does(
    seconds: float, said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(terminal, "QUIET_S", 0.05)
    with terminal.working("bringing [x]") as tell:
        tell("3 files")
        ends = time.monotonic() + seconds
        while time.monotonic() < ends:
            time.sleep(0.01)
    assert capsys.readouterr() == ("", said)


def test_nothing_is_drawn_over_a_question(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(terminal, "QUIET_S", 0.05)

    def typed(*_: object, **__: object) -> str:
        time.sleep(0.2)
        return "secret"

    monkeypatch.setattr("click.prompt", typed)
    monkeypatch.setattr("sys.stdin", SimpleNamespace(isatty=lambda: True))
    with terminal.working("asking h100"):
        assert terminal.TERMINAL.ask
        assert terminal.TERMINAL.ask("Passphrase") == "secret"
    assert capsys.readouterr() == ("", "")


def test_a_connection_that_does_not_end_holds_up_the_end_of_a_command_for_a_moment(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(terminal, "_CLOSE_S", 0.01)
    over, ended = threading.Event(), list[bool]()
    opened = SimpleNamespace(close=lambda: ended.append(over.wait(2)), warnings=["a setting was skipped"])
    terminal._close(cast("Any", opened))
    assert not ended
    assert "a setting was skipped" in capsys.readouterr().err
    over.set()
