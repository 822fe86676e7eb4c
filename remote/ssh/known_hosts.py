"""The keys of known hosts. paramiko's reader knows neither wildcards nor `@` lines, so ssh-keygen looks them up."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import shlex
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from comborun.errors import HostError
from comborun.remote.ssh.config import Address, ssh_arguments

if TYPE_CHECKING:
    from collections.abc import Collection, Iterable

    from comborun.remote.ssh.config import SshTarget

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


def still_known(target: SshTarget, fingerprints: Collection[str]) -> bool:
    """Whether one of these keys, which the host or its authority showed at a login, is known, and none is revoked."""
    keys = [(key.marker, fingerprint(key.blob)) for key in keys_of(target)]
    revoked = any(marker == REVOKED and shown in fingerprints for marker, shown in keys)
    return not revoked and any(marker != REVOKED and shown in fingerprints for marker, shown in keys)


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
    from paramiko import HostKeys  # slow to import

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
