"""What happens to a connection: killed, frozen, restarted, full, idle."""

from __future__ import annotations

import os
import signal
import socket
import threading
import time
from typing import TYPE_CHECKING

import pytest
from network import await_that as until
from sshd import Sshd

from comborun.errors import HostError
from comborun.remote.ssh.openssh import OpensshTransport
from comborun.remote.ssh.transport import SshTransport
from comborun.text import MIB

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

Transport = SshTransport | OpensshTransport


@pytest.fixture
def server(own_sshd: Callable[..., Sshd]) -> Sshd:
    return own_sshd()


@pytest.fixture(params=[SshTransport, OpensshTransport], ids=["ssh", "openssh"])
def transport(request: pytest.FixtureRequest, server: Sshd) -> Iterator[Transport]:
    with request.param("testbox", server.options()) as made:
        yield made


@pytest.fixture
def hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    """A host that does not answer is given up sooner than a person would want."""
    monkeypatch.setattr("comborun.remote.ssh.shell.GRACE_S", 0.5)


def shell_of(transport: Transport) -> int:
    """The process on the host that runs our scripts: a script's parent is `timeout`, whose parent it is."""
    return int(transport.run("read -r _ _ _ parent _ </proc/$PPID/stat; echo $parent").text)


def connections(server: Sshd) -> int:
    return server.log.read_text().count("Accepted publickey")


def test_a_hundred_scripts_share_one_connection_and_one_shell_and_leave_nothing(
    transport: Transport, server: Sshd
) -> None:
    count = f"ps -u {server.user.name} -o stat="
    first = len(transport.run(count).text.split())
    assert len({shell_of(transport) for _ in range(100)}) == 1
    assert connections(server) == 1
    assert len(transport.run(count).text.split()) <= first + 3


def test_the_socket_sends_at_once_and_notices_a_dead_link_and_no_rekey_is_begun_by_us(server: Sshd) -> None:
    """paramiko hangs when the host closes a channel while a rekey that paramiko began is under way."""
    with SshTransport("testbox", server.options()) as transport:
        transport.run("true")
        sock = transport._connection.sock
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) <= 30
        assert 0 < sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) <= 30_000
        packetizer = transport._connection.transport.packetizer
        assert min(packetizer.REKEY_BYTES, packetizer.REKEY_PACKETS) >= 1 << 40


def test_a_server_that_is_killed_and_restarted_between_scripts_goes_unnoticed(
    transport: Transport, server: Sshd
) -> None:
    assert transport.run("echo one").text == "one\n"
    server.stop_all()
    with pytest.raises(HostError):
        transport.run("true")
    server.start()
    assert transport.run("echo two").text == "two\n"


def test_a_connection_that_ended_while_idle_is_made_anew_without_an_error(server: Sshd) -> None:
    with SshTransport("testbox", server.options()) as transport:
        transport.run("true")
        server.stop_all()
        server.start()
        until("the end is noticed", lambda: transport._shell.ended)
        assert transport.run("echo two").text == "two\n"


def test_a_server_that_is_killed_during_a_script_is_told_from_a_script_that_dies(
    transport: Transport, server: Sshd, tmp_path: Path
) -> None:
    mark = server.user.home / f"begun-{server.port}"  # tests share the user
    killer = threading.Thread(target=lambda: (until("it has begun", mark.exists), server.stop_all()))
    killer.start()
    before = time.monotonic()
    with pytest.raises(HostError, match="lost"):
        transport.run('touch "$1"; sleep 20', str(mark), timeout=30)
    killer.join()
    assert time.monotonic() - before < 15
    server.start()
    assert transport.run("kill -KILL $$").code == -9


def test_a_shell_that_dies_is_an_error_and_the_next_script_gets_another(transport: Transport) -> None:
    with pytest.raises(HostError, match="lost"):
        transport.run('kill -KILL "$1"', str(shell_of(transport)))
    assert transport.run("echo on").text == "on\n"


@pytest.mark.usefixtures("hasty")
def test_a_frozen_server_is_given_up_in_time_and_works_when_it_thaws(transport: Transport, server: Sshd) -> None:
    transport.run("true")
    server.signal_serving(signal.SIGSTOP)
    before = time.monotonic()
    with pytest.raises(HostError, match="in time"):
        transport.run("true", timeout=1)
    assert time.monotonic() - before < 8
    server.signal_serving(signal.SIGCONT)
    assert transport.run("echo on").text == "on\n"


@pytest.mark.usefixtures("hasty")
def test_a_server_that_freezes_while_it_is_sent_megabytes_is_given_up_in_time(
    transport: Transport, server: Sshd
) -> None:
    transport.run("true")
    server.signal_serving(signal.SIGSTOP)
    before = time.monotonic()
    with pytest.raises(HostError, match=r"in time|lost"):
        transport.run("cat >/dev/null", stdin=b"x" * (32 * MIB), timeout=1)
    assert time.monotonic() - before < 8


def test_a_frozen_listener_is_given_up_in_time(server: Sshd, tmp_path: Path) -> None:
    config = tmp_path / "config"
    config.write_text(server.stanza("ConnectTimeout 1"))
    server.process.send_signal(signal.SIGSTOP)
    for kind in (SshTransport, OpensshTransport):
        before = time.monotonic()
        with kind("testbox", server.options(config=config)) as transport, pytest.raises(HostError):
            transport.run("true")
        assert time.monotonic() - before < 6
    server.process.send_signal(signal.SIGCONT)


def test_a_script_that_times_out_leaves_the_others_their_time(transport: Transport) -> None:
    before = time.monotonic()
    for _ in range(3):
        with pytest.raises(HostError, match="in time"):
            transport.run("trap '' TERM INT HUP; sleep 60", timeout=0.1)
        assert transport.run("echo on").text == "on\n"
    assert time.monotonic() - before < 15


def test_close_ends_what_runs_and_leaves_nothing_behind(transport: Transport, server: Sshd) -> None:
    shell = shell_of(transport)
    closer = threading.Timer(0.3, transport.close)
    closer.start()
    before = time.monotonic()
    with pytest.raises(HostError):
        transport.run("sleep 5", timeout=60)
    closer.join()
    assert time.monotonic() - before < 5
    until("the shell on the host is gone", lambda: not os.path.exists(f"/proc/{shell}"))  # noqa: PTH110
    until("the connection is gone", lambda: not server.serving())
    transport.close()


def test_threads_that_ask_at_once_each_get_their_own_answer(transport: Transport, server: Sshd) -> None:
    answers: dict[str, str] = {}

    def ask(name: str) -> None:
        for number in range(15):
            answers[f"{name}{number}"] = transport.run('cat; echo "$1"', f"{name}{number}", stdin=b"in ").text

    threads = [threading.Thread(target=ask, args=(name,)) for name in "ab"]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == {f"{name}{number}": f"in {name}{number}\n" for name in "ab" for number in range(15)}
    assert connections(server) == 1
