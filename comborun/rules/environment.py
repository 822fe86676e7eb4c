"""The variables that decide which programs and libraries a command runs with. Pure.

A run records these of each of its starts, and nothing else of an environment, since that may hold secrets.
"""

from __future__ import annotations

import re

from comborun.rules.facts import Fact

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Mapping

DIFFERS = "environment_differs"
"""changed: variable -> its value at the first launch and now, empty for none; sessions: how many, in a report"""
_NAMES = re.compile("PATH|VIRTUAL_ENV|PYTHONPATH|LD_LIBRARY_PATH|CONDA_(?!SHLVL|PROMPT_MODIFIER)[A-Z0-9_]+")
_SECRET = re.compile("TOKEN|SECRET|PASSWORD|KEY")


def recorded(variables: Mapping[str, str]) -> dict[str, str]:
    """Those of an environment that are recorded."""
    found = sorted((name, value) for name, value in variables.items() if _NAMES.fullmatch(name) and value)
    return {name: value for name, value in found if not _SECRET.search(name)}


def difference(first: Mapping[str, str], now: Mapping[str, str]) -> Fact | None:
    """How one environment differs from that of the first launch; None if none of these variables does."""
    then, after = recorded(first), recorded(now)
    names = [name for name in sorted({*then, *after}) if then.get(name) != after.get(name)]
    return Fact(DIFFERS, changed={name: [then.get(name, ""), after.get(name, "")] for name in names}) if names else None
