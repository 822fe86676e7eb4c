"""The multiplexers: a class for each, in a file of its own."""

from __future__ import annotations

from comborun.host.engines.protocol import Multiplexer
from comborun.host.engines.screen import Screen
from comborun.host.engines.tmux import Tmux

MULTIPLEXERS: dict[str, type[Multiplexer]] = {one.kind: one for one in (Tmux, Screen)}
"""their names are also in `rules/names.py`, for the options of commands"""


def multiplexer(kind: str, run: str) -> Multiplexer:
    """The multiplexer of a run, which says in dispatch/multiplexer what it uses."""
    return MULTIPLEXERS.get(kind, Tmux)(run)
