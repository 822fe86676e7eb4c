"""The times of a supervisor in seconds, read once from its environment."""

from __future__ import annotations

from comborun.host.system.process import setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Final


class Timing:
    """Each is a variable COMBORUN_<NAME>_S."""

    def __init__(self) -> None:
        self.watch_s: Final = max(0.02, setting("COMBORUN_WATCH_S", 5.0))
        """between two looks of a watch"""
        self.stalled_s: Final = setting("COMBORUN_STALLED_S", 1200.0)
        """without progress until a session without `stall_after` is shown as stalled"""
        self.grace_s: Final = setting("COMBORUN_GRACE_S", 5.0)
        """for the processes that a command leaves behind"""
        self.server_grace_s: Final = setting("COMBORUN_SERVER_GRACE_S", 10.0)
        """for a program to notice that its model server is gone"""
        self.answer_s: Final = setting("COMBORUN_ANSWER_S", 5.0)
        """for the answer of a model server"""
        self.display_s: Final = setting("COMBORUN_DISPLAY_S", 15.0)
        """for an Xvfb to start"""
        self.lock_s: Final = setting("COMBORUN_LOCK_S", 10.0)
        """for an earlier attempt to leave the session's lock"""
