"""Policies that are files of a host: found when the plan is made, and then kept."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from comborun.errors import GridError, Problem, UserError
from comborun.grid import parse_grid
from comborun.policy_files import named
from comborun.remote.policies import MOST, find_policies

if TYPE_CHECKING:
    from collections.abc import Callable

    from comborun.again.amend import Choice
    from comborun.grid import Grid
    from comborun.plan import Plan
    from comborun.policy_files import PolicyGlob
    from comborun.remote.transport import Transport


def with_policies(grid: Grid, transport: Transport) -> Grid:
    """The grid with the files that its glob finds on the host, if it has one. Raises GridError when there are none."""
    glob = grid.policy_glob
    if glob is None or grid.policy_files:
        return grid
    matches = find_policies(transport, glob, grid.host_python)
    if not matches:
        hint = 'mind that `~/` is the home there; a pattern in quotes, such as "~/ckpt/*.pt"'
        raise _refused(grid, glob, f"nothing on {transport.host} matches {glob}", hint)
    if len(matches) > MOST:
        raise _refused(grid, glob, f"more than {MOST} files match {glob}", "make it narrower, or `exclude` some")
    try:
        found = named(matches)
    except UserError as error:
        raise _refused(grid, glob, error.message, error.hint) from None
    return parse_grid(grid.text, grid.path, found)


def kept(
    found: Plan, now: Plan, changed: Choice | None, laid_out: Callable[[tuple[tuple[str, str], ...]], Plan]
) -> tuple[Plan, tuple[str, ...]]:
    """The plan with the policies that the run was planned with, and what is said of others that are there now.

    `laid_out` makes the grid's plan for a list of policies. `--changed rerun` takes the files as they are now.
    """
    had, has = found.policy_files, now.policy_files
    if had is None or has is None or not had.like(has) or had == has or changed == "rerun":
        return now, ()
    more, gone = ({*has.found} - {*had.found}), ({*had.found} - {*has.found})
    told = [f"{len(more)} more" if more else "", f"{len(gone)} of them gone" if gone else ""]
    note = (
        f"{', '.join(had.patterns)} finds other files now ({', '.join(filter(None, told))}); the run keeps those that "
        "it was planned with: --changed rerun takes what is there now"
    )
    return replace(laid_out(had.found), policy_files=had), (note,)


def _refused(grid: Grid, glob: PolicyGlob, message: str, hint: str) -> GridError:
    return GridError((Problem(str(grid.path), glob.line, glob.column, f"`policies`: {message}", hint),), str(grid.path))
