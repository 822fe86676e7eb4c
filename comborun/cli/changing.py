"""A grid that has changed since its run was launched: what is asked of a person, and how it is told."""

from __future__ import annotations

import sys
from collections import defaultdict
from typing import TYPE_CHECKING

import click

from comborun.again.amend import Kind
from comborun.cli.terminal import program
from comborun.errors import UserError
from comborun.planner import name_of_combo
from comborun.text import harmless, several
from comborun.work import combo_of, episodes_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from comborun.again.amend import Change, Choice, Comparison
    from comborun.plan import Plan, Session
    from comborun.work import Combo

_MOST = 12

changed_option = click.option(
    "--changed",
    type=click.Choice(["rerun", "keep"]),
    help="Combos that a changed grid does otherwise, or has no more: run them as it says now, or keep the run's own.",
)


def choose(comparison: Comparison, run: str, wanted: Choice | None) -> Choice | None:
    """What becomes of combos whose records would no longer count: as asked for, else as a person at a terminal says.

    None when there are none. Raises UserError where nobody can be asked.
    """
    if wanted or not comparison.asks:
        return within_the_rule(comparison, wanted)
    listed = "\n".join(f"  {line}" for line in _lines(comparison.asks))
    told = f"the grid does some combos of its run {run} otherwise now:\n{listed}"
    if not sys.stdin.isatty():
        raise UserError(
            told,
            "--changed rerun runs them as the grid says now, and what they have recorded counts no more; --changed keep"
            " leaves them as the run has them; --new starts another run. Nothing that runs is ended by any of these",
        )
    click.echo(harmless(told), err=True)
    return within_the_rule(comparison, "rerun" if _confirmed() else "keep")


def _confirmed() -> bool:
    question = "Follow the grid, so that what these have recorded counts no more? (no: they stay as the run has them)"
    try:
        return click.confirm(question, default=False, err=True)
    except click.Abort:
        click.echo("\nNothing was changed.", err=True)
        raise


def within_the_rule(comparison: Comparison, choice: Choice | None) -> Choice | None:
    """Raises UserError when a policy would begin anew whose comparisons may have been looked at already."""
    rule = comparison.before.stop_early
    anew = [change for change in comparison.asks if rule and rule.of((change.policy, change.environment))]
    if choice == "rerun" and anew:
        names = ", ".join(f"{change.policy} in {change.environment}" for change in anew[:_MOST])
        raise UserError(
            f"{names}: compared by a rule that was fixed before the first episode; no such comparison can begin anew",
            "--new starts another run, with comparisons of its own; --changed keep leaves this one as it is",
        )
    return choice


def no_change(comparison: Comparison, wanted: Choice | None) -> tuple[str, ...]:
    """Said to who asked what is to become of changed combos when there are none."""
    return (
        (f"--changed {wanted}: the grid does no combo otherwise than its run",)
        if wanted and not comparison.asks
        else ()
    )


def rule_kept(before: Plan, now: Plan) -> tuple[str, ...]:
    """Said when the grid means to compare otherwise than its run does; `now` is the grid, laid out."""
    if before.stop_early == now.stop_early:
        return ()
    was = "nothing may stop early" if before.stop_early is None else "as it was fixed before the first episode"
    return (f"stop_early stays as the run has it ({was}); --new starts a run with the grid's own",)


def cut_kept(before: Plan, now: Plan) -> tuple[str, ...]:
    """Said for combos that the grid would cut into other sessions than the run has for the same episodes."""
    had, meant = (_live(plan) for plan in (before, now))
    told = [
        f"{' in '.join(combo)}: {several(len(sessions), 'session')}, not {len(meant[combo])}"
        for combo, sessions in had.items()
        if combo in meant and _cut_otherwise(sessions, meant[combo])
    ]
    if not told:
        return ()
    more = f" and {several(len(told) - _MOST, 'more combo')}" if len(told) > _MOST else ""
    return (
        f"stay cut as the run has them ({', '.join(told[:_MOST])}{more}); --new starts a run with the grid's own cut",
    )


def _cut_otherwise(had: Sequence[Session], meant: Sequence[Session]) -> bool:
    """A session for gaps, or for episodes that were added, is no cut: then the combo's own, which has no range in its
    name, is there as well."""
    added_to = len(meant) == 1 and any(one.name == name_of_combo(one) for one in had)
    return len(had) != len(meant) and episodes_of(had) == episodes_of(meant) and not added_to


def _live(plan: Plan) -> dict[Combo, list[Session]]:
    combos: defaultdict[Combo, list[Session]] = defaultdict(list)
    for session in plan.sessions:
        if not session.flag:
            combos[combo_of(session)].append(session)
    return combos


def told_changes(comparison: Comparison, choice: Choice | None) -> tuple[str, ...]:
    """What became of each combo that the grid has changed."""
    taken = comparison.taken(choice)
    kept = [change for change in comparison.changes if change not in taken]
    return (*_lines(taken), *(f"{line}; kept as the run has it" for line in _lines(kept)))


def told_running(running: Sequence[str], run: str, options: str) -> tuple[str, ...]:
    """Sessions that count no more, and that go on all the same."""
    if not running:
        return ()
    stop = f"{program()} stop {run} {' '.join(running)}{options}"
    return (f"still running, though they count no more: {', '.join(running)}. What ends them: {stop}",)


def _lines(changes: Sequence[Change]) -> Iterator[str]:
    signs = {Kind.ADDED: "+", Kind.MORE: "+", Kind.FEWER: "=", Kind.CHANGED: "~", Kind.REMOVED: "-"}
    yield from (f"{signs[change.kind]} {change}" for change in changes[:_MOST])
    if len(changes) > _MOST:
        yield f"and {len(changes) - _MOST} more"
