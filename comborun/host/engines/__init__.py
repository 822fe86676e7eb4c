"""Engines: they open the windows of sessions and report whether that succeeded, without blocking.

They know nothing of states, retries, evidence or notices. A session's state is in its files; a window only shows it.
"""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Protocol, Sequence

    from comborun.host.attempts import RunDirectory
    from comborun.host.engines.slurm import Slurm

    class Opening(Protocol):
        """A window that is being opened, or a process that runs."""

        def poll(self) -> int | None:
            """None while it is starting, then its exit code: 0 if it succeeded."""

        def kill(self) -> None:
            """Give it up."""

    class Engine(Protocol):
        """tmux or screen."""

        kind: str

        def prepare(self) -> None:
            """Called once before the first start; starts nothing."""

        def start(self, window: str, words: Sequence[str]) -> Opening:
            """Open a window that runs a command."""
            ...

        def finish(self) -> None:
            """Called when this run starts nothing more."""


def launch_s() -> float:
    """Seconds in which a window must begin."""
    return float(os.environ.get("COMBORUN_LAUNCH_S") or 20)


def slurm_of(attempts: RunDirectory) -> Slurm | None:
    """Slurm's view of a run, now or a moment ago; None if a dispatcher starts the sessions."""
    if not os.path.exists(attempts.layout.engine):
        return None
    from comborun.host.engines.slurm import Slurm

    attempts.nodes = cluster = Slurm(attempts.layout)
    cluster.refresh()
    return cluster


def engine(kind: str, run: str) -> Engine:
    if kind == "screen":
        from comborun.host.engines.screen import Screen

        return Screen(run)
    from comborun.host.engines.tmux import Tmux

    return Tmux(run)
