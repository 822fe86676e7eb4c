"""Reads a folder of any result files by a grid, which says what was planned and how to read them."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING

from comborun.errors import UserError
from comborun.reporter.collect import attempt_number
from comborun.reporter.collected import SessionHistory
from comborun.reporter.records.collector import RecordCollector, walk
from comborun.reporter.records.files import read
from comborun.reporter.records.reading import Context, Defect
from comborun.rules.episodes import LOG_NAMES, LOGS, suffix_of
from comborun.rules.formats import candidate
from comborun.text import clean, several

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from comborun.judging import ResultRules
    from comborun.plan import Plan, Session
    from comborun.reporter.collected import Collected


_UNTAKEN_MOST = 100
"""files that the grid does not take and that are named"""
_OVER = MappingProxyType({"folder": "1"})
"""nothing runs that would write more"""


def collect_by_plan(directory: Path, plan: Plan) -> Collected:
    """Every file below a folder that the plan's sessions would read, of the combo that its path names.

    A file whose path names none has to name its combo in each row.
    """
    if not directory.is_dir():
        raise UserError(f"{directory} is not a folder", "give a folder of results")
    collector = RecordCollector(directory)
    found: list[Defect] = []
    for path in walk(directory, bool):
        name = PurePosixPath(path.relative_to(directory).as_posix())
        session = _of(name, plan.sessions)
        rules = (session or plan.sessions[0]).results
        if name.parts[0] == "report" or not path.stat().st_size:
            continue
        if _takes(rules, name):
            collector.take(path, _context(name, session, rules), expected=True)
        elif len(found) < _UNTAKEN_MOST and candidate(name.name):
            found += _untaken(path, _context(name, session, replace(rules, format="")))
    collected = collector.collected(directory.resolve().name)
    histories = tuple(SessionHistory(one, ()) for one in plan.sessions)
    defects = (*found, *collected.defects)
    return replace(collected, plan=plan, sessions=histories, done=_OVER, defects=defects)


def _untaken(path: Path, context: Context) -> Iterator[Defect]:
    """A file with episodes that no pattern of the grid takes."""
    with suppress(OSError), path.open("rb") as stream:
        reading = read(stream, context)
        count = len(reading.records) + sum(one.episodes for one in reading.aggregates)
        if count:
            taken = f"the pattern takes {', '.join(context.rules.files) or 'the log'}"
            hint = f'`results: {{files: "**/*{path.suffix}"}}` counts them'
            yield Defect(context.path, 0, f"{several(count, 'episode')}, but {taken}: {hint}")


def _context(name: PurePosixPath, session: Session | None, rules: ResultRules) -> Context:
    context = Context(name.as_posix(), rules=rules, attempt=attempt_number(name))
    if session is None:
        return context
    named = context.named(session.policy, session.environment)
    return replace(named, session=session.name, first=session.first)


def _of(name: PurePosixPath, sessions: Sequence[Session]) -> Session | None:
    """The session whose combo a path names: by both of its names, or by the one that tells it from the others."""
    parts = {*map(_cleaned, name.parts[:-1]), _cleaned(name.stem)}
    axes = {axis: {getattr(one, axis) for one in sessions} for axis in ("policy", "environment")}

    def named(session: Session, axis: str) -> bool:
        return len(axes[axis]) == 1 or _cleaned(getattr(session, axis)) in parts

    def joined(session: Session) -> set[str]:
        policy, environment = _cleaned(session.policy), _cleaned(session.environment)
        return {f"{a}{sign}{b}" for sign in "_-" for a, b in ((policy, environment), (environment, policy))}

    found = [one for one in sessions if parts & {one.name, *joined(one)}]
    found = found or [one for one in sessions if named(one, "policy") and named(one, "environment")]
    if len(found) > 1:  # a folder for each of its seeds
        found = [one for one in found if {f"seed{one.seed}", f"seed_{one.seed}", f"seed-{one.seed}"} & parts]
    return found[0] if len(found) == 1 else None


def _cleaned(name: str) -> str:
    """As a name of a folder has it; empty for what no such name can hold."""
    try:
        return clean(name)
    except UserError:
        return ""


def _takes(rules: ResultRules, name: PurePosixPath) -> bool:
    if rules.source == "log" and (suffix_of(name.name) in LOGS or name.name in LOG_NAMES):
        return True
    return any(fnmatchcase(name.name, PurePosixPath(pattern).name) for pattern in rules.files)
