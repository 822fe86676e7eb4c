"""The user's keys: in an agent, in files, with certificates."""

from __future__ import annotations

import base64
import socket
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, cast

from paramiko import ECDSAKey, Ed25519Key, PasswordRequiredException, PKey, RSAKey, SSHException
from paramiko.agent import AgentKey, AgentSSH
from paramiko.pkey import PublicBlob

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

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
