"""After an out-of-memory on a GPU: what the session requests next, and how many sessions run at once there.

dispatch/fewer         GPU <TAB> sessions <TAB> at: the most that run at once from then on; `resume` removes it
attempt-N/short        gpu_memory alone: the request of the next attempt
"""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence

from comborun.host import files
from comborun.rules import records
from comborun.rules.ledger import Ledger
from comborun.rules.names import AttemptLayout, RunLayout
from comborun.rules.placement import Request

GPU_MEMORY = "gpu_memory"
_TOGETHER_S = 30.0


class Shortages:
    """The sessions of a run that ran out of a GPU's memory."""

    def __init__(
        self, ledger: Ledger, layout: RunLayout, journal: Callable[[str], None], tell: Callable[[str, str, str], None]
    ) -> None:
        self._ledger = ledger
        self._file = f"{layout.dispatch}/fewer"
        self._journal, self._tell = journal, tell
        self._most: dict[int, int] = {}
        """GPU -> most sessions that run there at once"""
        self._requests: dict[str, Request] = {}
        """session -> its request now"""
        self._tried: set[str] = set()
        """sessions that have started again after running out of memory"""
        self._left: dict[str, tuple[int, dict[int, int]]] = {}
        """session -> the most MiB that it held on one GPU when it left, and the number of sessions on each of its GPUs
        """
        self._reduced: dict[int, float] = {}
        """GPU -> when its limit was last reduced, by the monotonic clock"""

    def open(self) -> None:
        """Read the file; a GPU that is not in it has no limit."""
        rows = re.findall(r"^([0-9]{1,4})\t([1-9][0-9]{0,5})(?:\t|$)", files.read_text(self._file), re.MULTILINE)
        self._ledger.capacity.most = self._most = {int(gpu): int(number) for gpu, number in rows}

    def again(self, name: str, at: str, failure: str, said: Request) -> None:
        """Choose the request for the attempt after the one in that folder; `said`: the grid's request.

        Without a record, as after a dispatcher that was killed at that moment, it starts alone.
        """
        self._requests.pop(name, None)
        if failure == GPU_MEMORY and said.gpus:
            record = files.read(AttemptLayout(at).short)
            asked = records.integer(record, "gpu_memory")
            mib = said.gpu_memory if asked is None else asked
            self._requests[name] = said.but(mib, alone=asked is None or "alone" in record)

    def forget(self, name: str) -> None:
        """Forget a shortage: it is over, or a user asked for another attempt."""
        self._requests.pop(name, None)
        self._tried.discard(name)

    def request(self, name: str) -> Request | None:
        return self._requests.get(name)

    def began(self, name: str) -> None:
        if self._requests.pop(name, None):
            self._tried.add(name)

    def left(self, name: str) -> None:
        """Note how much memory it held, before its slot is free."""
        if share := self._ledger.shares.get(name):
            there = {gpu: self._ledger.ours.load.get(gpu, 0) for gpu in share.gpus}
            self._left[name] = max(share.mib.values(), default=0), there

    def ended(self, name: str, gpus: Sequence[int], at: str, failure: str, said: Request) -> bool:
        """Handle an end. Returns whether it ran out of a GPU's memory beside others of this run."""
        left = self._left.pop(name, None)
        if failure != GPU_MEMORY or not gpus or not left:
            return False
        held, there = left
        # Its next request is what it held, then a whole GPU (benchmarks/admission.py).
        alone = name in self._tried or not said.gpu_memory
        request = self._requests[name] = said.but(max(said.gpu_memory, held), alone=alone)
        record = [("gpu_memory", request.gpu_memory), *[("alone", 1)] * request.alone]
        files.write(AttemptLayout(at).short, record)
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
