"""Which files of a host are policies."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from comborun.errors import HostError
from comborun.policy_files import Match
from comborun.remote import program

if TYPE_CHECKING:
    from comborun.policy_files import PolicyGlob
    from comborun.remote.transport import Transport

MOST = 2000
"""files that one glob may find"""


def find_policies(transport: Transport, glob: PolicyGlob, host_python: str | None = None) -> tuple[Match, ...]:
    """All files and folders that a glob finds on the host, in one round trip. Links that lead nowhere are none."""
    question = json.dumps({"patterns": glob.patterns, "exclude": glob.exclude}).encode()
    python = program.Python(named=host_python or "")
    done = program.run_packed(transport, "policies", stdin=question, timeout=120, python=python)
    if done.code:
        raise HostError(f"{transport.host} can't look for {glob}", done.complaint)
    return tuple(Match(pattern, path, folder) for pattern, path, folder in program.answer(transport, done))
