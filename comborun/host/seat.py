"""Whether a session's memory sits on the GPUs that it was granted.

Looked at a minute after the start, then after 2, 4, 8, 16 and 32, because programs load late. What lies elsewhere,
beyond what every context leaves on a GPU that it merely sees, is told in attempt-N/wrong_gpu and in the end's note. It
ends nothing.
"""

from __future__ import annotations

import math
import time

from comborun.host import files, process

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Sequence

    from comborun.host.driver import Card, Question
    from comborun.rules.names import AttemptLayout

MOST_MIB = 512
"""on a GPU that is not its own; Isaac Sim leaves some 200 there"""
_LAST = 32
"""times the first look's moment"""


class Seat:
    """The looks at one session. `first` and `most`: seconds and MiB."""

    def __init__(self, marker: str, gpus: Sequence[str], *, first: float = 60.0, most: float = MOST_MIB) -> None:
        self._marker = marker
        self._gpus = gpus
        self._most = most
        self._next = first if gpus else math.inf
        self._last = first * _LAST
        self._question: Question | None = None
        self._held: list[tuple[str, int]] = []
        """bus address and MiB of what its processes hold; its GPUs are asked for then"""

    @property
    def due(self) -> float:
        return self._question.due() if self._question else math.inf

    def descriptors(self) -> list[int]:
        return self._question.descriptors() if self._question else []

    def close(self) -> None:
        self._next = math.inf
        if self._question:
            self._question.close()
            self._question = None

    def look(self, awake: float, at: AttemptLayout) -> None:
        """Go on with it, `awake` seconds after the start. The processes are asked for first."""
        if self._question is None and awake < self._next:
            return
        from comborun.host import driver

        if self._question is None:
            self._next = self._next * 2 if self._next < self._last else math.inf
            self._question = driver.Question(driver.PROCESSES)
        elif self._question.look() and not self._held:
            ours = set(process.marked(self._marker))
            rows = driver.Processes(self._question.lines).held
            self._held = [(bus, mib) for bus, pid, mib in rows if pid in ours]
            self._question = driver.Question(driver.CARDS) if self._held else None
        elif self._question.over:
            self._tell(on_gpus(self._held, driver.cards(self._question.lines)), at)
            self._question, self._held = None, []

    def _tell(self, found: dict[str, int], at: AttemptLayout) -> None:
        own, planned = self._gpus, ",".join(self._gpus)
        wrong = [f"{mib} MiB on GPU {gpu}" for gpu, mib in found.items() if gpu not in own and mib > self._most]
        if not wrong:
            return
        here = sum(mib for gpu, mib in found.items() if gpu in own)
        why = f"WRONG_GPU: {', '.join(wrong)}, and {here} MiB on GPU {planned}, which it was granted"
        told = ",".join(f"{gpu}:{mib}" for gpu, mib in found.items())
        files.write(at.wrong_gpu, [("since", int(time.time())), ("planned", planned), ("found", told), ("why", why)])
        self._next = math.inf


def on_gpus(held: Sequence[tuple[str, int]], cards: Sequence[Card]) -> dict[str, int]:
    """GPU -> MiB."""
    found = {str(card.index): sum(mib for bus, mib in held if bus == card.bus) for card in cards}
    return {gpu: mib for gpu, mib in found.items() if mib}
