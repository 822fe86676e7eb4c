"""The words between a transport and the shell that it holds; no network."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comborun.errors import HostError
from comborun.host.system import process
from comborun.remote.ssh.shell import COMMAND, FramedAnswer, ShellRequest, program

MARK = b"0123456789abcdef"


def lives(pid: int) -> bool:
    seen = process.look(pid)
    return bool(seen and seen.lives)


def framed(stdout: bytes, stderr: bytes = b"", code: int = 0) -> tuple[bytes, bytes]:
    return (MARK + b"<\n" + stdout + MARK + b">%d\n" % code, MARK + b"<\n" + stderr + MARK + b">\n")


@given(st.binary(max_size=200), st.binary(max_size=200), st.integers(0, 255), st.data())
def test_an_answer_is_found_however_it_is_cut_and_whatever_surrounds_it(
    stdout: bytes, stderr: bytes, code: int, data: st.DataObject
) -> None:
    parts = [b"noise" + part + b"stray" for part in framed(stdout, stderr, code)]
    answer = FramedAnswer(MARK, 200)
    for which, part in enumerate(parts):
        cuts = sorted(data.draw(st.lists(st.integers(0, len(part)), max_size=6)))
        for start, end in zip([0, *cuts], [*cuts, len(part)], strict=True):
            answer.feed(*((part[start:end], b"") if which == 0 else (b"", part[start:end])))
    assert answer.complete
    done = answer.completed()
    assert (done.code, done.stdout, done.stderr) == (code, stdout, stderr)


def test_each_stream_has_the_limit_for_itself() -> None:
    answer = FramedAnswer(MARK, 10)
    answer.feed(*framed(b"x" * 10, b"y" * 10))
    assert answer.complete
    for streams in (framed(b"x" * 11), framed(b"", b"y" * 11), (MARK + b"<\n" + b"x" * 200, b"")):
        with pytest.raises(HostError, match="more than 10 bytes"):
            FramedAnswer(MARK, 10).feed(*streams)


def test_noise_has_no_limit_and_only_its_end_is_kept() -> None:
    answer = FramedAnswer(MARK, 10)
    for _ in range(100):
        answer.feed(b"n" * 10_000, b"")
    answer.feed(b"last\x1b[31m words\x07\n", b"complaint\r\n")
    assert answer.noise.startswith("complaint\n")
    assert answer.noise.endswith("last[31m words")
    assert len(answer.noise) < 10_000
    answer.feed(*framed(b"out"))
    assert answer.completed().stdout == b"out"


def test_the_shell_ends_with_its_input_and_leaves_no_process() -> None:
    pipe = subprocess.PIPE
    with subprocess.Popen(["sh", "-c", COMMAND], stdin=pipe, stdout=pipe, stderr=pipe, bufsize=0) as held:
        script = "(trap '' TERM; sleep 20) & read -r _ _ _ parent _ </proc/$PPID/stat; echo $parent $!"
        held.stdin.write(program() + ShellRequest(script, (), b"", 5.0, 1000).head(MARK))
        assert held.stdout.readline() == MARK + b"<\n"
        shell, child = map(int, held.stdout.readline().split())
        relays = [int(pid) for pid in Path(f"/proc/{shell}/task/{shell}/children").read_text().split()]
        assert len([pid for pid in relays if lives(pid)]) >= 2
        held.stdin.close()
        assert held.wait(10) == 0
        assert process.wait(10, lambda: not any(lives(pid) for pid in relays))
        assert lives(child), "what a script leaves in the background is left alone"
        os.kill(child, signal.SIGKILL)
