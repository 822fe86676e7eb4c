"""An SVG file taken apart into drawings that stand inside a page: in the page's own font and text colour, on any paper,
without an id that two of them could share, and without digits that nobody sees. Pure.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from comborun.reporter.figures.sheet import INK

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

_SVG = "{http://www.w3.org/2000/svg}"
_NUMBER = re.compile(r"-?\d+\.\d+")
_STEP = re.compile(r"[A-Za-z][^A-Za-z]*")
_KEPT = ("fill", "fill-opacity", "opacity", "stroke", "stroke-opacity", "stroke-width", "stroke-dasharray")
_LINE = (*_KEPT, "stroke-linecap")
_TEXT = ("fill", "font-size", "font-weight", "text-anchor")
_USUAL = {("fill", INK), ("text-anchor", "start"), ("stroke-linecap", "butt"), ("font-weight", "400")}
"""what goes without saying inside the page"""


@dataclass(frozen=True)
class View:
    """A part of a sheet: the id of its groups, and where it lies in inches."""

    part: str
    left: float
    top: float
    width: float
    height: float


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
        style = dict(_declarations(element.get("style", "")))
        if element.tag == f"{_SVG}path":
            yield ET.Element("path", {"d": _path(element.get("d", "")), **_attributes(style, _LINE)})
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


def _declarations(style: str) -> Iterator[tuple[str, str]]:
    for declaration in style.split("; "):
        key, _, value = declaration.partition(": ")
        yield key, value


def _attributes(style: dict[str, str], kept: Iterable[str]) -> dict[str, str]:
    found = {key: style[key] for key in kept if key in style and (key, style[key]) not in _USUAL}
    return {key: _short(value).replace(INK, "currentColor").removesuffix("px") for key, value in found.items()}


def _short(text: str) -> str:
    """With one decimal: a hundredth of an inch is some seven of them."""
    return _NUMBER.sub(lambda number: f"{float(number[0]):.1f}".removesuffix(".0"), text)
