"""The variables (rules/environment.py) of each start of a dispatcher: dispatch/environments.jsonl.

Its first row is that of the first launch. Another shell may have another Python: a difference is told before anything
starts, each attempt names its row, and a user can ask for the first ones.
"""

from __future__ import annotations

import os
import time
from collections.abc import Mapping

from comborun.host.system import files
from comborun.host.verb_errors import USAGE, Refusal
from comborun.rules import environment
from comborun.rules.facts import Fact
from comborun.rules.host import Denial
from comborun.rules.names import RunLayout

FIRST, NOW = CHOICES = ("first", "now")
"""whose variables a start uses: those of the first launch, or its own"""


def _rows(layout: RunLayout) -> list[dict[str, str]]:
    """The different environments so far, oldest first."""
    return list(map(environment.recorded, files.read_rows(layout.environments)))


def difference(layout: RunLayout) -> Fact | None:
    """How the variables of this process differ from those of the first launch; None without one."""
    rows = _rows(layout)
    return environment.difference(rows[0], os.environ) if rows else None


def enter(layout: RunLayout, choice: str) -> Fact | None:
    """Take the variables of the first launch if they are asked for, and record others. Returns how they differ.

    Raises Refusal for an unknown choice. On a full disk nothing is recorded.
    """
    if choice not in CHOICES:
        raise Refusal(USAGE, Denial.USAGE, usage=f"--environment {'|'.join(CHOICES)}", given=choice)
    rows = _rows(layout)
    if choice == FIRST and rows:
        for name in environment.recorded(os.environ):
            del os.environ[name]
        os.environ.update(rows[0])
    own = environment.recorded(os.environ)
    if own not in rows:
        before = files.read_rows(layout.environments)
        files.write_rows(layout.environments, [*before, {"at": f"{time.time():.6f}", **own}])
    return difference(layout)


def number(layout: RunLayout, variables: Mapping[str, str]) -> int:
    """The row of this environment, from 1; 0 if it is unknown."""
    rows, own = _rows(layout), environment.recorded(variables)
    return rows.index(own) + 1 if own in rows else 0
