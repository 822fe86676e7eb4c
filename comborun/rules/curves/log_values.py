"""Curves in a log: lines of names and numbers, in whatever order a program prints them. Pure.

A number belongs to the words before it: `Mean reward: 3.2`, `| ep_rew_mean | 3.2 |`, `episodic_return=[3.2]`. A value
belongs to the step of its line, else to the one printed before it, until a rule of dashes. In a block that begins with
such a rule, as a table, the step may also come last.
"""

from __future__ import annotations

import re

from comborun.rules import counting
from comborun.rules.curves.log_shapes import Kinds, Shape, Shapes, evaluated, shape_of
from comborun.rules.curves.metrics import ITERATIONS, STEPS, Metric, is_evaluation
from comborun.rules.curves.series import Tracks

TYPE_CHECKING = False
if TYPE_CHECKING:
    pass

LINE_MOST = 4000
"""characters of a line that are read; a longer one is a dump"""
_PENDING_MOST, _RANKS_MOST = 200, 4096
_RULE = re.compile(r"[\s|│┃╭╮╰╯├┤┌┐└┘┼┴┬]*(?:[\-=#*_+~─━═][\s|│┃╭╮╰╯├┤┌┐└┘┼┴┬]*){8,}")
_RANK = re.compile(
    r"\s*\[?\(?(?:rank|default|local_rank|worker)[ _:=]?(?P<rank>[0-9]{1,5})(?:/[0-9]{1,5})?[\])]?\s*[:|\]]?\s?",
    re.IGNORECASE,
)
_SECTION = re.compile(r"[\s|│┃├─\-=*#]*(?P<name>[A-Za-z][\w /-]{0,60}?)[\s/|│┃┤─\-=*#:]*")
_PREFIXED = frozenset("[(rRdDlLwW")
"""how a rank's prefix begins"""


class _Writer:
    """What is known of the lines of one rank."""

    __slots__ = ("block", "evaluates", "pending", "section", "steps", "used", "worded")

    def __init__(self) -> None:
        self.steps: dict[str, tuple[float, int]] = {}
        """unit -> the step, and how surely it is one"""
        self.used = False
        """whether values have come since"""
        self.block = False
        """whether a rule began it"""
        self.pending: list[tuple[Metric, float]] = []
        self.section = ""
        self.evaluates = False
        self.worded = False
        """whether a word or a bar has told a step"""


class LogValues:
    """Feed it a log's bytes, in pieces of any size."""

    def __init__(self, source: str = "log") -> None:
        self.tracks = Tracks(source)
        self.announced: float | None = None
        """the number of steps that the program says it will take"""
        self._rest = b""
        self._writers: dict[int, _Writer] = {}
        self._sole: _Writer | None = None
        """the writer, if there is only one"""
        self._kinds, self._shapes = Kinds(), Shapes()

    def feed(self, data: bytes) -> None:
        lines = counting.with_line_ends(self._rest + data).split(b"\n")
        self._rest = lines.pop()[-LINE_MOST * 4 :]
        for line in lines:
            if line:
                self._hear(line)

    def finish(self) -> None:
        """The last line has no end, so it is read only now; a number that is cut off can't be told from a whole one."""
        rest, self._rest = self._rest, b""
        self._hear(rest)
        for rank, writer in self._writers.items():
            self._release(writer, rank)

    def skip(self) -> None:
        """Part of the log is not read: what comes does not belong to what was before."""
        self._rest = b""
        self._writers.clear()
        self._sole = None

    def _hear(self, line: bytes) -> None:
        if len(line) > LINE_MOST * 4:
            return
        shape = shape_of(line)
        holds = self._kinds.of(shape)
        if holds is None or (self._sole is not None and self._shapes.silent(shape, self._sole.section)):
            return
        text = line.decode("utf-8", "replace")
        text = counting.escape().sub("", text) if "\x1b" in text else text
        if len(text) > LINE_MOST or not text.strip():
            return
        rank, found = 0, _RANK.match(text) if text.lstrip()[:1] in _PREFIXED else None
        if found:
            rank, text = int(found.group("rank")), text[found.end() :]
        writer = self._writers.get(rank)
        if writer is None:
            if len(self._writers) >= _RANKS_MOST:
                return
            writer = self._writers[rank] = _Writer()
            self._sole = writer if len(self._writers) == 1 else None
        if holds:
            self._line(writer, shape, text, rank)
        elif _RULE.fullmatch(text):
            self._release(writer, rank)
            self._rule(writer)
        else:
            self._name_section(writer, text)

    def _rule(self, writer: _Writer) -> None:
        writer.steps, writer.pending, writer.section = {}, [], ""
        writer.used, writer.block, writer.evaluates = False, True, False

    def _name_section(self, writer: _Writer, text: str) -> None:
        named = _SECTION.fullmatch(text)
        if named and ("|" in text or "│" in text or "─" in text):
            writer.section = named.group("name").strip().rstrip("/")
            writer.evaluates = is_evaluation(writer.section)

    def _line(self, writer: _Writer, shape: bytes, text: str, rank: int) -> None:
        known = self._shapes.of(shape, text, writer.section)
        steps, values = self._numbers(writer, known, text)
        if not steps and not values:
            self._name_section(writer, text)
            if known.evaluates:
                writer.evaluates = True
            return
        if steps and not values and not writer.steps and self._announces(text, steps):
            return
        if steps:
            self._take(writer, rank, steps)
            writer.evaluates = known.evaluates or (writer.evaluates and writer.block)
            writer.block = writer.block and not values
        if values and writer.steps and not writer.block:
            self._put(writer, values, rank)
            writer.used = True
        elif values and writer.block:  # a further step may come in this table
            if len(writer.pending) >= _PENDING_MOST:
                self._release(writer, rank)
            writer.pending += values

    def _take(self, writer: _Writer, rank: int, steps: dict[str, tuple[float, int]]) -> None:
        """The steps of what comes."""
        if writer.used or any(
            unit in writer.steps and writer.steps[unit][0] != told[0] for unit, told in steps.items()
        ):
            self._release(writer, rank)
            writer.steps, writer.used = {}, False
        for unit, told in steps.items():
            if unit not in writer.steps or told[1] <= writer.steps[unit][1]:
                writer.steps[unit] = told

    def _release(self, writer: _Writer, rank: int) -> None:
        if writer.steps:
            self._put(writer, writer.pending, rank)
        writer.pending = []

    def _put(self, writer: _Writer, values: list[tuple[Metric, float]], rank: int) -> None:
        steps = {unit: step for unit, (step, _) in writer.steps.items()}
        for found, value in values:
            self.tracks.add(found, steps, value, rank)

    def _announces(self, text: str, steps: dict[str, tuple[float, int]]) -> bool:
        """Whether a line says how many steps there will be: `Total steps: 100000`.

        If such lines have different numbers, they say how many steps were done.
        """
        total = re.search(r"(?i)(?<![\w|│] )\b(?:total|max)[ _](?:time)?steps\s*[:=]", text)
        if not total or "|" in text or STEPS not in steps or "timesteps" in total.group().lower().replace("_", ""):
            return False
        told = steps[STEPS][0]
        if self.announced is not None and told != self.announced:
            self.announced = None
            return False
        self.announced = told
        return True

    def _numbers(
        self, writer: _Writer, shape: Shape, text: str
    ) -> tuple[dict[str, tuple[float, int]], list[tuple[Metric, float]]]:
        """The steps in a line, and its values."""
        steps, total = shape.steps(text)
        values = shape.values(text)
        self.announced = total if total and total < 1e18 else self.announced
        bracketed = None
        if not steps and shape.bar:
            steps[ITERATIONS] = float(text[slice(*shape.bar)]), 2
        elif not steps and shape.bracketed:
            if writer.worded:
                return {}, []  # it may be a process, or a step: nothing is guessed
            bracketed = shape.bracketed
            steps[STEPS] = float(text[slice(*bracketed)].replace(",", "")), 2
        writer.worded = writer.worded or bool(steps and not bracketed)
        if shape.evaluates or (writer.evaluates and (writer.block or not steps)):
            values = [(evaluated(what), told) for what, told in values]
        return steps, values
