"""Curves in a log: lines of names and numbers, in whatever order a program prints them. Pure.

A number belongs to the words before it: `Mean reward: 3.2`, `| ep_rew_mean | 3.2 |`, `episodic_return=[3.2]`. A value
belongs to the step of its line, else to the one printed before it, until a rule of dashes. In a block that begins with
such a rule, as a table, the step may also come last.

Where the numbers of a line are and what they mean follows from its shape, which is the line with each digit replaced by
0. Programs print few shapes many times, so that each is searched only once.
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
    NUMBER,
    STEPS,
    SUCCESS,
    Metric,
    is_evaluation,
    metric,
    number,
    step_unit,
)
from comborun.rules.curves.series import Tracks
from comborun.rules.vocabulary import word_set

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Tuple

    Span = Tuple[int, int]

SHAPES_MOST = 4096
"""shapes that are kept"""
_VALUE = re.compile(
    rf"(?<![\w.,])(?P<number>{NUMBER})(?P<size>[KkMBG%](?![A-Za-z0-9]))?(?:\s?/\s?(?P<total>[0-9][0-9,_]*)(?P<total_size>[KkMBG](?![A-Za-z]))?(?![\w.]))?"
)
_ENDS_KEY = re.compile(r"[,;|│┃{}\[\]<>\t\"'`]|\s\s|(?<![\w)]) |: ")
_IN_KEY = re.compile(r"(?<!array)(?<!tensor)(?<!float)(?<!float[0-9][0-9])(?<=\w)\($")
"""a number behind it belongs to the words, as in `avgReward(100)`"""
_WRAPPED = re.compile(r"(?:\b(?:np\.\w+|numpy\.\w+|array|tensor|float|jnp\.\w+)\(\[?|[\[(])\s*$")
_TRIM = " \t:=|│┃-–>~≈#'\"`"
_ONLY_WORDS = re.compile(r"\s[A-Za-z][A-Za-z\s.]*")
_BAR = re.compile(r"(?P<done>[0-9]{1,15})/(?P<total>[0-9]{1,15}) \[[0-9]+:[0-9]")
_BRACKETED = re.compile(r"\s*\[(?P<step>[0-9][0-9,]{0,14})\][\s:]")
"""a number before all else, in a log in which nothing else counts"""
_COMMAS = re.compile(r"(?<![0-9.,])[0-9]+,[0-9]{1,2}(?![0-9,.])")
_POINTS = re.compile(
    r"(?<![0-9.,])(?:[0-9]+\.(?:[0-9]{1,2}|[0-9]{4,})|[0-9]{4,}\.[0-9]+|[0-9]{1,3}(?:,[0-9]{3}){2,}(?:\.[0-9]*)?)(?![0-9,.])"
)
"""a number with a decimal point, or one in which commas group digits for certain. A single point before three digits
could group them, too, unless more than three come first"""
EVALUATES = re.compile(r"(?i)\beval(?:uat\w*|s)?\b|\btest(?:ing|ed)?\b")
_LETTERED = (
    (
        re.compile(
            r"\s*\|\s*(?:train|eval)\s*(?=\|)(?=.*\| E: [0-9]+ )(?=.*\| S: [0-9]+ )(?=.*\| R: [-0-9.]+(?: |\Z))"
        ),
        {"F": "frame", "S": "step", "E": "episode", "L": "episode_length", "R": "episode_reward"},
    ),
    (
        re.compile(r"\s*(?:train|eval)\s+E: [0-9,]+\s+I: [0-9,]+\s+R: [-0-9.]+\s.*\bT: [0-9]"),
        {"I": "step", "E": "episode", "R": "episode_reward"},
    ),
    (
        re.compile(r"\s*(?:train|eval)\s+E: [0-9,]+\s+S: [0-9,]+\s+R: [-0-9.]+\s.*\bT: [0-9]"),
        {"S": "step", "E": "episode", "R": "episode_reward"},
    ),
)
"""lines with a letter for a name, and what each is: of pytorch_sac and DrQ-v2, of TD-MPC2, whose S is a success or a
score, and of TD-MPC. Elsewhere a letter means nothing"""
_DIGITS = {ord(digit): "0" for digit in "123456789"}
_TO_SHAPE = bytes.maketrans(b"123456789", b"000000000")
_HOLDS = tuple(
    word.encode()
    for word in word_set("rew ret succ len scor rwrd solved win step iter epoch epch frame updat generation ep it/s")
)
"""in small letters; a line without any of these holds no value and no step"""
_DRAWN = (b"---", b"===", b"###", b"***", b"___", b"+++", b"~~~", b"|", b"\xe2\x94", b"\xe2\x95")
"""what a rule or a heading in a table is drawn with"""


def kind_of(shape: bytes) -> bool | None:
    """Whether lines of a shape hold words of values or steps (True), or only what a table is drawn with (False); None:
    neither."""
    small = shape.lower()
    if any(map(small.__contains__, _HOLDS)) or b"R:" in shape:
        return True
    return False if any(map(shape.__contains__, _DRAWN)) else None


class Place:
    """A number in a line."""

    def __init__(self, found: re.Match[str]) -> None:
        self.start, self.end = found.span("number")
        size = found.group("size") or ""
        self.share, self.size = size == "%", "" if size == "%" else size
        self.total, self.total_size = found.span("total"), found.group("total_size") or ""
        self.unit, self.rank = "", 0
        """what it counts, if it is a step, and how surely"""
        self.metric: Metric | None = None
        self.name: Span | None = None
        """where its name is, if that holds digits, which differ from line to line"""


class Shape:
    """What all lines of a shape, under one heading of a table, have in common."""

    def __init__(self, text: str, heading: str) -> None:
        self._heading = heading
        self.commas, self.points = _COMMAS.search(text) is not None, _POINTS.search(text) is not None
        self.evaluates = EVALUATES.search(text) is not None
        bar, bracketed = _BAR.search(text), _BRACKETED.match(text)
        self.bar = bar.span("done") if bar else None
        self.bracketed = bracketed.span("step") if bracketed else None
        letters = next((names for form, names in _LETTERED if form.match(text)), {})
        self.places: list[Place] = []
        end = 0
        for found in _VALUE.finditer(text):
            begin = max(end, found.start() - NAME_MOST)
            before = text[begin : found.start()]
            if _IN_KEY.search(before) and text[found.end() : found.end() + 1] == ")":
                continue
            end = found.end()
            key = key_of(before)
            key = letters.get(key, key)
            if key and self._means(key, found, text, (begin, found.start())):
                continue
        counts = (text[one.start : one.end] for one in self.places if one.unit not in ("", EPOCHS))
        self.points = self.points or (not self.commas and any("," in one for one in counts))
        self.silent = not (self.places or bar or bracketed or self.evaluates or any(map(text.__contains__, "|│─")))
        """whether it has no number, no heading and no word that counts"""

    def _means(self, key: str, found: re.Match[str], text: str, before: Span) -> bool:
        """Keep a number that is a step or the value of a metric."""
        place, unit = Place(found), step_unit(key)
        if unit and not place.share:
            place.unit, place.rank = unit
        elif found.group("total") or _goes_on(text, found):
            return False
        else:
            place.metric = metric(self._named(key))
            if place.metric is None:
                return False
            place.name = before if any(map(str.isdigit, key)) else None
        self.places.append(place)
        return True

    def _named(self, key: str) -> str:
        return f"{self._heading}/{key}" if self._heading and "/" not in key else key

    def steps(self, text: str) -> tuple[dict[str, tuple[float, int]], float | None]:
        """The step of a line in each unit, with how surely it is one; and the total that stands behind it."""
        steps: dict[str, tuple[float, int]] = {}
        total = None
        for one in self.places:
            if one.unit and one.rank < steps.get(one.unit, (0.0, 9))[1]:
                told = number(text[one.start : one.end], one.size, whole=one.unit != EPOCHS, commas=self.commas)
                if told is not None and 0 <= told < 1e18:
                    steps[one.unit] = told, one.rank
                    if one.unit == STEPS and one.total[0] >= 0:
                        total = number(text[slice(*one.total)], one.total_size, whole=True) or total
        return steps, total

    def values(self, text: str) -> list[tuple[Metric, float]]:
        values = []
        for one in self.places:
            what = one.metric
            if one.name and what:
                what = metric(self._named(key_of(text[slice(*one.name)])))
            if what is None:
                continue
            told = number(text[one.start : one.end], one.size, commas=self.commas, points=self.points)
            if told is not None:
                values.append((what, told / 100 if one.share and what.role == SUCCESS and not what.percent else told))
        return values


@lru_cache(maxsize=4096)
def key_of(before: str) -> str:
    """The words right before a number."""
    if not any(map(str.isalpha, before)):
        return ""
    text = _WRAPPED.sub("", before.rstrip()).rstrip(_TRIM + "(")
    if before and before[-1:].isalnum():
        return ""
    ends = [one.end() for one in _ENDS_KEY.finditer(text)]
    return (text[ends[-1] :] if ends else text).strip(_TRIM + "[(")


def evaluated(what: Metric) -> Metric:
    return what if what.of == EVALUATION else metric(f"eval/{what.name}") or what


def _goes_on(text: str, found: re.Match[str]) -> bool:
    """Whether a number is the beginning of a word, one of several in brackets, or part of a sentence."""
    before, after = text[: found.start()], text[found.end() :]
    opened = before.rstrip().endswith("[")
    counts = before.rstrip()[-1:].isalpha() and _ONLY_WORDS.fullmatch(after)
    return after[:1].isalpha() or bool(counts) or (opened and after.lstrip()[:1] not in ("]", ""))


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
        self._kind_of = lru_cache(SHAPES_MOST)(kind_of)
        self._shapes: dict[tuple[bytes, str], Shape] = {}
        """by the heading, too"""

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
        shape = line.translate(_TO_SHAPE)
        holds = self._kind_of(shape)
        known = self._shapes.get((shape, self._sole.section)) if self._sole else None
        if holds is None or (known and known.silent):
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
        known = self._shapes.get((shape, writer.section))
        if known is None:
            if len(self._shapes) >= SHAPES_MOST:
                self._shapes.clear()
            known = self._shapes[shape, writer.section] = Shape(text.translate(_DIGITS), writer.section)
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
        others = any(unit in writer.steps and writer.steps[unit][0] != told[0] for unit, told in steps.items())
        if writer.used or others:
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
