"""Who is let in, and to whom we talk: against a real sshd."""

from __future__ import annotations

import os
import shutil
import subprocess
from typing import TYPE_CHECKING

import pytest
from network import await_that as until
from sshd import Sshd, make_key, public
from test_ssh_hosts import Kind, config, kind

from comborun.errors import HostError
from comborun.remote.ssh.config import Options
from comborun.remote.ssh.openssh import OpensshTransport
from comborun.remote.ssh.transport import SshTransport

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

__all__ = ["kind"]


@pytest.fixture
def agent(tmp_path: Path) -> Iterator[str]:
    """The socket of an agent of the test's own."""
    socket = str(tmp_path / "agent")
    process = subprocess.Popen(["ssh-agent", "-D", "-a", socket], stdout=subprocess.DEVNULL)
    until("the agent answers", lambda: _asked(socket) != 2)
    yield socket
    process.terminate()
    process.wait()


def _asked(agent: str) -> int:
    """2 while nobody listens: the socket is there a moment before that."""
    environment = {**os.environ, "SSH_AUTH_SOCK": agent}
    return subprocess.run(["ssh-add", "-l"], env=environment, capture_output=True, check=False).returncode


def add(agent: str, *arguments: str) -> None:
    subprocess.run(["ssh-add", "-q", *arguments], env={**os.environ, "SSH_AUTH_SOCK": agent}, check=True)


def reaches(transport: SshTransport | OpensshTransport, user: str) -> bool:
    with transport:
        return transport.run("id -un").text == f"{user}\n"


def refusal(transport: SshTransport | OpensshTransport) -> HostError:
    with transport, pytest.raises(HostError) as caught:
        transport.run("true")
    return caught.value


def test_a_key_of_an_agent_lets_us_in(sshd: Sshd, agent: str, tmp_path: Path, kind: Kind) -> None:
    add(agent, str(sshd.key))
    options = config(tmp_path, sshd.stanza(f"IdentityAgent {agent}", "IdentitiesOnly no", key="none"))
    assert reaches(kind("testbox", options), sshd.user.name)


def test_only_the_named_key_of_a_full_agent_is_offered(sshd: Sshd, agent: str, tmp_path: Path) -> None:
    for number in range(8):  # more than MaxAuthTries
        add(agent, str(make_key(tmp_path / f"other{number}")))
    add(agent, str(sshd.key))
    only_public = tmp_path / "wanted.pub"
    only_public.write_text(public(sshd.key))
    named = config(tmp_path, sshd.stanza(f"IdentityAgent {agent}", key=only_public))
    assert reaches(SshTransport("testbox", named), sshd.user.name)
    unnamed = config(tmp_path, sshd.stanza(f"IdentityAgent {agent}", "IdentitiesOnly no", key="none"))
    assert "IdentitiesOnly" in refusal(SshTransport("testbox", unnamed)).message


@pytest.fixture
def locked(sshd: Sshd, tmp_path: Path) -> Path:
    key = tmp_path / "locked"
    shutil.copy(sshd.key, key)
    subprocess.run(
        ["ssh-keygen", "-q", "-p", "-N", "open sesame", "-f", str(key)], check=True, stdout=subprocess.DEVNULL
    )
    return key


def test_a_key_that_the_agent_holds_is_not_asked_a_passphrase_for(
    sshd: Sshd, agent: str, locked: Path, tmp_path: Path
) -> None:
    shutil.copy(sshd.key.with_name("id_ed25519.pub"), tmp_path / "locked.pub")
    add(agent, str(sshd.key))
    options = config(tmp_path, sshd.stanza(f"IdentityAgent {agent}", key=locked))
    assert reaches(SshTransport("testbox", options), sshd.user.name)


def test_a_key_of_the_agent_that_is_not_named_is_not_offered(sshd: Sshd, agent: str, tmp_path: Path) -> None:
    add(agent, str(sshd.key))
    other = make_key(tmp_path / "other")
    error = refusal(SshTransport("testbox", config(tmp_path, sshd.stanza(f"IdentityAgent {agent}", key=other))))
    assert "an ssh agent with 1 key\n" in error.message
    assert error.message.count("refused") == 1


def test_a_refused_key_of_the_agent_is_not_asked_a_passphrase_for(sshd: Sshd, agent: str, tmp_path: Path) -> None:
    key = make_key(tmp_path / "stranger")
    add(agent, str(key))
    subprocess.run(["ssh-keygen", "-q", "-p", "-N", "secret", "-f", str(key)], check=True, capture_output=True)
    prompts: list[str] = []

    def ask(prompt: str) -> str:
        prompts.append(prompt)
        return "secret"

    options = config(tmp_path, sshd.stanza(f"IdentityAgent {agent}", key=key))
    refusal(SshTransport("testbox", Options(config=options.config, ask=ask)))
    assert prompts == []


def test_an_encrypted_key_is_asked_for_once_in_the_life_of_a_transport(
    sshd: Sshd, locked: Path, tmp_path: Path
) -> None:
    prompts: list[str] = []

    def ask(prompt: str) -> str:
        prompts.append(prompt)
        return "wrong" if len(prompts) == 1 else "open sesame"

    plain = config(tmp_path, sshd.stanza(key=locked))
    with SshTransport("testbox", Options(config=plain.config, ask=ask)) as transport:
        assert transport.run("true").code == 0
        transport.close()
        assert transport.run("true").code == 0
    assert prompts == [f"Passphrase of {locked}: "] * 2


def test_without_a_terminal_an_encrypted_key_is_named_and_nobody_is_asked(
    sshd: Sshd, locked: Path, tmp_path: Path, kind: Kind
) -> None:
    options = config(tmp_path, sshd.stanza(key=locked))
    error = refusal(kind("testbox", options))
    assert "accepted none of the keys" in error.message
    assert kind is OpensshTransport or f"{locked}: encrypted" in error.message


def test_what_was_tried_is_told(sshd: Sshd, tmp_path: Path) -> None:
    other = make_key(tmp_path / "other")
    broken = tmp_path / "broken"
    broken.write_text("nothing that is a key")
    missing = tmp_path / "missing"
    lines = (f"IdentityFile {other}", f"IdentityFile {broken}", "IdentityAgent /no/agent")
    error = refusal(SshTransport("testbox", config(tmp_path, sshd.stanza(*lines, key=missing))))
    assert f"{other}: refused" in error.message
    assert f"{broken}: not a key" in error.message
    assert "/no/agent does not answer" in error.message
    assert str(missing) not in error.message


def test_a_certificate_lets_us_in_and_the_bare_key_does_not(
    own_sshd: Callable[..., Sshd], tmp_path: Path, kind: Kind
) -> None:
    authority = make_key(tmp_path / "authority")
    server = own_sshd(f"TrustedUserCAKeys {authority}.pub")
    key = make_key(tmp_path / "certified")
    options = config(tmp_path, server.stanza(key=key))
    assert "none of the keys" in refusal(kind("testbox", options)).message
    sign = ["ssh-keygen", "-q", "-s", str(authority), "-I", "test", "-n", server.user.name, f"{key}.pub"]
    subprocess.run(sign, check=True)
    assert reaches(kind("testbox", options), server.user.name)
    elsewhere = tmp_path / "elsewhere.pub"
    (tmp_path / "certified-cert.pub").rename(elsewhere)
    options = config(tmp_path, server.stanza(f"CertificateFile {elsewhere}", key=key))
    assert reaches(kind("testbox", options), server.user.name)


@pytest.mark.parametrize("algorithm", ["ed25519", "rsa", "ecdsa"])
def test_a_certificate_in_an_agent_lets_us_in(
    own_sshd: Callable[..., Sshd], agent: str, tmp_path: Path, algorithm: str
) -> None:
    authority = make_key(tmp_path / "authority")
    server = own_sshd(f"TrustedUserCAKeys {authority}.pub")
    key = make_key(tmp_path / "certified", kind=algorithm)
    subprocess.run(
        ["ssh-keygen", "-q", "-s", str(authority), "-I", "test", "-n", server.user.name, f"{key}.pub"], check=True
    )
    add(agent, str(key))
    options = config(tmp_path, server.stanza(f"IdentityAgent {agent}", "IdentitiesOnly no", key="none"))
    assert reaches(SshTransport("testbox", options), server.user.name)


def test_other_kinds_of_key_work_too(own_sshd: Callable[..., Sshd], tmp_path: Path) -> None:
    server = own_sshd()
    keys = [make_key(tmp_path / kind, kind=kind) for kind in ("rsa", "ecdsa")]
    server.authorized.write_text("".join(map(public, keys)))
    for key in keys:
        assert reaches(SshTransport("testbox", config(tmp_path, server.stanza(key=key))), server.user.name)


def test_a_second_factor_is_named_and_sent_to_openssh(own_sshd: Callable[..., Sshd]) -> None:
    server = own_sshd("AuthenticationMethods publickey,keyboard-interactive", "KbdInteractiveAuthentication yes")
    error = refusal(SshTransport("testbox", server.options()))
    assert "second factor: keyboard-interactive" in error.message
    assert "--transport openssh" in error.hint


def test_an_unknown_host_is_refused_with_its_fingerprint(sshd: Sshd, tmp_path: Path, kind: Kind) -> None:
    known = tmp_path / "known_hosts"
    options = config(tmp_path, sshd.stanza(f"UserKnownHostsFile {known}", "StrictHostKeyChecking no"))
    error = refusal(kind("testbox", options))
    shown = subprocess.check_output(["ssh-keygen", "-lf", f"{sshd.host_key}.pub"], text=True).split()[1]
    assert shown in error.message
    assert "ssh testbox true" in error.hint
    assert "--accept-new" in error.hint
    assert not known.exists()


@pytest.mark.parametrize("hashed", ["no", "yes"])
def test_a_new_host_is_trusted_when_asked_to_and_then_known(
    sshd: Sshd, tmp_path: Path, kind: Kind, hashed: str
) -> None:
    known = tmp_path / "fresh" / "known_hosts"
    known.parent.mkdir()
    known.write_text("# a line without an end" if kind is SshTransport else "")
    options = config(tmp_path, sshd.stanza(f"UserKnownHostsFile {known}", f"HashKnownHosts {hashed}"))
    assert reaches(kind("testbox", Options(config=options.config, accept_new=True)), sshd.user.name)
    assert ("127.0.0.1" in known.read_text()) == (hashed == "no")
    assert reaches(SshTransport("testbox", options), sshd.user.name)
    assert reaches(OpensshTransport("testbox", options), sshd.user.name)


def test_a_changed_host_key_is_fatal_even_when_new_ones_are_accepted(sshd: Sshd, tmp_path: Path, kind: Kind) -> None:
    impostor = make_key(tmp_path / "impostor")
    known = tmp_path / "known_hosts"
    known.write_text(f"# first\n[127.0.0.1]:{sshd.port} {public(impostor)}")
    options = config(tmp_path, sshd.stanza(f"UserKnownHostsFile {known}"))
    error = refusal(kind("testbox", Options(config=options.config, accept_new=True)))
    prints = [
        subprocess.check_output(["ssh-keygen", "-lf", f"{key}.pub"], text=True).split()[1]
        for key in (impostor, sshd.host_key)
    ]
    assert "has changed" in error.message
    assert prints[1] in error.message
    assert f"{known}:2" in error.message
    assert "ssh-keygen" in error.hint
    assert kind is OpensshTransport or prints[0] in error.message


def test_a_host_with_several_keys_is_asked_for_the_one_that_we_know(
    own_sshd: Callable[..., Sshd], tmp_path: Path
) -> None:
    second = make_key(tmp_path / "host_rsa", kind="rsa")
    server = own_sshd(f"HostKey {second}")
    server.known_hosts.write_text(f"[127.0.0.1]:{server.port} {public(second)}")
    assert reaches(SshTransport("testbox", server.options()), server.user.name)


def test_no_secret_is_in_any_command_line_or_message(sshd: Sshd, locked: Path, tmp_path: Path) -> None:
    options = config(tmp_path, sshd.stanza(key=locked))
    with SshTransport("testbox", Options(config=options.config, ask=lambda _: "open sesame")) as transport:
        lines = transport.run("cat /proc/[0-9]*/cmdline /proc/self/environ").stdout
        assert b"open sesame" not in lines
        assert b"stdin secret" not in transport.run("cat /proc/[0-9]*/cmdline", stdin=b"stdin secret").stdout
    assert "sesame" not in repr(vars(transport))
