"""Counts the newest results of a grid's combos on this machine, by the present grid."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from comborun.grid.axes import names_of
from comborun.grid.results import rules_of
from comborun.plan import Plan
from comborun.reporter.records.reading import Context
from comborun.rules.names import RUN, AttemptLayout
from comborun.rules.proposals import where_it_ran
from comborun.rules.results import Folder, name_unread
from comborun.rules.tally import tally
from comborun.text import clean
from comborun.work import combo_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from comborun.grid import Grid
    from comborun.judging import ResultRules
    from comborun.plan import Session
    from comborun.rules.tally import Counts


def latest_counts(grid: Grid) -> tuple[Session, Counts] | None:
    """A session of the grid's last try or run with its counts by the present grid; None without an ended one."""
    combos = {(combo.policy.name, combo.environment.name): combo for combo in grid.combos}
    for session, at in _ended(grid):
        if combo := combos.get(combo_of(session)):
            return session, _counts(at, session, rules_of(combo), names_of(grid))
    return None


def _ended(grid: Grid) -> Iterator[tuple[Session, AttemptLayout]]:
    """The first attempts of the newest run, as far as they have ended."""
    root, name = Path(grid.root).expanduser(), clean(grid.name)
    plans = [*root.glob(f".try/{name}_try-*T*Z-*/plan-1.json"), *root.glob(f"{name}-*T*Z-*/plan-1.json")]
    newest = max(plans, key=lambda path: path.parent.name.rsplit("-", 2)[1:], default=None)
    try:
        sessions = Plan.from_json(newest.read_text("utf-8")).sessions if newest else ()
    except (OSError, ValueError):
        return  # of another version, or removed by now
    for session in sessions:
        at = AttemptLayout(f"{newest and newest.parent}/{RUN.attempt(session.name, 1).directory}")
        if Path(at.end).exists():
            yield session, at


def _counts(at: AttemptLayout, session: Session, rules: ResultRules, names: Mapping[str, set[str]]) -> Counts:
    """As the session's host would count it by these rules."""
    identity = Context("", session.policy, session.environment, rules).identity
    log = "../log" if rules.source == "log" else ""
    folder, span = Folder(at.output, rules.files, identity, rules.format, log), (session.first, session.count)
    counts = tally(folder.read(), identity, span, over=True)
    name_unread(counts, folder, span, at.log)
    counts.why = where_it_ran(counts.why, names)
    return counts
