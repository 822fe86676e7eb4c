"""The single values of a grid file: how each kind is read from YAML, and the JSON Schema that editors get for it.

Everything is read from the text as it was written, so `0.10` stays `0.10` and `1e-3` stays `1e-3`.
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Callable, Iterable
from functools import partial
from typing import Annotated, Any, Literal, TypeVar, get_args

from annotated_types import Ge
from pydantic_core import PydanticCustomError, core_schema

from comborun.errors import UserError
from comborun.grid.keys.amounts import parse_duration, parse_size, parse_whole
from comborun.grid.yaml_tree import Items, Map, Place, Scalar, ScalarKind
from comborun.model.plan import SecretSource, Unit
from comborun.rules.names import VARIABLE
from comborun.rules.patterns import PatternError, compiled, unhurried
from comborun.rules.results.fields import number
from comborun.text import clean, close_to, did_you_mean, listed

T = TypeVar("T")
Schema = dict[str, Any]

MISTAKE = "grid_mistake"
"""the pydantic error type of our own refusals"""
LARGEST = 10**15
"""within bash's integers"""
SHORTEST_POLL = 0.1
TEXT: Schema = {"type": "string", "minLength": 1}
SCALAR: Schema = {"type": ["string", "number", "boolean"]}
DURATION: Schema = {
    "anyOf": [{"type": "number", "minimum": 0}, {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?\s*(ms|s|min|h|d)?$"}]
}
_CHANGES_DIRECTION = "\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"


def refusal(message: str, hint: str) -> PydanticCustomError:
    return PydanticCustomError(MISTAKE, "{message}", {"message": message, "hint": hint})


class Reads:
    """Annotates a type with the function that reads it from a tree or a key (raises UserError).

    In the JSON Schema it is the annotated type, unless a grid writes it in another way: then that is `schema`. If a
    grid may write it in both ways, `schema` makes the schema of both from that of the type, and the type reads on.
    """

    def __init__(
        self, read: Callable[[object], object], schema: Schema | Callable[[Schema], Schema] | None = None
    ) -> None:
        self._read = read
        self._schema = schema

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        if isinstance(self._schema, dict):
            return core_schema.no_info_plain_validator_function(self._validate)
        return core_schema.no_info_before_validator_function(self._validate, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> Schema:
        if isinstance(self._schema, dict):
            return dict(self._schema)
        full: Schema = handler(schema)
        return self._schema(full) if self._schema else full

    def _validate(self, tree: object) -> object:
        try:
            return self._read(tree)
        except UserError as error:
            raise refusal(error.message, error.hint) from None


class OneOf(Reads):
    """Annotates a Literal or an enumeration; text, if `words` are given. A grid writes one of the words."""

    def __init__(self, what: str, hint: str = "", words: Iterable[str] = ()) -> None:
        super().__init__(self._word)
        self._what, self._hint, self._words = what, hint, tuple(words)

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        self._words = self._words or get_args(source) or tuple(source)
        self._schema = {"type": "string", "enum": [*map(str, self._words)]}
        return super().__get_pydantic_core_schema__(source, handler)

    def _word(self, tree: object) -> str:
        word, known = line_of(tree), {str(one): one for one in self._words}
        if word not in known:
            close = did_you_mean(word, known)
            hint = close or self._hint or f"known here: {listed(known)}"
            raise UserError(f"there is no {self._what} `{word}`", hint)
        return known[word]


def matching(pattern: str, complaint: str, hint: str) -> Reads:
    """Text that matches a regular expression. The complaint follows the refused text."""

    def read(tree: object) -> str:
        text = line_of(tree)
        if not re.fullmatch(pattern, text):
            raise UserError(f"`{text}` {complaint}", hint)
        return text

    return Reads(read, {"type": "string", "pattern": f"^({pattern})$"})


def no_value(scalar: Scalar) -> UserError:
    tilde = "`~` alone means nothing in YAML: write `~/` for the home folder, or quotes"
    return UserError("no value", tilde if scalar.text == "~" else "give it one, or remove the line")


def scalar_of(tree: object) -> Scalar:
    """The single value at this place. A list, a map or nothing is refused."""
    if isinstance(tree, str):
        return Scalar(tree, Place(0, 0))
    if isinstance(tree, Map):
        raise UserError("expected one value, found a map", "text that begins with a brace needs quotes")
    if isinstance(tree, Items):
        raise UserError("expected one value, found a list", "text that begins with a bracket needs quotes")
    assert isinstance(tree, Scalar)
    if tree.kind is ScalarKind.NULL:
        raise no_value(tree)
    return tree


def _as_written(tree: object) -> str:
    text = scalar_of(tree).text
    if any("\udc80" <= character <= "\udcff" for character in text):  # a byte of a file's name, as Python holds it
        shown = text.encode("utf-8", "surrogateescape").decode("latin-1")
        raise UserError(
            f"{shown!r} is no UTF-8, as commands and plans are", "rename the file, or have the glob leave it out"
        )
    if "\0" in text or any(unicodedata.category(character) == "Cs" for character in text):
        raise UserError(f"{text!r} has a character that a command line can't pass", "remove the escape")
    return text


def _text(tree: object) -> str:
    scalar = scalar_of(tree)
    if scalar.kind is not ScalarKind.TEXT:
        hint = f'write it in quotes: "{scalar.text}"'
        raise UserError(f"expected text, but `{scalar.text}` is {scalar.kind} in YAML", hint)
    return _as_written(tree)


def line_of(tree: object) -> str:
    """Text of one line without control characters."""
    text = _text(tree)
    if strange := [one for one in text if unicodedata.category(one) in {"Cc", "Zl", "Zp"} or one in _CHANGES_DIRECTION]:
        raise UserError(f"{text!r} has the control character U+{ord(strange[0]):04X}", "remove it")
    if not text.strip():
        raise UserError("empty text", "give it a value, or remove the line")
    return text


def _name(tree: object) -> str:
    name = line_of(tree)
    clean(name)
    return name


def _session_name(tree: object) -> str:
    name, hint = line_of(tree), "such as eval_{environment}_{policy}, with A-Z, a-z, 0-9, _ and - besides"
    rest = name
    for each in ("{environment}", "{policy}"):
        if name.count(each) != 1:
            raise UserError(f"`{name}` has to hold {each} once, or sessions would share a name", hint)
        rest = rest.replace(each, "")
    if not re.fullmatch("[A-Za-z0-9_-]*", rest) or name.startswith("-"):
        raise UserError(f"`{name}` can't be a session's name", hint)
    return name


def _flag(tree: object) -> bool:
    scalar = scalar_of(tree)
    if scalar.kind is not ScalarKind.BOOLEAN:
        shown = f'"{scalar.text}"' if scalar.quoted else f"`{scalar.text}`"
        raise UserError(f"{shown} is neither true nor false", "write true or false, without quotes")
    return scalar.text.lower() == "true"


# Numbers, durations and sizes. Text that other programs may read differently is refused.


def number_of(tree: object, example: str = "such as 200 or 0.5") -> float:
    text = scalar_of(tree).text
    amount = number(text)
    if amount is None:
        raise UserError(f"`{text}` is not a number", example)
    return amount


def whole_of(tree: object, low: int = 0) -> int:
    scalar = scalar_of(tree)
    if scalar.quoted:
        raise UserError(f'expected a whole number, but "{scalar.text}" is text', "write it without quotes")
    value = parse_whole(scalar.text)
    if value < low:
        raise UserError(f"{value} is too small", f"at least {low}")
    if value > LARGEST:
        raise UserError(f"{value} is too large", f"at most {LARGEST}")
    return value


_PART = re.compile(r"(?:0|[1-9][0-9]{0,5})\.[0-9]{1,3}")


def _cores(tree: object) -> float:
    """Cores, or thousandths of one."""
    scalar = scalar_of(tree)
    if not scalar.quoted and "." in scalar.text and not _PART.fullmatch(scalar.text):
        raise UserError(f"`{scalar.text}` is not a number of cores", "up to three decimals, such as 0.25")
    if scalar.quoted or "." not in scalar.text:
        return whole_of(tree, low=1)
    amount = float(scalar.text)
    if not amount:
        raise UserError("0 cores are none", "leave `cpus` out, or give a part of one such as 0.25")
    return int(amount) if amount.is_integer() else amount


def _gpus(tree: object) -> int:
    text = scalar_of(tree).text
    if re.fullmatch(r"0*\.[0-9]+", text):
        raise UserError(f"`{text}` of a GPU can't be granted", "gpus: 1, and `limits: {per_gpu: N}` share it")
    return whole_of(tree)


OWNED = re.compile(r"\{(policy|environment)\.([A-Za-z0-9_.-]+)\}")
"""an attribute of a combo's policy or environment"""


def _count(tree: object) -> str:
    text = scalar_of(tree).text
    if OWNED.fullmatch(text):
        return text
    if text.startswith("{"):
        raise UserError(f"`{text}` is not a number", "a number, or an attribute that holds one: {environment.envs}")
    if parse_whole(text) < 1:
        raise UserError(f"{text} is too small", "at least 1")
    return text


def duration(most: float = math.inf, complaint: str = "", hint: str = "", *, least: float = 0) -> Reads:
    """Seconds. A value outside the bounds gets the complaint."""

    def read(tree: object) -> float:
        seconds = parse_duration(scalar_of(tree).text)
        if not least <= seconds <= most:
            raise UserError(complaint, hint)
        return seconds

    return Reads(read, DURATION)


def _size(tree: object) -> int:
    size = parse_size(scalar_of(tree).text)
    if not size:
        raise UserError("a size of 0", "at least one byte, such as 1 GiB")
    return size


def _memory(tree: object) -> int:
    text = scalar_of(tree).text
    if text.replace(".", "", 1).isdecimal() and text.strip("0."):
        raise UserError(f"`{text}` has no unit", "such as 4 GiB")
    return parse_size(text)


# Folders, patterns and names


def _workdir(tree: object) -> str:
    folder = line_of(tree)
    if folder.startswith("~") and folder != "~" and not folder.startswith("~/"):
        raise UserError(f"`{folder}` names another user's home", "write the folder out, or begin with ~/")
    return folder


def _root(tree: object) -> str:
    folder = _workdir(tree)
    if not folder.startswith(("/", "~")):
        raise UserError(f"`{folder}` is a relative path, and the host needs an absolute one", "write ~/... or /...")
    return folder


def inside(outside: tuple[str, ...], complaint: str, hint: str) -> Reads:
    """A pattern for paths below a folder."""

    def read(tree: object) -> str:
        pattern = line_of(tree)
        if pattern.startswith(outside) or ".." in pattern.split("/"):
            raise UserError(f"`{pattern}` {complaint}", hint)
        return pattern

    return Reads(read, TEXT)


def _secret_source(tree: object) -> str:
    """The message does not repeat the refused text, which could be the secret."""
    text = tree.text if isinstance(tree, Scalar) else ""
    if text in {"host", "laptop"}:
        return text
    meant = close_to(text, ("host", "laptop"))
    hint = f"did you mean `{meant}`?" if meant else "never write the secret itself into a grid"
    raise UserError("expected `host` or `laptop`, where the environment has the secret", hint)


def _variable(tree: object) -> str:
    name = line_of(tree)
    if not VARIABLE.fullmatch(name):
        raise UserError(f"`{name}` can't be the name of a variable", "letters, digits and _; not a digit first")
    if name.startswith("COMBORUN_"):
        raise UserError(f"{name}: comborun uses this prefix itself", "take a name that does not begin with COMBORUN_")
    return name


def log_pattern(text: str) -> str:
    """A regular expression for lines of logs. Raises UserError."""
    try:
        return unhurried(compiled(text).pattern)
    except PatternError as error:
        raise UserError(str(error), error.hint) from None


Name = Annotated[str, Reads(_name, TEXT)]
SessionName = Annotated[str, Reads(_session_name, TEXT)]
Text = Annotated[str, Reads(_text)]
Line = Annotated[str, Reads(line_of, TEXT)]
AsWritten = Annotated[str, Reads(_as_written, SCALAR)]
Flag = Annotated[bool, Reads(_flag)]
Positive = Annotated[int, Ge(1), Reads(partial(whole_of, low=1))]
NotNegative = Annotated[int, Ge(0), Reads(whole_of)]
Cores = Annotated[float, Reads(_cores, {"type": "number", "exclusiveMinimum": 0})]
GpuCount = Annotated[int, Ge(0), Reads(_gpus)]
Count = Annotated[
    str,
    Reads(_count, {"anyOf": [{"type": "integer", "minimum": 1}, {"type": "string", "pattern": f"^{OWNED.pattern}$"}]}),
]
"""a number, or the attribute of a policy or environment that holds it"""
Seconds = Annotated[float, duration()]
WholeSeconds = Annotated[int, Reads(lambda tree: math.ceil(parse_duration(scalar_of(tree).text)), DURATION)]
PollSeconds = Annotated[
    float,
    duration(least=SHORTEST_POLL, complaint="too little time between two polls", hint=f"at least {SHORTEST_POLL} s"),
]
_SIZE: Schema = {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?\s*([KMG]i?)?B?$"}
Size = Annotated[int, Reads(_size, {"anyOf": [{"type": "integer", "minimum": 1}, _SIZE]})]
_MEMORY: Schema = {"type": "string", "pattern": r"^[0-9]+(\.[0-9]+)?\s*([KMG]i?B|B)$"}
Memory = Annotated[int, Reads(_memory, {"anyOf": [{"const": 0}, _MEMORY]})]
UnitWord = Annotated[Unit, OneOf("unit")]
TogetherWord = Annotated[Literal["environments"], OneOf("word for `together`")]
Host = Annotated[str, matching(r"[^-\s]\S*", "is not a host", "as for ssh: an alias of ~/.ssh/config, or user@address")]
Workdir = Annotated[str, Reads(_workdir, TEXT)]
Root = Annotated[str, Reads(_root, {"type": "string", "pattern": "^(/|~$|~/)"})]
Glob = Annotated[
    str,
    inside(
        ("/", "~"),
        "is outside the session's output folder",
        "a pattern below {output_dir}, such as *.jsonl; let the command write there",
    ),
]
_BELOW_FROM = "a name such as *.pt, or a path below `from` such as results/*"
Pattern = Annotated[str, inside(("/", "~", "!"), "can't match a shipped file", _BELOW_FROM)]
LogPattern = Annotated[str, Reads(lambda tree: log_pattern(line_of(tree)), TEXT)]
_EXCLUSIVE = "letters, digits, _ and -, such as `exclusive: ray`"
Token = Annotated[str, matching("[A-Za-z0-9_]([A-Za-z0-9_-]*[A-Za-z0-9_])?", "can't name a resource", _EXCLUSIVE)]
SecretSourceWord = Annotated[SecretSource, Reads(_secret_source)]
VariableName = Annotated[str, Reads(_variable)]
AttributeName = Annotated[
    str,
    matching(
        r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*", "is not a valid name of an attribute", "letters, digits, _ and - only"
    ),
]
