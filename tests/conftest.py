"""What holds for all tests."""

from __future__ import annotations

import signal


def pytest_configure() -> None:
    """Undo what nohup, or a background job of a shell without job control, ignores: children would ignore it, too."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for one in (signal.SIGHUP, signal.SIGQUIT):
        signal.signal(one, signal.SIG_DFL)
