"""What the user is told who interrupts a command that can be given again."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from comborun.api.launching import start_run
from comborun.api.named import GridChoice, HostChoice
from comborun.cli import combo
from comborun.cli.terminal import INTERRUPTED, TERMINAL, guarded
from comborun.remote.preparing import LaunchRequest

WHERE = HostChoice(listener=TERMINAL)
IN_A_DESTRUCTOR = """
import os, signal, sys, time
import comborun.__main__, comborun.cli

class Held:
    def __del__(self):
        os.kill(os.getpid(), signal.SIGINT)
        time.sleep(0)

def command(_):
    held = Held()
    del held
    time.sleep(20)

comborun.cli.guarded = command
sys.argv = ["combo", "--version"]
comborun.__main__.main()
"""


def interrupted(*_: object, **__: object) -> Any:
    raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("new", "there", "said"),
    [
        (False, True, "the same command again does the rest"),
        (True, True, "The run little-2 exists, and started sessions go on; the same command without --new"),
        (True, False, "shows a new run, the same command without --new does the rest; else nothing was started"),
    ],
)
def test_a_launch_never_names_a_command_that_makes_another_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], new: bool, there: bool, said: str
) -> None:
    publication = SimpleNamespace(run="little-2", root="/r", directory="/r/little-2")
    grid = SimpleNamespace(warnings=(), name="little", root="~", text="")
    steps = {
        "prepare": SimpleNamespace(warnings=(), transport=SimpleNamespace(host="local"), sends="", grid=grid),
        "publish_run": SimpleNamespace(publication=publication),
        "remember": None,
    }
    monkeypatch.setattr(GridChoice, "read", lambda _: grid)
    for name, value in steps.items():
        monkeypatch.setattr(f"comborun.api.launching.{name}", lambda *_, value=value: value)
    monkeypatch.setattr("comborun.api.launching.start" if there else "comborun.api.launching.publish_run", interrupted)
    with pytest.raises(KeyboardInterrupt):
        start_run(GridChoice(Path("grid.yaml")), WHERE, LaunchRequest(new=new))
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    "words", [("pause",), ("drain",), ("resume",), ("slots", "3"), ("retry", "--failed"), ("retry", "stairs_flat")]
)
def test_a_command_that_steers_says_that_the_same_command_again_does_the_rest(
    words: tuple[str, ...], monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(HostChoice, "find", interrupted)
    monkeypatch.setattr(sys, "argv", ["combo", *words])
    assert guarded(combo) == INTERRUPTED
    assert "Run the same command again to finish." in capsys.readouterr().err


def test_an_interruption_within_a_destructor_is_not_lost_and_shows_nothing() -> None:
    done = subprocess.run([sys.executable, "-c", IN_A_DESTRUCTOR], capture_output=True, check=False, timeout=60)
    assert (done.returncode, done.stderr) == (130, b"")
