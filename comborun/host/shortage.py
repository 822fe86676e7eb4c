"""After an out-of-memory on a GPU one session fewer runs at once there.

dispatch/fewer         GPU <TAB> sessions <TAB> at: the most that run at once from then on; `resume` removes it
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence

from comborun.host import files
from comborun.rules.ledger import Ledger
from comborun.rules.names import RunLayout

GPU_MEMORY = "gpu_memory"
_TOGETHER_S = 30.0


class Shortages:
    """The GPUs of a run whose memory was too small for the sessions there."""

    def __init__(
        self, ledger: Ledger, layout: RunLayout, journal: Callable[[str], None], tell: Callable[[str, str, str], None]
    ) -> None:
        self._ledger = ledger
        self._file = f"{layout.dispatch}/fewer"
        self._journal, self._tell = journal, tell
        self._most: dict[int, int] = {}
        """GPU -> most sessions that run there at once"""
        self._there: dict[str, dict[int, int]] = {}
        """session -> the number of sessions on each of its GPUs when it left"""
        self._reduced: dict[int, float] = {}
        """GPU -> when its limit was last reduced, by the monotonic clock"""

    def open(self) -> None:
        """Read the file; a GPU that is not in it has no limit."""
        rows = re.findall(r"^([0-9]{1,4})\t([1-9][0-9]{0,5})(?:\t|$)", files.read_text(self._file), re.MULTILINE)
        self._ledger.capacity.most = self._most = {int(gpu): int(number) for gpu, number in rows}

    def left(self, name: str) -> None:
        """Note who was beside it, before its slot is free."""
        if share := self._ledger.shares.get(name):
            self._there[name] = {gpu: self._ledger.ours.load.get(gpu, 0) for gpu in share.gpus}

    def ended(self, name: str, gpus: Sequence[int], failure: str) -> bool:
        """Handle an end. Returns whether it ran out of a GPU's memory beside others of this run."""
        there = self._there.pop(name, None)
        if failure != GPU_MEMORY or there is None:
            return False
        crowded = [self._reduce(gpu, there.get(gpu, 1), name) for gpu in gpus]
        return any(crowded)

    def _reduce(self, gpu: int, there: int, name: str) -> bool:
        """Let one session fewer run on this GPU, of the number `there`. Returns whether it was not alone.

        Sessions that run out together count as one event.
        """
        now = time.monotonic()
        if now - self._reduced.get(gpu, -_TOGETHER_S) < _TOGETHER_S:
            return True
        if there > 1 and there - 1 < self._most.get(gpu, there):
            self._most[gpu], self._reduced[gpu] = there - 1, now
            self._write()
            self._journal(f"fewer {gpu} {there - 1} {name}")
            text = f"GPU {gpu}: at most {there - 1} sessions at once from now on: one of {there} ran out of its memory"
            self._tell("host", name, text)
        return there > 1

    def _write(self) -> None:
        now = f"{time.time():.6f}"
        files.write_text(self._file, "".join(f"{gpu}\t{most}\t{now}\n" for gpu, most in sorted(self._most.items())))
