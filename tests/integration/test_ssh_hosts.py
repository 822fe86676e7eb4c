"""Where a name leads: the user's own ssh config, jumps, and hosts that are not tidy."""

from __future__ import annotations

import os
import socket
import sys
import time
from typing import TYPE_CHECKING

import pytest
from sshd import Sshd, fresh_user, running_sshd

from comborun.errors import HostError
from comborun.remote.ssh.config import Options, resolve
from comborun.remote.ssh.openssh import OpensshTransport
from comborun.remote.ssh.transport import SshTransport

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

Kind = type[SshTransport] | type[OpensshTransport]


@pytest.fixture(params=[SshTransport, OpensshTransport], ids=["ssh", "openssh"])
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param


def config(folder: Path, *stanzas: str) -> Options:
    file = folder / "config"
    file.write_text("\n".join(stanzas))
    return Options(config=file)


def port_of_peer(transport: SshTransport | OpensshTransport) -> list[str]:
    """Who the host's sshd thinks it talks to: client address, client port, server port."""
    with transport:
        address, port, _, own = transport.run('echo "$SSH_CONNECTION"').text.split()
    return [address, port, own]


def test_include_and_match_mean_what_they_mean_to_ssh(sshd: Sshd, tmp_path: Path, kind: Kind) -> None:
    more = tmp_path / "more"
    more.write_text(f"Host gpu-*\n  Port {sshd.port}\n  User {sshd.user.name}\n")
    options = config(
        tmp_path,
        f"Include {more}",
        'Match exec "true" originalhost gpu-one',
        "  HostName 127.0.0.1",
        'Match exec "false"',
        "  User nobody-of-this-name",
        sshd.stanza(alias="*"),
    )
    assert port_of_peer(kind("gpu-one", options))[2] == str(sshd.port)


def test_user_and_port_in_the_name_win_over_the_config(sshd: Sshd, tmp_path: Path, kind: Kind) -> None:
    options = config(tmp_path, sshd.stanza("User nobody-of-this-name", "Port 1", alias="127.0.0.1 localhost"))
    assert port_of_peer(kind(f"{sshd.user.name}@127.0.0.1:{sshd.port}", options))[2] == str(sshd.port)


def test_an_ipv6_address_with_a_port_stands_in_brackets(
    own_sshd: Callable[..., Sshd], tmp_path: Path, kind: Kind
) -> None:
    if not os.path.exists("/proc/net/if_inet6"):  # noqa: PTH110
        pytest.skip("no IPv6 here")
    server = own_sshd("ListenAddress ::1")
    server.known_hosts.write_text(server.known_hosts.read_text().replace("127.0.0.1", "::1"))
    options = config(tmp_path, server.stanza("HostName ::1", alias="*"))
    assert port_of_peer(kind(f"{server.user.name}@[::1]:{server.port}", options))[0] == "::1"


@pytest.fixture
def chain(own_sshd: Callable[..., Sshd], tmp_path: Path) -> tuple[Sshd, Sshd, Sshd, Options]:
    """A host that is reached over two others, each with a key of its own."""
    first, second, last = (own_sshd(alias=name) for name in ("first", "second", "last"))
    # a list of jumps wins over what the later ones' own stanzas say
    second_stanza = second.stanza("ProxyJump nowhere.invalid")
    stanzas = (first.stanza(), second_stanza, last.stanza("ProxyJump first,second"))
    return first, second, last, config(tmp_path, *stanzas)


def test_two_jumps_are_made_one_after_the_other(chain: tuple[Sshd, Sshd, Sshd, Options], kind: Kind) -> None:
    first, second, last, options = chain
    with kind("last", options) as transport:
        assert transport.run('echo "$SSH_CONNECTION"').text.split()[3] == str(last.port)
        assert transport.run("cat", stdin=b"x" * 3_000_000).stdout == b"x" * 3_000_000
    assert all("Accepted publickey" in server.log.read_text() for server in (first, second, last))


def test_a_jump_that_has_a_jump_of_its_own_is_followed(chain: tuple[Sshd, Sshd, Sshd, Options], tmp_path: Path) -> None:
    first, second, last, _ = chain
    stanzas = (first.stanza(), second.stanza("ProxyJump first"), last.stanza("ProxyJump second"))
    port_of_peer(SshTransport("last", config(tmp_path, *stanzas)))
    assert "Accepted publickey" in first.log.read_text()


def test_the_jump_that_fails_is_named(chain: tuple[Sshd, Sshd, Sshd, Options], kind: Kind) -> None:
    _, second, _, options = chain
    second.stop_all()
    with kind("last", options) as transport, pytest.raises(HostError) as caught:
        transport.run("true")
    assert "Connection refused" in caught.value.message
    if kind is SshTransport:
        assert "the way to last over first, second failed" in caught.value.message


def test_an_unknown_key_of_a_jump_is_refused_like_any_other(chain: tuple[Sshd, Sshd, Sshd, Options]) -> None:
    chain[1].known_hosts.write_text("")
    with SshTransport("last", chain[3]) as transport, pytest.raises(HostError, match="key of second is not known"):
        transport.run("true")


def test_jumps_in_a_circle_are_refused(sshd: Sshd, tmp_path: Path) -> None:
    options = config(tmp_path, sshd.stanza("ProxyJump b", alias="a"), sshd.stanza("ProxyJump a", alias="b"))
    with SshTransport("a", options) as transport, pytest.raises(HostError, match="circle"):
        transport.run("true")


def test_a_jump_that_freezes_is_given_up_in_time(chain: tuple[Sshd, Sshd, Sshd, Options], tmp_path: Path) -> None:
    first, second, last, _ = chain
    stanzas = (first.stanza(), second.stanza("ConnectTimeout 1"), last.stanza("ProxyJump first,second"))
    second.process.send_signal(19)  # STOP: it still listens
    before = time.monotonic()
    try:
        with SshTransport("last", config(tmp_path, *stanzas)) as transport, pytest.raises(HostError, match="second"):
            transport.run("true")
    finally:
        second.process.send_signal(18)
    assert time.monotonic() - before < 8


RELAY = """
import os, socket, sys, threading
far = socket.create_connection((sys.argv[1], int(sys.argv[2])))
def back():
    while data := far.recv(65536):
        os.write(1, data)
threading.Thread(target=back, daemon=True).start()
while data := os.read(0, 65536):
    far.sendall(data)
"""


def test_a_proxy_command_is_run_and_ended(sshd: Sshd, tmp_path: Path, kind: Kind) -> None:
    relay = tmp_path / "relay.py"
    relay.write_text(RELAY)
    options = config(
        tmp_path, sshd.stanza(f"ProxyCommand sh -c 'echo $$ >{tmp_path}/pid; exec \"{sys.executable}\" {relay} %h %p'")
    )
    assert port_of_peer(kind("testbox", options))[2] == str(sshd.port)
    if kind is SshTransport:
        assert not os.path.exists(f"/proc/{(tmp_path / 'pid').read_text().strip()}")  # noqa: PTH110


def test_what_a_proxy_command_says_when_it_fails_is_told(sshd: Sshd, tmp_path: Path, kind: Kind) -> None:
    options = config(tmp_path, sshd.stanza("ProxyCommand sh -c 'echo the tunnel is down >&2; exit 1'"))
    with kind("testbox", options) as transport, pytest.raises(HostError, match="the tunnel is down"):
        transport.run("true")


def test_max_sessions_of_one_is_enough(own_sshd: Callable[..., Sshd], kind: Kind) -> None:
    server = own_sshd("MaxSessions 1")
    with kind("testbox", server.options()) as transport:
        assert [transport.run("echo $1", str(n)).text for n in range(5)] == [f"{n}\n" for n in range(5)]
        with pytest.raises(HostError, match="in time"):
            transport.run("sleep 30", timeout=0.2)
        transport.run("exec true", stdin=b"x" * 4_000_000)  # leaves the shell unusable
        assert transport.run("echo on").text == "on\n"


NOISE = """#!/bin/bash
printf 'Welcome to the machine\\n\\e[31mred\\a %0.s' {1..500}
printf 'noise without an end of line' >&2
exec /bin/bash "$@"
"""


def test_a_login_shell_that_prints_noise_spoils_no_answer(ssh_place: Path, kind: Kind) -> None:
    shell = ssh_place / "noisy-shell"
    shell.write_text(NOISE)
    shell.chmod(0o755)
    with fresh_user(shell=str(shell)) as user, running_sshd(ssh_place / f"noise-{kind.__name__}", user) as server:
        (user.home / ".bashrc").write_text("echo loud; echo loud >&2\n")
        with kind("testbox", server.options()) as transport:
            done = transport.run("echo answer; echo complaint >&2; exit 3")
            assert (done.code, done.stdout, done.stderr) == (3, b"answer\n", b"complaint\n")


@pytest.mark.parametrize("shell", ["/bin/sh", "/bin/dash", "/usr/bin/zsh", "/usr/bin/fish", "/bin/csh"])
def test_the_login_shell_need_not_be_bash(ssh_place: Path, shell: str) -> None:
    if not os.path.exists(shell):  # noqa: PTH110
        pytest.skip(f"no {shell} here")
    with (
        fresh_user(shell=shell) as user,
        running_sshd(ssh_place / shell.replace("/", "-"), user) as server,
        SshTransport("testbox", server.options()) as transport,
    ):
        assert transport.run('echo "$1"', "it's $HOME").text == "it's $HOME\n"


def test_an_account_without_a_shell_says_why(ssh_place: Path, kind: Kind) -> None:
    with (
        fresh_user(shell="/usr/sbin/nologin") as user,
        running_sshd(ssh_place / f"nologin-{kind.__name__}", user) as server,
        kind("testbox", server.options()) as transport,
        pytest.raises(HostError) as caught,
    ):
        transport.run("true")
    assert "gave no shell" in caught.value.message
    assert "not available" in caught.value.hint


def test_a_home_with_a_space_in_its_name_is_an_ordinary_home(ssh_place: Path, kind: Kind) -> None:
    home = ssh_place / f"a home {kind.__name__}"
    with (
        fresh_user(home=home) as user,
        running_sshd(ssh_place / f"space-{kind.__name__}", user) as server,
        kind("testbox", server.options()) as transport,
    ):
        transport.run('cat >"$HOME/file"', stdin=b"content")
        assert transport.run("pwd; cat ~/file").text == f"{home}\ncontent"


@pytest.mark.parametrize(
    ("name", "part"), [("no-such-host.invalid", "there is no host"), ("127.0.0.1:1", "refuses connections")]
)
def test_a_host_that_is_not_there_is_named_with_a_hint(tmp_path: Path, kind: Kind, name: str, part: str) -> None:
    options = config(tmp_path, "Host *\n  IdentityAgent none\n  IdentityFile none\n  UserKnownHostsFile /dev/null\n")
    with kind(name, options) as transport, pytest.raises(HostError) as caught:
        transport.run("true")
    assert part in caught.value.message
    assert caught.value.hint


def test_a_port_where_nobody_speaks_ssh_is_given_up_in_time(tmp_path: Path, kind: Kind) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        name = f"127.0.0.1:{silent.getsockname()[1]}"
        options = config(tmp_path, "Host *\n  ConnectTimeout 1\n  UserKnownHostsFile /dev/null\n")
        before = time.monotonic()
        with kind(name, options) as transport, pytest.raises(HostError, match=r"in time|does not answer"):
            transport.run("true")
    assert time.monotonic() - before < 6


def test_a_config_that_ssh_refuses_is_shown_with_its_complaint(tmp_path: Path) -> None:
    options = config(tmp_path, "Host *", "  Port many")
    with pytest.raises(HostError) as caught:
        resolve("testbox", options.config)
    assert "line 2" in caught.value.hint


def test_a_start_up_file_that_becomes_another_shell_is_told(ssh_place: Path, kind: Kind) -> None:
    with (
        fresh_user() as user,
        running_sshd(ssh_place / f"becomes-{kind.__name__}", user) as server,
        kind("testbox", server.options()) as transport,
    ):
        shell = user.home / "zsh"  # it says what zsh says
        shell.write_text('#!/bin/sh\nread line\necho "set: can\'t change option: -m" >&2\nexit 1\n')
        shell.chmod(0o755)
        (user.home / ".bashrc").write_text(f"exec {shell}\n")
        with pytest.raises(HostError) as caught:
            transport.run("true")
    assert caught.value.message == "on testbox another shell than bash took our commands: set: can't change option: -m"
    assert "~/.bashrc say" in caught.value.hint
