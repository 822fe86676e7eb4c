"""The key `servers`: model servers, their checks, and their use in commands."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Literal, Self

from pydantic import model_validator

from comborun.errors import Problem, UserError
from comborun.grid.axes import AXIS_OF
from comborun.grid.commands import check_server
from comborun.grid.resources import GpuIndexes, PinWord, ResourceKeys
from comborun.grid.shapes import OR_NONE, Also, Keys, key, or_just
from comborun.grid.values import (
    AsWritten,
    AttributeName,
    Line,
    LogPattern,
    NotNegative,
    Positive,
    Reads,
    Schema,
    Text,
    VariableName,
    WholeSeconds,
    Workdir,
    matching,
    one_of,
    refusal,
)
from comborun.grid.yaml_tree import Items, Map, Scalar
from comborun.model.command import START_TIME, CommandError, check_argument, placeholders, split_command
from comborun.model.servers import DEFAULT_HEALTH_S, DEFAULT_MISSES, DEFAULT_RESTARTS, OF_SERVERS

if TYPE_CHECKING:
    from comborun.grid.draft import Draft, Path

_LONGEST = 40
_ASKING = re.compile(r"\{(server\.[A-Za-z0-9_.-]+)\}")
_KNOWN = ("port", "gpu", "gpus", "gpu_count", "output_dir", "attempt", "run")
"""start-time placeholders that a server's command may contain"""


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
    tcp: Annotated[str, one_of("check", ("tcp",), "`ready: tcp` by itself, or a path such as /health")] = key(
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
    per: Annotated[Literal["host", "gpu"], one_of("server per", ("host", "gpu"))] = key(
        "gpu: one on each GPU, for the sessions there; host: a single one", "host"
    )
    ready: Annotated[tuple[ReadyKeys, ...], Also(_checks, _checks_schema)] = key(
        "what shows that it is ready; else that it takes connections", ()
    )
    ready_within: WholeSeconds = key("how long that may take; 0: no limit", 0)
    warm_up: Annotated[WarmUpKeys, or_just("path", _PATH)] | None = key("one request before the first client's")
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


def server_problems(draft: Draft) -> Iterator[Problem]:
    for name, keys in draft.file.servers.items():
        yield from _command_problems(draft, name, keys)
        if keys.per == "gpu":
            yield from _gpu_problems(draft, name, keys)
    for path, text in _texts(draft):
        for match in _ASKING.finditer(text):
            yield from draft.checked(path, f"`{path[0]}`", check_server, draft, match[1])


def server_warnings(draft: Draft) -> Iterator[Problem]:
    texts = [combo.settings.command + combo.settings.setup for combo in draft.combos]
    texts += [text for _, text in _texts(draft)]
    texts += [text for combo in draft.combos for text in combo.settings.variables.values()]
    for name in draft.file.servers:
        mark = f"{OF_SERVERS}{name.upper().replace('-', '_')}_"
        if not any(f"{{server.{name}." in text or mark in text for text in texts):
            message = f"no session uses the server `{name}`, so it never starts"
            hint = f"`{{server.{name}.url}}` in a command, a variable or an attribute"
            yield draft.at_key(("servers", name), message, hint)


def _command_problems(draft: Draft, name: str, keys: ServerKeys) -> Iterator[Problem]:
    path: Path = ("servers", name, "command")
    if keys.command is None:
        if "servers" not in draft.broken:
            hint = "such as `command: python serve.py --port {port}`, or `preset: vllm`"
            yield draft.at_key(("servers", name), f"`servers.{name}` has no `command`", hint)
        return
    label = f"`servers.{name}.command`"
    if wrong := list(draft.checked(path, label, _check_placeholders, keys.command, keys)):
        yield from wrong
        return
    texts = (keys.command, keys.setup, *keys.variables.values())
    if not any("{port}" in text or START_TIME["port"] in text for text in texts):
        hint = "pass it, such as `--port {port}`: it is chosen when the server starts"
        yield draft.at_value(path, f"the server `{name}` is not told on which port to listen", hint)


def _check_placeholders(command: str, keys: ServerKeys) -> None:
    """Raise CommandError for a placeholder without a value."""
    split_command(command)
    own = ("server", *(f"server.{attribute}" for attribute in keys.attributes))
    for name in placeholders(command):
        text = f"{{{name}}}"
        check_argument(text, (*_KNOWN, *own))
        if name in {"gpu", "gpus"} and not keys.gpus:
            raise CommandError(f"{text} has no value: the server has no GPU", "`resources: {gpus: 1}`", text)


def _gpu_problems(draft: Draft, name: str, keys: ServerKeys) -> Iterator[Problem]:
    if keys.resources.gpus > 1:
        message = f"the server `{name}` runs once on each GPU, but asks for {keys.resources.gpus} GPUs"
        yield draft.at_key(("servers", name), message, "`gpus: 1`, or `per: host`")
    settings = (combo.settings for combo in draft.combos)
    asking = [one for one in settings if one.gpus and f"server.{name}." in one.command]
    known = keys.resources.gpu_memory and all(one.resources.gpu_memory for one in asking)
    if asking and not known and draft.file.limits.per_gpu is None:
        message = f"the server `{name}` shares its GPU with its clients, so all of them must say what memory they take"
        hint = "`resources: {gpu_memory: ...}` of the server and of the sessions"
        yield draft.at_key(("servers", name), message, hint)


def _texts(draft: Draft) -> Iterator[tuple[Path, str]]:
    """Values other than commands that may name a server."""
    for axis in AXIS_OF.values():
        for entry in getattr(draft.file, axis):
            yield from (((axis, entry.name, name), text) for name, text in entry.attributes.items())
    for path, layer in draft.layers:
        yield from (((*path, "variables", name), text) for name, text in layer.variables.items())
