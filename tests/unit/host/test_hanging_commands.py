"""Programs that are asked something: what they say, and that none outlives a process that leaves."""

from __future__ import annotations

import threading
import time
from pathlib import Path

import pytest

from comborun.host.system import commands, process


def test_a_program_is_told_and_heard_up_to_a_bound() -> None:
    assert commands.run(10, "bash", "-c", "cat; echo oops >&2; exit 3", stdin=b"hello\n") == (3, "hello")
    assert commands.run(10, "bash", "-c", "echo oops >&2", errors=True) == (0, "oops")
    assert commands.run(10, "bash", "-c", "yes | head -c 100000", most=10) == (0, "y\ny\ny\ny\ny")
    assert commands.run(10, "no-such-program")[0] == 127


def test_one_that_does_not_answer_is_ended() -> None:
    began = time.monotonic()
    code, said = commands.run(0.5, "bash", "-c", "echo $$; exec sleep 60")
    assert (code, time.monotonic() - began < 30) == (commands.NO_ANSWER, True)
    assert process.wait(10, lambda: not (seen := process.look(said)) or not seen.lives)


def test_a_process_that_leaves_ends_what_it_asks_and_starts_no_further_program(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commands, "_OVER", set())
    heard: list[tuple[int, str]] = []
    asks = lambda: heard.extend([commands.run(60, "sleep", "60"), commands.run(60, "touch", f"{tmp_path}/late")])  # noqa: E731
    thread = threading.Thread(target=asks)
    thread.start()
    assert process.wait(20, lambda: bool(commands._RUNNING))
    commands.end_running()
    thread.join(20)
    assert [code for code, _ in heard] == [-9, commands.NO_ANSWER]
    assert not (tmp_path / "late").exists()
