"""The keys `resources`, `reserve`, `use_gpus`, `pin`, `display` and `threads`: what sessions get of the host."""

from __future__ import annotations

import re
from typing import Annotated

from comborun.errors import UserError
from comborun.grid.keys.shapes import ONE_OR_MANY, Keys, key
from comborun.grid.keys.values import (
    GpuCount,
    Memory,
    NotNegative,
    OneOf,
    Positive,
    Reads,
    Schema,
    Token,
    line_of,
    parse_whole,
    scalar_of,
)
from comborun.grid.yaml_tree import Map
from comborun.model.resources import XVFB, Display, PinMode, Reserve, mebibytes
from comborun.rules.room.capacity import Request

GpuIndexes = Annotated[tuple[NotNegative, ...], ONE_OR_MANY]
UNCAPPED = 0
"""value of `threads` for no limit"""
_SHAPES = '`xvfb` for a new one, ":1" for one that runs already, or one for each GPU: {0: ":1", 1: ":2"}'
_SIZE = r"([1-9][0-9]{1,4})x([1-9][0-9]{1,4})(?:x(8|16|24|30|32))?"
_NUMBER = r":([0-9]{1,5})(\.0)?"
_DISPLAY: Schema = {"type": "string", "pattern": f"^{_NUMBER}$"}
_OWN: Schema = {"properties": {XVFB: {"type": "string", "pattern": f"^{_SIZE}$"}}, "required": [XVFB]}
_BY_GPU: Schema = {"minProperties": 1, "patternProperties": {"^[0-9]+$": _DISPLAY}}
_MAP: Schema = {"type": "object", "additionalProperties": False}
_SCHEMA: Schema = {"anyOf": [{"enum": [XVFB, "none"]}, _DISPLAY, {**_MAP, **_OWN}, {**_MAP, **_BY_GPU}]}


def _display(tree: object) -> Display | None:
    if isinstance(tree, Map):
        return _own(tree) if XVFB in tree else _by_gpu(tree)
    word = line_of(tree)
    if word == "none":
        return None
    return Display(XVFB) if word == XVFB else Display(str(_number(word)))


def _own(tree: Map) -> Display:
    if len(tree) > 1:
        raise UserError("`display` mixes `xvfb` with other X servers", _SHAPES)
    text = line_of(tree[XVFB])
    match = re.fullmatch(_SIZE, text)
    if not match:
        raise UserError(f"`{text}` is not the size of a screen", "such as 1280x1024, or 1280x1024x24 with its depth")
    return Display(XVFB, geometry=f"{match[1]}x{match[2]}x{match[3] or 24}")


def _by_gpu(tree: Map) -> Display:
    found = {parse_whole(gpu): _number(line_of(display)) for gpu, display in tree.items()}
    if not found or min(found) < 0:
        raise UserError("`display` is a map from a GPU's index to its X server", _SHAPES)
    return Display(by_gpu=tuple(sorted(found.items())))


def _number(word: str) -> int:
    match = re.fullmatch(_NUMBER, word)
    if not match:
        raise UserError(f"`{word}` is not a display", _SHAPES)
    return int(match[1])


def _threads(tree: object) -> int:
    text = scalar_of(tree).text
    if text == "none":
        return UNCAPPED
    number = parse_whole(text)
    if number < 1:
        raise UserError(f"{number} is too few threads", "at least 1; `none` for no limit")
    return number


DisplayOr = Annotated[Display | None, Reads(_display, _SCHEMA)]
Threads = Annotated[int, Reads(_threads, {"anyOf": [{"type": "integer", "minimum": 1}, {"const": "none"}]})]
PinWord = Annotated[PinMode, OneOf("pin mode")]


class ResourceKeys(Keys):
    gpus: GpuCount = key("GPUs of a session", 0)
    gpu_memory: Memory = key("memory that it takes on each of them; without it a session has its GPUs alone", 0)
    cpus: Positive | None = key("cores that it keeps busy")
    memory: Memory = key("main memory that it takes", 0)
    exclusive: Annotated[tuple[Token, ...], ONE_OR_MANY] = key(
        "names of things that only one session on the host may use at a time, such as `ray`", ()
    )
    per_gpu: Positive | None = key("sessions of one environment on a GPU, at most")
    per_host: Positive | None = key("sessions of one environment on the host, at most")

    @property
    def request(self) -> Request:
        """All but the GPUs, which are `gpus`."""
        return Request(
            gpu_memory=mebibytes(self.gpu_memory),
            cpus=self.cpus or 0,
            memory=mebibytes(self.memory),
            tokens=self.exclusive,
            per_gpu=self.per_gpu or 0,
            per_host=self.per_host or 0,
        )


class ReserveKeys(Keys):
    """Resources that sessions leave free for others, used now or not."""

    gpu_memory: Memory = key("memory of each GPU", 0)
    cpus: NotNegative = key("cores", 0)
    memory: Memory = key("main memory", 0)

    @property
    def reserved(self) -> Reserve:
        return Reserve(mebibytes(self.gpu_memory), self.cpus, mebibytes(self.memory))
