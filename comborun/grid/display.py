"""The keys `display`, `threads` and `pin`: the X server, the threads and the GPUs that a session finds."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from comborun.errors import Problem, UserError
from comborun.grid.values import Reads, Schema, line_of, one_of, parse_whole, scalar_of
from comborun.grid.yaml_tree import Map
from comborun.resources import PIN_MODES, XVFB, Display, PinMode

if TYPE_CHECKING:
    from comborun.grid.axes import Combo
    from comborun.grid.draft import Draft

UNCAPPED = 0
"""threads: as many as a program likes"""
_SHAPES = '`xvfb` for one of its own, ":1" for one that is there, or a map of them: {0: ":1", 1: ":2"}'
_SIZE = r"([1-9][0-9]{1,4})x([1-9][0-9]{1,4})(?:x(8|16|24|30|32))?"
_NUMBER = r":([0-9]{1,5})(\.0)?"
_DISPLAY: Schema = {"type": "string", "pattern": f"^{_NUMBER}$"}
_OWN: Schema = {"properties": {XVFB: {"type": "string", "pattern": f"^{_SIZE}$"}}, "required": [XVFB]}
_BY_GPU: Schema = {"minProperties": 1, "patternProperties": {"^[0-9]+$": _DISPLAY}}
_MAP: Schema = {"type": "object", "additionalProperties": False}
_SCHEMA: Schema = {"anyOf": [{"enum": [XVFB, "none"]}, _DISPLAY, {**_MAP, **_OWN}, {**_MAP, **_BY_GPU}]}
_NAMES_ITS_GPU = ("{gpu}", "{gpus}", "COMBORUN_GPU")


def _display(tree: object) -> Display | None:
    if isinstance(tree, Map):
        return _own(tree) if XVFB in tree else _by_gpu(tree)
    word = line_of(tree)
    if word == "none":
        return None
    return Display(XVFB) if word == XVFB else Display(str(_number(word)))


def _own(tree: Map) -> Display:
    if len(tree) > 1:
        raise UserError("`display` names an own X server and others", _SHAPES)
    text = line_of(tree[XVFB])
    match = re.fullmatch(_SIZE, text)
    if not match:
        raise UserError(f"`{text}` is no size of a screen", "such as 1280x1024, or 1280x1024x24 with its depth")
    return Display(XVFB, geometry=f"{match[1]}x{match[2]}x{match[3] or 24}")


def _by_gpu(tree: Map) -> Display:
    found = {parse_whole(gpu): _number(line_of(display)) for gpu, display in tree.items()}
    if not found or min(found) < 0:
        raise UserError("`display` is a map from a GPU's index to its X server", _SHAPES)
    return Display(by_gpu=tuple(sorted(found.items())))


def _number(word: str) -> int:
    match = re.fullmatch(_NUMBER, word)
    if not match:
        raise UserError(f"`{word}` is no display", _SHAPES)
    return int(match[1])


def _threads(tree: object) -> int:
    text = scalar_of(tree).text
    if text == "none":
        return UNCAPPED
    number = parse_whole(text)
    if number < 1:
        raise UserError(f"{number} threads could do nothing", "at least 1; `none` for as many as a program likes")
    return number


DisplayOr = Annotated[Display | None, Reads(_display, _SCHEMA)]
Threads = Annotated[int, Reads(_threads, {"anyOf": [{"type": "integer", "minimum": 1}, {"const": "none"}]})]
PinWord = Annotated[PinMode, one_of("pin mode", PIN_MODES)]


def display_problems(draft: Draft) -> Iterator[Problem]:
    """A display for each GPU, for sessions without one."""

    def lacks_gpu(combo: Combo) -> bool:
        it = combo.settings
        return bool(it.display and it.display.by_gpu and not (it.gpus or it.placement))

    if "display" not in draft.broken:
        message = "`display` goes by the GPU, and {} asks for none"
        hint = '`resources: {gpus: 1}`, or one display: `display: ":1"`'
        yield from draft.of(draft.where(lacks_gpu), draft.setter("display"), message, hint)


def display_warnings(draft: Draft) -> Iterator[Problem]:
    """A pin mode that leaves it to the command to name the GPU, and a command that does not."""
    told = draft.where(lambda combo: combo.settings.gpus and combo.settings.pinned in {"device-arg", "both"})
    message = "`pin`: the command is to say which GPU it takes, and that of {} does not"
    hint = "such as `--device cuda:{gpu}`; `pin: cvd` needs no argument"
    yield from draft.of([combo for combo in told if not _names_gpu(combo)], draft.setter("pin"), message, hint)


def _names_gpu(combo: Combo) -> bool:
    settings = combo.settings
    texts = (settings.command, settings.setup, *settings.variables.values(), *map(str, settings.files.values()))
    return any(name in text for name in _NAMES_ITS_GPU for text in texts)
