"""Whether a running command makes progress, stalls, hangs with its work done, or takes too long.

Pure: the caller passes in what it saw since its last look. Times are seconds during which the watch itself ran.
"""

from __future__ import annotations

from comborun.rules.repetition import OFTEN, Repetition

BUSY = 0.03
"""share of a core that is work"""
_START = 0.05
"""seconds of CPU time that a look at the clock now and then may take"""


class Limits:
    """The limits of one session in seconds; 0: never."""

    __slots__ = ("hang", "most", "stall", "tell")

    def __init__(self, *, hang: float = 120.0, stall: float = 0.0, most: float = 0.0, tell: float = 1200.0) -> None:
        self.hang = hang
        self.stall = stall
        self.most = most
        self.tell = tell
        """a silence that is reported if no limit ends it"""

    @property
    def silence(self) -> float:
        return self.stall or self.tell


class ProgressWatch:
    """The progress of one command so far."""

    def __init__(self, limits: Limits, repetition: Repetition) -> None:
        self.limits = limits
        self.repetition = repetition
        self.awake = 0.0
        self.silent = 0.0
        """since the last progress"""
        self.quiet = 0.0
        """since anything new was written: CPU time does not count, a program that hangs may take it"""
        self._unheard = 0.0
        self._worked = 0.0
        self._complete: bool | None = None

    def look(
        self, elapsed: float, *, results: bool = False, output: bool = False, news: bool | None = None, cpu: float = 0.0
    ) -> bool:
        """Whether there was progress in the seconds since the last look.

        `results`: a result, or other evidence, has come or changed. `output`: something in its output folder has; asked
        for when `done`. `news`: the log has grown, and says something new; None: it has not grown. `cpu`: seconds of
        CPU time that all its processes took.
        """
        self.awake += elapsed
        self.silent += elapsed
        self.quiet += elapsed
        self._unheard = 0.0 if news is not None else self._unheard + elapsed
        if results:
            self.repetition.forget()
        written = results or bool(news)
        if written:
            self._complete = None
        if written or (output and self.done):
            self.quiet = 0.0
        self._worked = 0.0 if self.complains else self._worked + cpu
        progress = written or self._worked > BUSY * self.silent + _START
        if progress:
            self.silent = self._worked = 0.0
        return progress

    def judged(self, *, complete: bool) -> None:
        self._complete = complete

    @property
    def complains(self) -> bool:
        """Its log complains in a loop that still goes on: after one, a program may compute in silence."""
        return self.repetition.loop and self._unheard * 2 < self.limits.silence

    @property
    def done(self) -> bool:
        """All its evidence is there."""
        return bool(self._complete)

    @property
    def asks_evidence(self) -> bool:
        """It may have done its work: its evidence is to be judged."""
        return bool(self.limits.hang) and self._complete is None and self.quiet * 2 >= self.limits.hang

    def limit_is_near(self, elapsed: float) -> bool:
        """After so many seconds more without anything new it hangs, or is stalled: nothing may be overlooked now."""
        hangs = bool(self.limits.hang) and self.quiet + elapsed >= self.limits.hang
        return hangs or self.silent + elapsed >= self.limits.silence

    @property
    def overtime(self) -> bool:
        return bool(self.limits.most) and self.awake >= self.limits.most

    @property
    def hung(self) -> bool:
        return self.done and bool(self.limits.hang) and self.quiet >= self.limits.hang

    @property
    def stalled(self) -> bool:
        return self.silent >= self.limits.silence

    def why_stalled(self, stopped: int = 0) -> str:
        """What makes it look stalled; `stopped`: processes that a signal holds."""
        repetition, seconds = self.repetition, int(self.silent)
        if repetition.times >= OFTEN or repetition.loop:
            times = f"the same line at least {repetition.times} times"
            why = f"no new result for {seconds} s, and {times}: {repetition.line}"
        else:
            share = int(100 * self._worked / self.silent) if self.silent else 0
            why = f"no new result, no new line and {share} % of a core for {seconds} s"
        return f"{why}; {stopped} of its processes are stopped by a signal" if stopped else why
