"""After an out-of-memory: how much memory the session requests next, and how many sessions run at once on that GPU.

dispatch/fewer         GPU <TAB> sessions <TAB> at: the most that run at once from then on; `resume` removes it
attempt-N/short        gpu_memory alone more free: the request of the next attempt
"""

from __future__ import annotations

import re
import time
from dataclasses import dataclass

from comborun.host import files
from comborun.host.process import setting
from comborun.rules import records
from comborun.rules.names import AttemptLayout
from comborun.rules.order import ConcurrencyBackoff, ask_for_more
from comborun.rules.placement import Blocker, Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Mapping, Sequence

    from comborun.rules.ledger import Ledger
    from comborun.rules.names import RunLayout

MEMORY = frozenset({"gpu_memory", "host_memory"})
_PATIENCE_S = 1800.0


@dataclass
class _Short:
    """A session that ran out of memory, and waits to start again."""

    at: str
    """the folder of the attempt that ran out"""
    request: Request
    """what it asks for now"""
    run_alone: bool = False
    """nothing else of the run may run beside it: main memory ran out, or a GPU that it was not granted"""
    more: bool = False
    """more has to be free on its GPUs than there was when it ran out, since nothing of the run was beside it"""
    free: int | None = None
    """MiB that were free then; None: not known yet"""
    until: float | None = None
    """it waits for that until then at most; None: it could not have started yet anyway"""

    def save(self) -> None:
        record: list[tuple[str, object]] = [("gpu_memory", self.request.gpu_memory)]
        record += [("alone", 1)] * self.request.alone + [("more", 1)] * self.more
        files.write(AttemptLayout(self.at).short, record if self.free is None else [*record, ("free", self.free)])

    @classmethod
    def load(cls, at: str, request: Request) -> _Short:
        """As the attempt in that folder has left it; where a dispatcher was killed before that it starts alone."""
        record = files.read(AttemptLayout(at).short)
        asked = records.integer(record, "gpu_memory")
        said = request.gpu_memory if asked is None else asked
        now = request.but(said, alone=asked is None or "alone" in record)
        return cls(at, now, more="more" in record, free=records.integer(record, "free"))


@dataclass
class _Left:
    """The state when a session left its GPUs."""

    request: Request
    held: int
    """MiB on the GPU where it held most, or was granted"""
    there: dict[int, int]
    """GPU -> how many were on it, itself among them"""
    at: float
    """by the monotonic clock"""


class Shortages:
    """The sessions of a run that ran out of memory."""

    def __init__(
        self, ledger: Ledger, layout: RunLayout, journal: Callable[[str], None], tell: Callable[[str, str, str], None]
    ) -> None:
        self._ledger = ledger
        self._layout = layout
        self._journal, self._tell = journal, tell
        self._fewer = ConcurrencyBackoff()
        self._short: dict[str, _Short] = {}
        self.waiting: dict[str, Blocker] = {}
        """those that wait for what only they wait for; in this round"""
        self._alone = ""
        """the one that runs alone"""
        self._busy = 0
        self._began: dict[str, float] = {}
        self._left: dict[str, _Left] = {}

    def open(self) -> None:
        """As the file tells; what is not in it has been lifted."""
        text = files.read_text(f"{self._layout.dispatch}/fewer")
        rows = re.findall(r"^([0-9]{1,4})\t([1-9][0-9]{0,5})(?:\t|$)", text, re.MULTILINE)
        self._fewer.most.clear()
        self._fewer.most.update({int(gpu): int(number) for gpu, number in rows})
        self._ledger.capacity.most = self._fewer.most

    def round(self, running: int) -> None:
        self._busy = running
        self.waiting.clear()

    # Those that wait

    def again(self, name: str, at: str, failure: str, request: Request) -> None:
        """It will be started again, after the attempt in that folder."""
        self.forget(name)
        if failure in MEMORY:
            short = self._short[name] = _Short.load(at, request)
            short.run_alone = failure == "host_memory" or not request.gpus
            short.more = short.more and not short.run_alone

    def forget(self, name: str) -> None:
        """Forget its shortage: it is over, or a user asked for another attempt."""
        self._short.pop(name, None)

    def request(self, name: str) -> Request | None:
        return self._short[name].request if name in self._short else None

    def blocker(self, name: str) -> Blocker | None:
        """Why it can't start wherever it would; and while one runs alone, nobody can."""
        short = self._short.get(name)
        if self._alone and self._alone != name:
            return Blocker("alone", f"{self._alone} ran out of memory, and now runs alone")
        if short and short.run_alone and self._busy:
            return Blocker(
                "alone", f"{self._busy} other sessions of this run must end first, because it ran out of memory"
            )
        return None

    def bars(self, name: str, gpu: int) -> Blocker | None:
        """Why it can't start on that GPU though its request fits there: no more is free than when it ran out."""
        short, now = self._short.get(name), time.monotonic()
        if not short or not short.more:
            return None
        patience = setting("COMBORUN_MEMORY_WAIT_S", _PATIENCE_S)
        if short.until is None:
            short.until = now + patience
        free = self._ledger.free(gpu)
        if now >= short.until or (free is not None and short.free is not None and free > short.free):
            return None
        return Blocker(
            "memory", f"until more memory is free than when it ran out, for {patience / 60:g} min at most", 2
        )

    def waits(self, name: str, blocker: Blocker) -> bool:
        """Whether it waits for what only it waits for, and nobody else that asks for the same."""
        own = name in self._short and blocker.reason in {"alone", "memory"}
        if own:
            self.waiting[name] = blocker
        return own

    # Those that run

    def grant(self, name: str, gpus: Sequence[int]) -> dict[str, object]:
        short = self._short.get(name)
        if short and short.run_alone:
            return {"alone": "run"}
        return {"alone": ",".join(map(str, gpus))} if short and short.request.alone else {}

    def began(self, name: str, now: float) -> None:
        short = self._short.pop(name, None)
        self._began[name] = now
        self._busy += 1
        if short and short.run_alone:
            self._alone = name

    def adopt(self, name: str, grant: Mapping[str, Any]) -> None:
        if grant.get("alone") == "run":
            self._alone = name

    def left(self, name: str) -> None:
        """Its place is about to be free."""
        if self._alone == name:
            self._alone = ""
        share = self._ledger.shares.get(name)
        if share:
            there = {gpu: self._ledger.ours.load.get(gpu, 0) for gpu in share.gpus}
            began = self._began.get(name, 0.0)
            for other in self._left.values():  # left while this one was there, and why is not known yet
                if other.at >= began:
                    there.update({gpu: number + 1 for gpu, number in there.items() if gpu in other.there})
            self._left[name] = _Left(share.request, max(share.mib.values(), default=0), there, time.monotonic())

    def ended(self, name: str, gpus: Sequence[int], at: str, failure: str, said: Request) -> bool:
        """Whether it ran out of a GPU's memory beside others of this run; `said`: what the grid asks for it."""
        left, began = self._left.pop(name, None), self._began.pop(name, 0.0)
        if failure == "host_memory" or (failure == "gpu_memory" and not gpus):
            self.again(name, at, failure, said)
        if failure != "gpu_memory" or not gpus or not left:
            return False
        fewer = [gpu for gpu in gpus if self._fewer.heed(gpu, left.there.get(gpu, 1), began, time.monotonic())]
        short = _Short(at, left.request, more=all(self._fewer.alone(gpu) for gpu in gpus))
        if not short.more:
            most = max(map(self._ledger.most, self._ledger.capacity.candidates(said)), default=0)
            again = left.request.gpu_memory > said.gpu_memory
            short.request = said.but(said.gpu_memory, alone=True) if again else ask_for_more(said, left.held, most)
        short.save()
        for gpu in fewer:
            self._tell_fewer(gpu, name)
        self._short[name] = short
        return not short.more

    @property
    def needs_measurement(self) -> bool:
        """Whether a session waits for free memory."""
        return any(short.more and short.free is None for short in self._short.values())

    def measured(self) -> None:
        """What is free now was not enough for those that had their GPUs alone."""
        for short in self._short.values():
            if short.more and short.free is None:
                gpus = self._ledger.capacity.candidates(short.request)
                known = [self._ledger.most(gpu) for gpu in gpus if gpu in self._ledger.capacity.gpu_memory]
                if known:
                    short.free = min(known)
                    short.save()

    def _tell_fewer(self, gpu: int, name: str) -> None:
        most, before = self._fewer.most, self._fewer.before(gpu)
        now = f"{time.time():.6f}"
        rows = "".join(f"{one}\t{number}\t{now}\n" for one, number in sorted(most.items()))
        files.write_text(f"{self._layout.dispatch}/fewer", rows)
        self._journal(f"fewer {gpu} {most[gpu]} {name}")
        text = f"GPU {gpu}: at most {most[gpu]} sessions at once from now on: one of {before} ran out of its memory"
        self._tell("host", name, text)
