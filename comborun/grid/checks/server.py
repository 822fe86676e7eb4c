"""Checks on the model servers of a grid: what can't be started, and what asks one that is not there."""

from __future__ import annotations

import re
from collections.abc import Iterator

from comborun.command import START_TIME, CommandError, check_argument, placeholders, split_command
from comborun.errors import Problem
from comborun.grid.combos import AXIS_OF, Combo
from comborun.grid.draft import Draft, Path
from comborun.grid.keys.server import ServerKeys
from comborun.servers import ASKED, OF_SERVERS
from comborun.text import did_you_mean

_ASKING = re.compile(r"\{server\.([A-Za-z0-9_.-]+)\}")
_KNOWN = ("port", "gpu", "gpus", "gpu_count", "output_dir", "attempt", "run")
"""start-time placeholders that a server's command may hold"""


def server_problems(draft: Draft, combos: tuple[Combo, ...]) -> Iterator[Problem]:
    """What keeps servers from being started, and from being asked."""
    for name, keys in draft.file.servers.items():
        yield from _command_problems(draft, name, keys)
        yield from _gpu_problems(draft, name, keys, combos)
    for path, text in _texts(draft):
        for match in _ASKING.finditer(text):
            server = match[1].rpartition(".")[0]
            if ASKED.fullmatch(match.group()) and server in draft.file.servers:
                continue
            if "servers" not in draft.broken:
                hint = did_you_mean(server, [*draft.file.servers]) or "{server.NAME.url}, .host or .port"
                yield draft.at_piece(path, match.group(), f"{match.group()} names nothing of `servers`", hint)


def server_warnings(draft: Draft, combos: tuple[Combo, ...]) -> Iterator[Problem]:
    """Servers that nobody asks are never started."""
    told = [combo.settings.command + combo.settings.setup for combo in combos]
    told += [text for _, text in _texts(draft)]
    told += [text for combo in combos for text in combo.settings.variables.values()]
    for name in draft.file.servers:
        mark = f"{OF_SERVERS}{name.upper().replace('-', '_')}_"
        if not any(f"{{server.{name}." in text or mark in text for text in told):
            place = draft.source.key_place("servers", name)
            hint = f"`{{server.{name}.url}}` in a command, a variable or an attribute"
            yield draft.source.problem(place, f"no session asks the server `{name}`, so it is never started", hint)


def _command_problems(draft: Draft, name: str, keys: ServerKeys) -> Iterator[Problem]:
    path: Path = ("servers", name, "command")
    if keys.command is None:
        if "servers" not in draft.broken:
            hint = "such as `command: python serve.py --port {port}`, or `preset: vllm`"
            yield draft.source.problem(
                draft.source.key_place("servers", name), f"`servers.{name}` has no `command`", hint
            )
        return
    try:
        split_command(keys.command)
        _check_placeholders(keys.command, keys)
    except CommandError as error:
        yield draft.at_piece(path, error.text, f"`servers.{name}.command`: {error.message}", error.hint)
        return
    told = (keys.command, keys.setup, *keys.variables.values())
    if not any("{port}" in text or START_TIME["port"] in text for text in told):
        place = draft.source.place(*path)
        hint = "hand it over, such as `--port {port}`: it is chosen when the server starts"
        yield draft.source.problem(place, f"the server `{name}` is not told on which port to listen", hint)


def _check_placeholders(command: str, keys: ServerKeys) -> None:
    """Raise CommandError for one that nothing fills."""
    own = ("server", *(f"server.{key}" for key in keys.attributes))
    for name in placeholders(command):
        check_argument(f"{{{name}}}", (*_KNOWN, *own))
        if name in {"gpu", "gpus"} and not keys.resources.gpus and keys.per != "gpu":
            text = f"{{{name}}}"
            raise CommandError(f"{text} stands for nothing: it has no GPU", "`resources: {gpus: 1}`", text)


def _gpu_problems(draft: Draft, name: str, keys: ServerKeys, combos: tuple[Combo, ...]) -> Iterator[Problem]:
    if keys.per != "gpu":
        return
    place = draft.source.key_place("servers", name)
    if keys.resources.gpus > 1:
        message = f"the server `{name}` is one per GPU, and asks for {keys.resources.gpus}"
        yield draft.source.problem(place, message, "`gpus: 1`, or `per: host`")
    asking = [one.settings for one in combos if one.settings.gpus and f"server.{name}." in one.settings.command]
    told = keys.resources.gpu_memory and all(one.request.gpu_memory for one in asking)
    if asking and not told and draft.file.limits.per_gpu is None:
        message = (
            f"the server `{name}` shares its GPU with its clients, and who does not say how much it takes is alone"
        )
        yield draft.source.problem(place, message, "`resources: {gpu_memory: ...}` of the server and of the sessions")


def _texts(draft: Draft) -> Iterator[tuple[Path, str]]:
    """Values that may name a server, besides commands."""
    for axis in AXIS_OF.values():
        for entry in getattr(draft.file, axis):
            yield from (((axis, entry.name, key), text) for key, text in entry.attributes.items())
    yield from ((("variables", key), text) for key, text in draft.file.variables.items())
    for index, override in enumerate(draft.file.overrides):
        yield from ((("overrides", index, "variables", key), text) for key, text in override.variables.items())
