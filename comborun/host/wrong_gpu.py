"""Checks whether a session uses memory on GPUs that it was not granted.

It checks 1, 2, 4, 8, 16 and 32 minutes after the start, because programs load late. Memory elsewhere, beyond what a
context takes on every visible GPU, is reported in attempt-N/wrong_gpu and in the note of the end. It ends nothing.
"""

from __future__ import annotations

import os
import time

from comborun.host import files, process
from comborun.host.process import setting

TYPE_CHECKING = False
if TYPE_CHECKING:
    from threading import Event

    from comborun.host.attempt import Attempt

_FIRST_S = 60.0
_PAUSES = (1, 1, 2, 4, 8, 16)
"""times the first one"""
_MOST_MIB = 512.0
"""on a GPU that is not its own; Isaac Sim leaves some 200 there"""


class GpuMemoryCheck:
    """The checks of one session, in a thread, if it has GPUs and nvidia-smi can be asked."""

    def __init__(self, of: Attempt) -> None:
        self._of = of
        self._closed: Event | None = None
        pinned = of.gpus and of.data.get("pin") != "none"
        if pinned and any(os.access(f"{folder}/nvidia-smi", os.X_OK) for folder in os.get_exec_path()):
            import threading

            self._closed = threading.Event()
            threading.Thread(target=self._work, args=(self._closed,), daemon=True).start()

    def close(self) -> None:
        if self._closed:
            self._closed.set()

    def _work(self, closed: Event) -> None:
        first = setting("COMBORUN_SEAT_S", _FIRST_S) or _FIRST_S
        for times in _PAUSES:
            if closed.wait(first * times):
                return
            try:
                if self._report(self._use()):
                    return
            except (OSError, MemoryError):
                continue

    def _use(self) -> dict[str, int]:
        """GPU -> MiB that its processes hold there."""
        from comborun.host import driver

        found: dict[str, int] = {}
        holders = driver.holders()
        ours = set(process.marked(self._of.marker))
        for index, pid, mib in holders:
            if pid in ours:
                found[index] = found.get(index, 0) + mib
        return found

    def _report(self, found: dict[str, int]) -> bool:
        """Whether it uses a wrong GPU; then that is written."""
        own, most = self._of.granted, setting("COMBORUN_FOREIGN_MIB", _MOST_MIB)
        wrong = [f"{mib} MiB on GPU {gpu}" for gpu, mib in found.items() if gpu not in own and mib > most]
        if not wrong:
            return False
        here = sum(mib for gpu, mib in found.items() if gpu in own)
        why = f"WRONG_GPU: {', '.join(wrong)}, and {here} MiB on GPU {self._of.gpus}, which it was granted"
        text = ",".join(f"{gpu}:{mib}" for gpu, mib in found.items())
        return files.write(self._of.at.wrong_gpu, [("since", int(time.time())), ("found", text), ("why", why)])
