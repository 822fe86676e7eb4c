"""The full screen in a real terminal: a tmux of our own that is resized and closed, and a link that falls."""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
DEADLINE_S = 20.0
PROGRAM = """
import sys, time
sys.path[:0] = [{checkout!r}, {stage!r}]
from monitor_stage import StagedHost, a_busy_run
from comborun.errors import HostError
from comborun.monitor.fullscreen.app import show_full_screen
from comborun.monitor.fullscreen.ordering import Orders
from comborun.monitor.watch import Clock, Settings, Source
from comborun.monitor.watcher import Watcher

class Host(StagedHost):
    def run(self, script, *args, **how):
        if "probe" not in args:
            raise HostError("nothing but a look is staged")
        if {fallen!r} and __import__("os").path.exists({fallen!r}):
            raise HostError("gpu-box does not answer")
        return super().run(script, *args, **how)

view, answer = a_busy_run()
watcher = Watcher(Source(Host([answer]), view), Clock(), Settings({interval}))
watcher.start()
def act(*words):
    time.sleep(2)
    return ["it is done"]
left, lines = show_full_screen(watcher, Orders("combo", "", *[act] * 7))
print("\\n".join(line.plain for line in lines))
print("back to the shell" if left else "ended")
"""

pytestmark = pytest.mark.skipif(shutil.which("tmux") is None, reason="tmux is not installed")


class Terminal:
    """One window of a tmux server that only this test knows."""

    def __init__(self, socket: Path, program: Path) -> None:
        self._tmux = ["tmux", "-S", str(socket), "-f", "/dev/null"]
        watch = f"{shlex.quote(sys.executable)} {shlex.quote(str(program))}"
        command = f"export COLUMNS=77 LINES=20; echo first line; {watch}; echo done; exec cat"
        self.tmux("new-session", "-d", "-s", "watch", "-x", "120", "-y", "30", command)

    def tmux(self, *words: str) -> str:
        return subprocess.run([*self._tmux, *words], capture_output=True, text=True, check=True, timeout=10).stdout

    def wait_for(self, met: Callable[[list[str]], bool]) -> list[str]:
        deadline = time.monotonic() + DEADLINE_S
        while not met(lines := self.tmux("capture-pane", "-p", "-t", "=watch:").rstrip("\n").split("\n")):
            assert time.monotonic() < deadline, "\n".join(lines)
            time.sleep(0.05)
        return lines


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    program, fallen = tmp_path / "watch.py", str(tmp_path / "fallen")
    program.write_text(
        PROGRAM.format(checkout=str(CHECKOUT), stage=str(CHECKOUT / "tests" / "unit"), fallen=fallen, interval=0.5)
    )
    shown = Terminal(tmp_path / "tmux", program)
    yield shown
    subprocess.run(["tmux", "-S", str(tmp_path / "tmux"), "kill-server"], capture_output=True, check=False, timeout=10)


def titles(lines: list[str]) -> int:
    return sum(line.startswith("walkers") for line in lines)


@pytest.mark.parametrize(
    ("columns", "rows", "fits"),
    [(160, 30, "setup failed: conda: command not found"), (50, 30, "boulder"), (40, 15, "? help"), (20, 5, "▸")],
)
def test_after_a_resize_there_is_one_whole_picture_of_the_new_size(
    terminal: Terminal, columns: int, rows: int, fits: str
) -> None:
    terminal.wait_for(lambda shown: titles(shown) == 1)
    terminal.tmux("resize-window", "-t", "=watch:", "-x", str(columns), "-y", str(rows))
    lines = terminal.wait_for(
        lambda shown: any(fits in line for line in shown) and titles(shown) == 1 and len(shown) <= rows
    )
    assert max(map(len, lines)) <= columns


def test_keys_and_the_mouse_work_and_ctrl_c_leaves_the_last_picture_and_a_usable_terminal(terminal: Terminal) -> None:
    lines = terminal.wait_for(lambda shown: any("? help" in line for line in shown))
    assert "first line" not in lines
    lines = terminal.wait_for(lambda shown: any("friction" in line and "2–7 min" in line for line in shown))
    row = 1 + next(place for place, line in enumerate(lines) if "friction" in line and "2–7 min" in line)
    terminal.tmux("send-keys", "-t", "=watch:", "-l", f"\x1b[<0;20;{row}M\x1b[<0;20;{row}m")
    terminal.wait_for(lambda shown: any("▸" in line and "friction" in line for line in shown))
    terminal.tmux("send-keys", "-t", "=watch:", "g", "j", "e")
    terminal.wait_for(lambda shown: any("is not retried" in line for line in shown))
    terminal.tmux("send-keys", "-t", "=watch:", "Escape")
    terminal.wait_for(lambda shown: any("▸" in line and "boulder" in line for line in shown))
    terminal.tmux("send-keys", "-t", "=watch:", "?")
    terminal.wait_for(lambda shown: any("KEYS" in line for line in shown))
    terminal.tmux("send-keys", "-t", "=watch:", "C-c")
    lines = terminal.wait_for(lambda shown: shown[-1] == "done")
    assert lines[-2] == "back to the shell"
    lines = terminal.tmux("capture-pane", "-p", "-S", "-50", "-t", "=watch:").split("\n")
    assert titles(lines) == 1
    assert any("▸" in line for line in lines)
    assert terminal.tmux("display-message", "-p", "-t", "=watch:", "#{cursor_flag}").strip() == "1"


def test_an_order_is_carried_out_though_the_user_leaves_at_once(terminal: Terminal) -> None:
    terminal.wait_for(lambda shown: any("? help" in line for line in shown))
    terminal.tmux("send-keys", "-t", "=watch:", "-l", ":resume")
    terminal.tmux("send-keys", "-t", "=watch:", "Enter", "y", "q")
    lines = terminal.wait_for(lambda shown: shown[-1] == "done")
    assert lines[-3:-1] == ["resume: it is done", "back to the shell"]


def test_a_link_that_falls_is_said_with_the_last_contact_and_comes_back_by_itself(
    terminal: Terminal, tmp_path: Path
) -> None:
    terminal.wait_for(lambda shown: any("seen" in line for line in shown))
    (tmp_path / "fallen").touch()
    lines = terminal.wait_for(lambda shown: any("last contact" in line for line in shown))
    assert any("boulder" in line for line in lines)
    (tmp_path / "fallen").unlink()
    terminal.wait_for(lambda shown: any("seen" in line for line in shown))


def test_a_screen_that_was_stopped_takes_its_terminal_again(terminal: Terminal, tmp_path: Path) -> None:
    whole = terminal.wait_for(lambda shown: any("episodes" in line for line in shown) and len(shown) == 30)
    pane = terminal.tmux("display-message", "-p", "-t", "=watch:", "#{pane_pid} #{pane_tty}").split()
    (child,) = map(int, Path(f"/proc/{pane[0]}/task/{pane[0]}/children").read_text().split())
    os.kill(child, signal.SIGSTOP)
    Path(pane[1]).write_text("from another program\r\n" * 50)
    terminal.wait_for(lambda shown: titles(shown) == 0)
    os.kill(child, signal.SIGCONT)
    lines = terminal.wait_for(lambda shown: titles(shown) == 1 and len(shown) == 30)
    assert lines[2:5] == whole[2:5]
    assert not any("another program" in line for line in lines)

    terminal.tmux("send-keys", "-t", "=watch:", "C-z", "e")  # no shell could continue it, so it goes on
    terminal.wait_for(lambda shown: any("[explain]" in line for line in shown))
    terminal.tmux("respawn-pane", "-k", "-t", "=watch:", "PS1='$ ' exec bash --norc --noprofile -i")
    terminal.tmux("send-keys", "-t", "=watch:", shlex.join([sys.executable, str(tmp_path / "watch.py")]), "Enter")
    terminal.wait_for(lambda shown: any("▸" in line for line in shown))
    terminal.tmux("send-keys", "-t", "=watch:", "C-z")
    terminal.wait_for(lambda shown: shown[-1].rstrip() == "$")
    terminal.tmux("send-keys", "-t", "=watch:", "fg", "Enter")
    assert terminal.wait_for(lambda shown: titles(shown) == 1 and len(shown) == 30)[2:5] == whole[2:5]


def test_a_terminal_that_closes_ends_the_program(terminal: Terminal) -> None:
    terminal.wait_for(lambda shown: titles(shown) == 1)
    pane = int(terminal.tmux("display-message", "-p", "-t", "=watch:", "#{pane_pid}"))
    children = Path(f"/proc/{pane}/task/{pane}/children").read_text().split()
    terminal.tmux("kill-session", "-t", "=watch")
    deadline = time.monotonic() + DEADLINE_S
    while any(Path(f"/proc/{child}").exists() for child in children):
        assert time.monotonic() < deadline, "it goes on without its terminal"
        time.sleep(0.05)
    assert children
