"""tmux opens windows on a server of our own."""

from __future__ import annotations

import os
import secrets
import subprocess
import time
from pathlib import Path

import pytest

from comborun.host.engines.multiplexers import Tmux

WAIT = 20.0


class Stage:
    """A run directory with a tmux server of its own."""

    def __init__(self, folder: Path) -> None:
        (folder / "dispatch").mkdir()
        self.folder = folder
        self.engine = Tmux(str(folder))
        self.engine.prepare()

    def tmux(self, *words: str) -> list[str]:
        command = ["tmux", "-L", os.environ["COMBORUN_TMUX_SOCKET"], *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False).stdout.split()

    def open(self, name: str, *words: str) -> int | None:
        """The exit code of opening a window."""
        return self.open_both((name, words))

    def open_both(self, *windows: tuple[str, tuple[str, ...]]) -> int | None:
        """The same for several windows, by one call."""
        made = self.engine.start(windows)
        assert len(made) == len(windows)
        until(lambda: all(one.poll() is not None for one in made))
        return made[0].poll()

    @property
    def windows(self) -> list[str]:
        return sorted(self.tmux("list-sessions", "-F", "#{session_name}"))


def until(there) -> None:
    deadline = time.monotonic() + WAIT
    while not there():
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COMBORUN_TMUX_SOCKET", f"cbu{secrets.token_hex(4)}")
    monkeypatch.setenv("HANDED_ON", "a word")
    for name in ("TMUX", "TMUX_PANE"):
        monkeypatch.delenv(name, raising=False)
    made = Stage(tmp_path)
    yield made
    made.tmux("kill-server")
    (Path(f"/tmp/tmux-{os.getuid()}") / os.environ["COMBORUN_TMUX_SOCKET"]).unlink(missing_ok=True)


def test_words_and_the_environment_of_its_starter_reach_a_window(stage: Stage, monkeypatch) -> None:
    assert stage.open("w0", "sleep", "30") == 0
    monkeypatch.setenv("HANDED_ON_LATER", "another")
    monkeypatch.delenv("HANDED_ON")
    stage.engine.prepare()
    words = ["it's", 'a "word"', "$HOME", "#{pid} ; #", "~", "a\\b", "é"]
    script = 'printf "%s\\0" "$HANDED_ON_LATER" "$@" >"$0.new"; mv "$0.new" "$0"'
    file = stage.folder / "w1"
    assert stage.open("w1", "bash", "-c", script, str(file), *words) == 0
    until(file.exists)
    assert file.read_text().split("\0")[:-1] == ["another", *words]
    assert stage.open("w0", "sleep", "30"), "the name is taken"
    assert stage.windows == ["w0"]


def test_one_call_opens_several_windows(stage: Stage) -> None:
    assert stage.open_both(("w0", ("sleep", "30")), ("w1", ("bash", "-c", "sleep 30; :"))) == 0
    assert stage.windows == ["w0", "w1"]
    assert stage.open_both(("w2", ("sleep", "30")), ("w1", ("sleep", "30"))), "a name is taken"


def test_with_the_last_window_the_server_ends_once_the_run_is_over(stage: Stage) -> None:
    (stage.folder / "hold").touch()
    stage.open("w0", "bash", "-c", "while [[ -e $0 ]]; do sleep 0.02; done", str(stage.folder / "hold"))
    (server,) = stage.tmux("display-message", "-p", "#{pid}")
    stage.engine.end()
    assert stage.windows == ["w0"]
    (stage.folder / "hold").unlink()
    until(lambda: not Path(f"/proc/{server}").exists())
