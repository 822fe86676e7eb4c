"""Files that are made once, and a lock, by hard links. These work across nodes, unlike flock."""

from __future__ import annotations

import contextlib
import os
import time

from comborun.host import files, process

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
        self._draft = ""

    def take(self, wait_s: float) -> bool:
        """Take the lock; False if another process holds it all the time. Raises OSError if nothing can be written."""
        draft = f"{files.draft(self.path)}.{os.urandom(4).hex()}"
        pid, start, boot = process.identity()
        holder = [("host", os.uname().nodename), ("boot", boot), ("pid", pid), ("start", start)]
        if not files.write(draft, holder):
            raise OSError(f"can't write {draft}")
        deadline = time.monotonic() + wait_s
        while not self._link(draft):
            gone = self._stale(draft)
            if gone:
                self._break(gone, draft + ".gone")
            elif time.monotonic() >= deadline:
                files.remove(draft)
                return False
            else:
                time.sleep(_PAUSE_S)
        self._draft = draft
        return True

    def renew(self) -> None:
        """Show that the holder lives, before work that may take minutes. The lock is a link to the draft."""
        if self._draft:
            _touch(self._draft)

    def give(self) -> None:
        if self._draft:
            if _same(self._draft, self.path):
                files.remove(self.path)
            files.remove(self._draft)
            self._draft = ""

    def _link(self, draft: str) -> bool:
        try:
            os.link(draft, self.path)
        except OSError:
            return _same(draft, self.path)
        return True

    def _stale(self, draft: str) -> dict[str, str]:
        """The holder, if it is dead, or on another machine and has not renewed the lock for too long."""
        holder = files.read(self.path)
        boot = holder.get("boot", "")
        if boot == process.boot_id():
            return {} if process.alive(holder.get("pid", ""), holder.get("start", ""), boot) else holder
        _touch(draft)  # only the file server's clock tells its age
        try:
            return holder if os.stat(draft).st_mtime - os.stat(self.path).st_mtime > STALE_S else {}
        except OSError:
            return {}

    def _break(self, holder: dict[str, str], aside: str) -> None:
        """Move a stale lock away; put back a lock that another process has just taken."""
        try:
            os.rename(self.path, aside)
            if files.read(aside) != holder:
                os.link(aside, self.path)
        except OSError:
            pass
        files.remove(aside)


def _touch(path: str) -> None:
    with contextlib.suppress(OSError):
        os.utime(path)
