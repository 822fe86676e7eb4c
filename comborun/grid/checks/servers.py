"""Checks model servers and their use in commands, variables and attributes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from comborun.errors import Problem
from comborun.grid.checks.commands import check_server
from comborun.grid.keys.axes import AXIS_OF
from comborun.model.command import START_TIME, CommandError, check_argument, placeholders, split_command
from comborun.rules.names import server_variable

if TYPE_CHECKING:
    from comborun.grid.draft import Draft, Path
    from comborun.grid.keys.servers import ServerKeys

_ASKING = re.compile(r"\{(server\.[A-Za-z0-9_.-]+)\}")
_KNOWN = ("port", "gpu", "gpus", "gpu_count", "output_dir", "attempt", "run")
"""start-time placeholders that a server's command may contain"""


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
        mark = server_variable(name)
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
