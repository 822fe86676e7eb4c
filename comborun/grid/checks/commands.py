"""Checks on the commands of a grid: placeholders that nothing fills, and text that will not do what it seems to."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from comborun.command import (
    FILE,
    PLAN_TIME,
    START_TIME,
    CommandError,
    check_alone,
    check_argument,
    placeholders,
    split_command,
)
from comborun.errors import Problem
from comborun.grid.combos import Combo, matching
from comborun.grid.draft import Draft, Path
from comborun.grid.keys.furnish import UNCAPPED
from comborun.grid.settings import Settings
from comborun.servers import FIELDS
from comborun.text import did_you_mean, listed

AFTER_KNOWS = ("results_dir", "run")
OWNERS = {"policy": "policies", "environment": "environments"}
_SHOWN = 4


@dataclass(frozen=True)
class _Need:
    key: str
    met: Callable[[Settings], bool]
    hint: str


_GPUS = _Need("resources", lambda it: bool(it.gpus or it.placement), "ask for one: `resources: {gpus: 1}`")
_RANKS = _Need("launcher", lambda settings: settings.launcher is not None, "`launcher: torchrun` starts several")
_EPISODES = _Need("episodes", lambda settings: settings.episodes is not None, "such as `episodes: 100`")
_NEEDS = {
    "seed": _Need("seed", lambda settings: settings.seed is not None, "such as `seed: 1000`"),
    "gpu": _GPUS,
    "gpus": _GPUS,
    "egl_device": _GPUS,
    "display": _Need("display", lambda settings: settings.display is not None, "such as `display: xvfb`"),
    "threads": _Need("threads", lambda settings: settings.threads != UNCAPPED, "leave `threads: none` out"),
    "episodes": _EPISODES,
    "last_episode": _EPISODES,
    "end_episode": _EPISODES,
    "episodes_per_rank": _RANKS,
}
"""placeholders that nothing fills unless the grid says so"""


@dataclass(frozen=True)
class Use:
    """One text of the file that is a command, with the combos that run it."""

    path: Path
    text: str
    combos: tuple[Combo, ...]


def uses(draft: Draft, combos: tuple[Combo, ...]) -> tuple[Use, ...]:
    """Every `command` of the file, whether some combo runs it or not."""
    texts: dict[Path, str] = {}
    if draft.file.command is not None:
        texts["command",] = draft.file.command
    for index, entry in enumerate(draft.file.overrides):
        if entry.command is not None:
            texts["overrides", index, "command"] = entry.command
    runs: dict[Path, list[Combo]] = {path: [] for path in texts}
    for combo in combos:
        if (path := _origin(draft, combo)) in runs:
            runs[path].append(combo)
    return tuple(Use(path, text, tuple(runs[path])) for path, text in texts.items())


def _origin(draft: Draft, combo: Combo) -> Path:
    """Where the command of a combo stands: in the last override that matches and has one, or else at the top."""
    for index in reversed(matching(draft.file, combo.policy, combo.environment)):
        if draft.file.overrides[index].command is not None:
            return ("overrides", index, "command")
    return ("command",)


def command_problems(draft: Draft, combos: tuple[Combo, ...]) -> Iterator[Problem]:
    """What keeps commands from being run, and combos that have none."""
    all_uses = uses(draft, combos)
    for use in all_uses:
        yield from _problems(draft, use)
    if draft.file.after is not None:
        yield from _after_problems(draft, draft.file.after)
    runs = {id(combo) for use in all_uses for combo in use.combos}
    without = [combo for combo in combos if id(combo) not in runs]
    if draft.broken & {"command", "overrides"} or (all_uses and not without):
        return
    message = f"no `command` for {some(combo.label for combo in without)}" if all_uses else "`command` is missing"
    hint = "the program and its arguments, such as `command: python evaluate.py --policy {policy}`"
    yield draft.source.problem(None, message, hint)


def _problems(draft: Draft, use: Use) -> Iterator[Problem]:
    try:
        split_command(use.text)
    except CommandError as error:
        yield _at(draft, use.path, error, use.text)
    else:
        yield from _placed_problems(draft, use)
    for name in dict.fromkeys(placeholders(use.text)):
        try:
            check_filled(draft, use, name)
        except CommandError as error:
            yield _at(draft, use.path, error, use.text)


def _placed_problems(draft: Draft, use: Use) -> Iterator[Problem]:
    """Placeholders that stand where they can't: see SEVERAL."""
    for argument in split_command(use.text):
        try:
            check_alone(argument)
        except CommandError as error:
            yield _at(draft, use.path, error, use.text)


def check_filled(draft: Draft, use: Use, name: str) -> None:
    """Raise CommandError when `name` is no placeholder, or when nothing fills it for a combo that runs this command."""
    kind, _, attribute = name.partition(".")
    if attribute and kind in OWNERS:
        problem = _attribute_problem(draft, use, kind, attribute)
    elif kind == "server" and attribute:
        problem = _server_problem(draft, attribute)
    elif name.startswith(FILE):
        problem = _file_problem(draft, use, name.removeprefix(FILE))
    else:
        check_argument(f"{{{name}}}", (*PLAN_TIME, *START_TIME))
        problem = _need_problem(draft, use, name)
    if problem:
        raise CommandError(f"{{{name}}} {problem[0]}", problem[1], f"{{{name}}}")


def _server_problem(draft: Draft, asked: str) -> tuple[str, str] | None:
    name, _, field = asked.rpartition(".")
    known = [*draft.file.servers]
    if "servers" in draft.broken or (name in known and field in FIELDS):
        return None
    if name in known or not name:
        return "is nothing that a server has", f"{{server.{name or 'NAME'}.url}}, .host or .port"
    hint = did_you_mean(name, known) or "`servers: {NAME: {...}}`"
    return f"names no server of `servers`: there is no `{name}`", hint


def _file_problem(draft: Draft, use: Use, name: str) -> tuple[str, str] | None:
    if draft.broken & {"files", "overrides"}:
        return None
    lacking = [combo.label for combo in use.combos if name not in combo.settings.files]
    if not lacking:
        return None
    known = sorted({file for combo in use.combos for file in combo.settings.files})
    return f"is a file that `files` does not write for {some(lacking)}", did_you_mean(
        name, known
    ) or f"`files: {{{name}: ...}}`"


def _attribute_problem(draft: Draft, use: Use, kind: str, attribute: str) -> tuple[str, str] | None:
    entries = getattr(draft.file, OWNERS[kind])
    known = sorted({name for entry in entries for name in entry.attributes})
    if OWNERS[kind] in draft.broken:
        return None
    if attribute not in known:
        example = f"{OWNERS[kind]}: {{{entries[0].name if entries else 'NAME'}: {{{attribute}: ...}}}}"
        return f"stands for an attribute that no {kind} has", did_you_mean(attribute, known) or f"`{example}`"
    axes = {getattr(combo, kind).name: getattr(combo, kind) for combo in use.combos}
    lacking = [axis.name for axis in axes.values() if attribute not in axis.attributes]
    hint = f"give each an attribute `{attribute}`, or a command of its own with `overrides`"
    return (f"is not there for {kind} {some(lacking)}", hint) if lacking else None


def _need_problem(draft: Draft, use: Use, name: str) -> tuple[str, str] | None:
    needs = _NEEDS.get(name)
    if not needs or draft.broken & {"overrides", needs.key}:
        return None
    lacking = [combo.label for combo in use.combos if not needs.met(combo.settings)]
    where = "" if len(lacking) == len(use.combos) else f" for {some(lacking)}"
    return (f"has nothing to stand for: no `{needs.key}`{where}", needs.hint) if lacking else None


def _after_problems(draft: Draft, text: str) -> Iterator[Problem]:
    try:
        split_command(text)
    except CommandError as error:
        yield _at(draft, ("after",), error, text)
    for name in dict.fromkeys(placeholders(text)):
        try:
            check_argument(f"{{{name}}}", AFTER_KNOWS)
        except CommandError as error:
            if name.partition(".")[0] in {*PLAN_TIME, *START_TIME}:
                message = f"{{{name}}} belongs to one session, and `after` runs when all have ended"
                error = CommandError(
                    message, f"`after` knows {listed(f'{{{known}}}' for known in AFTER_KNOWS)}", error.text
                )
            yield _at(draft, ("after",), error, text)


def _at(draft: Draft, path: Path, error: CommandError, text: str) -> Problem:
    """The problem, where the offending piece stands if it can be found."""
    piece = "" if error.text == text else error.text
    return draft.at_piece(path, piece, f"`{path[-1]}`: {error.message}", error.hint)


def some(names: Iterable[str]) -> str:
    """A few names in words, and how many more there are."""
    names = list(names)
    shown = ", ".join(f"`{name}`" for name in names[:_SHOWN])
    return shown if len(names) <= _SHOWN else f"{shown} and {len(names) - _SHOWN} more"
