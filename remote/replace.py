"""What a start said of the user's own sessions that `replaces` names (comborun/host/replace.py)."""

from __future__ import annotations

_BEGINS = "replaces "


def replaced(said: str) -> tuple[str, ...]:
    """The sentences about them, in order: what was found, and how it ended. `said` is what launch.start returns."""
    return tuple(line.removeprefix(_BEGINS) for line in said.splitlines() if line.startswith(_BEGINS))
