"""The single values of a grid file: how each kind is read from YAML, and what an editor is told of it.

Everything is read from the text as it was written, so `0.10` stays `0.10` and `1e-3` stays `1e-3`.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable
from functools import partial
from typing import Annotated, TypeVar

from pydantic import AfterValidator, PlainValidator, WithJsonSchema
from pydantic_core import PydanticCustomError

from comborun.errors import UserError
from comborun.grid.keys.quantity import parse_duration, parse_size, parse_whole
from comborun.grid.yaml_tree import Items, Kind, Map, Scalar
from comborun.plan import SecretSource, Unit
from comborun.text import clean, close_to, did_you_mean

MISTAKE = "grid_mistake"
"""the pydantic error type of everything that is refused here"""
LARGEST = 10**15
"""well within bash's integers"""
SHORTEST_POLL = 0.1

T = TypeVar("T")
X = TypeVar("X")

_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_ATTRIBUTE = re.compile(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*")
_TURNS_TEXT_AROUND = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def refusal(error: UserError) -> PydanticCustomError:
    """Carry a message and its hint through pydantic."""
    return PydanticCustomError(MISTAKE, "{message}", {"message": error.message, "hint": error.hint})


def guarded(read: Callable[[X], T]) -> Callable[[X], T]:
    """`read`, with its UserError as an error that pydantic collects."""

    def validate(tree: X) -> T:
        try:
            return read(tree)
        except UserError as error:
            raise refusal(error) from None

    return validate


def no_value(scalar: Scalar) -> UserError:
    tilde = "`~` alone means nothing in YAML: write `~/` for the home folder, or quotes"
    return UserError("no value", tilde if scalar.text == "~" else "give it one, or remove the line")


def scalar_of(tree: object) -> Scalar:
    """The single value at this place; a list, a map or nothing is refused."""
    if isinstance(tree, Map):
        raise UserError("a map where one value belongs", "text that begins with a brace needs quotes")
    if isinstance(tree, Items):
        raise UserError("a list where one value belongs", "text that begins with a bracket needs quotes")
    assert isinstance(tree, Scalar)
    if tree.kind is Kind.NULL:
        raise no_value(tree)
    return tree


def _as_written(tree: object) -> str:
    text = scalar_of(tree).text
    if "\0" in text or any(unicodedata.category(character) == "Cs" for character in text):
        raise UserError(f"{text!r} holds a character that no command line can carry", "remove the escape")
    return text


def _text(tree: object) -> str:
    scalar = scalar_of(tree)
    if scalar.kind is not Kind.TEXT:
        raise UserError(
            f"`{scalar.text}` is {scalar.kind} in YAML, and text is wanted",
            f'write it in quotes: "{scalar.text}"',
        )
    return _as_written(tree)


def _line(tree: object) -> str:
    text = _text(tree)
    strange = [character for character in text if _is_control(character)]
    if strange:
        raise UserError(f"{text!r} holds the control character U+{ord(strange[0]):04X}", "remove it")
    if not text.strip():
        raise UserError("empty text", "give it a value, or remove the line")
    return text


def line_of(tree: object) -> str:
    """Text of one line, with no control character in it."""
    return _line(tree)


def _is_control(character: str) -> bool:
    return unicodedata.category(character) in {"Cc", "Zl", "Zp"} or character in _TURNS_TEXT_AROUND


def _name(tree: object) -> str:
    name = _line(tree)
    clean(name)
    return name


def _whole(tree: object, low: int) -> int:
    scalar = scalar_of(tree)
    if scalar.quoted:
        raise UserError(f'"{scalar.text}" is text, and a whole number is wanted', "write it without quotes")
    value = parse_whole(scalar.text)
    if value < low:
        raise UserError(f"{value} is too small", f"at least {low}")
    if value > LARGEST:
        raise UserError(f"{value} is too large", f"at most {LARGEST}")
    return value


def _gpus(tree: object) -> int:
    text = scalar_of(tree).text
    if re.fullmatch(r"0*\.[0-9]+", text):
        raise UserError(f"`{text}` of a GPU can't be granted", "gpus: 1, and `limits: {per_gpu: N}` share it")
    return _whole(tree, low=0)


def _seconds(tree: object) -> float:
    return parse_duration(scalar_of(tree).text)


def _size(tree: object) -> int:
    size = parse_size(scalar_of(tree).text)
    if not size:
        raise UserError("a size of 0", "at least one byte, such as 1 GiB")
    return size


def _poll(tree: object) -> float:
    seconds = _seconds(tree)
    if seconds < SHORTEST_POLL:
        raise UserError(f"a poll every {seconds:g} s would do nothing else", f"at least {SHORTEST_POLL} s")
    return seconds


def _unit(tree: object) -> Unit:
    match _text(tree):
        case "episode":
            return "episode"
        case "step":
            return "step"
        case other:
            raise UserError(f"there is no unit `{other}`", did_you_mean(other, ("episode", "step")))


def _host(tree: object) -> str:
    host = _line(tree)
    if host.startswith("-") or re.search(r"\s", host):
        raise UserError(f"`{host}` is no host", "as for ssh: an alias of ~/.ssh/config, or user@address")
    return host


def _workdir(tree: object) -> str:
    folder = _line(tree)
    if folder.startswith("~") and folder != "~" and not folder.startswith("~/"):
        raise UserError(f"`{folder}` names another user's home", "write the folder out, or begin with ~/")
    return folder


def _root(tree: object) -> str:
    folder = _workdir(tree)
    if not folder.startswith(("/", "~")):
        raise UserError(f"`{folder}` is relative, and the host would not know to what", "write ~/... or /...")
    return folder


def _pattern(tree: object) -> str:
    pattern = _line(tree)
    if pattern.startswith(("/", "~", "!")) or ".." in pattern.split("/"):
        raise UserError(
            f"`{pattern}` can match nothing that is shipped",
            "a name such as *.pt, or a path below `from` such as results/*",
        )
    return pattern


def _secret_source(tree: object) -> SecretSource:
    """Never tells what it refuses: that could be the secret."""
    text = tree.text if isinstance(tree, Scalar) else ""
    if text == "host":
        return "host"
    if text == "laptop":
        return "laptop"
    meant = close_to(text, ("host", "laptop"))
    raise UserError(
        "`host` or `laptop` is wanted: in whose environment the secret is",
        f"did you mean `{meant}`?" if meant else "the secret itself stands in no grid",
    )


def _glob(tree: object) -> str:
    pattern = _line(tree)
    if pattern.startswith(("/", "~")) or ".." in pattern.split("/"):
        raise UserError(
            f"`{pattern}` leads out of the session's output folder",
            "a pattern below {output_dir}, such as *.jsonl; have the command write there",
        )
    return pattern


def _variable(name: str) -> str:
    if not _VARIABLE.fullmatch(name):
        raise UserError(f"`{name}` can't be the name of a variable", "letters, digits and _; no digit in front")
    if name.startswith("COMBORUN_"):
        raise UserError(f"{name} is comborun's own", "take a name that does not begin with COMBORUN_")
    return name


def _attribute(name: str) -> str:
    if not _ATTRIBUTE.fullmatch(name):
        raise UserError(f"no placeholder can name the attribute `{name}`", "letters, digits, _ and - only")
    return name


Name = Annotated[str, PlainValidator(guarded(_name)), WithJsonSchema({"type": "string", "minLength": 1})]
Text = Annotated[str, PlainValidator(guarded(_text)), WithJsonSchema({"type": "string"})]
Line = Annotated[str, PlainValidator(guarded(_line)), WithJsonSchema({"type": "string", "minLength": 1})]
AsWritten = Annotated[
    str, PlainValidator(guarded(_as_written)), WithJsonSchema({"type": ["string", "number", "boolean"]})
]
Positive = Annotated[
    int, PlainValidator(guarded(partial(_whole, low=1))), WithJsonSchema({"type": "integer", "minimum": 1})
]
NotNegative = Annotated[
    int, PlainValidator(guarded(partial(_whole, low=0))), WithJsonSchema({"type": "integer", "minimum": 0})
]
GpuCount = Annotated[int, PlainValidator(guarded(_gpus)), WithJsonSchema({"type": "integer", "minimum": 0})]
DURATION_SCHEMA = {
    "anyOf": [
        {"type": "number", "minimum": 0},
        {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?\s*(ms|s|min|h|d)?$"},
    ]
}
Seconds = Annotated[float, PlainValidator(guarded(_seconds)), WithJsonSchema(DURATION_SCHEMA)]
PollSeconds = Annotated[float, PlainValidator(guarded(_poll)), WithJsonSchema(DURATION_SCHEMA)]
UnitWord = Annotated[Unit, PlainValidator(guarded(_unit)), WithJsonSchema({"enum": ["episode", "step"]})]
Host = Annotated[str, PlainValidator(guarded(_host)), WithJsonSchema({"type": "string", "pattern": r"^[^-\s]\S*$"})]
Workdir = Annotated[str, PlainValidator(guarded(_workdir)), WithJsonSchema({"type": "string", "minLength": 1})]
HostPython = Annotated[str, PlainValidator(guarded(_root)), WithJsonSchema({"type": "string", "pattern": "^(/|~/)"})]
Root = Annotated[str, PlainValidator(guarded(_root)), WithJsonSchema({"type": "string", "pattern": "^(/|~$|~/)"})]
Glob = Annotated[str, PlainValidator(guarded(_glob)), WithJsonSchema({"type": "string", "minLength": 1})]
Pattern = Annotated[str, PlainValidator(guarded(_pattern)), WithJsonSchema({"type": "string", "minLength": 1})]
SIZE_SCHEMA = {
    "anyOf": [
        {"type": "integer", "minimum": 1},
        {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?\s*([KMG]i?)?B?$"},
    ]
}
Size = Annotated[int, PlainValidator(guarded(_size)), WithJsonSchema(SIZE_SCHEMA)]
SecretSourceWord = Annotated[
    SecretSource, PlainValidator(guarded(_secret_source)), WithJsonSchema({"enum": ["host", "laptop"]})
]
VariableName = Annotated[str, AfterValidator(guarded(_variable))]
AttributeName = Annotated[str, AfterValidator(guarded(_attribute))]
