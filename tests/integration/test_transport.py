"""The contract that every transport keeps."""

from __future__ import annotations

import os
import sys
import tempfile
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st
from network import await_that as until
from rounds import some

from comborun.errors import HostError
from comborun.remote.ssh.keeping import all_kept
from comborun.remote.ssh.kept import KeptTransport
from comborun.remote.ssh.openssh import OpensshTransport
from comborun.remote.ssh.transport import SshTransport
from comborun.remote.transport import LocalTransport, Transport
from comborun.text import MIB

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(params=some(["local", "ssh", "openssh", "kept-ssh", "kept-openssh"], 0, 2, 3), scope="module")
def transport(request: pytest.FixtureRequest) -> Iterator[Transport]:
    if request.param == "local":
        yield LocalTransport()
        return
    server = request.getfixturevalue("sshd")
    kinds = {"ssh": SshTransport, "kept-ssh": KeptTransport}
    keep_s = 60.0 if request.param.startswith("kept") else 0.0
    with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory(prefix="ck-") as short:
        patch.setenv("XDG_RUNTIME_DIR", short)
        with kinds.get(request.param, OpensshTransport)(server.alias, server.options(keep_s=keep_s)) as remote:
            yield remote
        for one in all_kept():
            one.end()


@pytest.fixture
def home(transport: Transport, request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """The home that the transport's scripts have."""
    if transport.host == "local":
        folder = request.getfixturevalue("tmp_path")
        monkeypatch.setenv("HOME", str(folder))
    else:
        folder = request.getfixturevalue("ssh_user").home
        transport.close()  # start-up files are read when the connection is made
    yield folder
    (folder / ".bashrc").unlink(missing_ok=True)


def test_the_exit_code_and_both_streams_come_back(transport: Transport) -> None:
    done = transport.run("echo out; echo err >&2; exit 7")
    assert (done.code, done.stdout, done.stderr) == (7, b"out\n", b"err\n")


def test_standard_input_arrives_whole_and_binary(transport: Transport) -> None:
    data = os.urandom(3 * MIB)
    assert transport.run("cat", stdin=data).stdout == data


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


def test_a_command_that_takes_too_long_is_ended_though_it_has_closed_its_streams(transport: Transport) -> None:
    with pytest.raises(HostError, match="in time"):
        transport.run("exec >&- 2>&-; sleep 30", timeout=0.3)


def test_what_a_timeout_ends_is_the_whole_group(transport: Transport) -> None:
    with pytest.raises(HostError, match="in time"):
        transport.run("echo $$ >&2; sleep 47.11 & sleep 47.11", timeout=0.3)
    until("the sleeps are gone", lambda: "47.11" not in transport.run("cat /proc/[0-9]*/cmdline | tr '\\0' ' '").text)


def test_an_answer_may_be_as_long_as_its_limit(transport: Transport) -> None:
    assert len(transport.run(f"head -c {MIB} /dev/zero", limit=MIB).stdout) == MIB
    with pytest.raises(HostError, match="more than"):
        transport.run(f"head -c {MIB + 1} /dev/zero", limit=MIB)


def test_a_start_up_file_of_the_user_is_not_heard(transport: Transport, home: Path) -> None:
    (home / ".bashrc").write_text("echo noise; echo more noise >&2; trap 'echo late noise' EXIT\n")
    done = transport.run("echo answer; echo complaint >&2")
    assert (done.stdout, done.stderr) == (b"answer\n", b"complaint\n")


def test_a_script_that_is_killed_is_told_from_one_that_exits(transport: Transport) -> None:
    codes = [transport.run(script).code for script in ("kill -KILL $$", "exit 137", "kill -TERM $$", "kill -INT $$")]
    newer = transport.run("((BASH_VERSINFO[0] * 100 + BASH_VERSINFO[1] >= 503))").code == 0
    silent = newer and not isinstance(transport, LocalTransport)  # the held shell hears only of KILL there
    assert codes == [-9, 137, *((143, 130) if silent else (-15, -2))]


def test_arguments_of_any_bytes_survive(transport: Transport) -> None:
    assert transport.run('printf %s "$1"', "caf\udce9 \u2603").stdout == b"caf\xe9 \xe2\x98\x83"


@settings(max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20), max_size=5))
@example(["", "two words", "'single' \"double\"", "$HOME `id` \\", "new\nline", "täst", "-n", "*"])
def test_any_text_is_an_argument(transport: Transport, words: list[str]) -> None:
    done = transport.run('printf "%s\\0" "$#" "$@"', *words)
    assert done.stdout.decode().split("\0")[:-1] == [str(len(words)), *words]


def test_a_script_sees_no_trace_of_the_one_before(transport: Transport) -> None:
    transport.run("cd /; x=1; export LEFT=1; umask 077; exec 7>/dev/null; set -f")
    done = transport.run('echo "${x-} ${LEFT-} ${REPLY-} $- $0"; umask; [[ -e /proc/self/fd/7 ]] && echo open; exit 0')
    assert done.text.split("\n")[0].split() == [done.text.split()[0], "comborun"]
    assert "f" not in done.text.split()[0]
    assert (done.text.split()[2], "open" in done.text) == ("0022", False)


def test_what_a_background_child_says_later_is_in_no_answer(transport: Transport) -> None:
    transport.run("(for ((i = 0; i < 300; i++)); do echo stray; echo stray >&2; sleep 0.001; done) & echo one")
    for number in range(20):
        done = transport.run('echo "$1"; echo "$1" >&2', str(number))
        assert (done.text, done.complaint) == (f"{number}\n", str(number))


def test_a_script_that_ends_with_a_comment_or_not_at_all_is_taken_as_it_is(transport: Transport) -> None:
    assert transport.run("# nothing").code == 0
    assert transport.run("").code == 0
    assert transport.run("echo 'open").code != 0
    assert transport.run("echo well").text == "well\n"


def test_what_comes_after_the_script_on_standard_input_is_not_run(transport: Transport) -> None:
    assert transport.run("exit 0", stdin=b"echo injected\n").stdout == b""
    assert transport.run("head -c 4", stdin=b"abcdefgh").stdout == b"abcd"
    assert transport.run("cat").stdout == b""


@pytest.mark.parametrize("size", [10, 100_000, 300_000, 1_500_000, 4_000_000])
def test_standard_input_that_is_left_unread_does_not_reach_the_next_script(transport: Transport, size: int) -> None:
    for _ in range(3):
        assert transport.run("sleep 0.02; exit 3", stdin=b"echo stray\n" * (size // 11)).code == 3
        assert transport.run("echo well; cat", stdin=b"fed").stdout == b"well\nfed"


@pytest.mark.parametrize("size", [1000, 99_000, 130_000, 3_000_000])
def test_a_script_may_be_longer_than_an_argument(transport: Transport, size: int) -> None:
    script = f'# {"x" * size}\nprintf \'%s %s\' "$#" "$1"; exit 4'
    done = transport.run(script, "a b", "c")
    assert (done.code, done.stdout) == (4, b"2 a b")


def test_a_function_is_called_in_a_child_with_streams_of_its_own() -> None:
    def work() -> int:
        print(sys.stdin.read().upper())
        print("complaint", file=sys.stderr)
        return 7

    done = LocalTransport().call(work, b"text", 10.0, MIB)
    assert (done.code, done.text, done.complaint) == (7, "TEXT\n", "complaint")


def test_a_function_that_fails_or_takes_too_long_leaves_no_child(tmp_path: Path) -> None:
    def fail() -> int:
        raise RuntimeError("a bug")

    def hang() -> int:
        (tmp_path / "pid").write_text(str(os.getpid()))
        time.sleep(60)
        return 0

    done = LocalTransport().call(fail, b"", 10.0, MIB)
    assert (done.code, "RuntimeError: a bug" in done.complaint) == (1, True)
    with pytest.raises(HostError, match="did not finish in time"):
        LocalTransport().call(hang, b"", 1.0, MIB)
    assert not Path("/proc", (tmp_path / "pid").read_text()).exists()
