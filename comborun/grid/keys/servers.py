"""The key `servers`: model servers, and what shows that one is ready and healthy."""

from __future__ import annotations

import re
from typing import Annotated, Literal, Self

from pydantic import model_validator

from comborun.errors import UserError
from comborun.grid.keys.resources import GpuIndexes, PinWord, ResourceKeys
from comborun.grid.keys.shapes import OR_NONE, Keys, OrJust, key
from comborun.grid.keys.values import (
    AsWritten,
    AttributeName,
    Line,
    LogPattern,
    NotNegative,
    OneOf,
    Positive,
    Reads,
    Schema,
    Text,
    VariableName,
    WholeSeconds,
    Workdir,
    matching,
    refusal,
)
from comborun.grid.yaml_tree import Items, Map, Scalar
from comborun.model.servers import DEFAULT_HEALTH_S, DEFAULT_MISSES, DEFAULT_RESTARTS

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
            raise refusal(UserError("expected one check of the server", hint))
        if self.path is None and self.model_fields_set & {"status", "text"}:
            raise refusal(UserError("`status` and `text` need an answer over HTTP", "give its `path`"))
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
