"""The keys of what sessions get of the host, from `resources` to `threads`, and of model `servers`."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import model_validator

from comborun.errors import UserError
from comborun.grid.keys.amounts import parse_whole
from comborun.grid.keys.shapes import ONE_OR_MANY, OR_NONE, Keys, OrJust, key
from comborun.grid.keys.values import (
    AsWritten,
    AttributeName,
    Cores,
    GpuCount,
    Line,
    LogPattern,
    Memory,
    NotNegative,
    OneOf,
    Positive,
    Reads,
    Schema,
    Text,
    Token,
    VariableName,
    WholeSeconds,
    Workdir,
    line_of,
    matching,
    refusal,
    scalar_of,
)
from comborun.grid.yaml_tree import Items, Map, Scalar
from comborun.model.resources import (
    DEFAULT_HEALTH_S,
    DEFAULT_MISSES,
    DEFAULT_RESTARTS,
    XVFB,
    Display,
    PinMode,
    Reserve,
    mebibytes,
)
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
    cpus: Cores | None = key("cores that it keeps busy; also a part of one, such as 0.25")
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


_LONGEST = 40


def _server_name(tree: object) -> str:
    name = str(tree)
    if not re.fullmatch(r"[a-z][a-z0-9-]*", name) or len(name) > _LONGEST:
        suggestion = re.sub(r"[^a-z0-9-]+", "-", name.lower()).strip("-0123456789")[:_LONGEST] or "policy"
        hint = f"lower-case letters, digits and -, a letter first: `{suggestion}`"
        raise UserError(f"`{name}` is not the name of a server", hint)
    if name == "after" or re.fullmatch(r".*-gpu[0-9]+", name):
        raise UserError(f"`{name}` is a name that comborun uses itself", "choose another one")
    return name


_PATH: Schema = {"type": "string", "pattern": "^/[^ ]*$"}
UrlPath = Annotated[str, matching("/[^ ]*", "is not a path of a server", "such as /health")]
ServerName = Annotated[str, Reads(_server_name, {"type": "string", "pattern": "^[a-z][a-z0-9-]*$"})]


class ReadyKeys(Keys):
    """One check; a server is ready when all of them hold."""

    path: UrlPath | None = key("it answers a GET of this path")
    status: Positive = key("with this status", 200)
    text: Line | None = key("and this text in the answer, such as the model's id")
    line: LogPattern | None = key("or: regular expression (Python) of a log line")
    tcp: Annotated[str, OneOf("check", "`ready: tcp` by itself, or a path such as /health", ("tcp",))] = key(
        "or: it takes connections", ""
    )

    @model_validator(mode="after")
    def _is_one_check(self) -> Self:
        if (self.path is not None) + (self.line is not None) + bool(self.tcp) != 1:
            hint = "one of `path` and `line`, or `ready: tcp`"
            raise refusal("expected one check of the server", hint)
        if self.path is None and self.model_fields_set & {"status", "text"}:
            raise refusal("`status` and `text` need an answer over HTTP", "give its `path`")
        return self


def _checks(tree: object) -> object:
    """The checks. A single one needs no brackets; a path or the word `tcp` needs no map."""
    if not isinstance(tree, (Map, Scalar, Items)):
        return tree
    entries = tree if isinstance(tree, Items) else [tree]
    return [
        {"tcp" if entry.text == "tcp" else "path": entry} if isinstance(entry, Scalar) else entry for entry in entries
    ]


def _checks_schema(many: Schema) -> Schema:
    one = [{"const": "tcp"}, _PATH, many["items"]]
    return {"anyOf": [*one, {**many, "items": {"anyOf": one}, "minItems": 1}]}


class WarmUpKeys(Keys):
    """One request, sent when the server is ready and before any client."""

    path: UrlPath | None = key("the path of the request")
    body: Text = key("the body of a POST; without it the request is a GET", "")
    type: Line = key("media type of the body", "application/json")
    within: WholeSeconds = key("how long its answer may take", 600)


class HealthKeys(Keys):
    """The health checks of a server that is ready."""

    every: WholeSeconds = key("time between two checks", DEFAULT_HEALTH_S)
    misses: Positive = key("checks without an answer after which it is ended", DEFAULT_MISSES)


class ServerKeys(Keys):
    """A model server, started before the sessions that name it."""

    preset: Line | None = key("a preset for its program: vllm, openpi-server ...")
    attributes: dict[AttributeName, AsWritten] = key("values that fill {server.KEY}", {})
    command: Text | None = key("the program and its arguments; {port} is where it listens")
    setup: Text = key("bash that runs before the command, in the same shell", "")
    workdir: Workdir | None = key("folder in which setup and command run")
    variables: dict[VariableName, AsWritten] = key("environment variables", {})
    resources: ResourceKeys = key("what it needs", ResourceKeys)
    pin: PinWord = key("how it finds its GPUs", "cvd")
    use_gpus: GpuIndexes | None = key("indexes of the GPUs that it may be granted; else those of the sessions")
    per: Annotated[Literal["host", "gpu"], OneOf("server per")] = key(
        "gpu: one on each GPU, for the sessions there; host: a single one", "host"
    )
    ready: Annotated[tuple[ReadyKeys, ...], Reads(_checks, _checks_schema)] = key(
        "what shows that it is ready; else that it takes connections", ()
    )
    ready_within: WholeSeconds = key("how long that may take; 0: no limit", 0)
    warm_up: Annotated[WarmUpKeys, OrJust("path")] | None = key("one request before the first client's")
    health: Annotated[HealthKeys | None, OR_NONE] = key(
        "how it is checked once it is ready; `none`: only its process is watched", HealthKeys
    )
    restarts: NotNegative = key(
        "how often in a row it is started again when it ended or did not answer", DEFAULT_RESTARTS
    )

    @property
    def gpus(self) -> int:
        return self.resources.gpus or (1 if self.per == "gpu" else 0)


Servers = dict[ServerName, ServerKeys]
