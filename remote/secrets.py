"""Secrets of a grid at the moment of the launch: are they all there, and those that this machine gives.

No value is ever in an argument, a message or a record: they travel on standard input (comborun/host/run_secrets.py).
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from comborun.errors import HostError, UserError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comborun.plan import SecretSource
    from comborun.resources import HostFacts


def asked_of_host(secrets: Mapping[str, SecretSource]) -> tuple[str, ...]:
    """The names of those that the host has."""
    return tuple(name for name, source in secrets.items() if source == "host")


def from_laptop(secrets: Mapping[str, SecretSource], environment: Mapping[str, str] = os.environ) -> bytes:
    """`NAME=VALUE` and a NUL for each that this machine gives. Raises UserError when one is not set, or empty."""
    names = [name for name, source in secrets.items() if source == "laptop"]
    if missing := [name for name in names if not environment.get(name)]:
        raise UserError(
            f"secrets: this machine's environment has no {', '.join(missing)}",
            f"export {missing[0]}=... before the launch, or say `{missing[0]}: host` when the host has it",
        )
    entries = (f"{name}={environment[name]}\0" for name in names)
    return "".join(entries).encode("utf-8", "surrogateescape")


def check_host(facts: HostFacts) -> None:
    """Raise HostError when the host lacks secrets that it was asked for."""
    if facts.lacking:
        first = facts.lacking[0]
        raise HostError(
            f"secrets: {', '.join(facts.lacking)} is set on {facts.host} neither in the environment of the launch"
            " nor in that of a login shell (bash -lc)",
            f"export {first}=... in ~/.profile there, or say `{first}: laptop` and export it here",
        )
