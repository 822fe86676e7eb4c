"""The control client: answers come in the order of the questions, and what was not answered is asked again."""

from __future__ import annotations

import os
import secrets
import select
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from comborun.host.engines import tmux

WAIT = 20.0


class Stage:
    """A run directory with a tmux server of its own."""

    def __init__(self, folder: Path) -> None:
        (folder / "dispatch").mkdir()
        self.folder = folder
        self.engine = tmux.Tmux(str(folder))
        self.engine.prepare()

    def tmux(self, *words: str) -> list[str]:
        command = ["tmux", "-L", self.engine.socket, *words]
        return subprocess.run(command, capture_output=True, text=True, timeout=20, check=False).stdout.split()

    def until(self, *windows: tmux.Window) -> list[int]:
        deadline = time.monotonic() + WAIT
        while any(window.code is None for window in windows):
            assert time.monotonic() < deadline, "the windows are there in time"
            select.select(self.engine.descriptors(), [], [], 0.02)
            self.engine.serve()
        return [window.code for window in windows if window.code is not None]

    @property
    def windows(self) -> list[str]:
        return sorted(self.tmux("list-sessions", "-F", "#{session_name}"))


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("COMBORUN_TMUX_SOCKET", f"cbu{secrets.token_hex(4)}")
    monkeypatch.setenv("HANDED_ON", "a word")
    for name in ("TMUX", "TMUX_PANE"):
        monkeypatch.delenv(name, raising=False)
    made = Stage(tmp_path)
    yield made
    made.tmux("kill-server")
    if made.engine._client:
        made.engine._client.kill()
        made.engine._reap(made.engine._client)
    (Path(f"/tmp/tmux-{os.getuid()}") / made.engine.socket).unlink(missing_ok=True)


def test_one_client_opens_all_windows_and_has_none_of_its_own(stage: Stage) -> None:
    windows = [stage.engine.start(f"w{i}", ["sleep", "30"]) for i in range(5)]
    assert stage.until(*windows) == [0] * 5
    assert stage.windows == [f"w{i}" for i in range(5)]
    assert len(stage.tmux("list-clients", "-F", "#{client_pid}")) == 1


def test_words_and_the_environment_reach_the_window_as_they_are(stage: Stage) -> None:
    words = ["it's", 'a "word"', "$HOME", "#{pid} ; #", "~", "a\\b", "é"]
    script = 'printf "%s\\0" "$HANDED_ON" "$@" >"$0.new"; mv "$0.new" "$0"'
    stage.until(stage.engine.start("w0", ["sleep", "30"]))
    file = stage.folder / "w1"
    stage.until(stage.engine.start("w1", ["bash", "-c", script, str(file), *words]))
    deadline = time.monotonic() + WAIT
    while not file.exists():
        assert time.monotonic() < deadline
        time.sleep(0.02)
    assert file.read_text().split("\0")[:-1] == ["a word", *words]
    assert stage.until(stage.engine.start("w2", ["two\nlines"])) == [126], "a command is a line"


def test_a_window_that_is_there_already_is_refused(stage: Stage) -> None:
    first, second, third = (stage.engine.start(name, ["sleep", "30"]) for name in ("w0", "w0", "w1"))
    assert stage.until(first, second, third) == [0, 1, 0]


def test_when_its_window_ends_the_client_ends_and_the_next_start_makes_another(stage: Stage) -> None:
    for number in range(3):
        assert stage.until(stage.engine.start(f"w{number}", ["true"])) == [0]
        deadline = time.monotonic() + WAIT
        while stage.windows or stage.tmux("list-clients", "-F", "#{client_pid}"):
            assert time.monotonic() < deadline, "window and client are gone"
            time.sleep(0.02)


def test_a_server_that_is_frozen_freezes_nobody_and_answers_later(stage: Stage) -> None:
    stage.until(stage.engine.start("w0", ["sleep", "30"]))
    (server,) = stage.tmux("display-message", "-p", "#{pid}")
    os.kill(int(server), signal.SIGSTOP)
    try:
        made = stage.engine.start("w1", ["sleep", "30"])
        stage.engine.serve()
        assert made.poll() is None
    finally:
        os.kill(int(server), signal.SIGCONT)
    assert stage.until(made) == [0]


def test_with_the_last_window_the_server_ends_once_the_run_is_over(stage: Stage) -> None:
    (stage.folder / "hold").touch()
    wait = ["bash", "-c", "while [[ -e $0 ]]; do sleep 0.02; done", str(stage.folder / "hold")]
    stage.until(stage.engine.start("w0", wait))
    (server,) = stage.tmux("display-message", "-p", "#{pid}")
    stage.engine.finish()
    assert stage.windows == ["w0"]
    (stage.folder / "hold").unlink()
    deadline = time.monotonic() + WAIT
    while Path(f"/proc/{server}").exists():
        assert time.monotonic() < deadline, "no idle server stays"
        time.sleep(0.02)


def test_a_tmux_that_does_not_know_the_flags_of_a_client_opens_windows_without(stage: Stage) -> None:
    stage.engine._flags = ("-Q", "no-output")
    made = [stage.engine.start(f"w{i}", ["sleep", "30"]) for i in range(3)]
    assert stage.until(*made) == [0, 0, 0]
    assert stage.windows == ["w0", "w1", "w2"]


def test_a_tmux_that_can_not_be_run_is_a_refusal(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as elsewhere:
        elsewhere.setenv("PATH", str(stage.folder))
        assert stage.until(stage.engine.start("w0", ["true"])) == [126]


KILLED = """
import os, signal, sys
from comborun.host.engines.tmux import Tmux
engine = Tmux(sys.argv[1])
engine.prepare()
windows = [engine.start(f"w{number}", ["sleep", "60"]) for number in range(20)]
while any(window.code is None for window in windows[:10]):
    engine.serve()
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_control_client_ends_with_a_dispatcher_that_is_killed(stage: Stage) -> None:
    """Else it keeps its server for ever."""
    subprocess.run([sys.executable, "-c", KILLED, str(stage.folder)], timeout=WAIT, check=False)
    deadline = time.monotonic() + WAIT
    while stage.tmux("list-clients"):
        assert time.monotonic() < deadline, "the client has ended"
        time.sleep(0.05)
