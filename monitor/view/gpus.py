"""Who held the memory of each GPU, over time: by the events that the host writes, else by the looks at the run."""

from __future__ import annotations

from collections.abc import Sequence
from threading import Lock
from time import monotonic
from typing import TYPE_CHECKING, Any

from comborun.errors import UserError
from comborun.monitor.gpu_samples import GpuSample, samples
from comborun.reporter.figures.figure import SERIES
from comborun.rules import events
from comborun.rules.events import Kind
from comborun.rules.names import RunLayout

if TYPE_CHECKING:
    from comborun.monitor.status import RunStatus
    from comborun.monitor.watch import Source

OTHERS = ("#8a8f98", "#b5a27c", "#6f7f8f")
"""colours of what is not ours"""
_MOST = 20_000
"""samples that are kept of a GPU, and events that are read at once"""
_EVERY_S = 20.0
"""least seconds between two readings of the events"""
# Only the events that are needed, from an offset on; a file that is shorter than before was written anew.
_READ = """
[[ -f $1 && ! -L $1 ]] || exit 4
size=$(wc -c <"$1") from=$2
((from <= size)) || from=0
printf '%s\\n' "$size"
tail -c +"$((from + 1))" -- "$1" | head -c "$((size - from))" | grep -a -F "$3" | tail -n "$4"
exit 0
"""


class GpuHistory:
    """Samples in the order of time, and a colour for each session and each other user."""

    def __init__(self) -> None:
        self._samples: dict[int, list[GpuSample]] = {}
        self._colours: dict[Any, str] = {}
        self._foreign: dict[Any, str] = {}

    def __bool__(self) -> bool:
        return bool(self._samples)

    def add(self, sample: GpuSample) -> None:
        samples = self._samples.setdefault(sample.gpu, [])
        if samples and sample.at <= samples[-1].at:
            return
        for names, known, colours in (
            (sample.sessions, self._colours, SERIES[:-1]),
            (sample.others, self._foreign, OTHERS[1:]),
        ):
            for name in names:
                known.setdefault(name, colours[len(known) % len(colours)])
        samples.append(sample)
        del samples[:-_MOST]

    def of(self, gpu: int) -> Sequence[GpuSample]:
        return self._samples.get(gpu, ())

    def parts(self, sample: GpuSample) -> list[tuple[float, str]]:
        """MiB and colour: sessions, then others, then what nobody is known to hold."""
        parts = [(mib, self._colours[name]) for name, mib in sample.sessions.items()]
        parts += [(mib, self._foreign[name]) for name, mib in sample.others.items()]
        return [*parts, (max(0, sample.used - sum(mib for mib, _ in parts)), OTHERS[0])]

    def labels(self, since: float) -> dict[str, str]:
        """Who was there, by name, and the colour."""
        shown = [one for samples in self._samples.values() for one in samples if one.at >= since]
        ours, others = ({name for one in shown for name in getattr(one, kind)} for kind in ("sessions", "others"))
        found = {name: colour for name, colour in self._colours.items() if name in ours}
        found |= {": ".join(name): colour for name, colour in self._foreign.items() if name in others}
        if any(self.parts(one)[-1][0] for one in shown):
            found["not known whose" if found else "everybody together"] = OTHERS[0]
        return found


class GpuWatch:
    """Reads the events about GPUs when a page asks for them, as far as they are new."""

    def __init__(self) -> None:
        self._looks, self._events = GpuHistory(), GpuHistory()
        self._offset, self._next = 0, 0.0
        self._lock = Lock()

    @property
    def history(self) -> GpuHistory:
        return self._events or self._looks

    def note(self, status: RunStatus) -> None:
        """Keep what a look at the run has shown."""
        for card in status.use.gpus if status.link.reachable else ():
            if card.used is not None and card.total and status.now:
                self._looks.add(GpuSample(status.now, card.index, card.used, card.total))

    def read(self, source: Source) -> None:
        with self._lock:
            if monotonic() < self._next:
                return
            self._next = monotonic() + _EVERY_S
            path, kind = RunLayout(source.view.directory).events, f'"{Kind.GPU_USE}"'
            try:
                done = source.transport.run(_READ, path, str(self._offset), kind, str(_MOST), timeout=20.0)
            except UserError:  # the link; the head of the page says it
                return
            size, _, text = done.text.partition("\n")
            if done.code == 0 and size.isdecimal():
                self._offset = int(size)
                for sample in samples(events.parse(text)):
                    self._events.add(sample)
