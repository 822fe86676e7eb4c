"""Whether the memory that stopped sessions held on GPUs has come back."""

from __future__ import annotations

import os
import time

from comborun.host import driver, process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable

_QUESTION = ("--format=csv,noheader,nounits", "--query-compute-apps=pid,used_memory")
_LOOK_S = 0.25


class Freed:
    """The processes of sessions with GPUs, as they were before the first signal."""

    def __init__(self, run_id: str, lock: str) -> None:
        self._run = run_id
        self._lock = lock
        self._former: set[str] = set()
        self._asked = False

    def remember(self, marker: str) -> None:
        """The processes of an attempt that has GPUs."""
        self._asked = True
        self._former.update(map(str, process.marked(marker)))

    def check(self, say: Callable[[str], object]) -> bool:
        """Whether all came back, as far as can be found out; a line for each that did not."""
        if not self._asked:
            return True
        held = self._held()
        if held is None:
            say("GPU memory: unknown whether all of it came back, nvidia-smi gives no answer")
            return True
        for pid, mib in held:
            say(f"GPU memory: process {pid} still holds {mib or '?'} MiB")
        return not held

    def _held(self) -> list[tuple[str, str]] | None:
        """What is held a moment later, when the driver has given back what the dead had; None without an answer."""
        deadline = time.monotonic() + float(os.environ.get("COMBORUN_GPU_BACK_S") or 5)
        while True:
            question = driver.Question(_QUESTION, self._lock)
            rows = [line.partition(",") for line in driver.hear(question)]
            if not question.whole:
                return None
            held = [(pid, mib.strip()) for pid, _, mib in rows if pid in self._former]
            if not held or time.monotonic() >= deadline:
                return held
            time.sleep(_LOOK_S)
