"""Whether a running command makes progress, repeats itself, stalls, hangs with its work done, or takes too long.

Pure: the caller passes in what it saw since its last look. Times are seconds during which the watch itself ran.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from comborun.rules import counting
from comborun.rules.endings.evidence import Evidence, fact
from comborun.rules.facts import Fact

BUSY = 0.03
"""share of a core that counts as work"""
_START = 0.05
"""seconds of CPU time that an idle program may take now and then"""


class Limits:
    """The limits of one session in seconds; 0: never."""

    def __init__(self, *, hang: float = 120.0, stall: float = 0.0, most: float = 0.0, tell: float = 1200.0) -> None:
        self.hang = hang
        self.stall = stall
        self.most = most
        self.tell = tell
        """seconds of silence after which it is reported, if no limit ends it"""

    @property
    def silence(self) -> float:
        return self.stall or self.tell


class ProgressWatch:
    def __init__(self, limits: Limits, repetition: Repetition) -> None:
        self.limits = limits
        self.repetition = repetition
        self.awake = 0.0
        self.silent = 0.0
        """since the last progress"""
        self.quiet = 0.0
        """seconds since anything new was written. CPU time does not count: a program that hangs may use it"""
        self._unheard = 0.0
        self._worked = 0.0
        self._complete: bool | None = None

    def look(
        self, elapsed: float, *, results: bool = False, output: bool = False, news: bool | None = None, cpu: float = 0.0
    ) -> bool:
        """Whether there was progress since the last look.

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
        """Whether its log repeats a complaint. After such a loop, silence may be work."""
        return self.repetition.loop and self._unheard * 2 < self.limits.silence

    @property
    def done(self) -> bool:
        """Whether all its evidence is there."""
        return bool(self._complete)

    @property
    def asks_evidence(self) -> bool:
        """Whether it may have finished, so that its evidence should be judged."""
        return bool(self.limits.hang) and self._complete is None and self.quiet * 2 >= self.limits.hang

    def limit_is_near(self, elapsed: float) -> bool:
        """Whether it will count as hung or stalled after so many more seconds, so that the next look must be exact."""
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

    def why_stalled(self, stopped: int = 0) -> Fact:
        """Why it counts as stalled. `stopped`: the number of processes that a signal has stopped."""
        repetition, seconds = self.repetition, int(self.silent)
        common = {"seconds": seconds, "stopped": stopped or None}
        if repetition.times >= OFTEN or repetition.loop:
            return fact(Evidence.STALLED, line=repetition.line, times=repetition.times, **common)
        share = int(100 * self._worked / self.silent) if self.silent else 0
        return fact(Evidence.STALLED, core=share, **common)


TAIL = 32768
"""bytes at the end of a log that are compared"""
OFTEN = 20
_MOST_LINES, _LONGEST_ROUND, _LONGEST_LINE = 400, 120, 400
_COMPLAINT = re.compile(  # once, before the dispatcher forks: what each supervisor compiles is memory of its own
    "error|exception|fail|refuse|time.?out|timed out|retry|retries|waiting|unable|can.?not|can.t|denied|lost"
)
_STAMP = re.compile(
    r"[\[(]?(([0-9]{4}[-/][0-9]{2}[-/][0-9]{2}[t ]+)?[0-9]{1,2}:[0-9]{2}:[0-9]{2}|[0-9]{10}\.)[0-9.,]*z?[\])]?"
)
_DIGITS = dict.fromkeys(map(ord, "0123456789"))
_HEXADECIMAL = dict.fromkeys(map(ord, "0123456789abcdef"))


class Repetition:
    """Decides at each look whether a growing log says anything new.

    An identical line is nothing new. Nor is a complaint that repeats, alone or in a group of lines (a traceback,
    `connection refused` and `trying again`), even if numbers and times in it change. A line that counts is progress:
    `step 17 of 500`, and also `episode 17: failed`.
    """

    def __init__(self, unit: str = "", count: int = 0) -> None:
        units = "|".join(dict.fromkeys(("episode", "rollout", re.escape(unit.lower() or "episode"))))
        self._counts = rf"({units})s?[^a-z0-9]{{0,3}}[0-9]+|[0-9]+ ?(/|of) ?{count}([^0-9]|$)"
        self._round: list[str] = []
        self._covered = 0
        self.line = ""
        """the line that repeats"""
        self.times = 0
        """how often in a row, within the tail"""
        self.loop = False
        """it complains so often that CPU time no longer counts as progress"""

    def forget(self) -> None:
        """Start again after a new result."""
        self.times, self.loop = 0, False

    def look(self, tail: bytes, *, cut: bool) -> bool:
        """Whether the log says something new since the last look; `cut`: its first line is not whole."""
        text = counting.with_line_ends(tail).decode("utf-8", "replace")
        lines = [line for line in text.split("\n")[1 if cut else 0 :] if line]
        if not lines:
            return True
        full = cut or len(lines) > _MOST_LINES
        newest = lines[: -_MOST_LINES - 1 : -1]
        before, covered_before = self._round, self._covered
        length, covered = self._find(newest)
        self._tell(newest, length, covered, full=full)
        if not _turned(before, self._round):
            return True
        # other lines came between; a loop that fills the tail can't grow
        return covered < len(newest) and covered <= covered_before

    def _find(self, newest: Sequence[str]) -> tuple[int, int]:
        """The length of the group of lines that repeats at the end, and the number of lines in all repeats."""
        size, length, covered = len(newest), 1, 1
        while covered < size and newest[covered] == newest[0]:
            covered += 1
        if not _COMPLAINT.search("\n".join(newest[:_LONGEST_ROUND]).lower()):
            return length, covered
        shapes = [line.translate(_HEXADECIMAL) for line in newest]  # without numbers and addresses
        for period in range(1, max(1, min(size // 3, _LONGEST_ROUND)) + 1):
            if covered >= size:
                break
            end = period
            while end < size and shapes[end] == shapes[end - period]:
                end += 1
            if end > covered and end >= (3 if period > 1 else 2) * period and self._same(newest, period):
                length, covered = period, end
        return length, covered

    def _same(self, newest: Sequence[str], period: int) -> bool:
        """Whether the last two groups of `period` lines are equal, with a complaint in them."""
        last = [self._essence(line) for line in newest[:period]]
        return any(complains for _, complains in last) and all(
            essence == self._essence(line)[0]
            for (essence, _), line in zip(last, newest[period : 2 * period])  # strict is newer than 3.8
        )

    def _essence(self, line: str) -> tuple[str, bool]:
        """The part of a line that stays the same when it repeats, and whether it complains.

        That is the line without a time at its beginning; a complaint also without numbers and addresses, except the one
        that counts progress.
        """
        text = line[:_LONGEST_LINE].lower()
        stamp = _STAMP.match(text)
        text = text[stamp.end() :] if stamp else text
        if not _COMPLAINT.search(text):
            return text, False
        counter = re.search(self._counts, text)
        plain = re.sub("0x[0-9a-f]+", "", text).translate(_DIGITS)
        return f"{plain} ({counter.group()})" if counter else plain, True

    def _tell(self, newest: Sequence[str], length: int, covered: int, *, full: bool) -> None:
        essences = [self._essence(line) for line in newest[:length]]
        complaints = [essence for essence, complains in essences if complains]
        # a single line without a complaint must repeat exactly, with its time
        self._round = [newest[0][:_LONGEST_LINE]] if length == 1 and not complaints else [text for text, _ in essences]
        self._covered, self.times = covered, covered // length
        self.line = max(complaints, key=len) if complaints else self._round[-1]
        filled = full and covered == len(newest)
        self.loop = bool(complaints) and (self.times >= OFTEN or (self.times >= 3 and filled))


def _turned(before: Sequence[str], now: Sequence[str]) -> bool:
    """Whether two groups are the same loop, wherever each begins."""
    if len(before) != len(now):
        return False
    return any([*before[at:], *before[:at]] == list(now) for at in range(len(before)))
