"""What a host's name and an ssh config mean; no process, no network."""

from __future__ import annotations

import getpass
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from comborun.errors import HostError
from comborun.remote.ssh.config import Address, Settings, ssh_arguments, target


def meaning(name: str = "box", **settings: str | list[str]) -> object:
    values: Settings = {key: [value] if isinstance(value, str) else value for key, value in settings.items()}
    return target(name, Address.parse(name), values)


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("gpubox", Address("gpubox")),
        ("me@gpubox", Address("gpubox", "me")),
        ("me@gpubox:2222", Address("gpubox", "me", 2222)),
        ("gpubox:22", Address("gpubox", None, 22)),
        ("me@[::1]:2222", Address("::1", "me", 2222)),
        ("ssh://me@gpubox:2222", Address("gpubox", "me", 2222)),
    ],
)
def test_an_address_is_read_as_people_write_it(text: str, address: Address) -> None:
    assert Address.parse(text) == address


@pytest.mark.parametrize(
    "text",
    ["", "me@", "-oProxyCommand=evil", "me@-v", "two words", "box\nbox", "box:0", "box:65536", "[]:22", "box" * 1000],
)
def test_what_names_no_host_is_refused_with_a_hint(text: str) -> None:
    with pytest.raises(HostError, match="names no host") as caught:
        Address.parse(text)
    assert "user@host:port" in caught.value.hint
    assert len(caught.value.message) < 100


@given(st.text())
def test_any_text_is_an_address_or_a_host_error(text: str) -> None:
    try:
        address = Address.parse(text)
    except HostError:
        return
    assert address.host
    assert not address.host.startswith("-")


def test_an_address_reaches_ssh_as_arguments_and_never_as_an_option(tmp_path: Path) -> None:
    arguments = ssh_arguments(Address("box", "me", 7), tmp_path)
    assert arguments == ["-F", str(tmp_path), "-l", "me", "-p", "7", "--", "box"]


def test_without_any_settings_a_name_means_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/me")
    monkeypatch.delenv("SSH_AUTH_SOCK", raising=False)
    found = meaning("Box")
    assert (found.hostname, found.port, found.user) == ("Box", 22, getpass.getuser())
    assert (found.jumps, found.proxy_command, found.agent) == ((), None, None)
    assert found.known_hosts == (Path("/home/me/.ssh/known_hosts"),)
    assert (found.connect_timeout, found.family) == (15.0, socket.AF_UNSPEC)


def test_every_setting_is_honoured() -> None:
    found = meaning(
        hostname="10.0.0.7",
        port="2222",
        user="me",
        identityfile=["/k/%r@%h", "none"],
        certificatefile=["/c/one", "/c/two"],
        identitiesonly="yes",
        identityagent="/agents/%u",
        userknownhostsfile="/no/a /no/b",
        globalknownhostsfile="/no/c",
        hostkeyalias="Cluster",
        hashknownhosts="yes",
        proxyjump="one, me@two:22",
        connecttimeout="4",
        addressfamily="inet6",
    )
    assert (found.hostname, found.port, found.user) == ("10.0.0.7", 2222, "me")
    assert found.identities == (Path("/k/me@10.0.0.7"),)
    assert found.certificates == (Path("/c/one"), Path("/c/two"))
    assert found.agent == f"/agents/{getpass.getuser()}"
    assert found.known_hosts == (Path("/no/a"), Path("/no/b"), Path("/no/c"))
    assert (found.known_as, found.hash_known_hosts, found.identities_only) == ("cluster", True, True)
    assert found.jumps == ("one", "me@two:22")
    assert (found.connect_timeout, found.family) == (4.0, socket.AF_INET6)


def test_tokens_and_variables_are_filled_in(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("TUNNEL", "edge"), ("SSH_AUTH_SOCK", "/run/mine"), ("OTHER_SOCK", "/run/other")):
        monkeypatch.setenv(name, value)
    found = meaning("box", hostname="10.0.0.7", port="7", user="me", proxycommand="nc ${TUNNEL} %h %p %r %n 100%% %Z")
    assert found.proxy_command == "nc edge 10.0.0.7 7 me box 100% %Z"
    agents = {"SSH_AUTH_SOCK": "/run/mine", "$OTHER_SOCK": "/run/other", "${OTHER_SOCK}.1": "/run/other.1", "/x": "/x"}
    for value, agent in agents.items():
        assert meaning(identityagent=value).agent == agent
