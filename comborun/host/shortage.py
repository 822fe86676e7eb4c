"""After an out-of-memory on a GPU: what the session requests next, and how many sessions run at once there.

dispatch/fewer         GPU <TAB> sessions <TAB> at: the most that run at once from then on; `resume` removes it
attempt-N/short        gpu_memory alone: the request of the next attempt
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

from comborun.host import files
from comborun.rules import records
from comborun.rules.names import AttemptLayout
from comborun.rules.order import ConcurrencyBackoff

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Callable, Sequence

    from comborun.rules.ledger import Ledger
    from comborun.rules.names import RunLayout
    from comborun.rules.placement import Request

GPU_MEMORY = "gpu_memory"


@dataclass
class _Left:
    """The state when a session left its GPUs."""

    held: int
    """MiB on the GPU where it held most, or was granted"""
    there: dict[int, int]
    """GPU -> how many were on it, itself among them"""
    at: float
    """by the monotonic clock"""


class Shortages:
    """The sessions of a run that ran out of a GPU's memory."""

    def __init__(
        self, ledger: Ledger, layout: RunLayout, journal: Callable[[str], None], tell: Callable[[str, str, str], None]
    ) -> None:
        self._ledger = ledger
        self._file = f"{layout.dispatch}/fewer"
        self._journal, self._tell = journal, tell
        self._fewer = ConcurrencyBackoff()
        self._requests: dict[str, Request] = {}
        """session -> what it requests now"""
        self._tried: set[str] = set()
        """those that have started again after they had run out"""
        self._began: dict[str, float] = {}
        self._left: dict[str, _Left] = {}

    def open(self) -> None:
        """As the file tells; what is not in it has been lifted."""
        rows = re.findall(r"^([0-9]{1,4})\t([1-9][0-9]{0,5})(?:\t|$)", files.read_text(self._file), re.MULTILINE)
        self._fewer.most.clear()
        self._fewer.most.update({int(gpu): int(number) for gpu, number in rows})
        self._ledger.capacity.most = self._fewer.most

    def again(self, name: str, at: str, failure: str, said: Request) -> None:
        """It will be started again, after the attempt in that folder; `said`: what the grid asks for it.

        Without a record, as after a dispatcher that was killed just then, it starts alone.
        """
        self._requests.pop(name, None)
        if failure == GPU_MEMORY and said.gpus:
            record = files.read(AttemptLayout(at).short)
            asked = records.integer(record, "gpu_memory")
            mib = said.gpu_memory if asked is None else asked
            self._requests[name] = said.but(mib, alone=asked is None or "alone" in record)

    def forget(self, name: str) -> None:
        """Its shortage is over, or a user asked for another attempt."""
        self._requests.pop(name, None)
        self._tried.discard(name)

    def request(self, name: str) -> Request | None:
        return self._requests.get(name)

    def began(self, name: str, now: float) -> None:
        if self._requests.pop(name, None):
            self._tried.add(name)
        self._began[name] = now

    def left(self, name: str) -> None:
        """Its place is about to be free."""
        share = self._ledger.shares.get(name)
        if share:
            there = {gpu: self._ledger.ours.load.get(gpu, 0) for gpu in share.gpus}
            began = self._began.get(name, 0.0)
            for other in self._left.values():  # left while this one was there, and why is not known yet
                if other.at >= began:
                    there.update({gpu: number + 1 for gpu, number in there.items() if gpu in other.there})
            self._left[name] = _Left(max(share.mib.values(), default=0), there, time.monotonic())

    def ended(self, name: str, gpus: Sequence[int], at: str, failure: str, said: Request) -> bool:
        """Whether it ran out of a GPU's memory beside others of this run."""
        left, began = self._left.pop(name, None), self._began.pop(name, 0.0)
        if failure != GPU_MEMORY or not gpus or not left:
            return False
        fewer = [gpu for gpu in gpus if self._fewer.record(gpu, left.there.get(gpu, 1), began, time.monotonic())]
        # Next it asks for what it held, then for a GPU of its own. In a simulation with this code (2 GPUs of 24 GiB, 60
        # sessions that need up to seven times what they say) twice as much was up to 20 % slower.
        alone = name in self._tried or not said.gpu_memory
        request = self._requests[name] = said.but(max(said.gpu_memory, left.held), alone=alone)
        record = [("gpu_memory", request.gpu_memory), *[("alone", 1)] * request.alone]
        files.write(AttemptLayout(at).short, record)
        for gpu in fewer:
            self._tell_fewer(gpu, name)
        return not all(map(self._fewer.alone, gpus))

    def _tell_fewer(self, gpu: int, name: str) -> None:
        most, before = self._fewer.most, self._fewer.before(gpu)
        now = f"{time.time():.6f}"
        files.write_text(self._file, "".join(f"{one}\t{number}\t{now}\n" for one, number in sorted(most.items())))
        self._journal(f"fewer {gpu} {most[gpu]} {name}")
        text = f"GPU {gpu}: at most {most[gpu]} sessions at once from now on: one of {before} ran out of its memory"
        self._tell("host", name, text)
