"""Resolves a host's name as the user's own ssh does."""

from __future__ import annotations

import getpass
import hashlib
import os
import re
import socket
import subprocess
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING

from comborun.errors import HostError
from comborun.text import close_to

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

Settings = dict[str, list[str]]
"""lower-case keyword -> its values"""

CONNECT_S = 15.0
_LONGEST_NAME = 300
"""characters: 253 for DNS, and room for a user and a port"""
NO_SSH = "there is no ssh program on this machine"


@dataclass(frozen=True)
class Address:
    """The text of the user: `[user@]host[:port]`; an IPv6 address with a port stands in brackets."""

    host: str
    user: str | None = None
    port: int | None = None

    @classmethod
    def parse(cls, text: str) -> Address:
        found = re.fullmatch(r"(?:ssh://)?(?:(?P<user>[^@]*)@)?(?P<rest>.*?)/?", text.strip(), re.DOTALL)
        assert found
        rest = re.fullmatch(r"\[(?P<six>[^\]]+)\](?::(?P<p6>\d+))?|(?P<name>[^:]*)(?::(?P<p4>\d+))?", found["rest"])
        host, port = (rest["six"] or rest["name"], rest["p6"] or rest["p4"]) if rest else (found["rest"], None)
        misplaced = re.search(r"^-|^$|[\s\[\]/\x00]", host)
        if misplaced or len(text) > _LONGEST_NAME or (port and not 0 < int(port) < 65536):
            shown = repr(text) if len(text) <= _LONGEST_NAME else f"{text[:40]!r}... ({len(text):,} characters)"
            raise HostError(f"{shown} names no host", "write an alias of your ssh config, or user@host:port")
        return cls(host, found["user"] or None, int(port) if port else None)


@dataclass(frozen=True)
class Options:
    config: Path | None = field(
        default_factory=lambda: Path(name) if (name := os.environ.get("COMBORUN_SSH_CONFIG")) else None
    )
    """an ssh config instead of the user's own"""
    accept_new: bool = False
    """whether to trust an unknown host and record its key"""
    ask: Callable[[str], str] | None = None
    """asks the user at the terminal for a secret; None without a terminal"""
    confirm: Callable[[str], bool] | None = None
    """asks the user at the terminal a question of yes or no"""
    keep_s: float = 0.0
    """for how long a connection is kept after its last use; 0: it ends with the transport"""


@dataclass(frozen=True)
class SshTarget:
    name: str
    """as the user wrote it"""
    hostname: str
    port: int
    user: str
    identities: tuple[Path, ...]
    certificates: tuple[Path, ...]
    identities_only: bool
    agent: str | None
    """the agent's socket"""
    known_hosts: tuple[Path, ...]
    """new keys are written to the first"""
    host_key_alias: str | None
    hash_known_hosts: bool
    jumps: tuple[str, ...]
    proxy_command: str | None
    connect_timeout: float
    family: socket.AddressFamily
    control_path: str = ""
    """of the user's own ControlMaster; empty if the config has none"""
    settings: str = ""
    """a digest of all settings: a connection that was made with other ones is another connection"""

    @property
    def known_as(self) -> str:
        """The name of the host in known_hosts files."""
        if self.host_key_alias:
            return self.host_key_alias.lower()
        name = self.hostname.lower()
        return name if self.port == 22 else f"[{name}]:{self.port}"


def resolve(name: str, config: Path | None = None) -> SshTarget:
    """The target of `ssh NAME`, as ssh itself resolves it. Raises HostError if the name or the config is wrong."""
    address = Address.parse(name)
    hint = "a Match exec in your ssh config hangs"
    try:
        done = subprocess.run(
            ["ssh", "-G", *ssh_arguments(address, config)],
            capture_output=True, text=True, timeout=CONNECT_S, check=False, stdin=subprocess.DEVNULL,
        )  # fmt: skip
        if not done.returncode:
            found = target(name, address, parse_settings(done.stdout))
            return replace(found, settings=hashlib.sha256(done.stdout.encode("utf-8", "replace")).hexdigest())
        hint = done.stderr.strip()
    except FileNotFoundError:
        raise HostError(NO_SSH, "install openssh-client") from None
    except subprocess.TimeoutExpired:
        raise HostError(f"ssh -G {address.host} did not answer", hint) from None
    except (OSError, ValueError) as error:
        hint = str(error)
    raise HostError(f"your ssh config can't be used for {address.host}", hint)


def close_alias(name: str, config: Path | None) -> str:
    """The host of the user's ssh config with the most similar name; included files are not read."""
    try:
        text = (config or Path.home() / ".ssh/config").read_text("utf-8", "replace")
    except OSError:
        return ""
    words = " ".join(re.findall(r"^\s*Host\s+(.*)", text, re.MULTILINE | re.IGNORECASE)).split()
    return close_to(name, [word for word in words if not set(word) & set("*?!")])


def ssh_arguments(address: Address, config: Path | None) -> list[str]:
    return [
        *(["-F", str(config)] if config else []),
        *(["-l", address.user] if address.user else []),
        *(["-p", str(address.port)] if address.port else []),
        "--",
        address.host,
    ]


def parse_settings(text: str) -> Settings:
    """The settings in the output of `ssh -G`."""
    settings: Settings = {}
    for line in text.splitlines():
        keyword, _, value = line.partition(" ")
        settings.setdefault(keyword.lower(), []).append(value.strip())
    return settings


def target(name: str, address: Address, settings: Mapping[str, list[str]]) -> SshTarget:
    """The target of resolved settings."""

    def one(keyword: str, default: str = "") -> str:
        value = settings.get(keyword, [default])[0]
        return default if value.lower() == "none" else value

    def several(keyword: str) -> tuple[Path, ...]:
        return tuple(_path(value, tokens) for value in settings.get(keyword, []) if value != "none")

    hostname = one("hostname", address.host)
    user = one("user") or getpass.getuser()
    port = int(one("port", "22"))
    tokens = _tokens(address.host, hostname, port, user)
    known = (*_paths(one("userknownhostsfile"), tokens), *_paths(one("globalknownhostsfile"), tokens))
    return SshTarget(
        name=name,
        hostname=hostname,
        port=port,
        user=user,
        identities=several("identityfile"),
        certificates=several("certificatefile"),
        identities_only=one("identitiesonly") == "yes",
        agent=_agent(settings.get("identityagent", ["SSH_AUTH_SOCK"])[0], tokens),
        known_hosts=known or (Path("~/.ssh/known_hosts").expanduser(),),
        host_key_alias=one("hostkeyalias") or None,
        hash_known_hosts=one("hashknownhosts") == "yes",
        jumps=tuple(jump.strip() for jump in one("proxyjump").split(",") if jump.strip()),
        proxy_command=_expand(one("proxycommand"), tokens) or None,
        connect_timeout=float(timeout) if (timeout := one("connecttimeout")).isdecimal() else CONNECT_S,
        control_path=one("controlpath"),
        family={"inet": socket.AF_INET, "inet6": socket.AF_INET6}.get(one("addressfamily"), socket.AF_UNSPEC),
    )


def _tokens(original: str, hostname: str, port: int, user: str) -> dict[str, str]:
    return {
        "%%": "%", "%d": str(Path.home()), "%h": hostname, "%i": str(os.getuid()), "%k": original,
        "%L": socket.gethostname().partition(".")[0], "%l": socket.gethostname(), "%n": original, "%p": str(port),
        "%r": user, "%u": getpass.getuser(),
    }  # fmt: skip


def _expand(value: str, tokens: Mapping[str, str]) -> str:
    value = re.sub(r"%.", lambda found: tokens.get(found[0], found[0]), value)
    return re.sub(r"\$\{(\w+)\}", lambda found: os.environ.get(found[1], ""), value)


def _path(value: str, tokens: Mapping[str, str]) -> Path:
    path = _expand(value.strip('"'), tokens)
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise ValueError(f"there is no home for {path}") from None


def _paths(value: str, tokens: Mapping[str, str]) -> list[Path]:
    """Several paths in one value; `ssh -G` does not quote paths with spaces."""
    whole = _path(value, tokens)
    return [whole] if value and whole.exists() else [_path(word, tokens) for word in value.split()]


def _agent(value: str, tokens: Mapping[str, str]) -> str | None:
    if value.lower() == "none":
        return None
    if value == "SSH_AUTH_SOCK":
        return os.environ.get("SSH_AUTH_SOCK") or None
    if value.startswith("$") and not value.startswith("${"):
        return os.environ.get(value[1:]) or None
    return str(_path(value, tokens))
