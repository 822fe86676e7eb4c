"""The live table in a real terminal: a tmux of our own that is resized, and Ctrl-C."""

from __future__ import annotations

import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).parents[2]
DEADLINE_S = 20.0
PROGRAM = """
import sys
sys.path[:0] = [{checkout!r}, {stage!r}]
from monitor_stage import StagedHost, a_busy_run
from rich.console import Console
from comborun.monitor.screen import open_screen
from comborun.monitor.watch import Settings
from comborun.monitor.watch import Source
from comborun.monitor.watch import Clock
from comborun.monitor.watch import watch
view, answer = a_busy_run()
try:
    watch(Source(StagedHost([answer]), view), open_screen(Console()), Clock(), Settings(60))
except KeyboardInterrupt:
    print("back to the shell")
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
    program = tmp_path / "watch.py"
    program.write_text(PROGRAM.format(checkout=str(CHECKOUT), stage=str(CHECKOUT / "tests" / "unit")))
    shown = Terminal(tmp_path / "tmux", program)
    yield shown
    subprocess.run(["tmux", "-S", str(tmp_path / "tmux"), "kill-server"], capture_output=True, check=False, timeout=10)


def titles(lines: list[str]) -> int:
    return sum(line.startswith("walkers-") for line in lines)


@pytest.mark.parametrize(("columns", "rows"), [(50, 30), (160, 30), (120, 14)])
def test_after_a_resize_there_is_one_whole_table_of_the_new_size(terminal: Terminal, columns: int, rows: int) -> None:
    terminal.wait_for(lambda shown: titles(shown) == 1)
    terminal.tmux("resize-window", "-t", "=watch:", "-x", str(columns), "-y", str(rows))
    fits = {50: "episodes", 160: "setup failed: conda: command not found", 120: "and 4 more"}
    lines = terminal.wait_for(lambda shown: any(fits[columns] in line for line in shown[:rows]) and titles(shown) == 1)
    assert max(map(len, lines)) <= columns
    assert len(lines) <= rows


def test_the_table_is_redrawn_in_place_and_ctrl_c_leaves_the_last_picture_and_a_usable_terminal(
    terminal: Terminal,
) -> None:
    lines = terminal.wait_for(lambda shown: any("queued" in line for line in shown))
    assert lines[0] == "first line"
    later = terminal.wait_for(lambda shown: "10 min 22 s" in "\n".join(shown) or "10 min 21 s" in "\n".join(shown))
    assert titles(later) == 1
    terminal.tmux("send-keys", "-t", "=watch:", "C-c")
    lines = terminal.wait_for(lambda shown: shown[-1] == "done")
    assert lines[-2] == "back to the shell"
    assert titles(lines) == 1
    assert terminal.tmux("display-message", "-p", "-t", "=watch:", "#{cursor_flag}").strip() == "1"
