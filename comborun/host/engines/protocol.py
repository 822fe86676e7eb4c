"""What a program must do that shows sessions in windows: start, look, end, address, attach.

It knows nothing of states, retries, evidence or notices. A session's state is in its files; a window only shows it.
"""

from __future__ import annotations

import os

from comborun.rules.names import RunLayout

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Sequence

    from comborun.host.system.children import Opening


class Multiplexer:
    """One such program, as one run on this machine uses it."""

    kind = ""
    version = "-V"
    """the option that makes it tell its version"""
    variables: Sequence[str] = ()
    """those that it sets in its windows; a dispatcher that was started in one forgets them"""
    handed_on: Sequence[str] = ()
    """those of them that a supervisor outside a window needs for `address`"""
    opens_several = False
    """whether several windows cost less by one call"""
    read_only = False
    """whether a window can be shown so that nobody types into it"""

    def __init__(self, run: str) -> None:
        self.run = run
        self.out = RunLayout(run).out

    def prepare(self) -> None:
        """Called once before the first start, in the dispatcher; supervisors inherit its variables."""

    def start(self, windows: Sequence[tuple[str, Sequence[str]]]) -> list[Opening]:
        """Open windows (name, command), each by a process that leaves at once. Nothing waits for it.

        A name may come again, after its window was killed.
        """
        raise NotImplementedError

    def end(self) -> None:
        """This run starts nothing more."""

    # Also without a run, on a laptop

    @classmethod
    def address(cls, name: str) -> str:
        """Asked by the supervisor of a window of that name: how `attach` finds it."""
        raise NotImplementedError

    @classmethod
    def attach(cls, address: str, folder: str, *, local: bool, write: bool) -> list[str]:
        """The command that shows a window. `folder`: of its sockets, as its record has it; `local`: it is here.

        Without `write`, only where `read_only` says that it can: elsewhere `combo attach` follows the log.
        """
        raise NotImplementedError

    @classmethod
    def look(cls, folder: str = "") -> frozenset[str] | None:  # noqa: ARG003 - of tmux
        """The addresses of all windows that are open here, with sockets in that folder; None if that can't be told."""
        return None


def launch_s() -> float:
    """Seconds in which a window must begin."""
    return float(os.environ.get("COMBORUN_LAUNCH_S") or 20)
