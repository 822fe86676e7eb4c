"""Curves in a log: lines of names and numbers, in whatever order a program prints them. Pure.

A number belongs to the words before it: `Mean reward: 3.2`, `| ep_rew_mean | 3.2 |`, `episodic_return=[3.2]`. A value
belongs to the step of its line, else to the one printed before it, until a rule of dashes. In a block that begins with
such a rule, as a table, the step may also come last.
"""

from __future__ import annotations

import re
from functools import lru_cache

from comborun.rules import counting
from comborun.rules.curves.metrics import (
    EPOCHS,
    EVALUATION,
    ITERATIONS,
    NAME_MOST,
    STEPS,
    SUCCESS,
    Metric,
    is_evaluation,
    metric,
    step_unit,
    word_set,
)
from comborun.rules.curves.numbers import NUMBER, number
from comborun.rules.curves.series import Tracks

TYPE_CHECKING = False
if TYPE_CHECKING:
    pass

LINE_MOST = 4000
"""characters of a line that are read; a longer one is a dump"""
_PENDING_MOST, _RANKS_MOST = 200, 4096
_RULE = re.compile(r"[\s|│┃╭╮╰╯├┤┌┐└┘┼┴┬]*(?:[\-=#*_+~─━═][\s|│┃╭╮╰╯├┤┌┐└┘┼┴┬]*){8,}")
_VALUE = re.compile(
    rf"(?<![\w.,])(?P<number>{NUMBER})(?P<size>[KkMBG%](?![A-Za-z0-9]))?(?:\s?/\s?(?P<total>[0-9][0-9,_]*)(?P<total_size>[KkMBG](?![A-Za-z]))?(?![\w.]))?"
)
_ENDS_KEY = re.compile(r"[,;|│┃{}\[\]<>\t\"'`]|\s\s|(?<![\w)]) |: ")
_IN_KEY = re.compile(r"(?<!array)(?<!tensor)(?<!float)(?<!float32)(?<!float64)(?<=\w)\($")
"""a number behind it belongs to the words, as in `avgReward(100)`"""
_WRAPPED = re.compile(r"(?:\b(?:np\.\w+|numpy\.\w+|array|tensor|float|jnp\.\w+)\(\[?|[\[(])\s*$")
_TRIM = " \t:=|│┃-–>~≈#'\"`"
_RANK = re.compile(
    r"\s*\[?\(?(?:rank|default|local_rank|worker)[ _:=]?(?P<rank>[0-9]{1,5})(?:/[0-9]{1,5})?[\])]?\s*[:|\]]?\s?",
    re.IGNORECASE,
)
_ONLY_WORDS = re.compile(r"\s[A-Za-z][A-Za-z\s.]*")
_BAR = re.compile(r"(?P<done>[0-9]{1,15})/(?P<total>[0-9]{1,15}) \[[0-9]+:[0-9]")
_BRACKETED = re.compile(r"\s*\[(?P<step>[0-9][0-9,]{0,14})\][\s:]")
"""a number before all else, in a log in which nothing else counts"""
_COMMAS = re.compile(r"[0-9],[0-9]{1,2}(?![0-9])")
_SECTION = re.compile(r"[\s|│┃├─\-=*#]*(?P<name>[A-Za-z][\w /-]{0,60}?)[\s/|│┃┤─\-=*#:]*")
_EVALUATES = re.compile(r"(?i)\beval(?:uat\w*|s)?\b|\btest(?:ing|ed)?\b")
_HOLDS = tuple(
    word.encode()
    for word in word_set("rew ret succ len scor rwrd solved win step iter epoch epch frame updat generation ep it/s")
)
"""in small letters; a line without any of these holds no value and no step"""
_DRAWN = (b"---", b"===", b"###", b"***", b"___", b"+++", b"~~~", b"|", b"\xe2\x94", b"\xe2\x95")
"""what a rule or a heading in a table is drawn with"""


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

    def _hear(self, line: bytes) -> None:
        if len(line) > LINE_MOST * 4:
            return
        small = line.lower()
        holds = any(map(small.__contains__, _HOLDS))
        if not holds and not any(map(line.__contains__, _DRAWN)):
            return
        text = line.decode("utf-8", "replace")
        text = counting.escape().sub("", text) if "\x1b" in text else text
        if len(text) > LINE_MOST or not text.strip():
            return
        rank, found = 0, _RANK.match(text)
        if found:
            rank, text = int(found.group("rank")), text[found.end() :]
        if rank not in self._writers and len(self._writers) >= _RANKS_MOST:
            return
        writer = self._writers.setdefault(rank, _Writer())
        if holds:
            self._line(writer, text, rank)
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

    def _line(self, writer: _Writer, text: str, rank: int) -> None:
        steps, values = self._numbers(writer, text)
        if not steps and not values:
            self._name_section(writer, text)
            if _EVALUATES.search(text):
                writer.evaluates = True
            return
        if steps and not values and not writer.steps and self._announces(text, steps):
            return
        if steps:
            self._take(writer, rank, steps)
            writer.evaluates = _EVALUATES.search(text) is not None or (writer.evaluates and writer.block)
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
        """Whether a line says how many steps there will be: `Total steps: 100000`. Under another step, or with another
        number, it counts them."""
        total = re.search(r"(?i)(?<![\w|│] )\b(?:total|max)[ _](?:time)?steps\s*[:=]", text)
        if not total or "|" in text or STEPS not in steps or "timesteps" in total.group().lower().replace("_", ""):
            return False
        told = steps[STEPS][0]
        if self.announced is not None and told != self.announced:
            self.announced = None
            return False
        self.announced = told
        return True

    def _numbers(self, writer: _Writer, text: str) -> tuple[dict[str, tuple[float, int]], list[tuple[Metric, float]]]:
        """The steps in a line, and its values."""
        steps: dict[str, tuple[float, int]] = {}
        values: list[tuple[Metric, float]] = []
        end = 0
        commas = _COMMAS.search(text) is not None
        for found in _VALUE.finditer(text):
            before = text[max(end, found.start() - NAME_MOST) : found.start()]
            if _IN_KEY.search(before) and text[found.end() : found.end() + 1] == ")":
                continue
            end = found.end()
            key = _key(before)
            unit = step_unit(key)
            if unit and found.group("size") != "%":
                whole = unit[0] != EPOCHS
                told = number(found.group("number"), found.group("size") or "", whole=whole, commas=commas)
                if told is not None and 0 <= told < 1e18 and unit[1] < steps.get(unit[0], (0.0, 9))[1]:
                    steps[unit[0]] = told, unit[1]
                    self._total(unit[0], found)
            elif key and not found.group("total") and not _goes_on(text, found):
                name = f"{writer.section}/{key}" if writer.section and "/" not in key else key
                values += _value(name, found)
        bar, bracketed = (None, None) if steps else (_BAR.search(text), _BRACKETED.match(text))
        if bar:
            steps[ITERATIONS] = float(bar.group("done")), 2
        elif bracketed and writer.worded:
            return {}, []  # it may be a process, or a step: nothing is guessed
        elif bracketed:
            steps[STEPS] = float(bracketed.group("step").replace(",", "")), 2
        writer.worded = writer.worded or bool(steps and not bracketed)
        if _EVALUATES.search(text) or (writer.evaluates and (writer.block or not steps)):
            values = [(what if what.of == EVALUATION else _evaluated(what), told) for what, told in values]
        return steps, values

    def _total(self, unit: str, found: re.Match[str]) -> None:
        if unit == STEPS and found.group("total"):
            total = number(found.group("total"), found.group("total_size") or "", whole=True)
            self.announced = total if total and total < 1e18 else self.announced


@lru_cache(maxsize=4096)
def _key(before: str) -> str:
    """The words right before a number."""
    if not any(map(str.isalpha, before)):
        return ""
    text = _WRAPPED.sub("", before.rstrip()).rstrip(_TRIM + "(")
    if before and before[-1:].isalnum():
        return ""
    ends = [one.end() for one in _ENDS_KEY.finditer(text)]
    return (text[ends[-1] :] if ends else text).strip(_TRIM + "[(")


def _evaluated(what: Metric) -> Metric:
    return metric(f"eval/{what.name}") or what


def _value(name: str, found: re.Match[str]) -> list[tuple[Metric, float]]:
    """The value of this name; none if it is no metric."""
    what = metric(name)
    size = found.group("size") or ""
    told = number(found.group("number"), size if size != "%" else "") if what else None
    if what is None or told is None:
        return []
    return [(what, told / 100 if size == "%" and what.role == SUCCESS and not what.percent else told)]


def _goes_on(text: str, found: re.Match[str]) -> bool:
    """Whether a number is the beginning of a word, one of several in brackets, or part of a sentence."""
    before, after = text[: found.start()], text[found.end() :]
    opened = before.rstrip().endswith("[")
    counts = before.rstrip()[-1:].isalpha() and _ONLY_WORDS.fullmatch(after)
    return after[:1].isalpha() or bool(counts) or (opened and after.lstrip()[:1] not in ("]", ""))
