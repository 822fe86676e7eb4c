"""The user's keys (in an agent, in files, with certificates), and the keys of known hosts.

paramiko's own reader of known_hosts supports neither wildcards nor `@` lines, so ssh-keygen looks them up.
"""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shlex
import socket
import subprocess
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from paramiko import ECDSAKey, Ed25519Key, HostKeys, PasswordRequiredException, PKey, RSAKey, SSHException
from paramiko.agent import AgentKey, AgentSSH
from paramiko.pkey import PublicBlob

from comborun.errors import HostError
from comborun.remote.ssh.config import Address, ssh_arguments

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator

    from comborun.remote.ssh.config import SshTarget


_AGENT_S = 30.0
"""seconds; an agent may ask its user to confirm"""
_ASK_TIMES = 3


class Candidate(NamedTuple):
    key: PKey
    name: str


class Agent(AgentSSH):
    """The agent at a socket; paramiko's own class only uses the one in the environment."""

    def __init__(self, path: str) -> None:
        super().__init__()
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(_AGENT_S)
        try:
            connection.connect(path)
            self._connect(connection)  # type: ignore[attr-defined]
        except BaseException:
            connection.close()
            raise

    def close(self) -> None:
        self._close()  # type: ignore[attr-defined]


class KeyFiles:
    """Private keys by file. Each is read, and its passphrase asked for, once in the life of a transport."""

    def __init__(self, ask: Callable[[str], str] | None) -> None:
        self._ask = ask
        self._found: dict[Path, PKey | str] = {}

    def load(self, path: Path, *, locked: bool) -> PKey | str | None:
        """The key, or why it can't be used, or None if it needs a passphrase and `locked` ones come later."""
        if path not in self._found:
            try:
                self._found[path] = read_key(path, None)
            except PasswordRequiredException:
                if not locked:
                    return None
                self._found[path] = self._unlocked(path)
            except (OSError, SSHException) as error:
                self._found[path] = str(error) or type(error).__name__
        return self._found[path]

    def _unlocked(self, path: Path) -> PKey | str:
        if self._ask is None:
            return "encrypted, and nobody is there to ask for its passphrase; try ssh-add"
        for _ in range(_ASK_TIMES):
            with suppress(SSHException):
                return read_key(path, self._ask(f"Passphrase of {path}: "))
        return "wrong passphrase"


def read_key(path: Path, passphrase: str | None) -> PKey:
    """Raises PasswordRequiredException for an encrypted key, SSHException if it can't be read, OSError."""
    for kind in (Ed25519Key, ECDSAKey, RSAKey):
        try:
            return kind.from_private_key_file(str(path), passphrase)
        except PasswordRequiredException:
            raise
        except (SSHException, ValueError):
            continue
    raise SSHException("wrong passphrase" if passphrase else "not a key that paramiko can read")


def public_blob(path: Path) -> bytes | None:
    """The public key in a file, as bytes, or None."""
    try:
        kind, text = path.read_text(encoding="utf-8", errors="replace").split()[:2]
        blob = base64.b64decode(text, validate=True)
    except (OSError, ValueError):  # binascii.Error is a ValueError
        return None
    return blob if blob[4:].startswith(kind.encode()) else None


def candidates(
    target: SshTarget, agent_keys: tuple[PKey, ...], files: KeyFiles, tried: list[str]
) -> Iterator[Candidate]:
    """The keys to offer, in OpenSSH's order; encrypted files last. Appends to `tried` what can't be offered."""
    present = [path for path in target.identities if path.exists() or _beside(path, ".pub").exists()]
    blobs = {path: public_blob(path) or public_blob(_beside(path, ".pub")) for path in present}
    held = {key.asbytes() for key in agent_keys}
    yield from _from_agent(target, agent_keys, blobs)
    left = [path for path in present if path.exists() and blobs[path] not in held and not public_blob(path)]
    for locked in (False, True):
        waiting: list[Path] = []
        for path in left:
            key = files.load(path, locked=locked)
            if isinstance(key, PKey):
                yield from _with_certificates(target, key, str(path), path)
            elif key is None:
                waiting.append(path)
            else:
                tried.append(f"{path}: {key}")
        left = waiting


def _from_agent(
    target: SshTarget, agent_keys: tuple[PKey, ...], blobs: dict[Path, bytes | None]
) -> Iterator[Candidate]:
    path_of = {blob: path for path, blob in reversed(blobs.items()) if blob}
    order = {blob: position for position, blob in enumerate(blobs.values()) if blob}
    for key in sorted(agent_keys, key=lambda key: order.get(key.asbytes(), len(order))):
        if target.identities_only and key.asbytes() not in order:
            continue
        label = f"{key.get_name()} {getattr(key, 'comment', '')}".strip() + " of the agent"
        if "-cert-" in key.get_name():
            # otherwise paramiko offers only the key of an RSA or ECDSA certificate
            key.public_blob = PublicBlob(key.get_name(), cast("AgentKey", key).blob)
            yield Candidate(key, label)
        else:
            yield from _with_certificates(target, key, label, path_of.get(key.asbytes()))


def _with_certificates(target: SshTarget, key: PKey, label: str, path: Path | None) -> Iterator[Candidate]:
    """The key with each of its certificates, then alone."""
    beside = [_beside(path.with_name(path.name.removesuffix(".pub")), "-cert.pub")] if path else []
    held = key.asbytes()[4 + len(key.get_name()) :]
    for certificate in (*beside, *target.certificates):
        if held in (public_blob(certificate) or b""):
            key.load_certificate(str(certificate))
            yield Candidate(key, f"{label} with {certificate.name}")
            key.public_blob = None
    yield Candidate(key, label)


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)


REVOKED, AUTHORITY = "@revoked", "@cert-authority"


@dataclass(frozen=True)
class KnownKey:
    file: Path
    line: int
    marker: str
    """REVOKED, AUTHORITY, or nothing"""
    type: str
    blob: bytes

    @property
    def place(self) -> str:
        return f"{self.file}:{self.line}"


def _known(files: Iterable[Path], name: str) -> tuple[KnownKey, ...]:
    """The lines about `name`, which is `host` or `[host]:port`, as OpenSSH finds them."""
    keys: list[KnownKey | None] = []
    for file in filter(Path.is_file, files):
        found = subprocess.run(["ssh-keygen", "-F", name, "-f", str(file)], capture_output=True, check=False)
        number = 0
        for line in found.stdout.decode("utf-8", "replace").splitlines():
            if at := re.match(r"# Host .* found: line (\d+)", line):
                number = int(at[1])
            else:
                keys.append(_parse(file, number, line))
    return tuple(filter(None, keys))


def _parse(file: Path, number: int, line: str) -> KnownKey | None:
    words = line.split()
    marker = words.pop(0) if words and words[0] in {REVOKED, AUTHORITY} else ""
    try:
        blob = base64.b64decode(words[2], validate=True)
    except (IndexError, ValueError):
        return None
    return KnownKey(file, number, marker, words[1], blob) if _kind(blob) == words[1] else None


def _kind(blob: bytes) -> str:
    return blob[4 : 4 + int.from_bytes(blob[:4], "big")].decode("ascii", "replace")


def fingerprint(blob: bytes) -> str:
    """The fingerprint as `ssh-keygen -l` shows it."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(blob).digest()).decode().rstrip("=")


def keys_of(target: SshTarget) -> tuple[KnownKey, ...]:
    """The lines of known_hosts files about the host. As in OpenSSH, a line without the port is also used."""
    named = _known(target.known_hosts, target.known_as)
    if named or target.host_key_alias or target.port == 22:
        return named
    return _known(target.known_hosts, target.hostname.lower())


def verify(target: SshTarget, known: tuple[KnownKey, ...], blob: bytes, *, accept_new: bool) -> tuple[str, ...]:
    """Raise HostError unless the key is known to be the host's; with `accept_new`, a new key is recorded.

    Returns warnings: skipped lines, or a recorded key.
    """
    kind = _kind(blob)
    revoked = next((key for key in known if key.marker == REVOKED and key.blob == blob), None)
    if revoked:
        raise HostError(f"the host key of {target.name} is revoked ({revoked.place})", "ask who runs the host")
    plain = [key for key in known if not key.marker]
    if any(key.blob == blob for key in plain):
        return ()
    authorities = [key for key in known if key.marker == AUTHORITY]
    if plain:
        raise _changed(target, plain, kind, blob)
    if accept_new:
        file = _append(target, kind, blob)
        return (f"{target.name} is trusted from now on: {kind} {fingerprint(blob)}, written to {file}",)
    raise _unknown(target, kind, blob, authorities)


def _unknown(target: SshTarget, kind: str, blob: bytes, authorities: list[KnownKey]) -> HostError:
    message = f"the host key of {target.name} ({target.known_as}) is not known\n  {kind} {fingerprint(blob)}"
    if authorities:
        return HostError(
            message,
            f"{authorities[0].place} trusts a certificate authority for it, which only OpenSSH can check: "
            "--transport openssh",
        )
    arguments = (word for word in ssh_arguments(Address.parse(target.name), None) if word != "--")
    login = shlex.join(["ssh", *arguments, "true"])
    return HostError(
        message,
        "compare it with what the host says of itself (there: ssh-keygen -lf /etc/ssh/ssh_host_"
        f"{kind.removeprefix('ssh-').partition('-')[0]}_key.pub); "
        f"if they are the same, run  {login}  and answer yes, or add --accept-new",
    )


def _changed(target: SshTarget, known: list[KnownKey], kind: str, blob: bytes) -> HostError:
    old = next((key for key in known if key.type == kind), known[0])
    return HostError(
        f"the host key of {target.name} ({target.known_as}) has changed: another machine may be answering\n"
        f"  known:   {old.type} {fingerprint(old.blob)} ({old.place})\n"
        f"  answers: {kind} {fingerprint(blob)}",
        f"only if you know why (the host was set up anew): ssh-keygen -f {old.file} -R '{target.known_as}'",
    )


def _append(target: SshTarget, kind: str, blob: bytes) -> Path:
    file = target.known_hosts[0]
    name = HostKeys.hash_host(target.known_as) if target.hash_known_hosts else target.known_as
    line = f"{name} {kind} {base64.b64encode(blob).decode()}\n"
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        unfinished = file.exists() and file.read_bytes()[-1:] not in {b"", b"\n"}
        descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
        with os.fdopen(descriptor, "wb") as stream:
            stream.write((b"\n" if unfinished else b"") + line.encode())
    except OSError as error:
        raise HostError(f"the host key of {target.name} could not be written to {file}", str(error)) from error
    return file
