"""Grid: a grid file, parsed and checked; every mistake at once, with its place and what to write instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType

from comborun.errors import GridError, Problem, UserError
from comborun.grid.checks.around import around_problems
from comborun.grid.checks.cautions import warnings_of
from comborun.grid.checks.commands import command_problems
from comborun.grid.checks.furnish import furnish_problems
from comborun.grid.checks.launch import launch_problems
from comborun.grid.checks.memory import memory_problems
from comborun.grid.checks.placement import placement_problems
from comborun.grid.checks.progress import progress_problems
from comborun.grid.checks.server import server_problems
from comborun.grid.checks.shard import shard_problems
from comborun.grid.checks.stopping import stopping_problems
from comborun.grid.checks.survival import survival_problems
from comborun.grid.combos import (
    Combo,
    axis_problems,
    combos_of,
    match_problems,
    session_problems,
)
from comborun.grid.draft import Draft
from comborun.grid.globbed import Found, glob_of, with_policies
from comborun.grid.keys.server import ServerKeys
from comborun.grid.keys.slurm import slurm_settings
from comborun.grid.layering import (
    Preset,
    check_kind,
    laid_below,
    read_preset,
    refused_preset,
    wanted_preset,
    with_defaults,
)
from comborun.grid.layers import reserve, retries, settings_of
from comborun.grid.mistakes import read_draft
from comborun.grid.model import GridFile
from comborun.grid.server_presets import with_server_presets
from comborun.grid.settings import GridLimits, Notifying, Settings, Shipped, stop_request
from comborun.grid.yaml_source import MAX_CHARACTERS, read_source
from comborun.grid.yaml_tree import Source
from comborun.judging import DEFAULT_RETRY, RetryRule
from comborun.plan import SecretSource
from comborun.policy_files import PolicyFiles, PolicyGlob
from comborun.preset import find_preset
from comborun.resources import NO_RESERVE, NO_SLURM, Reserve, Slurm
from comborun.stopping import StopRequest
from comborun.text import clean, several, shortened

NAMELESS = "grid"
"""the name of a grid whose file's name has nothing that a run's directory could be called"""


@dataclass(frozen=True)
class Grid:
    name: str
    """cleaned: runs and their directories begin with it"""
    path: Path
    text: str
    """every character as the user wrote it"""
    host: str | None
    root: str
    host_python: str | None
    """of comborun itself, on the host"""
    combos: tuple[Combo, ...]
    settings: Settings
    """the grid's own, without overrides"""
    limits: GridLimits
    use_gpus: tuple[int, ...] | None
    after: str | None
    poll: float
    """seconds"""
    warnings: tuple[Problem, ...]
    sync: tuple[Shipped, ...] = ()
    replaces: tuple[str, ...] = ()
    secrets: Mapping[str, SecretSource] = field(default_factory=lambda: MappingProxyType({}))
    """name of the variable -> in whose environment its value is"""
    retry: tuple[RetryRule, ...] = DEFAULT_RETRY
    notify: Notifying | None = None
    stop_early: StopRequest | None = None
    preset: Preset | None = None
    reserve: Reserve = NO_RESERVE
    servers: Mapping[str, ServerKeys] = field(default_factory=lambda: MappingProxyType({}))
    slurm: Slurm = NO_SLURM
    """for whoever launches it on Slurm"""
    policy_glob: PolicyGlob | None = None
    """the policies are the files that it finds on the host"""
    policy_files: PolicyFiles | None = None
    """what it has found; None: nobody has asked the host, and one policy stands for all of them"""


def load_grid(path: Path) -> Grid:
    """Read and check the grid file `path`. Raises UserError when it can't be read, GridError when it is wrong."""
    hint = "`combo init > grid.yaml` writes one to start from"
    try:
        with path.open("rb") as file:
            content = file.read(4 * MAX_CHARACTERS + 1)
    except IsADirectoryError:
        raise UserError(f"{path} is a folder, not a grid file", "name the YAML file in it") from None
    except FileNotFoundError:
        raise UserError(f"there is no file {path}", hint) from None
    except (OSError, ValueError) as error:
        raise UserError(f"{path} can't be read: {error}", "") from None
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        message = f"{path} is not UTF-8 text: byte {error.start} is 0x{content[error.start]:02x}"
        raise UserError(message, "save it as UTF-8") from None
    return parse_grid(text, path)


def parse_grid(text: str, path: Path, found: Found | None = None) -> Grid:
    """Check the text of a grid file. Reads nothing but its preset; raises GridError with all its mistakes.

    `found` are the policies that the host has where they are files of it; without them what depends on their names is
    left unchecked.
    """
    source = read_source(text, str(path))
    glob, mistakes = glob_of(source)
    if glob:
        source = replace(with_policies(source, found), problems=(*source.problems, *mistakes))
    draft, preset = _draft(source, path)
    if glob and found is None:
        draft = replace(draft, broken=draft.broken | {"policies"})
    combos = combos_of(draft.file)
    problems = {*draft.problems, *_problems(draft, combos)}
    if problems:
        raise GridError(tuple(sorted(problems, key=_order)), str(path))
    file = draft.file
    return Grid(
        name=_name(file, path),
        path=path,
        text=text,
        host=file.host,
        root=file.root,
        host_python=file.host_python,
        combos=combos,
        settings=settings_of([file]),
        limits=GridLimits.of(file.limits),
        use_gpus=file.use_gpus,
        after=file.after,
        poll=file.poll,
        warnings=tuple(sorted(_told(warnings_of(draft, combos), preset), key=_order)),
        sync=tuple(Shipped.of(entry) for entry in file.sync),
        replaces=file.replaces,
        secrets=MappingProxyType(file.secrets),
        retry=retries(file.retry),
        notify=Notifying.of(file.notify) if file.notify else None,
        stop_early=stop_request(file.stop_early) if file.stop_early else None,
        preset=preset,
        reserve=reserve(file.reserve),
        servers=MappingProxyType(file.servers),
        slurm=slurm_settings(file.slurm, file.limits.parallel),
        policy_glob=glob,
        policy_files=PolicyFiles(glob.patterns, glob.exclude, found) if glob and found is not None else None,
    )


def _draft(source: Source, path: Path) -> tuple[Draft, Preset | None]:
    """The keys of a grid, with those of its presets below them."""
    source = with_server_presets(source, path.parent)
    wanted = wanted_preset(source)
    if wanted is None:
        return read_draft(source), None
    try:
        found = find_preset(wanted.text, path.parent)
        preset = read_preset(found)
        check_kind(preset)
    except UserError as error:
        raise refused_preset(source, wanted, error) from None
    return with_defaults(read_draft(laid_below(source, preset, found.text)), preset.about), preset


def _told(warnings: Iterator[Problem], preset: Preset | None) -> set[Problem]:
    """What looks like a mistake in a preset is meant so by those who wrote it."""
    return {warning for warning in warnings if preset is None or warning.file != preset.file}


def _order(problem: Problem) -> tuple[str, int, int, str]:
    return problem.file, problem.line, problem.column, problem.message


def _name(file: GridFile, path: Path) -> str:
    name = file.name or path.stem
    try:
        return shortened(clean(name), name)
    except UserError:
        return NAMELESS


def _problems(draft: Draft, combos: tuple[Combo, ...]) -> Iterator[Problem]:
    yield from axis_problems(draft)
    yield from match_problems(draft, combos)
    yield from session_problems(draft, combos)
    yield from command_problems(draft, combos)
    yield from _gpu_problems(draft, combos)
    yield from memory_problems(draft, combos)
    yield from placement_problems(draft, combos)
    yield from around_problems(draft, combos)
    yield from furnish_problems(draft, combos)
    yield from launch_problems(draft)
    yield from server_problems(draft, combos)
    yield from survival_problems(draft, combos)
    yield from progress_problems(draft, combos)
    yield from stopping_problems(draft, combos)
    yield from shard_problems(draft, combos)
    for index, entry in enumerate(draft.file.overrides):
        if entry.model_fields_set <= {"when"} and "overrides" not in draft.broken:
            place = draft.source.place("overrides", index)
            yield draft.source.problem(place, "an entry of `overrides` that changes nothing", "add a setting to it")


def _gpu_problems(draft: Draft, combos: tuple[Combo, ...]) -> Iterator[Problem]:
    allowed = draft.file.use_gpus
    if allowed is None:
        return
    place = draft.source.place("use_gpus")
    if len(set(allowed)) < len(allowed):
        yield draft.source.problem(place, "`use_gpus` names a GPU twice", "name each once")
    most = max((combo.settings.gpus for combo in combos), default=0)
    if most > len(set(allowed)):
        asked = several(most, "GPU")
        message = f"a session asks for {asked}, and `use_gpus` allows {len(set(allowed))}"
        yield draft.source.problem(place, message, "allow more, or lower `resources: {gpus: N}`")
