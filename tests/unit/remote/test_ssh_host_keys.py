"""known_hosts files, line by line; no network."""

from __future__ import annotations

import base64
from dataclasses import replace
from pathlib import Path

import pytest

from comborun.errors import HostError
from comborun.remote.ssh.config import Address, SshTarget, target
from comborun.remote.ssh.known_hosts import fingerprint, keys_of, verify


def blob_of(kind: str, filling: bytes) -> bytes:
    return len(kind).to_bytes(4, "big") + kind.encode() + filling


ED = blob_of("ssh-ed25519", b"\0\0\0\x20" + b"e" * 32)
OTHER = blob_of("ssh-ed25519", b"\0\0\0\x20" + b"o" * 32)
RSA = blob_of("ssh-rsa", b"r" * 40)


def line(hosts: str, blob: bytes = ED, marker: str = "") -> str:
    kind = blob[4 : 4 + int.from_bytes(blob[:4], "big")].decode()
    return f"{marker} {hosts} {kind} {base64.b64encode(blob).decode()} a comment\n".lstrip()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "known_hosts"


def box(file: Path, port: int = 22, **changes: object) -> SshTarget:
    plain = target("box", Address("box"), {"hostname": ["Box.Example.ORG"], "port": [str(port)]})
    return replace(plain, known_hosts=(file,), **changes)


def check(host: SshTarget, blob: bytes = ED, *, accept_new: bool = False) -> tuple[str, ...]:
    return verify(host, keys_of(host), blob, accept_new=accept_new)


@pytest.mark.parametrize(
    ("hosts", "port", "known"),
    [
        ("box.example.org", 22, True),
        ("*.example.org", 22, True),
        ("*.example.org,!box.*", 22, False),
        ("[box.example.org]:2222", 2222, True),
        ("[box.example.org]:2222", 2223, False),
        ("box.example.org", 2222, True),
    ],
)
def test_names_and_patterns_match_as_in_openssh(file: Path, hosts: str, port: int, known: bool) -> None:
    file.write_text(line(hosts))
    assert bool(keys_of(box(file, port))) == known


def test_a_line_with_the_port_hides_the_one_without(file: Path) -> None:
    file.write_text(line("box.example.org", OTHER) + line("[box.example.org]:2222"))
    assert [key.line for key in keys_of(box(file, 2222))] == [2]


def test_a_hashed_name_is_found_and_a_broken_hash_is_not(file: Path) -> None:
    hashed = "|1|F1E1KeoE/eEWhi10WpGv4OdiO6Y=|3988QV0VE8wmZL7suNrYQLITLCg="  # of 192.168.1.61, from sshd(8)
    file.write_text(line(hashed) + line("|1|nothing") + line("|1|a|b|c"))
    host = target("x", Address("192.168.1.61"), {})
    assert [key.line for key in keys_of(replace(host, known_hosts=(file,)))] == [1]


def test_what_cannot_be_read_is_passed_over(file: Path, tmp_path: Path) -> None:
    rubbish = "# comment\n\nbox.example.org\nbox.example.org ssh-ed25519 !!!\nbox.example.org ssh-rsa AAAA\n\x00\n"
    file.write_bytes(rubbish.encode() + b"\xff\xfe\n" + line("box.example.org").encode())
    keys = keys_of(replace(box(file), known_hosts=(tmp_path / "missing", tmp_path, file)))
    assert [(key.file, key.line) for key in keys] == [(file, 8)]


def test_the_right_key_among_several_is_enough(file: Path) -> None:
    file.write_text(line("box.example.org", OTHER) + line("box.example.org", RSA) + line("box.example.org"))
    assert check(box(file)) == ()


@pytest.mark.parametrize("accept_new", [False, True])
@pytest.mark.parametrize("known", [OTHER, RSA])
def test_a_changed_key_is_fatal_whatever_was_asked(file: Path, known: bytes, accept_new: bool) -> None:
    file.write_text("\n" + line("box.example.org", known))
    with pytest.raises(HostError, match="has changed") as caught:
        check(box(file), accept_new=accept_new)
    assert fingerprint(known) in caught.value.message
    assert fingerprint(ED) in caught.value.message
    assert f"{file}:2" in caught.value.message
    assert f"ssh-keygen -f {file} -R 'box.example.org'" in caught.value.hint
    assert file.read_text().count("\n") == 2


@pytest.mark.parametrize("accept_new", [False, True])
def test_a_revoked_key_is_fatal_also_where_another_line_trusts_it(file: Path, accept_new: bool) -> None:
    file.write_text(line("box.example.org") + line("*", marker="@revoked"))
    with pytest.raises(HostError, match="revoked"):
        check(box(file), accept_new=accept_new)


def test_an_unknown_key_is_shown_with_the_steps_that_trust_it(file: Path) -> None:
    with pytest.raises(HostError, match="is not known") as caught:
        check(replace(box(file, 2222), name="me@box:2222"))
    assert "[box.example.org]:2222" in caught.value.message
    assert f"ssh-ed25519 {fingerprint(ED)}" in caught.value.message
    assert "ssh_host_ed25519_key.pub" in caught.value.hint
    assert "ssh -l me -p 2222 box true" in caught.value.hint
    assert not file.exists()


def test_an_authority_is_no_key_and_is_named(file: Path) -> None:
    file.write_text(line("*.example.org", marker="@cert-authority"))
    with pytest.raises(HostError, match="is not known") as caught:
        check(box(file))
    assert f"{file}:1" in caught.value.hint
    assert "openssh" in caught.value.hint


@pytest.mark.parametrize("hashed", [False, True])
def test_a_new_key_is_written_down_once_and_known_from_then_on(tmp_path: Path, hashed: bool) -> None:
    file = tmp_path / "new" / "known_hosts"
    host = box(file, 2222, hash_known_hosts=hashed)
    (told,) = check(host, accept_new=True)
    assert fingerprint(ED) in told
    assert check(host, accept_new=True) == ()
    assert check(host) == ()
    assert len(file.read_text().splitlines()) == 1
    assert ("box.example.org" in file.read_text()) != hashed
    assert (file.stat().st_mode & 0o777, file.parent.stat().st_mode & 0o777) == (0o600, 0o700)
