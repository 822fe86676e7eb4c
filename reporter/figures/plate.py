"""A figure of the report: drawings side by side, drawn onto one sheet, as files and cut apart for a page.

In a large report a second process draws too. Who draws a plate changes no byte of it.
"""

from __future__ import annotations

import os
import pickle
import re
import subprocess
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree as ET

from comborun.reporter.figures.sheet import INK, NORMAL, WHOLE, Sheet, drawing, fit, measure

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    Beside = subprocess.Popen[bytes]

GAP = 0.3
"""inches between drawings"""
ROW = 3
"""drawings in a row of a file"""
FEWEST = 40
"""combos from which on a second process saves more than it costs"""


@dataclass(frozen=True)
class Drawing:
    """Something of a size in inches, and how to draw it onto a sheet with its corner at a place."""

    width: float
    height: float
    draw: Callable[[Sheet, float, float], None]


@dataclass(frozen=True)
class Drawn:
    files: Mapping[str, bytes]
    """by name"""
    svgs: tuple[str, ...]
    """to stand inside a page: the key, if there is one, then each drawing"""


@dataclass(frozen=True, eq=False)
class Plate:
    name: str
    """of its files, and the anchor in a page"""
    title: str
    note: str
    """what it shows and how to read it; plain text"""
    drawings: tuple[Drawing, ...]
    key: Drawing | None = None
    """what the colours mean"""

    def draw(self) -> Drawn:
        """The files, and every part by itself, so that a page can set them abreast or below one another."""
        rows = [self.drawings[start : start + ROW] for start in range(0, len(self.drawings), ROW)]
        if self.key:
            rows.insert(0, (self.key,))
        width = max(sum(part.width for part in row) + GAP * (len(row) - 1) for row in rows)
        height = sum(max(part.height for part in row) for row in rows) + GAP * (len(rows) - 1)
        with drawing():
            sheet = Sheet(width + GAP, height + GAP)
            views = list(_set(sheet, rows))
            files = sheet.files()
        return Drawn(
            {f"{self.name}.{ending}": content for ending, content in files.items()},
            parts(files["svg"].decode("utf-8"), views),
        )


@dataclass(frozen=True)
class View:
    """A part of a sheet: the id of its groups, and where it lies in inches."""

    part: str
    left: float
    top: float
    width: float
    height: float


def _set(sheet: Sheet, rows: Sequence[Sequence[Drawing]]) -> Iterator[View]:
    """Draws row below row, and tells where each drawing lies."""
    top, count = GAP / 2, 0
    for row in rows:
        left = GAP / 2
        for part in row:
            sheet.part = f"part{count}"
            part.draw(sheet, left, top)
            yield View(sheet.part, left, top, part.width, part.height)
            left += part.width + GAP
            count += 1
        top += max(part.height for part in row) + GAP


# -- what the colours mean --------------------------------------------------------------------------------------------

LABEL = 2.2
KEY_ROW = 0.24
SWATCH = 0.36
BETWEEN = 0.26


@dataclass(frozen=True)
class Entry:
    name: str
    colour: str
    dashes: Any = None
    """of a line; None is a filled box"""


def key(entries: Sequence[Entry]) -> Drawing:
    """The entries with their names, in as many rows as they need."""
    placed: list[tuple[float, int, Entry]] = []
    x, row, used = 0.0, 0, 0.0
    with drawing():
        for entry in entries:
            width = SWATCH + measure(fit(entry.name, LABEL, NORMAL), NORMAL)
            if x and x + width > WHOLE:
                x, row = 0.0, row + 1
            placed.append((x, row, entry))
            used = max(used, x + width)
            x += width + BETWEEN
    return Drawing(used + 0.05, (row + 1) * KEY_ROW, partial(_draw_key, placed))


def _draw_key(placed: Sequence[tuple[float, int, Entry]], sheet: Sheet, x: float, y: float) -> None:
    for across, row, entry in placed:
        left, middle = x + across, y + (row + 0.5) * KEY_ROW
        if entry.dashes is None:
            sheet.box((left + 0.08, middle - 0.06), 0.2, 0.12, entry.colour)
        else:
            sheet.line([(left, middle), (left + SWATCH - 0.08, middle)], entry.colour, 1.8, entry.dashes)
        sheet.text((left + SWATCH, middle), fit(entry.name, LABEL, NORMAL), NORMAL, "left")


# -- an SVG file cut into parts for a page: in the page's font and text colour, without an id that two could share ----

_SVG = "{http://www.w3.org/2000/svg}"
_NUMBER = re.compile(r"-?\d+\.\d+")
_STEP = re.compile(r"[A-Za-z][^A-Za-z]*")
_PATH = (
    *("fill", "fill-opacity", "opacity", "stroke", "stroke-opacity", "stroke-width", "stroke-dasharray"),
    "stroke-linecap",
)
_TEXT = ("fill", "font-size", "font-weight", "text-anchor")
_USUAL = {("fill", INK), ("text-anchor", "start"), ("stroke-linecap", "butt"), ("font-weight", "400")}
"""what goes without saying inside the page"""


def parts(text: str, views: Iterable[View]) -> tuple[str, ...]:
    """One SVG per view, of the groups with its id."""
    axes = ET.fromstring(text).find(f".//{_SVG}g[@id='axes_1']")  # noqa: S314 - matplotlib wrote it
    groups: dict[str, list[ET.Element]] = {}
    for group in axes if axes is not None else ():
        groups.setdefault(group.get("id", ""), []).append(group)
    return tuple(_part(view, groups.get(view.part, [])) for view in views)


def _part(view: View, groups: Iterable[ET.Element]) -> str:
    box = " ".join(_short(str(72.0 * inches)) for inches in (view.left, view.top, view.width, view.height))
    root = ET.Element("svg", {"xmlns": _SVG[1:-1], "viewBox": box, "width": f"{96 * view.width:.0f}"})
    root.extend(leaf for group in groups for leaf in _leaves(group))
    return ET.tostring(root, encoding="unicode")


def _leaves(group: ET.Element) -> Iterator[ET.Element]:
    for element in group.iter():
        style = dict(part.partition(": ")[::2] for part in element.get("style", "").split("; "))
        if element.tag == f"{_SVG}path":
            yield ET.Element("path", {"d": _path(element.get("d", "")), **_attributes(style, _PATH)})
        elif element.tag == f"{_SVG}text":
            place = {key: _short(element.get(key, "0")) for key in ("x", "y")}
            words = ET.Element("text", {**place, **_attributes(style, _TEXT)})
            words.text = element.text
            yield words


def _path(text: str) -> str:
    """Without blanks, and with the short words for level and upright strokes."""
    found, last = [], ("", "")
    for verb, *numbers in (step.split() for step in _STEP.findall(_short(text))):
        place = (numbers[-2], numbers[-1]) if numbers else last
        if verb == "L" and place[1] == last[1]:
            found.append(f"H{place[0]}")
        elif verb == "L" and place[0] == last[0]:
            found.append(f"V{place[1]}")
        else:
            found.append(verb + " ".join(numbers))
        last = place
    return "".join(found)


def _attributes(style: dict[str, str], kept: Iterable[str]) -> dict[str, str]:
    found = {key: style[key] for key in kept if key in style and (key, style[key]) not in _USUAL}
    return {key: _short(value).replace(INK, "currentColor").removesuffix("px") for key, value in found.items()}


def _short(text: str) -> str:
    """With one decimal: a hundredth of an inch is some seven of them."""
    return _NUMBER.sub(lambda number: f"{float(number[0]):.1f}".removesuffix(".0"), text)


# -- two processes ----------------------------------------------------------------------------------------------------


@contextmanager
def second_process(combos: int) -> Iterator[Beside | None]:
    """None for a report that is soon drawn, on a machine with one processor, and where no process can be started.

    It is this interpreter started anew: a fork would copy locks that other threads hold, and multiprocessing would run
    the caller's main module again.
    """
    beside = None
    if combos >= FEWEST and _processors() > 1:
        with suppress(OSError):
            beside = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "PYTHONPATH": os.pathsep.join(path or str(Path.cwd()) for path in sys.path)},
                start_new_session=True,  # Ctrl-C is for the one that owns it
            )
    try:
        yield beside
    finally:
        if beside:
            beside.kill()
            with suppress(OSError):
                beside.communicate()


def draw_all(plates: Sequence[Plate], beside: Beside | None = None) -> dict[Plate, Drawn]:
    """The largest is drawn here, and every other one after it. What the second process can't draw is drawn here too, so
    an error is told as if there were none."""
    ordered = sorted(plates, key=lambda plate: -sum(part.width * part.height for part in plate.drawings))
    there = ordered[1::2] if beside else []
    if beside and there:
        there = there if _asked(beside, there) else []
    drawn = {plate: plate.draw() for plate in plates if plate not in there}
    if beside and there:
        drawn |= dict(zip(there, _answers(beside), strict=False))
    return {plate: drawn.get(plate) or plate.draw() for plate in plates}


def _asked(beside: Beside, plates: list[Plate]) -> bool:
    assert beside.stdin
    try:
        beside.stdin.write(pickle.dumps(plates))
        beside.stdin.flush()
    except (OSError, ValueError, TypeError, AttributeError, pickle.PickleError):
        return False
    return True


def _answers(beside: Beside) -> list[Drawn]:
    """None of them where it has failed."""
    assert beside.stdout
    try:
        found: list[Drawn] = pickle.load(beside.stdout)  # noqa: S301 - from a process of our own
    except (OSError, EOFError, ValueError, pickle.PickleError):
        return []
    return found


def _processors() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _serve() -> None:
    """Load what the first plate will need, while the other process still counts; then draw what is asked for."""
    with drawing():
        sheet = Sheet(1, 1)
        sheet.text((0.5, 0.5), "0")
        sheet.files()
    plates: list[Plate] = pickle.load(sys.stdin.buffer)  # noqa: S301 - from the process that started this one
    pickle.dump([plate.draw() for plate in plates], sys.stdout.buffer)


if __name__ == "__main__":
    _serve()
