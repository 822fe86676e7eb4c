"""Grid: a grid file, parsed and checked; every mistake at once, with its place and what to write instead."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from pydantic import ConfigDict

from comborun.errors import GridError, Problem, UserError
from comborun.grid.checks import PROBLEMS, WARNINGS
from comborun.grid.combos import Combo, Found, PolicyGlob, follow_of, glob_of, refused_with_follow, with_policies
from comborun.grid.draft import OPTION, with_single_values
from comborun.grid.keys.grid_file import GridFile
from comborun.grid.keys.launch import HostKeys
from comborun.grid.presets import Preset, draft_with_presets
from comborun.grid.yaml_tree import read_source, text_of
from comborun.model.plan import FollowRule, PolicyFiles, shown_of
from comborun.rules import following
from comborun.text import clean, printable, shortened

NAMELESS = "grid"
"""the name of a grid if no name can be made from its file's name"""


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
    follow: FollowRule | None
    """the training whose checkpoints are the policies"""
    given: tuple[str, ...]
    """single values from the command line, `limits.parallel=4`"""

    @property
    def record(self) -> str:
        """The text that a run keeps, with the values of the command line above it."""
        return "".join(f"# {OPTION} {printable(setting)}\n" for setting in self.given) + self.text

    def shared_by(self, named: tuple[str, ...]) -> tuple[HostKeys, ...]:
        """The hosts of a launch: those named on the command line, with what the grid says of them, or its own."""
        known = {entry.host: entry for entry in self.hosts}
        return tuple(known.get(host) or HostKeys(host=host) for host in dict.fromkeys(named)) or self.hosts

    def on(self, entry: HostKeys) -> Grid:
        """The grid as one of several hosts runs it."""
        names = ("use_gpus", "reserve", "root", "host_python")
        changes = {name: value for name in names if (value := getattr(entry, name)) is not None}
        limits = {name: value for name, value in entry.limits if value is not None}
        own = {"host": entry.host, "hosts": (), "limits": self.limits.model_copy(update=limits), **changes}
        return self.model_copy(update=own)

    def with_files(self, found: Found) -> Grid:
        return parse_grid(self.text, self.path, found, self.given)


def load_grid(path: Path, given: tuple[str, ...] = ()) -> Grid:
    """Read and check a grid file. Raises UserError if it can't be read, GridError if it is wrong."""
    return parse_grid(text_of(path, "`combo init > grid.yaml` writes one to start from"), path, given=given)


def parse_grid(text: str, path: Path, found: Found | None = None, given: tuple[str, ...] = ()) -> Grid:
    """Check the text of a grid file. Reads only its presets; raises GridError with all mistakes.

    `found` are the policies of a glob. Without them, checks that depend on their names are left out.
    """
    source = with_single_values(read_source(text, str(path)), given)
    glob, mistakes = glob_of(source)
    if glob:
        source = replace(with_policies(source, found), problems=(*source.problems, *mistakes))
    follow, wrong = follow_of(source)
    if follow:
        stand_in = ((following.POLICY, following.PATH),)
        source = replace(with_policies(source, stand_in), problems=(*source.problems, *wrong))
    draft, preset = draft_with_presets(source, path.parent)
    if glob and found is None:
        draft = replace(draft, broken=draft.broken | {"policies"})
    alone = refused_with_follow(source) if follow else ()
    problems = {*draft.problems, *(alone or (one for check in PROBLEMS for one in check(draft)))}
    if follow:
        problems = {replace(one, message=shown_of(one.message), hint=shown_of(one.hint)) for one in problems}
    if problems:
        raise GridError(tuple(sorted(problems, key=_order)), str(path))
    # no warnings about a preset: its author wrote it on purpose
    warnings = {one for check in WARNINGS for one in check(draft) if preset is None or one.file != preset.file}
    own = {
        "name": _name(draft.file, path),
        "host": draft.file.host or (draft.file.hosts[0].host if draft.file.hosts else None),
        "path": path,
        "text": text,
        "combos": draft.combos,
        "warnings": tuple(sorted(warnings, key=_order)),
        "program": preset,
        "policy_glob": glob,
        "follow": follow,
        "given": given,
        "policy_files": PolicyFiles(glob.patterns, glob.exclude, found) if glob and found is not None else None,
    }
    return Grid.model_construct({*draft.file.model_fields_set, *own}, **{**dict(draft.file), **own})


def _order(problem: Problem) -> tuple[str, int, int, str]:
    return problem.file, problem.line, problem.column, problem.message


def _name(file: GridFile, path: Path) -> str:
    name = file.name or path.stem
    try:
        return shortened(clean(name), name)
    except UserError:
        return NAMELESS
