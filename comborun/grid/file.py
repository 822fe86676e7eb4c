"""Grid: a grid file, parsed and checked; every mistake at once, with its place and what to write instead."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from pydantic import ConfigDict

from comborun.errors import GridError, Problem, UserError
from comborun.grid.axes import Combo, Found, axis_problems, glob_of, with_policies
from comborun.grid.commands import command_problems, command_warnings
from comborun.grid.draft import OPTION, Draft, with_single_values
from comborun.grid.launch import launch_problems
from comborun.grid.model import GridFile
from comborun.grid.placement import placement_problems, placement_warnings
from comborun.grid.presets import Preset, draft_with_presets
from comborun.grid.program import program_problems, program_warnings
from comborun.grid.resources import display_problems, display_warnings, resource_problems, resource_warnings
from comborun.grid.results import count_warnings, naming_problems, progress_problems
from comborun.grid.servers import server_problems, server_warnings
from comborun.grid.stopping import cut_problems, seed_problems, stopping_problems
from comborun.grid.survival import survival_problems, survival_warnings
from comborun.grid.yaml_tree import read_source, text_of
from comborun.model.policy_files import PolicyFiles, PolicyGlob
from comborun.text import clean, printable, shortened

NAMELESS = "grid"
"""the name of a grid if no name can be made from its file's name"""
_PROBLEMS = (
    *(axis_problems, command_problems, resource_problems, placement_problems, program_problems, display_problems),
    *(launch_problems, server_problems, survival_problems, progress_problems, naming_problems, cut_problems),
    *(seed_problems, stopping_problems),
)
_WARNINGS = (
    *(command_warnings, count_warnings, resource_warnings, display_warnings),
    *(placement_warnings, server_warnings, program_warnings, survival_warnings),
)


class Grid(GridFile):
    model_config = ConfigDict(arbitrary_types_allowed=True)

    # `name` is cleaned, since directories of runs begin with it
    path: Path
    text: str
    combos: tuple[Combo, ...]
    warnings: tuple[Problem, ...]
    program: Preset | None
    policy_glob: PolicyGlob | None
    """the glob whose files on the host are the policies"""
    policy_files: PolicyFiles | None
    """the files found; None: the host was not asked, and one policy stands for all of them"""
    given: tuple[str, ...]
    """single values from the command line, `limits.parallel=4`"""

    @property
    def record(self) -> str:
        """The text that a run keeps, with the values of the command line above it."""
        return "".join(f"# {OPTION} {printable(setting)}\n" for setting in self.given) + self.text

    def with_files(self, found: Found) -> Grid:
        return parse_grid(self.text, self.path, found, self.given)


def load_grid(path: Path, given: tuple[str, ...] = ()) -> Grid:
    """Read and check the grid file `path`, with values from the command line. Raises UserError if it can't be read,
    GridError if it is wrong.
    """
    return parse_grid(text_of(path, "`combo init > grid.yaml` writes one to start from"), path, given=given)


def parse_grid(text: str, path: Path, found: Found | None = None, given: tuple[str, ...] = ()) -> Grid:
    """Check the text of a grid file. Reads only its presets; raises GridError with all mistakes.

    `found` are the policies of a glob. Without them, checks that depend on their names are left out.
    """
    source = with_single_values(read_source(text, str(path)), given)
    glob, mistakes = glob_of(source)
    if glob:
        source = replace(with_policies(source, found), problems=(*source.problems, *mistakes))
    draft, preset = draft_with_presets(source, path.parent)
    if glob and found is None:
        draft = replace(draft, broken=draft.broken | {"policies"})
    problems = {*draft.problems, *_problems(draft)}
    if problems:
        raise GridError(tuple(sorted(problems, key=_order)), str(path))
    # no warnings about a preset: its author wrote it on purpose
    warnings = {one for check in _WARNINGS for one in check(draft) if preset is None or one.file != preset.file}
    own = {
        "name": _name(draft.file, path),
        "path": path,
        "text": text,
        "combos": draft.combos,
        "warnings": tuple(sorted(warnings, key=_order)),
        "program": preset,
        "policy_glob": glob,
        "given": given,
        "policy_files": PolicyFiles(glob.patterns, glob.exclude, found) if glob and found is not None else None,
    }
    return Grid.model_construct({*draft.file.model_fields_set, *own}, **{**dict(draft.file), **own})


def _problems(draft: Draft) -> Iterator[Problem]:
    for check in _PROBLEMS:
        yield from check(draft)
    for index, entry in enumerate(draft.file.overrides):
        if entry.model_fields_set <= {"when"} and "overrides" not in draft.broken:
            message = "an entry of `overrides` that changes nothing"
            yield draft.at_value(("overrides", index), message, "add a setting to it")


def _order(problem: Problem) -> tuple[str, int, int, str]:
    return problem.file, problem.line, problem.column, problem.message


def _name(file: GridFile, path: Path) -> str:
    name = file.name or path.stem
    try:
        return shortened(clean(name), name)
    except UserError:
        return NAMELESS
