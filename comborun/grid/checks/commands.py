"""Checks the commands of a grid and of its servers: placeholders without a value, text that looks like shell code."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby

from comborun.errors import Problem
from comborun.grid.combos import Combo
from comborun.grid.draft import Draft, Met, Path, some
from comborun.grid.keys.axes import AXIS_OF
from comborun.grid.keys.resources import UNCAPPED, ServerKeys
from comborun.model.command import (
    BY_INDEX,
    BY_SEED,
    ENVIRONMENTS,
    FILE,
    PLAN_TIME,
    START_TIME,
    TELLS_HOW_MANY,
    CommandError,
    check_argument,
    check_words,
    placeholders,
    split_command,
)
from comborun.rules.names import SERVER_FIELDS, server_variable
from comborun.rules.results.fields import LINE
from comborun.text import did_you_mean, listed

_AFTER_KNOWS = ("results_dir", "run")
_OF_SESSIONS = {*PLAN_TIME, *START_TIME}
_SHELL = re.compile(r"\$(?:\w+|\{\w+[^}]*\}|\()")
_GPUS = ("resources", lambda it: it.gpus or it.placement, "ask for one: `resources: {gpus: 1}`")
_RANKS = ("launcher", lambda it: it.launcher, "`launcher: torchrun` starts several")
_EPISODES = ("episodes", lambda it: it.episodes is not None, "such as `episodes: 100`")
_NEEDS: dict[str, tuple[str, Met, str]] = {
    **dict.fromkeys(
        ("seed", "first_seed"), ("seed", lambda it: it.seeds or it.seed is not None, "such as `seed: 1000`")
    ),
    ENVIRONMENTS: ("together", lambda it: it.together, "`together: environments`: one process evaluates all of them"),
    "display": ("display", lambda it: it.display, "such as `display: xvfb`"),
    "threads": ("threads", lambda it: it.threads != UNCAPPED, "leave `threads: none` out"),
    "episodes_per_rank": _RANKS,
    **dict.fromkeys(("gpu", "gpus", "egl_device", "vulkan_device"), _GPUS),
    **dict.fromkeys(("episodes", "last_episode", "end_episode", "episode_list"), _EPISODES),
}
"""placeholders that need a key of the grid: the key, a test for it, and a hint"""


@dataclass(frozen=True)
class CommandUse:
    """A text with placeholders, and the combos for which it is filled."""

    path: Path
    text: str
    combos: tuple[Combo, ...]

    @property
    def key(self) -> str:
        return str(self.path[-1])


def uses(draft: Draft) -> Iterator[CommandUse]:
    """Every `command` and all `arguments` of the file, even if no combo uses them."""
    for key in ("command", "arguments"):
        texts = {(*path, key): getattr(layer, key) for path, layer in draft.layers if key in layer.model_fields_set}
        runs: dict[Path, list[Combo]] = {path: [] for path in texts}
        for combo in draft.combos:
            if (path := draft.set_at(key, combo=combo)) in runs:
                runs[path].append(combo)
        yield from (
            CommandUse(path, text, tuple(runs[path])) for path, text in texts.items() if text or key == "command"
        )


def command_problems(draft: Draft) -> Iterator[Problem]:
    all_uses = list(uses(draft))
    for use in all_uses:
        yield from draft.checked(use.path, f"`{use.key}`", check_words, use.text)
        for name in dict.fromkeys(placeholders(use.text)):
            yield from draft.checked(use.path, f"`{use.key}`", check_filled, draft, use, name)
    if (after := draft.file.after) is not None:
        yield from draft.checked(("after",), "`after`", split_command, after)
        for name in dict.fromkeys(placeholders(after)):
            yield from draft.checked(("after",), "`after`", _check_after, name)
    commands = [use for use in all_uses if use.key == "command"]
    runs = {id(combo) for use in commands for combo in use.combos}
    without = [combo for combo in draft.combos if id(combo) not in runs]
    if draft.broken & {"command", "overrides"} or (commands and not without):
        return
    message = f"no `command` for {some(combo.label for combo in without)}" if commands else "`command` is missing"
    hint = "the program and its arguments, such as `command: python evaluate.py --policy {policy}`"
    yield draft.at_key((), message, hint)


def check_filled(draft: Draft, use: CommandUse, name: str) -> None:
    """Raise CommandError if `name` is not a placeholder, or has no value for a combo with this command."""
    kind, _, attribute = name.partition(".")
    if attribute and kind in AXIS_OF:
        problem = _attribute_problem(draft, use, kind, attribute)
    elif attribute and kind == ENVIRONMENTS:
        problem = _attribute_problem(draft, use, "environment", attribute) or _need_problem(draft, use, kind)
    elif attribute and kind == "server":
        return check_server(draft, name)
    elif name.startswith(FILE):
        problem = _file_problem(draft, use, name.removeprefix(FILE))
    else:
        check_argument(f"{{{name}}}", (*PLAN_TIME, *START_TIME))
        problem = _need_problem(draft, use, name)
    if problem:
        raise CommandError(f"{{{name}}} {problem[0]}", problem[1], f"{{{name}}}")
    return None


def check_server(draft: Draft, placeholder: str) -> None:
    """Raise CommandError if a placeholder names an unknown server or an unknown part of one."""
    name, _, field = placeholder.removeprefix("server.").rpartition(".")
    known, text = [*draft.file.servers], f"{{{placeholder}}}"
    if "servers" in draft.broken or (name in known and field in SERVER_FIELDS):
        return
    if name in known or not name:
        raise CommandError(
            f"{text} is not a part of a server", f"{{server.{name or 'NAME'}.url}}, .host or .port", text
        )
    hint = did_you_mean(name, known) or "`servers: {NAME: {...}}`"
    raise CommandError(f"{text}: `servers` has no `{name}`", hint, text)


def _file_problem(draft: Draft, use: CommandUse, name: str) -> tuple[str, str] | None:
    lacking = [combo.label for combo in use.combos if name not in combo.settings.files]
    if draft.broken & {"files", "overrides"} or not lacking:
        return None
    known = sorted({file for combo in use.combos for file in combo.settings.files})
    hint = did_you_mean(name, known) or f"`files: {{{name}: ...}}`"
    return f"is a file that `files` does not write for {some(lacking)}", hint


def _attribute_problem(draft: Draft, use: CommandUse, kind: str, attribute: str) -> tuple[str, str] | None:
    axis = AXIS_OF[kind]
    entries = getattr(draft.file, axis)
    known = sorted({name for entry in entries for name in entry.attributes})
    if axis in draft.broken:
        return None
    if attribute not in known:
        example = f"{axis}: {{{entries[0].name if entries else 'NAME'}: {{{attribute}: ...}}}}"
        return f"stands for an attribute that no {kind} has", did_you_mean(attribute, known) or f"`{example}`"
    named = {one.name: one for one in (getattr(combo, kind) for combo in use.combos)}
    lacking = [name for name, one in named.items() if attribute not in one.attributes]
    hint = f"give each an attribute `{attribute}`, or a command of its own with `overrides`"
    return (f"has no value for {kind} {some(lacking)}", hint) if lacking else None


def _need_problem(draft: Draft, use: CommandUse, name: str) -> tuple[str, str] | None:
    key, met, hint = _NEEDS.get(name, ("", lambda _: True, ""))
    lacking = [combo.label for combo in use.combos if not met(combo.settings)]
    if draft.broken & {"overrides", key} or not lacking:
        return None
    where = "" if len(lacking) == len(use.combos) else f" for {some(lacking)}"
    return f"has no value: the grid sets no `{key}`{where}", hint


def _check_after(name: str) -> None:
    if name.partition(".")[0] in _OF_SESSIONS - {*_AFTER_KNOWS}:
        message = f"{{{name}}} belongs to one session, and `after` runs when all have ended"
        hint = f"`after` knows {listed(f'{{{known}}}' for known in _AFTER_KNOWS)}"
        raise CommandError(message, hint, f"{{{name}}}")
    check_argument(f"{{{name}}}", _AFTER_KNOWS)


def command_warnings(draft: Draft) -> Iterator[Problem]:
    for use in uses(draft):
        yield from _placeholder_warnings(draft, use) if use.key == "command" else ()
        if "-c" not in split_command(use.text) and (match := _SHELL.search(use.text)):
            message = f"`{use.key}`: {match.group()} is not expanded: no shell reads the command"
            hint = "only ~/ at the start of an argument is; for the rest use bash -c '...', or setup"
            yield draft.at_value(use.path, message, hint, match.group())


def _placeholder_warnings(draft: Draft, use: CommandUse) -> Iterator[Problem]:
    texts = (use.text, *(combo.settings.command_text for combo in use.combos))
    names = {name for text in texts for name in placeholders(text)}
    counted = [combo for combo in use.combos if combo.settings.unit == "episode" and combo.settings.episodes]
    if counted and not names & TELLS_HOW_MANY:
        message = "`command` has no {episodes}, so the program decides how many it runs"
        hint = f"pass the number, such as `--episodes {{episodes}}`: {counted[0].settings.episodes} are expected"
        yield draft.at_value(use.path, message, hint)
    for kind in AXIS_OF:
        if same := _indistinct(use, kind):
            hint = f"pass it to the program, such as `--{kind} {{{kind}}}`"
            yield draft.at_value(use.path, f"`command` does not use the {kind}: it is the same for {same}", hint)
    cut = [combo for combo in counted if combo.settings.block or combo.settings.shards]
    numbered = all(combo.settings.rules.episode.word == LINE for combo in cut)
    if cut and BY_SEED in names and not names & BY_INDEX and not numbered:
        message = "{first_seed} gives a session only its first seed, so its records count from 0"
        yield draft.at_value(
            use.path, message, "`results: {episode: line}` numbers them by their order", "{first_seed}"
        )
    if "output_dir" not in names and any(combo.settings.rules.files for combo in use.combos):
        message = "`command` has no {output_dir}, and records are looked for only there"
        hint = "let the program write there; or read what it prints: `results: {from: log}`; or `results: none`"
        yield draft.at_value(use.path, message, hint)


_TELLING = ("command", "setup", "files", "variables", "workdir", "container", "episodes")
"""keys whose values may tell a program its policy or environment"""


def _indistinct(use: CommandUse, kind: str) -> str:
    """Policies (or environments) that the program can't tell apart, in words; empty if it can."""
    alike: dict[str, dict[str, None]] = {}
    for _, same in groupby(use.combos, key=lambda combo: id(combo.settings)):
        combos = [*same]
        text = " ".join(str(getattr(combos[0].settings, key)) for key in _TELLING)
        if f"{{{kind}" not in text and "{session}" not in text:
            alike.setdefault(text, {}).update(dict.fromkeys(getattr(combo, kind).name for combo in combos))
    return next((some(names) for names in alike.values() if len(names) > 1), "")


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
