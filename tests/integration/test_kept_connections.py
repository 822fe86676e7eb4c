"""Connections that outlive a command: who may use them, and when they end."""

from __future__ import annotations

import contextlib
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from box import until
from desk import Desk
from sshd import Sshd, logins, make_key, public

from comborun.errors import HostError
from comborun.remote.ssh.keeping import all_kept, consent, folder
from comborun.remote.ssh.kept import KeptTransport
from comborun.remote.ssh.openssh import OpensshTransport

if TYPE_CHECKING:
    from collections.abc import Callable

Kind = type[KeptTransport] | type[OpensshTransport]


@pytest.fixture(params=[KeptTransport, OpensshTransport], ids=["ssh", "openssh"])
def kind(request: pytest.FixtureRequest) -> Kind:
    return request.param


pytestmark = pytest.mark.usefixtures("place")


def said(kind: Kind, server: Sshd, script: str = "echo hi", **options: object) -> str:
    with kind(server.alias, server.options(**{"keep_s": 60.0, **options})) as transport:
        return transport.run(script).text


def test_a_later_command_uses_the_connection_of_an_earlier_one(own_sshd: Callable[..., Sshd], kind: Kind) -> None:
    server = own_sshd()
    assert [said(kind, server) for _ in range(3)] == ["hi\n"] * 3
    assert logins(server) == 1
    assert [one.end() for one in all_kept()] == [True]
    assert said(kind, server) == "hi\n"
    assert logins(server) == 2


def test_two_commands_share_it_at_the_same_time(own_sshd: Callable[..., Sshd], kind: Kind) -> None:
    server = own_sshd()
    options = server.options(keep_s=60.0)
    with kind(server.alias, options) as one, kind(server.alias, options) as other:
        shells = {transport.run("echo $PPID").text for transport in (one, other)}
        assert len(shells) == 2
        data = os.urandom(1 << 20)
        assert one.run("cat", stdin=data).stdout == other.run("cat", stdin=data).stdout == data
    assert logins(server) == 1


def test_a_host_that_opens_no_further_session_gets_another_login(own_sshd: Callable[..., Sshd]) -> None:
    server = own_sshd("MaxSessions 1")
    options = server.options(keep_s=60.0)
    with KeptTransport(server.alias, options) as one, KeptTransport(server.alias, options) as other:
        assert [transport.run("echo hi").text for transport in (one, other, one)] == ["hi\n"] * 3
    assert logins(server) == 2


def test_the_users_own_master_is_used_and_never_ended(own_sshd: Callable[..., Sshd], place: Path) -> None:
    server = own_sshd()
    server.config.write_text(server.stanza(f"ControlPath {place.parent}/%C", "ControlMaster auto"))
    ssh = ["ssh", "-F", str(server.config)]
    subprocess.run([*ssh, "-M", "-N", "-f", server.alias], check=True, stdin=subprocess.DEVNULL)
    try:
        assert said(OpensshTransport, server) == "hi\n"
        assert (logins(server), all_kept()) == (1, [])
    finally:
        ended = subprocess.run([*ssh, "-O", "exit", server.alias], capture_output=True, check=False)
    assert ended.returncode == 0, "it was still there"
    assert said(OpensshTransport, server) == "hi\n"
    assert (logins(server), len(all_kept())) == (2, 1)


def test_a_changed_host_key_ends_it(own_sshd: Callable[..., Sshd], kind: Kind, tmp_path: Path) -> None:
    server = own_sshd()
    said(kind, server)
    other = public(make_key(tmp_path / "other"))
    server.known_hosts.write_text(f"[127.0.0.1]:{server.port} {other}")
    with pytest.raises(HostError, match="has changed") as caught:
        said(kind, server)
    assert "SHA256:" in caught.value.message
    assert "ssh-keygen" in caught.value.hint
    assert all_kept() == []
    server.known_hosts.write_text(f"@revoked * {public(server.host_key)}[127.0.0.1]:{server.port} {other}")
    with pytest.raises(HostError):
        said(kind, server)


def test_other_settings_are_another_connection(own_sshd: Callable[..., Sshd], kind: Kind) -> None:
    server = own_sshd()
    said(kind, server)
    server.config.write_text(server.stanza("Compression yes"))
    assert said(kind, server) == "hi\n"
    assert logins(server) == 2


def test_a_dead_connection_is_noticed_soon_and_replaced(own_sshd: Callable[..., Sshd], kind: Kind) -> None:
    """As after a laptop has slept: the sshd of the connection is frozen, the listener answers."""
    server = own_sshd()
    said(kind, server)
    server.signal_serving(signal.SIGSTOP)
    frozen = [pid for pid in server.serving() if server.process and pid != server.process.pid]
    begun = time.monotonic()
    assert said(kind, server) == "hi\n"
    assert time.monotonic() - begun < 15
    for pid in frozen:
        os.kill(pid, signal.SIGCONT)
    assert logins(server) == 2


def test_a_dead_connection_is_replaced_also_while_another_command_uses_it(
    own_sshd: Callable[..., Sshd], kind: Kind
) -> None:
    """As after a link was cut under a monitor: each later command finds the new connection, and says so once."""
    server = own_sshd()
    options = server.options(keep_s=60.0)
    with kind(server.alias, options) as monitor, kind(server.alias, options) as command:
        monitor.run("true")
        server.signal_serving(signal.SIGSTOP)
        frozen = [pid for pid in server.serving() if server.process and pid != server.process.pid]
        begun = time.monotonic()
        assert command.run("echo hi").text == "hi\n"
        assert time.monotonic() - begun < 12
        assert any("gave no answer" in one for one in command.warnings)
        assert said(kind, server) == "hi\n"
        for pid in frozen:
            os.kill(pid, signal.SIGCONT)
        assert monitor.run("echo again", timeout=5).text == "again\n"
    assert logins(server) == 2


def test_a_host_that_does_not_answer_is_given_up_in_time_for_another_try(
    own_sshd: Callable[..., Sshd], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lost first packet is sent again after 1, 3, 7, 15, 31 seconds: who waits on finds late a link that is back."""
    server = own_sshd()
    monkeypatch.setattr("comborun.remote.ssh.config.CONNECT_S", 2.0)
    with socket.create_server(("127.0.0.1", 0), backlog=0) as full, contextlib.ExitStack() as stack:
        for _ in range(4):  # nobody takes these, so the next one gets no answer
            filling = stack.enter_context(socket.socket())
            filling.setblocking(False)
            filling.connect_ex(full.getsockname())
        server.config.write_text(server.stanza().replace(str(server.port), str(full.getsockname()[1])))
        begun = time.monotonic()
        with pytest.raises(HostError, match=r"does not answer|let us in"):
            said(OpensshTransport, server)
        assert time.monotonic() - begun < 10


def test_it_ends_when_the_host_ends_it_and_the_next_command_logs_in_again(
    own_sshd: Callable[..., Sshd], kind: Kind
) -> None:
    server = own_sshd()
    said(kind, server)
    server.stop_all()
    server.start()
    assert said(kind, server) == "hi\n"
    assert logins(server) == 2


def test_it_ends_by_itself_after_its_last_use(own_sshd: Callable[..., Sshd], kind: Kind) -> None:
    """A master of ssh stays a minute at least, so its time is not waited for."""
    server = own_sshd()
    said(kind, server, keep_s=0.5)
    if kind is KeptTransport:
        until(lambda: not all_kept(), "the keeper ends", 20)
        until(lambda: not server.serving(), "its connection ends", 20)
    else:
        assert len(all_kept()) == 1


def test_a_keeper_whose_socket_is_gone_ends(own_sshd: Callable[..., Sshd]) -> None:
    server = own_sshd()
    said(KeptTransport, server)
    (one,) = all_kept()
    one.socket.unlink()
    until(lambda: not server.serving(), "its connection ends", 20)


def test_a_keeper_that_is_killed_during_a_command_is_told_and_replaced(own_sshd: Callable[..., Sshd]) -> None:
    server = own_sshd()
    with KeptTransport(server.alias, server.options(keep_s=60.0)) as transport:
        transport.run("true")
        (pid,) = _keeper_pids()
        killer = subprocess.Popen([sys.executable, "-c", f"import os,time; time.sleep(.5); os.kill({pid}, 9)"])
        with pytest.raises(HostError, match="lost"):
            transport.run("sleep 20")
        killer.wait()
        assert transport.run("echo again").text == "again\n"


def _keeper_pids() -> list[int]:
    """Keepers that this process has started."""
    children = Path(f"/proc/{os.getpid()}/task").glob("*/children")
    pids = [int(word) for one in children for word in one.read_text().split()]
    return [pid for pid in pids if b"ssh.keeper" in Path(f"/proc/{pid}/cmdline").read_bytes()]


@pytest.mark.parametrize("wrong", ["others", "link"])
def test_a_folder_that_is_not_ours_alone_is_not_used(
    own_sshd: Callable[..., Sshd], kind: Kind, place: Path, wrong: str
) -> None:
    if wrong == "others":
        place.mkdir(mode=0o755)
    else:
        (place.parent / "elsewhere").mkdir(mode=0o700)
        place.symlink_to("elsewhere")
    server = own_sshd()
    with kind(server.alias, server.options(keep_s=60.0)) as transport:
        assert transport.run("echo hi").text == "hi\n"
        assert "not kept" in transport.warnings[0]
    assert [path for path in place.parent.rglob("*") if path.is_socket()] == []
    assert said(kind, server) == "hi\n"
    assert logins(server) == 2


def test_a_long_path_is_not_used(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    long = tmp_path / ("x" * 90)
    long.mkdir()
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(long))
    assert len(os.fsencode(folder())) < 80
    with pytest.raises(HostError, match="too long"):
        folder((str(long),))


def test_another_user_gets_no_answer_even_with_the_folder_open(own_sshd: Callable[..., Sshd]) -> None:
    server = own_sshd()
    said(KeptTransport, server)
    (one,) = all_kept()
    for path in (one.socket, *one.socket.parents[:2]):  # both folders are the test's own
        path.chmod(0o777)
    program = (
        "import socket, sys\n"
        "peer, other = socket.socket(socket.AF_UNIX), socket.socketpair()\n"
        "peer.connect(sys.argv[1])\n"
        "print('connected')\n"
        "try:\n"
        '    socket.send_fds(peer, [b\'{"verb": "open"}\\n\'], [other[0].fileno()])\n'
        "    print(repr(peer.recv(100)))\n"
        "except OSError:\n"
        "    print(repr(b''))\n"
    )
    uid = str(server.user.uid)
    command = ["setpriv", "--reuid", uid, "--clear-groups", "/usr/bin/python3", "-c", program, str(one.socket)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd="/")
    one.socket.parent.chmod(0o700)
    assert done.stdout == "connected\nb''\n", done.stderr
    assert said(KeptTransport, server) == "hi\n"


def test_a_passphrase_is_asked_for_once_and_is_nowhere_on_the_disk(
    own_sshd: Callable[..., Sshd], place: Path, tmp_path: Path
) -> None:
    server = own_sshd()
    locked = make_key(tmp_path / "locked", passphrase="very secret")
    server.authorized.write_text(public(locked))
    server.config.write_text(server.stanza(key=locked))
    questions: list[str] = []

    def ask(question: str) -> str:
        questions.append(question)
        return "very secret"

    assert [said(KeptTransport, server, ask=ask) for _ in range(2)] == ["hi\n"] * 2
    assert len(questions) == 1
    assert all(b"very secret" not in path.read_bytes() for path in place.rglob("*") if path.is_file())
    with pytest.raises(HostError, match="accepted none of the keys"):
        said(KeptTransport, server, config=_copy(server, tmp_path))


def _copy(server: Sshd, tmp_path: Path) -> Path:
    """The same config under another name, so without a kept connection, and nobody to ask."""
    path = tmp_path / "config2"
    path.write_text(server.config.read_text().replace("IdentityAgent none", "IdentityAgent none\n  ConnectTimeout 9"))
    return path


def test_the_user_is_asked_once_whether_a_second_factor_is_kept(tmp_path: Path) -> None:
    del tmp_path
    asked: list[str] = []

    def no(question: str) -> bool:
        asked.append(question)
        return False

    assert consent("h100", None) is False, "without a terminal, nobody is asked"
    assert [consent("h100", no), consent("h100", no), consent("h100", None)] == [False] * 3
    assert consent("h200", lambda _: True) is True
    assert consent("h200", None) is True
    assert len(asked) == 1


def test_the_command_disconnects(own_sshd: Callable[..., Sshd], desk: Desk, place: Path) -> None:
    server = own_sshd()
    variables = ("XDG_RUNTIME_DIR", "XDG_STATE_HOME")
    desk.environment |= {name: os.environ[name] for name in variables}
    desk.environment["COMBORUN_SSH_CONFIG"] = str(server.config)
    for _ in range(2):
        assert "testbox" in desk.combo("runs", "--host", "testbox", code=0).stdout
    assert logins(server) == 1
    assert "no connection is kept to h100" in desk.combo("disconnect", "h100", code=0).stdout
    assert "disconnected from testbox" in desk.combo("disconnect", "testbox", code=0).stdout
    assert list(place.iterdir()) == []
    until(lambda: not server.serving(), "the connection ends", 20)
    assert "no connection is kept" in desk.combo("disconnect", code=0).stdout
    desk.environment["COMBORUN_KEEP_S"] = "0"
    desk.combo("runs", "--host", "testbox", code=0)
    assert list(place.iterdir()) == []
