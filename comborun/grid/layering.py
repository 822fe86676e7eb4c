"""A preset as a layer below a grid file: the grid's keys win, and every value knows in which file it stands."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType

from comborun.errors import GridError, Problem, UserError
from comborun.grid.about import AboutKeys, PresetOwnKeys
from comborun.grid.draft import Draft
from comborun.grid.keys.axis import AxisEntry
from comborun.grid.keys.server import SERVER_KEYS
from comborun.grid.mistakes import read_keys
from comborun.grid.model import GridFile, SettingKeys
from comborun.grid.yaml_source import read_source
from comborun.grid.yaml_tree import Kind, Map, Scalar, Source, Tree
from comborun.preset import PresetText

ABOUT = "about"
KEYS = (*SettingKeys.model_fields, "limits", "retry", "poll")
"""of a grid that a preset may set: what is true of a program wherever it runs"""
_MERGED = frozenset(
    {"variables", "files", "workdir", "launcher", "container", "resources", "components", "results", "evidence"}
    | {"failures", "limits", "retry"}
)
"""maps that are merged key by key, as in an override"""


@dataclass(frozen=True)
class Preset:
    name: str
    file: str
    digest: str
    """of its text"""
    about: AboutKeys
    source: Source
    """its keys of a grid"""
    about_lines: range
    """of the file, where `about` stands"""


def read_preset(found: PresetText) -> Preset:
    """Check what a preset says of its program. Its keys of a grid are checked with the grid that they are laid below.

    Raises GridError with all mistakes.
    """
    source = read_source(found.text, found.file, layer=found.file)
    own = replace(source, root=_with_keys(source.root, {ABOUT}), problems=())
    keyed = read_keys(PresetOwnKeys, own)
    foreign = _foreign(source.root, server=keyed.keys.about.kind == "server")
    hint = "a preset holds what is true of its program wherever it runs: leave the rest to grids"
    problems = [*source.problems, *keyed.problems]
    problems += [source.problem(source.key_place(key), f"`{key}` is no key of a preset", hint) for key in foreign]
    problems += _lacking(source, keyed.keys.about) if not keyed.problems else []
    if problems:
        raise GridError(tuple(problems))
    settings = replace(source, root=_with_keys(source.root, set(source.root) - {ABOUT}))
    return Preset(found.name, found.file, found.digest, keyed.keys.about, settings, _about_lines(source))


def _foreign(root: Map, *, server: bool) -> list[str]:
    """Keys that only grids have; those that are no keys at all are told where the preset is used."""
    if server:
        return [key for key in root if key != ABOUT and key not in SERVER_KEYS]
    return [key for key in root if key in GridFile.model_fields and key not in KEYS]


def _about_lines(source: Source) -> range:
    """From the key `about` to the line before the next key."""
    first = source.key_place(ABOUT).line
    later = (key.place.line for key in source.root.written.values() if key.place.line > first)
    return range(first, min(later, default=len(source.text.splitlines()) + 1))


def _with_keys(root: Map, keys: set[str]) -> Map:
    return root.holding({key: value for key, value in root.items() if key in keys})


def _lacking(source: Source, about: AboutKeys) -> list[Problem]:
    if not about.summary:
        return [source.problem(None, "a preset without `about: {summary: ...}`", "say in one line what it runs")]
    if about.kind != "server" and not about.starter.strip():
        hint = "a grid for `combo init --preset`, without its `name` and `preset`; docs/presets.md shows one"
        return [source.problem(None, "a preset without `about: {starter: ...}`", hint)]
    return []


def wanted_preset(source: Source) -> Scalar | None:
    """What the grid says under `preset`, where that is a name or a path."""
    tree = source.root.get("preset")
    return tree if isinstance(tree, Scalar) and tree.kind is Kind.TEXT and tree.text.strip() else None


def refused_preset(source: Source, wanted: Scalar, error: UserError) -> GridError:
    """A preset that can't be used, told where the grid names it."""
    if isinstance(error, GridError):
        return error
    return GridError((source.problem(wanted.place, f"`preset`: {error.message}", error.hint),))


def check_kind(preset: Preset) -> None:
    """Raise UserError where a preset is of a program that evaluates nothing."""
    if preset.about.kind == "server":
        raise UserError(
            f"`{preset.name}` is a model server, which evaluates nothing",
            f"`servers: {{NAME: {{preset: {preset.name}}}}}`, and `preset` names the program that asks it",
        )


def laid_below(source: Source, preset: Preset, text: str) -> Source:
    """The grid with the preset's keys where it has none of its own; `text` is the preset's."""
    layers = MappingProxyType({**source.layers, preset.file: text})
    return replace(source, root=merge(source.root, preset.source.root, _MERGED), layers=layers)


def merge(over: Map, under: Map, deeper: frozenset[str] = frozenset()) -> Map:
    """One map of both, in which `over` wins; maps under the keys `deeper` are merged likewise."""
    entries: dict[str, Tree] = dict(under)
    for key, value in over.items():
        below = under.get(key)
        deep = key in deeper
        entries[key] = merge(value, below) if deep and isinstance(value, Map) and isinstance(below, Map) else value
    merged = Map(over.place)
    merged.update(entries)
    merged.written = {key: (over if key in over.written else under).written[key] for key in entries}
    return merged


def with_defaults(draft: Draft, about: AboutKeys) -> Draft:
    """The draft with the attributes that the preset gives to every policy and environment that lacks them."""
    file = draft.file.model_copy(
        update={
            "policies": _filled(draft.file.policies, about.defaults.policy),
            "environments": _filled(draft.file.environments, about.defaults.environment),
        }
    )
    return replace(draft, file=file, about=about)


def _filled(entries: tuple[AxisEntry, ...], defaults: Mapping[str, str]) -> tuple[AxisEntry, ...]:
    return tuple(entry.model_copy(update={"attributes": {**defaults, **entry.attributes}}) for entry in entries)
