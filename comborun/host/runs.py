"""The runs below some folders, oldest first: `runs ROOT...` answers with one JSON document."""

from __future__ import annotations

import os

from comborun.host import files
from comborun.host.incoming import answered, home
from comborun.host.publish import runs_below

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def main(arguments: list[str]) -> int:
    """The program's verb."""
    roots = [os.path.realpath(home(root)) for root in arguments]
    return answered("runs", lambda: [list(map(describe, runs_below(root))) for root in roots])


def describe(directory: str) -> dict[str, Any]:
    """How a run has ended, and what keeps it from going on."""
    held = files.read(f"{directory}/dispatch/hold")
    if os.path.exists(f"{directory}/dispatch/stopped"):
        held = {"kind": "stopped", "why": ""}
    return {"directory": directory, "done": files.read(f"{directory}/dispatch/done"), "held": held}
