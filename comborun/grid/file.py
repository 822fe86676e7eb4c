"""Grid: a grid file, parsed and checked; every mistake at once, with its place and what to write instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from types import MappingProxyType

from comborun.errors import GridError, Problem, UserError
from comborun.grid.cautions import warnings_of
from comborun.grid.combos import (
    Combo,
    axis_problems,
    combos_of,
    match_problems,
    session_problems,
)
from comborun.grid.commands import command_problems
from comborun.grid.launch_keys import launch_problems
from comborun.grid.mistakes import Draft, read_draft
from comborun.grid.model import GridFile
from comborun.grid.settings import GridLimits, Settings, Shipped, settings_of
from comborun.grid.yaml_source import MAX_CHARACTERS, read_source
from comborun.names import clean, shortened
from comborun.plan import SecretSource

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


def parse_grid(text: str, path: Path) -> Grid:
    """Check the text of a grid file. Pure; raises GridError with all its mistakes."""
    draft = read_draft(read_source(text, str(path)))
    combos = combos_of(draft.file)
    problems = {*draft.problems, *_problems(draft, combos)}
    if problems:
        raise GridError(tuple(sorted(problems, key=_order)))
    file = draft.file
    return Grid(
        name=_name(file, path),
        path=path,
        text=text,
        host=file.host,
        root=file.root,
        combos=combos,
        settings=settings_of([file]),
        limits=GridLimits.of(file.limits),
        use_gpus=file.use_gpus,
        after=file.after,
        poll=file.poll,
        warnings=tuple(sorted(set(warnings_of(draft, combos)), key=_order)),
        sync=tuple(Shipped.of(entry) for entry in file.sync),
        replaces=file.replaces,
        secrets=MappingProxyType(file.secrets),
    )


def _order(problem: Problem) -> tuple[int, int, str]:
    return problem.line, problem.column, problem.message


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
    yield from launch_problems(draft)
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
        message = f"a session asks for {most} GPUs, and `use_gpus` allows {len(set(allowed))}"
        yield draft.source.problem(place, message, "allow more, or lower `resources: {gpus: N}`")
