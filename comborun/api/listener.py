"""What a call says while it works. A command prints it; from Python it goes to the log `comborun`."""

from __future__ import annotations

import logging
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from comborun.errors import UserError

if TYPE_CHECKING:
    from collections.abc import Callable

    from comborun.remote.ssh.shell import ShellTransport
    from comborun.remote.transport import LocalTransport

    Opened = LocalTransport | ShellTransport

_LOG = logging.getLogger("comborun")


class Listener:
    program = "combo"
    """how the user calls the program: for hints"""
    forks = False
    """whether this process has no threads that could hold a lock, so that a look at this machine may be a fork of it"""
    ask: Callable[[str], str] | None = None
    """asks the user for a secret, such as a password; None: nobody can be asked"""

    agree: Callable[[str], bool] | None = None
    """asks the user a question for yes or no; None: nobody can be asked"""

    def tell(self, text: str) -> None:
        _LOG.info("%s", text)

    def note(self, sentence: str) -> None:
        self.tell(sentence)

    def warn(self, *warnings: str) -> None:
        for warning in warnings:
            _LOG.warning("%s", warning)

    def working(self, what: str) -> AbstractContextManager[Callable[[object], None]]:
        """Around work that may take long; yields a function for its progress."""
        _LOG.debug("%s", what)
        return nullcontext(lambda _: None)

    def confirm(self, question: str, otherwise: UserError) -> bool:
        """The user's answer. Raises `otherwise` where nobody can be asked."""
        del question
        raise otherwise

    def opened(self, transport: Opened) -> None:
        """A connection was opened; whoever listens may close it."""


QUIET = Listener()
