"""The contract that every transport keeps."""

from __future__ import annotations

import os
import time

import pytest

from comborun.errors import HostError
from comborun.transport import MIB, Transport
from remote.local import LocalTransport


@pytest.fixture(params=["local"])
def transport(request: pytest.FixtureRequest) -> Transport:
    return LocalTransport()


def test_arguments_reach_the_script_unchanged(transport: Transport) -> None:
    awkward = ["", "two words", "'single' \"double\"", "$HOME `id` \\", "new\nline", "täst", "-n", "*"]
    done = transport.run('printf "%s\\0" "$@"', *awkward)
    assert done.stdout.decode().split("\0")[:-1] == awkward


def test_the_exit_code_and_both_streams_come_back(transport: Transport) -> None:
    done = transport.run("echo out; echo err >&2; exit 7")
    assert (done.code, done.stdout, done.stderr) == (7, b"out\n", b"err\n")


def test_standard_input_arrives_whole_and_binary(transport: Transport) -> None:
    data = os.urandom(3 * MIB)
    assert transport.run("cat", stdin=data).stdout == data


def test_standard_input_that_nobody_reads_does_not_hurt(transport: Transport) -> None:
    assert transport.run("exec true", stdin=b"x" * (8 * MIB)).code == 0


def test_megabytes_on_both_streams_do_not_block_each_other(transport: Transport) -> None:
    script = "head -c 8388608 /dev/zero >&2; head -c 8388608 /dev/zero; head -c 100 /dev/zero >&2"
    done = transport.run(script)
    assert (len(done.stdout), len(done.stderr)) == (8 * MIB, 8 * MIB + 100)


def test_a_background_child_that_keeps_stdout_does_not_hold_up_the_answer(transport: Transport) -> None:
    before = time.monotonic()
    done = transport.run("sleep 30 & echo $!")
    try:
        assert time.monotonic() - before < 10
    finally:
        os.kill(int(done.stdout), 9)


def test_a_command_that_takes_too_long_is_ended(transport: Transport) -> None:
    with pytest.raises(HostError, match="in time"):
        transport.run("sleep 30", timeout=0.3)


def test_a_command_that_closes_its_streams_and_stays_is_ended_too(transport: Transport) -> None:
    with pytest.raises(HostError, match="in time"):
        transport.run("exec >&- 2>&-; sleep 30", timeout=0.3)


def test_an_endless_answer_is_cut_off(transport: Transport) -> None:
    with pytest.raises(HostError, match="more than"):
        transport.run("cat /dev/zero", limit=MIB)


def test_a_profile_of_the_user_is_not_read(transport: Transport, tmp_path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / ".bashrc").write_text("echo noise\n")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert transport.run("echo answer").stdout == b"answer\n"
