"""Presets: keys for an evaluation program, as a layer below a grid file or below one of its servers; and starter grids.

The grid's keys win. Every value knows its file."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from types import MappingProxyType

from comborun.errors import GridError, Problem, UserError
from comborun.grid.draft import Draft, read_draft, read_keys
from comborun.grid.keys.axes import AxisEntry
from comborun.grid.keys.grid_file import AboutKeys, GridFile, PresetOwnKeys, SettingKeys
from comborun.grid.keys.resources import ServerKeys
from comborun.grid.yaml_tree import Map, Scalar, ScalarKind, Tree, YamlSource, read_source, text_of
from comborun.text import did_you_mean

SHIPPED = Path(__file__).parents[1] / "presets"
SUFFIX = ".yaml"
ABOUT = "about"
OWN_NAME = "{name}"
"""default of an attribute: the name of the policy or environment"""
KEYS = (*SettingKeys.model_fields, "retry", "poll")
"""keys that a preset may set: facts about a program on any host"""
_WHOLE = frozenset({"placement", "progress", "display"})
"""maps that the grid's own replace; all others are merged key by key"""
_WHOLE_OF_SERVERS = frozenset({"ready", "warm_up", "health"})


@dataclass(frozen=True)
class Preset:
    name: str
    file: str
    text: str
    about: AboutKeys
    source: YamlSource

    @property
    def digest(self) -> str:
        return hashlib.sha256(self.text.encode("utf-8", "surrogatepass")).hexdigest()

    @property
    def keys(self) -> Map:
        return _with_keys(self.source.root, self.source.root.keys() - {ABOUT})

    @property
    def settings_text(self) -> str:
        """Its keys of a grid as written, with comments."""
        lines = self.text.splitlines()
        starts = sorted(written.place.line for written in self.source.root.written.values())
        about = self.source.key_place(ABOUT).line
        after = next((line for line in starts if line > about), len(lines) + 1)
        kept = [
            text
            for number, text in enumerate(lines, 1)
            if number >= min(starts, default=len(lines) + 1) and not about <= number < after
        ]
        return "\n".join(kept).strip("\n") + "\n" if kept else ""


def own_folder(environment: Mapping[str, str] = os.environ) -> Path:
    """The folder of the user's own presets; they come before shipped ones of the same name."""
    config = environment.get("XDG_CONFIG_HOME", "")
    return (Path(config) if config.startswith("/") else Path.home() / ".config") / "comborun" / "presets"


def known_presets() -> Mapping[str, Path]:
    found = {path.stem: path for folder in (SHIPPED, own_folder()) for path in folder.glob(f"*{SUFFIX}")}
    return dict(sorted(found.items()))


def find_preset(wanted: str, beside: Path = Path()) -> Preset:
    """The preset of that name, or the file at that path, relative to the folder `beside`. Raises UserError."""
    hint = "in a grid, the path of a preset is relative to the grid's folder"
    if "/" in wanted or wanted.endswith((SUFFIX, ".yml")):
        path = beside / Path(wanted).expanduser()
        return read_preset(path.stem, str(path), text_of(path, hint))
    known = known_presets()
    if wanted not in known:
        hint = did_you_mean(wanted, known) or "`combo presets` lists them; a file of yours is named by its path"
        raise UserError(f"there is no preset `{wanted}`", hint)
    path = known[wanted]
    shown = f"comborun/presets/{path.name}" if path.parent == SHIPPED else str(path)
    return read_preset(wanted, shown, text_of(path, hint))


def read_preset(name: str, file: str, text: str) -> Preset:
    """Check the preset's own keys. Its keys of a grid are checked together with that grid.

    Raises GridError with all mistakes.
    """
    source = read_source(text, file, layer=file)
    own = read_keys(PresetOwnKeys, replace(source, root=_with_keys(source.root, {ABOUT}), problems=()))
    about = own.file.about
    if about.kind == "server":
        foreign = [name for name in source.root if name != ABOUT and name not in ServerKeys.model_fields]
    else:  # unknown keys are reported where the preset is used
        foreign = [name for name in source.root if name in GridFile.model_fields and name not in KEYS]
    hint = "a preset holds only what is true of its program on every host"
    problems = [*source.problems, *own.problems]
    problems += [source.problem(source.key_place(name), f"`{name}` is not a key of a preset", hint) for name in foreign]
    problems += _lacking(source, about) if not own.problems else []
    if problems:
        raise GridError(tuple(problems))
    return Preset(name, file, text, about, source)


def _with_keys(root: Map, keys: Collection[str]) -> Map:
    return root.holding({name: value for name, value in root.items() if name in keys})


def _lacking(source: YamlSource, about: AboutKeys) -> list[Problem]:
    if not about.summary:
        return [source.problem(None, "a preset without `about: {summary: ...}`", "say in one line what it runs")]
    if about.kind != "server" and not about.starter.strip():
        hint = "a grid for `combo init --preset`, without its `name` and `preset`; docs/presets.md shows one"
        return [source.problem(None, "a preset without `about: {starter: ...}`", hint)]
    return []


def draft_with_presets(source: YamlSource, folder: Path) -> tuple[Draft, Preset | None]:
    """The keys of a grid, with those of its presets below them. Raises GridError if a preset can't be used."""
    source = _with_server_presets(source, folder)
    wanted = _wanted(source.root)
    if wanted is None:
        return read_draft(source), None
    preset = _preset_for(source, wanted, folder)
    root = _laid_over(source.root, preset.keys, _WHOLE)
    draft = read_draft(_with_layer(replace(source, root=root), preset))
    defaults = preset.about.defaults
    filled = {
        "policies": _filled(draft.file.policies, defaults.policy),
        "environments": _filled(draft.file.environments, defaults.environment),
    }
    return replace(draft, file=draft.file.model_copy(update=filled), about=preset.about), preset


def _with_server_presets(source: YamlSource, folder: Path) -> YamlSource:
    servers = source.root.get("servers")
    if not isinstance(servers, Map):
        return source
    entries: dict[str, Tree] = dict(servers)
    for name, entry in servers.items():
        if isinstance(entry, Map) and (wanted := _wanted(entry)):
            preset = _preset_for(source, wanted, folder, server=name)
            entries[name] = _laid_over(entry, preset.keys, _WHOLE_OF_SERVERS)
            source = _with_layer(source, preset)
    return replace(source, root=source.root.holding({**source.root, "servers": servers.holding(entries)}))


def _wanted(tree: Map) -> Scalar | None:
    """The value of `preset`, if it is a name or a path."""
    wanted = tree.get("preset")
    return wanted if isinstance(wanted, Scalar) and wanted.kind is ScalarKind.TEXT and wanted.text.strip() else None


def _preset_for(source: YamlSource, wanted: Scalar, folder: Path, server: str = "") -> Preset:
    try:
        preset = find_preset(wanted.text, folder)
    except GridError:
        raise
    except UserError as error:
        message, hint = error.message, error.hint
    else:
        name, is_server = preset.name, preset.about.kind == "server"
        if is_server == bool(server):
            return preset
        message = f"`{name}` is a model server, not an evaluation program"
        hint = f"`servers: {{NAME: {{preset: {name}}}}}`; `preset` at the top level is the program that asks it"
        if server:
            message, hint = f"`{name}` is not a model server", "name it in `preset` at the top level"
    path = f"servers.{server}.preset" if server else "preset"
    raise GridError((source.problem(wanted.place, f"`{path}`: {message}", hint),))


def _with_layer(source: YamlSource, preset: Preset) -> YamlSource:
    return replace(source, layers=MappingProxyType({**source.layers, preset.file: preset.text}))


def _laid_over(over: Map, under: Map, whole: Collection[str] | None = None) -> Map:
    """Both maps merged; `over` wins. Maps in them are merged too, except those in `whole`; None: no map is."""
    entries: dict[str, Tree] = dict(under)
    for name, value in over.items():
        below = under.get(name)
        deep = whole is not None and name not in whole and isinstance(value, Map) and isinstance(below, Map)
        entries[name] = _laid_over(value, below) if deep else value  # type: ignore[arg-type]
    laid = Map(over.place)
    laid.update(entries)
    laid.written = {name: (over if name in over.written else under).written[name] for name in entries}
    return laid


def _filled(entries: tuple[AxisEntry, ...], defaults: Mapping[str, str]) -> tuple[AxisEntry, ...]:
    """The entries with the preset's defaults for missing attributes."""
    found = []
    for entry in entries:
        filled = {key: entry.name if text == OWN_NAME else text for key, text in defaults.items()}
        found.append(entry.model_copy(update={"attributes": {**filled, **entry.attributes}}))
    return tuple(found)


# Starter grids


def starter_grid(name: str) -> str:
    """The text of a starter grid; it passes `combo check`."""
    text = Path(__file__).with_name("starter.yaml").read_text("utf-8")
    return text.replace("name: NAME", f"name: {quoted(name)}", 1)


def quoted(text: str, plain: str = "") -> str:
    """A YAML scalar for this text. Characters of `plain` need no quotes, like those of identifiers."""
    bare = "".join(character for character in text if character not in plain)
    needed = not (bare.isascii() and bare.isidentifier()) or text.lower() in {"null", "true", "false"}
    return json.dumps(text, ensure_ascii=False) if needed else text


_HEAD = """\
# {summary}
#   combo presets show {shown}   explains it: what it needs, and what must be known
#   combo check grid.yaml     finds every mistake
#   combo try grid.yaml       runs one episode of one combo, and shows which results count
#   combo run grid.yaml       launches, watches, reports
name: {grid}
preset: {wanted}

# host: h100                        # an ssh host; without it, sessions run on this machine
"""
_TAIL = """
# What the preset says. A key of yours takes its place; maps such as `variables`, `limits` and `results` are merged.
"""


def preset_starter(preset: Preset, wanted: str, name: str) -> str:
    """The text of a starter grid for a preset; it passes `combo check`. `wanted` is the preset as the user named it."""
    shown = shlex.quote(wanted)
    if preset.about.kind == "server":
        raise UserError(
            f"`{preset.name}` is a model server, not an evaluation program",
            f"`combo presets show {shown}` says how to start it",
        )
    head = _HEAD.format(
        summary=preset.about.summary, shown=shown, grid=quoted(name), wanted=quoted(wanted, plain="-./~")
    )
    return (
        head
        + preset.about.starter.rstrip("\n")
        + "\n"
        + _TAIL
        + "".join(f"# {line}\n" if line else "#\n" for line in preset.settings_text.splitlines())
    )
