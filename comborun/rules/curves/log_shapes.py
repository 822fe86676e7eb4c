"""Where the numbers of a log's line are, and what they mean. Pure.

A number belongs to the words before it: `Mean reward: 3.2`, `| ep_rew_mean | 3.2 |`, `episodic_return=[3.2]`. All of
this follows from the shape of a line, which is the line with each digit replaced by 0. Programs print few shapes many
times, so that each is searched only once.
"""

from __future__ import annotations

import re
from functools import lru_cache

from comborun.rules.curves.metrics import (
    EPOCHS,
    EVALUATION,
    NAME_MOST,
    STEPS,
    SUCCESS,
    Metric,
    metric,
    step_unit,
    word_set,
)
from comborun.rules.curves.numbers import NUMBER, number

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


def shape_of(line: bytes) -> bytes:
    return line.translate(_TO_SHAPE)


class Kinds:
    """Whether lines of a shape hold words of values or steps (True), or only what a table is drawn with (False); None:
    neither."""

    def __init__(self) -> None:
        self._known: dict[bytes, bool | None] = {}

    def of(self, shape: bytes) -> bool | None:
        try:
            return self._known[shape]
        except KeyError:
            small = shape.lower()
            holds = any(map(small.__contains__, _HOLDS)) or b"R:" in shape
            kind = True if holds else False if any(map(shape.__contains__, _DRAWN)) else None
            if len(self._known) >= SHAPES_MOST:
                self._known.clear()
            self._known[shape] = kind
            return kind


class Place:
    """A number in a line."""

    __slots__ = ("end", "metric", "name", "rank", "share", "size", "start", "total", "total_size", "unit")

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

    __slots__ = ("_heading", "bar", "bracketed", "commas", "evaluates", "places", "points", "silent")

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


class Shapes:
    def __init__(self) -> None:
        self._known: dict[tuple[bytes, str], Shape] = {}

    def of(self, shape: bytes, text: str, heading: str) -> Shape:
        """`text`: what counts of a line of this shape, which is the same part of all of them."""
        found = self._known.get((shape, heading))
        if found is None:
            if len(self._known) >= SHAPES_MOST:
                self._known.clear()
            found = self._known[shape, heading] = Shape(text.translate(_DIGITS), heading)
        return found

    def silent(self, shape: bytes, heading: str) -> bool:
        """Whether lines of this shape are known to say nothing."""
        found = self._known.get((shape, heading))
        return found is not None and found.silent


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
