"""The keys of a grid file for model servers: what is started, what shows that it is ready, how it is looked after."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import Field, PlainValidator, WithJsonSchema, model_validator
from pydantic_core import core_schema

from comborun.errors import UserError
from comborun.grid.keys.resource import PinWord, ResourceKeys
from comborun.grid.keys.shapes import Keys, OneOrMany, OrJust, OrNone
from comborun.grid.keys.survival_values import LogPattern, WholeSeconds
from comborun.grid.keys.values import (
    AsWritten,
    AttributeName,
    Line,
    NotNegative,
    Positive,
    Text,
    VariableName,
    Workdir,
    guarded,
    line_of,
    refusal,
)
from comborun.grid.yaml_tree import Items, Map, Scalar
from comborun.servers import DEFAULT_HEALTH_S, DEFAULT_MISSES, DEFAULT_RESTARTS

PER = ("host", "gpu")
_NAME = re.compile(r"[a-z][a-z0-9-]*")
_OF_A_GPU = re.compile(r".*-gpu[0-9]+")
_LONGEST = 40


def _server_name(word: object) -> str:
    name = str(word)
    if not _NAME.fullmatch(name) or len(name) > _LONGEST:
        suggestion = re.sub(r"[^a-z0-9-]+", "-", name.lower()).strip("-0123456789")[:_LONGEST] or "policy"
        raise UserError(
            f"`{name}` is no name of a server", f"lower-case letters, digits and -, a letter first: `{suggestion}`"
        )
    if name == "after" or _OF_A_GPU.fullmatch(name):
        raise UserError(f"`{name}` is a name that comborun gives by itself", "choose another one")
    return name


def _per(tree: object) -> str:
    word = line_of(tree)
    if word not in PER:
        raise UserError(f"one server per `{word}`?", "gpu: one on each GPU; host: a single one")
    return word


def _path(tree: object) -> str:
    path = line_of(tree)
    if not path.startswith("/") or " " in path:
        raise UserError(f"`{path}` is no path of a server", "such as /health")
    return path


def _listed(tree: object) -> object:
    """One check may stand without brackets: a map, a path, or `tcp`."""
    if isinstance(tree, (Map, Scalar)):
        return [_spelled(tree)]
    return [_spelled(entry) for entry in tree] if isinstance(tree, Items) else tree


def _spelled(entry: object) -> object:
    if not isinstance(entry, Scalar):
        return entry
    return {"tcp": entry} if entry.text == "tcp" else {"path": entry}


def _tcp(tree: object) -> bool:
    word = line_of(tree)
    if word != "tcp":
        raise UserError(f"`{word}` is no check", "`ready: tcp` by itself, or a path such as /health")
    return True


_PATH_SCHEMA: dict[str, Any] = {"type": "string", "pattern": "^/[^ ]*$"}
Path = Annotated[str, PlainValidator(guarded(_path)), WithJsonSchema(_PATH_SCHEMA)]
ServerName = Annotated[
    str, PlainValidator(guarded(_server_name)), WithJsonSchema({"type": "string", "pattern": "^[a-z][a-z0-9-]*$"})
]
PerWord = Annotated[Literal["host", "gpu"], PlainValidator(guarded(_per)), WithJsonSchema({"enum": list(PER)})]


class ReadyKeys(Keys):
    """One check; a server is ready when all of them hold."""

    path: Path | None = Field(default=None, description="a GET of this path is answered")
    status: Positive = Field(default=200, description="with this status")
    text: Line | None = Field(default=None, description="and this text in the answer, such as the model's id")
    line: LogPattern | None = Field(default=None, description="or: regular expression (Python) of a log line")
    tcp: Annotated[bool, PlainValidator(guarded(_tcp)), WithJsonSchema({"const": "tcp"})] = Field(
        default=False, description="or: it takes connections"
    )

    @model_validator(mode="after")
    def _is_one_check(self) -> ReadyKeys:
        if (self.path is not None) + (self.line is not None) + self.tcp != 1:
            raise refusal(
                UserError("what shows that the server is ready?", "one of `path` and `line`, or `ready: tcp`")
            )
        if self.path is None and self.model_fields_set & {"status", "text"}:
            raise refusal(UserError("`status` and `text` are of an answer over HTTP", "give its `path`"))
        return self


class Checks:
    """Annotates a tuple of checks: a single one may stand without brackets, and be a path or the word `tcp`."""

    def __get_pydantic_core_schema__(self, source: Any, handler: Any) -> Any:
        return core_schema.no_info_before_validator_function(_listed, handler(source))

    def __get_pydantic_json_schema__(self, schema: Any, handler: Any) -> dict[str, Any]:
        many = handler(schema)
        one = [{"const": "tcp"}, _PATH_SCHEMA, many["items"]]
        return {"anyOf": [*one, {**many, "items": {"anyOf": one}, "minItems": 1}]}


Ready = Annotated[tuple[ReadyKeys, ...], Checks()]


class WarmUpKeys(Keys):
    """One request, sent when the server is ready and before any client."""

    path: Path | None = Field(default=None, description="what is asked for")
    body: Text = Field(default="", description="what is sent; without it the request is a GET, with it a POST")
    type: Line = Field(default="application/json", description="media type of the body")
    within: WholeSeconds = Field(default=600, description="how long its answer may take")


class HealthKeys(Keys):
    """How a server is looked after once it is ready."""

    every: WholeSeconds = Field(default=DEFAULT_HEALTH_S, description="time between two looks")
    misses: Positive = Field(default=DEFAULT_MISSES, description="looks without an answer after which it is ended")


class ServerKeys(Keys):
    """A model server, started before the sessions that name it."""

    preset: Line | None = Field(
        default=None, description="the program, where comborun knows it: vllm, openpi-server ..."
    )
    attributes: dict[AttributeName, AsWritten] = Field(default={}, description="values that fill {server.KEY}")
    command: Text | None = Field(default=None, description="the program and its arguments; {port} is where it listens")
    setup: Text = Field(default="", description="bash that runs before the command, in the same shell")
    workdir: Workdir | None = Field(default=None, description="folder in which setup and command run")
    variables: dict[VariableName, AsWritten] = Field(default={}, description="environment variables")
    resources: ResourceKeys = Field(default_factory=ResourceKeys, description="what it needs")
    pin: PinWord = Field(default="cvd", description="how it finds its GPUs")
    use_gpus: Annotated[tuple[NotNegative, ...], OneOrMany()] | None = Field(
        default=None, description="indexes of the GPUs that it may be granted; else those of the sessions"
    )
    per: PerWord = Field(default="host", description="gpu: one on each GPU, for the sessions there; host: a single one")
    ready: Ready = Field(default=(), description="what shows that it is ready; else that it takes connections")
    ready_within: WholeSeconds = Field(default=0, description="how long that may take; 0: as long as it lives")
    warm_up: Annotated[WarmUpKeys, OrJust("path", _PATH_SCHEMA)] | None = Field(
        default=None, description="one request before the first client's"
    )
    health: Annotated[HealthKeys | None, OrNone()] = Field(
        default_factory=HealthKeys, description="how it is looked after once it is ready; `none`: only that it lives"
    )
    restarts: NotNegative = Field(
        default=DEFAULT_RESTARTS, description="how often in a row it is started again when it ended or did not answer"
    )


Servers = dict[ServerName, ServerKeys]
SERVER_KEYS = tuple(ServerKeys.model_fields)
