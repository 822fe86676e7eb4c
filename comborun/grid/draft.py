"""A file's tree as typed keys, with every mistake at its place.

Mistakes are cut out of the tree, so that the rest is still checked and one run finds every mistake."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any, Generic, TypeVar, get_args

from pydantic import ValidationError

from comborun.errors import GridError, Problem, UserError
from comborun.grid.combos import Combo, combos_of, names_of
from comborun.grid.keys.axes import AXES
from comborun.grid.keys.grid_file import AboutKeys, GridFile, SettingKeys
from comborun.grid.keys.limits_retry import LimitKeys
from comborun.grid.keys.shapes import Keys
from comborun.grid.keys.values import MISTAKE, no_value
from comborun.grid.yaml_tree import Items, Map, Place, Scalar, ScalarKind, Tree, YamlSource, plain_kind
from comborun.text import close_to, did_you_mean, first_of

if TYPE_CHECKING:
    from pydantic_core import ErrorDetails


K = TypeVar("K", bound=Keys)

Met = Callable[[SettingKeys], object]
"""whether settings meet a condition"""
Path = tuple[str | int, ...]
"""the path to a place in the file: keys, and numbers of entries from 0"""
MOST = 200
ROUNDS = 10
"""rounds of cutting out; the second one finds only mistakes that another one hid"""
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
    "episode": "episodes",
    "repeats": "seeds",
    "match": "when",
    "if": "when",
}
_SHOWN = 4
"""names of which a message has a list"""


@dataclass(frozen=True)
class Read(Generic[K]):
    source: YamlSource
    """the file without its mistakes"""
    file: K
    broken: frozenset[str]
    """top-level keys with mistakes: their absence proves nothing"""
    problems: tuple[Problem, ...]

    def at_key(self, path: Path, message: str, hint: str = "") -> Problem:
        """A problem with the key at the end of `path`; with an empty path, with the file as a whole."""
        return self.source.problem(self.source.key_place(*path) if path else None, message, hint)

    def at_value(self, path: Path, message: str, hint: str = "", piece: str = "") -> Problem:
        """A problem with the value at `path`, or with `piece` in it."""
        tree = self.source.at(*path)
        if isinstance(tree, Scalar) and piece != tree.text:
            return self.source.problem(self.source.locate(tree, piece), message, hint)
        return self.source.problem(tree.place, message, hint)

    def checked(self, path: Path, label: str, check: Callable[..., object], *arguments: object) -> Iterator[Problem]:
        """Turns an error of `check` into a problem with the value at `path`, at the offending piece."""
        try:
            check(*arguments)
        except UserError as error:
            yield self.at_value(path, f"{label}: {error.message}", error.hint, getattr(error, "text", ""))


@dataclass(frozen=True)
class Draft(Read[GridFile]):
    about: AboutKeys | None = None
    """facts of its preset about the program"""

    @cached_property
    def combos(self) -> tuple[Combo, ...]:
        return combos_of(self.file)

    @cached_property
    def names(self) -> dict[str, list[str]]:
        """Of the policies and of the environments."""
        return names_of(self.file)

    @cached_property
    def layers(self) -> tuple[tuple[Path, SettingKeys], ...]:
        """The file itself and its overrides, each with its path; later ones win."""
        return ((), self.file), *((("overrides", index), entry) for index, entry in enumerate(self.file.overrides))

    def where(self, met: Met) -> list[Combo]:
        return [combo for combo in self.combos if met(combo.settings)]

    def wrong(self, met: Met, path: Path, message: str, hint: str = "") -> Iterator[Problem]:
        """One problem with all combos with such settings."""
        yield from self.for_combos(self.where(met), path, message, hint)

    def for_combos(self, combos: Iterable[Combo], path: Path, message: str, hint: str = "") -> Iterator[Problem]:
        """One problem with all of `combos`; their labels replace {} in the message. None without a combo."""
        if labels := [combo.label for combo in combos]:
            yield self.at_key(path, message.replace("{}", some(labels)), hint)

    def set_at(self, *keys: str, combo: Combo | None = None) -> Path:
        """The place where a key of the settings is first set; with a combo, the place that counts for it."""
        layers = self.layers
        if combo:
            layers = (*(layers[index + 1] for index in reversed(combo.overrides)), layers[0])
        for path, layer in layers:
            keys_of_layer: Any = layer if len(keys) == 1 else getattr(layer, keys[0])
            if keys_of_layer is not None and keys[-1] in keys_of_layer.model_fields_set:
                return (*path, *keys)
        return ()


def some(names: Iterable[str]) -> str:
    return first_of((f"`{name}`" for name in names), _SHOWN)


def read_draft(source: YamlSource) -> Draft:
    return Draft(**vars(read_keys(GridFile, source)))


def read_keys(model: type[K], source: YamlSource) -> Read[K]:
    problems: list[Problem] = list(source.problems)
    broken: set[str] = set()
    for _ in range(ROUNDS):
        try:
            keys = model.model_validate(source.root)
        except ValidationError as error:
            found = [(detail, _path(source, detail["loc"])) for detail in error.errors(include_url=False)]
            problems += [_problem(model, source, detail, path) for detail, path in found[:MOST]]
            if more := len(found[MOST:]):
                problems.append(replace(source.problem(None, "more mistakes"), count=more))
            broken.update(_suspect(model, detail, path) for detail, path in found[:MOST])
            source = replace(source, root=_cut(source.root, {path for _, path in found}))
        else:
            return Read(source, keys, frozenset(broken), tuple(problems))
    raise AssertionError(f"{ROUNDS} rounds did not mend {source.file}")


def _path(source: YamlSource, loc: Path) -> Path:
    """The part of pydantic's `loc` that exists in the file."""
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
        elif step == 0 and isinstance(tree, Map):
            continue  # one, where a list may stand
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


def _suspect(model: type[Keys], detail: ErrorDetails, path: Path) -> str:
    """The top-level key with the mistake, or the key that was meant."""
    key = str(path[0])
    unknown = detail["type"] == "extra_forbidden" and len(path) == 1 and not _home(key)
    return _meant(key, keys_of(model)) or key if unknown else key


def _problem(model: type[Keys], source: YamlSource, detail: ErrorDetails, path: Path) -> Problem:
    words = tuple(step for step in path if isinstance(step, str))
    last = detail["loc"][-1]
    unknown = detail["type"] == "extra_forbidden"
    at_key = unknown or last == "[key]" or (last == "name" and words[0] in AXES)
    place = source.key_place(*path) if at_key else source.at(*path).place
    message = _unknown(model, words) if unknown else _refused(source.at(*path), detail, words)
    return source.problem(place, *message)


def _refused(tree: Tree, detail: ErrorDetails, words: tuple[str, ...]) -> tuple[str, str]:
    key = ".".join(words)
    given = tree.place.file.startswith(OPTION)
    if isinstance(tree, Map) and words[0] in AXES and len(words) == 1:
        return f"`{key}`: expected a name, found a map", f"with attributes: `{key}: {{NAME: {{KEY: value}}}}`"
    if detail["type"] == MISTAKE:
        context = detail.get("ctx", {})
        return f"`{key}`: {context['message']}", str(context["hint"])
    if isinstance(tree, Scalar) and tree.kind is ScalarKind.NULL:
        return f"`{key}`: {no_value(tree).message}", no_value(tree).hint
    if detail["type"] == "tuple_type":
        hint = f"write [{tree.text}]" if isinstance(tree, Scalar) else "its entries begin with `- `"
        return f"`{key}`: expected a list", IN_FILE if given else hint
    hint = IN_FILE if given else f"`key: value` lines, indented, or {{key: value}}; combo docs {words[0]} has the keys"
    what = f"each entry of `{key}` must be a map" if isinstance(detail["loc"][-1], int) else f"`{key}`: expected a map"
    return what, hint


def _unknown(model: type[Keys], words: tuple[str, ...]) -> tuple[str, str]:
    """Message and hint for a key that does not exist at this place."""
    key, section = words[-1], words[:-1]
    axis = close_to(key, ("policy", "environment")) if section == ("overrides",) and key not in _OTHER_WORDS else ""
    if axis:
        return f"there is no key `{key}` in `overrides`", f"`when: {{{axis}: ...}}` says for which combos an entry is"
    everywhere = f"`{key}` applies to the whole grid, not to some of its combos"
    if section == ("overrides",) and key in GridFile.model_fields:
        return everywhere, f"move `{key}` to the top level"
    if section == ("overrides", "limits") and key in LimitKeys.model_fields:
        return everywhere, "move it to `limits` at the top level"
    message = f"there is no key `{key}`" + (f" in `{'.'.join(section)}`" if section else "")
    if section in {(), ("overrides",)} and key not in _OTHER_WORDS and (home := _home(key)):
        return message, f"it belongs in `{home}`: `{home}: {{{key}: ...}}`"
    known = keys_of(section_of(model, section))
    if meant := _meant(key, known):
        return message, f"did you mean `{meant}`?"
    return message, did_you_mean(key, known) or f"`combo docs {section[0] if section else 'grid'}` has its keys"


def _home(key: str) -> str:
    """The top-level map with such a key."""
    homes = ("limits", "resources", "results", "evidence")
    return next((home for home in homes if key in keys_of(section_of(GridFile, (home,)))), "")


def _meant(key: str, known: tuple[str, ...]) -> str:
    other = _OTHER_WORDS.get(key.casefold(), "")
    return other if other in known else close_to(key, known)


def keys_of(section: type[Keys]) -> tuple[str, ...]:
    return tuple(field.alias or name for name, field in section.model_fields.items())


def section_of(model: type[Keys], words: Sequence[str]) -> type[Keys]:
    """The map at the end of `words`. The user's own names, such as a server's, are skipped."""
    for word in words:
        named = [field for name, field in model.model_fields.items() if (field.alias or name) == word]
        model = next((found for field in named if (found := _map_in(field.annotation))), model)
    return model


def _map_in(annotation: object) -> type[Keys] | None:
    """The map in an annotation, inside lists, alternatives and maps with the user's own names."""
    if isinstance(annotation, type) and issubclass(annotation, Keys):
        return annotation
    return next((found for part in get_args(annotation) if (found := _map_in(part))), None)


# Single values from the command line, `--set limits.parallel=4`
OPTION = "--set"
IN_FILE = "--set takes single values, such as limits.parallel=4; change this in the grid file"
_LISTS = ("policies", "environments", "include", "exclude", "overrides", "sync")


def with_single_values(source: YamlSource, settings: Iterable[str]) -> YamlSource:
    """The grid with each `KEY=VALUE`. Raises GridError for anything else.

    A value is read as it is: it needs only the quotes of the shell.
    """
    root = source.root
    for setting in settings:
        key, equals, text = setting.partition("=")
        words = key.strip().split(".")
        place = Place(0, 0, f"{OPTION} {key.strip()}")
        if not equals or not all(words):
            raise GridError((source.problem(place, "expected a key and a value", "such as limits.parallel=4"),))
        if problem := _not_single(root, words, text):
            raise GridError((source.problem(place, problem, IN_FILE),))
        root = _with_value(root, words, _scalar(text, place))
    return replace(source, root=root)


def _scalar(text: str, place: Place) -> Scalar:
    if len(text) > 1 and text[0] == text[-1] and text[0] in "\"'":
        return Scalar(text[1:-1], place, ScalarKind.TEXT, quoted=True)
    return Scalar(text, place, plain_kind(text))


def _not_single(root: Map, words: list[str], text: str) -> str:
    """Why this can't be a single value of the grid; empty if it can."""
    if words[0] in _LISTS or text.startswith("["):
        return f"`{words[0]}` has more than a single value" if words[0] in _LISTS else "a list is not a single value"
    tree: Tree = root
    for place, word in enumerate(words):
        if not isinstance(tree, Map):
            return f"`{'.'.join(words[:place])}` is not a map in this grid"
        if word not in tree:
            return ""
        tree = tree[word]
    return "" if isinstance(tree, Scalar) else f"`{'.'.join(words)}` has more than a single value"


def _with_value(tree: Map, words: list[str], value: Scalar) -> Map:
    """A copy of `tree` with `value` at the end of `words`. Adds missing maps."""
    word, *rest = words
    below = tree.get(word)
    laid = tree.holding(tree)
    laid[word] = _with_value(below if isinstance(below, Map) else Map(value.place), rest, value) if rest else value
    if rest and word in laid.written:
        return laid
    laid.written[word] = Scalar(word, value.place)
    return laid
