"""The keys `resources`, `reserve`, `use_gpus`, `pin`, `display` and `threads`: what sessions get of the host."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from comborun.errors import Problem, UserError
from comborun.grid.shapes import ONE_OR_MANY, Keys, key
from comborun.grid.values import (
    GpuCount,
    Memory,
    NotNegative,
    Positive,
    Reads,
    Schema,
    Token,
    line_of,
    one_of,
    parse_whole,
    scalar_of,
)
from comborun.grid.yaml_tree import Map
from comborun.model.resources import PIN_MODES, XVFB, Display, PinMode, Reserve, mebibytes
from comborun.rules.room.placement import Request
from comborun.text import several

if TYPE_CHECKING:
    from comborun.grid.axes import Combo
    from comborun.grid.draft import Draft

GpuIndexes = Annotated[tuple[NotNegative, ...], ONE_OR_MANY]
_VISIBLE = "CUDA_VISIBLE_DEVICES"
_HINT = "add `gpus: 1`: it is the memory of each granted GPU"
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
PinWord = Annotated[PinMode, one_of("pin mode", PIN_MODES)]


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
    def kept(self) -> Reserve:
        return Reserve(mebibytes(self.gpu_memory), self.cpus, mebibytes(self.memory))


def resource_problems(draft: Draft) -> Iterator[Problem]:
    """GPU memory without a GPU, for sessions or a server; more GPUs than may be used."""
    if not any(_has_gpu(combo) for combo in draft.combos):
        message = "`resources` has `gpu_memory` but no `gpus`: no GPU for {}"
        yield from draft.for_combos(_lacking(draft), draft.set_at("resources", "gpu_memory"), message, _HINT)
    for name, keys in draft.file.servers.items():
        if keys.resources.gpu_memory and not keys.resources.gpus and keys.per != "gpu":
            message = f"`resources` has `gpu_memory` but no `gpus`: the server `{name}` would get no GPU"
            yield draft.at_key(("servers", name, "resources", "gpu_memory"), message, _HINT)
    if (allowed := draft.file.use_gpus) is None:
        return
    if len(set(allowed)) < len(allowed):
        yield draft.at_value(("use_gpus",), "`use_gpus` names a GPU twice", "name each once")
    most = max((combo.settings.gpus for combo in draft.combos), default=0)
    if most > len(set(allowed)):
        message = f"a session asks for {several(most, 'GPU')}, and `use_gpus` allows {len(set(allowed))}"
        yield draft.at_value(("use_gpus",), message, "allow more, or lower `resources: {gpus: N}`")


def resource_warnings(draft: Draft) -> Iterator[Problem]:
    """GPU memory of only some combos without a GPU, which may be intended; hidden GPUs."""
    place = draft.set_at("resources", "gpu_memory")
    message = "`gpu_memory` without `gpus`: {} gets no GPU"
    yield from draft.for_combos(_lacking(draft), place, message, "`gpus: 1`, or `gpu_memory: 0` if it needs none")
    if any("{gpu" not in combo.settings.variables.get(_VISIBLE, "{gpu") for combo in draft.where(_has_gpu)):
        message = f"`variables` sets {_VISIBLE}, which hides the GPU that a session was granted"
        yield draft.at_key(("variables", _VISIBLE), message, "leave it to comborun")


def _has_gpu(combo: Combo) -> bool:
    return bool(combo.settings.gpus or combo.settings.placement)


def _lacking(draft: Draft) -> list[Combo]:
    """Combos with GPU memory and no GPU; none if the grid says `gpus: 0` on purpose, for a preset's program."""
    resources = draft.file.resources
    if "gpus" in resources.model_fields_set and not resources.gpus:
        return []
    return draft.where(lambda combo: combo.settings.resources.gpu_memory and not _has_gpu(combo))


def display_problems(draft: Draft) -> Iterator[Problem]:
    """Sessions without a GPU whose display depends on it."""

    def lacks_gpu(combo: Combo) -> bool:
        it = combo.settings
        return bool(it.display and it.display.by_gpu and not (it.gpus or it.placement))

    if "display" not in draft.broken:
        message = "`display` depends on the GPU, but there is none for {}"
        hint = '`resources: {gpus: 1}`, or one display: `display: ":1"`'
        yield from draft.for_combos(draft.where(lacks_gpu), draft.set_at("display"), message, hint)


def display_warnings(draft: Draft) -> Iterator[Problem]:
    """A pin mode with which the command must name the GPU, and a command that does not."""
    pinned = draft.where(lambda combo: combo.settings.gpus and combo.settings.pinned in {"device-arg", "both"})
    unnamed = [combo for combo in pinned if not _names_gpu(combo)]
    message = "`pin`: the command must name its GPU, but that of {} does not"
    hint = "such as `--device cuda:{gpu}`; `pin: cvd` needs no argument"
    yield from draft.for_combos(unnamed, draft.set_at("pin"), message, hint)


def _names_gpu(combo: Combo) -> bool:
    settings = combo.settings
    texts = (settings.command, settings.setup, *settings.variables.values(), *map(str, settings.files.values()))
    return any(name in text for name in _NAMES_ITS_GPU for text in texts)
