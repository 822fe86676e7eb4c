"""The keys of a grid file for what sessions need of the host, and for what of it they leave alone."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, PlainValidator, WithJsonSchema

from comborun.errors import UserError
from comborun.grid.keys.quantity import parse_size
from comborun.grid.keys.shapes import Keys, OneOrMany
from comborun.grid.keys.values import GpuCount, NotNegative, Positive, guarded, line_of, scalar_of
from comborun.resources import PIN_MODES, PinMode
from comborun.text import clean, did_you_mean


def _pin(tree: object) -> str:
    word = line_of(tree)
    if word not in PIN_MODES:
        raise UserError(f"there is no pin mode `{word}`", did_you_mean(word, PIN_MODES))
    return word


_MOST_GIB = 512
"""a larger number without a unit was meant in MiB, as nvidia-smi tells it"""


def _token(tree: object) -> str:
    word = line_of(tree)
    if word and clean(word) == word:
        return word
    raise UserError(f"`{word}` is no name of a resource", "letters, digits, _ and -, such as `exclusive: ray`")


def _memory(tree: object) -> int:
    text = scalar_of(tree).text
    if text.replace(".", "", 1).isdecimal() and text.strip("0."):
        raise UserError(f"`{text}` of what?", f"with a unit: {text} {'MiB' if float(text) >= _MOST_GIB else 'GiB'}")
    return parse_size(text)


Memory = Annotated[
    int,
    PlainValidator(guarded(_memory)),
    WithJsonSchema({"anyOf": [{"const": 0}, {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?\s*([KMG]i?B|B)$"}]}),
]
PinWord = Annotated[PinMode, PlainValidator(guarded(_pin)), WithJsonSchema({"enum": list(PIN_MODES)})]
Token = Annotated[
    str, PlainValidator(guarded(_token)), WithJsonSchema({"type": "string", "pattern": "^[A-Za-z0-9_-]+$"})
]


class ResourceKeys(Keys):
    gpus: GpuCount = Field(default=0, description="GPUs that a session is granted")
    gpu_memory: Memory = Field(
        default=0, description="memory that it takes on each of them; without it one has its GPU alone"
    )
    cpus: Positive | None = Field(default=None, description="cores that it keeps busy")
    memory: Memory = Field(default=0, description="main memory that it takes")
    exclusive: Annotated[tuple[Token, ...], OneOrMany()] = Field(
        default=(), description="names of what only one session on the host may have at a time, such as `ray`"
    )
    per_gpu: Positive | None = Field(default=None, description="sessions of one environment on a GPU, at most")
    per_host: Positive | None = Field(default=None, description="sessions of one environment on the host, at most")


class ReserveKeys(Keys):
    """What sessions leave alone, for a training job say, whether it uses it now or not."""

    gpu_memory: Memory = Field(default=0, description="memory of each GPU")
    cpus: NotNegative = Field(default=0, description="cores")
    memory: Memory = Field(default=0, description="main memory")
