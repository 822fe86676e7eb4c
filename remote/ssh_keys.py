"""The keys that a user has: in an agent, in files, with and without certificates."""

from __future__ import annotations

import base64
import binascii
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

from paramiko import ECDSAKey, Ed25519Key, PasswordRequiredException, PKey, RSAKey, SSHException
from paramiko.agent import AgentSSH

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from remote.ssh_config import Target

_AGENT_S = 30.0
"""An agent may ask its user to confirm."""
_ASK_TIMES = 3


@dataclass(frozen=True)
class Candidate:
    """A key to offer, and how to name it to a person."""

    key: PKey
    name: str


class Agent(AgentSSH):
    """The agent at a socket; paramiko's own class knows only the one in the environment."""

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
    """Private keys by file, each read, and asked for, once in the life of a transport."""

    def __init__(self, ask: Callable[[str], str] | None) -> None:
        self._ask = ask
        self._keys: dict[Path, PKey] = {}
        self._problems: dict[Path, str] = {}

    def load(self, path: Path, *, locked: bool) -> PKey | str | None:
        """The key; or why it can't be used; or None when it needs a passphrase and `locked` ones are not wanted."""
        if path in self._keys:
            return self._keys[path]
        if path in self._problems:
            return self._problems[path]
        try:
            self._keys[path] = read_key(path, None)
        except PasswordRequiredException:
            if not locked:
                return None
            self._unlock(path)
        except (OSError, SSHException) as error:
            self._problems[path] = str(error) or type(error).__name__
        return self._keys.get(path) or self._problems[path]

    def _unlock(self, path: Path) -> None:
        if self._ask is None:
            self._problems[path] = "encrypted, and nobody is there to ask for its passphrase; try ssh-add"
            return
        for _ in range(_ASK_TIMES):
            try:
                self._keys[path] = read_key(path, self._ask(f"Passphrase of {path}: "))
            except SSHException:
                continue
            return
        self._problems[path] = "wrong passphrase"


def read_key(path: Path, passphrase: str | None) -> PKey:
    """Raises PasswordRequiredException when it is encrypted, SSHException when it can't be read, OSError."""
    for kind in (Ed25519Key, ECDSAKey, RSAKey):
        try:
            return kind.from_private_key_file(str(path), passphrase)
        except PasswordRequiredException:
            raise
        except (SSHException, ValueError):
            continue
    raise SSHException("wrong passphrase" if passphrase else "not a key that paramiko can read")


def public_blob(path: Path) -> bytes | None:
    """The public key in a file of one, as bytes; None when there is none."""
    try:
        return base64.b64decode(path.read_text(encoding="utf-8", errors="replace").split()[1], validate=True)
    except (OSError, IndexError, binascii.Error, ValueError):
        return None


def candidates(target: Target, agent_keys: tuple[PKey, ...], files: KeyFiles, tried: list[str]) -> Iterator[Candidate]:
    """What to offer to a host, in OpenSSH's order; encrypted files last. Appends to `tried` what can't be offered."""
    present = [path for path in target.identities if path.exists() or _beside(path, ".pub").exists()]
    blobs = {path: public_blob(path) or public_blob(_beside(path, ".pub")) for path in present}
    held = {key.asbytes(): key for key in agent_keys if "-cert-" not in key.get_name()}
    yield from _from_agent(target, agent_keys, blobs)
    waiting = []
    for path in present:
        if blobs[path] in held or not path.exists() or public_blob(path):
            continue
        key = files.load(path, locked=False)
        if isinstance(key, PKey):
            yield from _certified(target, path, key)
        elif key is None:
            waiting.append(path)
        else:
            tried.append(f"{path}: {key}")
    for path in waiting:
        key = files.load(path, locked=True)
        if isinstance(key, PKey):
            yield from _certified(target, path, key)
        else:
            tried.append(f"{path}: {key}")


def _from_agent(target: Target, agent_keys: tuple[PKey, ...], blobs: dict[Path, bytes | None]) -> Iterator[Candidate]:
    order = {blob: position for position, blob in enumerate(blobs.values()) if blob}
    ranked = sorted(agent_keys, key=lambda key: order.get(key.asbytes(), len(order)))
    for key in ranked:
        wanted = key.asbytes() in order
        if wanted or not target.identities_only:
            label = f"{key.get_name()} {getattr(key, 'comment', '')} of the agent".replace("  ", " ")
            paths = [path for path, blob in blobs.items() if blob == key.asbytes()]
            yield from _with_certificates(target, key, label, paths)


def _certified(target: Target, path: Path, key: PKey) -> Iterator[Candidate]:
    yield from _with_certificates(target, key, str(path), [path])


def _with_certificates(target: Target, key: PKey, label: str, paths: list[Path]) -> Iterator[Candidate]:
    """The key with each of its certificates, then without."""
    bases = [path.with_name(path.name.removesuffix(".pub")) for path in paths]
    for certificate in (*(_beside(path, "-cert.pub") for path in bases), *target.certificates):
        if _certifies(certificate, key):
            key.load_certificate(str(certificate))
            yield Candidate(key, f"{label} with {certificate.name}")
            key.public_blob = None
    yield Candidate(key, label)


def _certifies(certificate: Path, key: PKey) -> bool:
    from cryptography.hazmat.primitives.serialization import (
        Encoding,
        PublicFormat,
        SSHCertificate,
        load_ssh_public_identity,
    )

    try:
        identity = load_ssh_public_identity(certificate.read_bytes())
    except (OSError, ValueError):
        return False
    if not isinstance(identity, SSHCertificate):
        return False
    line = identity.public_key().public_bytes(Encoding.OpenSSH, PublicFormat.OpenSSH)
    return base64.b64decode(line.split()[1]) == key.asbytes()


def _beside(path: Path, suffix: str) -> Path:
    return path.with_name(path.name + suffix)
