"""What takes longer than two seconds says so on standard error, and nothing else does."""

from __future__ import annotations

import time

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
    with terminal.working("asking h100"):
        assert terminal.ask_secret("Passphrase") == "secret"
    assert capsys.readouterr() == ("", "")
