"""Files that are made once, and a lock, that work across nodes, unlike flock."""

from __future__ import annotations

import contextlib
import os
import time

from comborun.host import files, process
from comborun.rules import records

STALE_S = 300.0
"""seconds; a lock that was not renewed for so long has no holder"""
_PAUSE_S = 0.2


def publish(path: str, text: str) -> bool:
    """Make a file; False if it exists already. Raises OSError if it can't be written.

    A file server that repeats the call may report that the name exists although this draft got it.
    """
    draft = files.draft(path)
    if not files.write_text(draft, text):
        raise OSError(f"can't write {draft}")
    try:
        os.link(draft, path)
    except OSError:
        return _same(draft, path)
    else:
        return True
    finally:
        files.remove(draft)


def _same(one: str, other: str) -> bool:
    try:
        return os.path.samefile(one, other)
    except OSError:
        return False


class Lock:
    """One submission or settling of a run at a time, on whichever node.

    It saves work and keeps the journal in order. The claims, not this lock, prevent that something runs twice. So the
    lock of a dead holder may be removed.
    """

    def __init__(self, path: str) -> None:
        self.path = path
        self._own: dict[str, str] = {}

    def take(self, wait_s: float) -> bool:
        """Take the lock; False if another process holds it all the time. Raises OSError if nothing can be written."""
        pid, start, boot = process.identity()
        own = {"host": os.uname().nodename, "boot": boot, "pid": pid, "start": start}
        deadline = time.monotonic() + wait_s
        while not files.create(self.path, records.render(own.items())):
            if self._stale():
                files.remove(self.path)
            elif time.monotonic() >= deadline:
                return False
            else:
                time.sleep(_PAUSE_S)
        self._own = own
        return True

    def renew(self) -> None:
        """Show that the holder lives, before work that may take minutes."""
        if self._own:
            with contextlib.suppress(OSError):
                os.utime(self.path)

    def give(self) -> None:
        if self._own and files.read(self.path) == self._own:
            files.remove(self.path)
        self._own = {}

    def _stale(self) -> bool:
        """Whether the holder is dead, or is on another machine and has not renewed the lock for too long."""
        holder = files.read(self.path)
        if holder.get("boot") == process.boot_id():
            return not process.named(holder)
        clock = files.draft(self.path)  # only the file server's clock tells its age
        files.write_text(clock, "")
        age_s = (files.changed(clock) - files.changed(self.path)) / 1e9
        files.remove(clock)
        return age_s > STALE_S and files.read(self.path) == holder
