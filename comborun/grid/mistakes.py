"""From a file's tree to its typed keys: every mistake at its place, and what is left when the mistakes are taken out.

Whatever is wrong is cut out of the tree, so that the rest can be checked all the same and one run names everything.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from pydantic import ValidationError

from comborun.grid.draft import Draft, Path
from comborun.grid.keys.shapes import Keys
from comborun.grid.keys.survival import LimitKeys
from comborun.grid.keys.values import MISTAKE, no_value
from comborun.grid.model import ANY, AXES, SECTIONS, GridFile, keys_of
from comborun.grid.yaml_tree import Items, Kind, Map, Scalar, Source, Tree
from comborun.text import close_to, did_you_mean

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails

    from comborun.errors import Problem

K = TypeVar("K", bound=Keys)

MOST = 200
"""mistakes that are told; a file with more of them is no grid"""
ROUNDS = 10
"""of cutting out; the second finds nothing unless a mistake hides another"""

_OTHER_WORDS = {
    "cmd": "command",
    "cwd": "workdir",
    "env": "variables",
    "env_vars": "variables",
    "envs": "environments",
    "tasks": "environments",
    "models": "policies",
    "checkpoints": "policies",
    "success_key": "success",
    "timeout": "max_time",
    "retries": "retry",
    "notifications": "notify",
}


_GONE = {
    "limits.give_way": "reserve what others need instead: `reserve: {gpu_memory: ...}`; no session is ended for them",
    "reserve.headroom": "a session that grows says the most it takes as its `gpu_memory`; 128 MiB always stay free",
}
"""keys that there were, and what to write instead"""


@dataclass(frozen=True)
class Keyed(Generic[K]):
    """The typed keys of a file as far as they are right; the rest as in a draft."""

    source: Source
    keys: K
    broken: frozenset[str]
    problems: tuple[Problem, ...]


def read_draft(source: Source) -> Draft:
    """Check the keys of a grid file and the type of every value."""
    keyed = read_keys(GridFile, source)
    return Draft(keyed.source, keyed.keys, keyed.broken, keyed.problems)


def read_keys(model: type[K], source: Source) -> Keyed[K]:
    """Check the keys of `source` and the type of every value."""
    problems: list[Problem] = list(source.problems)
    broken: set[str] = set()
    for _ in range(ROUNDS):
        try:
            keys = model.model_validate(source.root)
        except ValidationError as error:
            found = [(detail, _path(source, detail["loc"])) for detail in error.errors(include_url=False)]
            problems += [_problem(source, detail, path) for detail, path in found[:MOST]]
            problems += [source.problem(None, f"and {len(found) - MOST} more mistakes") for _ in found[MOST : MOST + 1]]
            broken.update(_suspect(detail, path) for detail, path in found[:MOST])
            source = replace(source, root=_cut(source.root, {path for _, path in found}))
        else:
            return Keyed(source, keys, frozenset(broken), tuple(problems))
    raise AssertionError(f"{ROUNDS} rounds did not mend {source.file}")


def _path(source: Source, loc: Path) -> Path:
    """The steps of pydantic's `loc` that the file has too."""
    if loc[0] in AXES and len(loc) > 1:
        axis = source.root[str(loc[0])]
        loc = (loc[0], list(axis)[int(loc[1])], *loc[3:]) if isinstance(axis, Map) else loc[:2]
    path: list[str | int] = []
    tree: Tree = source.root
    for step in loc:
        if isinstance(tree, Map) and step in tree:
            tree = tree[str(step)]
        elif isinstance(tree, Items) and isinstance(step, int):
            tree = tree[step]
        else:
            break
        path.append(step)
    return tuple(path)


def _cut(tree: Tree, paths: set[Path]) -> Any:
    if isinstance(tree, Scalar) or not paths:
        return tree
    entries: Iterable[tuple[str | int, Tree]] = tree.items() if isinstance(tree, Map) else enumerate(tree)
    kept = {
        step: _cut(value, {path[1:] for path in paths if path[0] == step})
        for step, value in entries
        if (step,) not in paths
    }
    return tree.holding(kept)


def _suspect(detail: ErrorDetails, path: Path) -> str:
    """The top-level key that has something wrong with it, or that was meant."""
    key = str(path[0])
    unknown = detail["type"] == "extra_forbidden" and len(path) == 1 and not _home(key)
    return _meant(key, ()) or key if unknown else key


def _problem(source: Source, detail: ErrorDetails, path: Path) -> Problem:
    words = tuple(step for step in path if isinstance(step, str))
    last = detail["loc"][-1]
    unknown = detail["type"] == "extra_forbidden"
    at_key = unknown or last == "[key]" or (last == "name" and words[0] in AXES)
    place = source.key_place(*path) if at_key else source.place(*path)
    if unknown:
        return source.problem(place, *_unknown(words))
    tree = source.at(*path)
    message, hint = _refused(tree, detail, words)
    return source.problem(place, message, hint)


def _refused(tree: Tree, detail: ErrorDetails, words: tuple[str, ...]) -> tuple[str, str]:
    key = ".".join(words)
    if isinstance(tree, Map) and words[0] in AXES and len(words) == 1:
        return f"`{key}`: a map where a name belongs", f"with attributes: `{key}: {{NAME: {{KEY: value}}}}`"
    if detail["type"] == MISTAKE:
        context = detail.get("ctx", {})
        return f"`{key}`: {context['message']}", str(context["hint"])
    if isinstance(tree, Scalar) and tree.kind is Kind.NULL:
        return f"`{key}`: {no_value(tree).message}", no_value(tree).hint
    if detail["type"] == "tuple_type":
        hint = f"write [{tree.text}]" if isinstance(tree, Scalar) else "its entries begin with `- `"
        return f"`{key}`: a list is wanted here", hint
    return f"`{key}`: a map is wanted here", "`key: value` lines, indented, or {key: value}"


def _unknown(words: tuple[str, ...]) -> tuple[str, str]:
    """Message and hint for a key that does not exist, or not here."""
    key, section = words[-1], words[:-1]
    if section == ("overrides",) and key in GridFile.model_fields:
        return f"`{key}` holds for the whole grid, not for some of its combos", f"move `{key}` to the top level"
    if section == ("overrides", "limits") and key in LimitKeys.model_fields:
        return f"`{key}` holds for the whole grid, not for some of its combos", "move it to `limits` at the top level"
    if hint := _GONE.get(".".join(words)):
        return f"there is no key `{key}` in `{section[0]}` any more", hint
    message = f"there is no key `{key}`" + (f" in `{'.'.join(section)}`" if section else "")
    if section in {(), ("overrides",)} and (home := _home(key)):
        return message, f"it belongs into `{home}`: `{home}: {{{key}: ...}}`"
    if meant := _meant(key, section):
        return message, f"did you mean `{meant}`?"
    return message, did_you_mean(key, _known(section))


def _home(key: str) -> str:
    """The map of the top level that has such a key."""
    return next((name for name in ("limits", "resources", "results", "evidence") if key in _known((name,))), "")


def _known(section: tuple[str, ...]) -> tuple[str, ...]:
    return keys_of(_keys(section))


def _keys(section: tuple[str, ...]) -> type[Keys]:
    if section[:1] == ("servers",) and len(section) > 1:
        section = ("servers", ANY, *section[2:])
    return SECTIONS[section if section in SECTIONS else (*section[:-1], ANY)]


def _meant(key: str, section: tuple[str, ...]) -> str:
    known = _known(section)
    other = _OTHER_WORDS.get(key.casefold(), "")
    return other if other in known else close_to(key, known)
