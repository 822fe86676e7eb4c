"""Reads a folder of any result files by a grid, which says what was planned and how to read them."""

from __future__ import annotations

import glob
from collections import defaultdict
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING

from comborun.attempt import Verdict
from comborun.errors import UserError
from comborun.reporter.collect import attempt_number
from comborun.reporter.collected import SessionHistory
from comborun.reporter.records.collector import RecordCollector, walk
from comborun.reporter.records.reading import Context, Defect
from comborun.rules.formats import candidate, is_log
from comborun.rules.results import Folder, uncounted
from comborun.rules.tally import tally
from comborun.text import clean

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence
    from pathlib import Path

    from comborun.attempt import EpisodeRecord
    from comborun.judging import ResultRules
    from comborun.plan import Plan, Session
    from comborun.reporter.collected import Collected


_UNTAKEN_MOST = 100
"""most files outside the grid's patterns that are named"""
_OVER = MappingProxyType({"folder": "1"})
"""no program is running that would write more"""


def collect_by_plan(directory: Path, plan: Plan) -> Collected:
    """Every file below a folder that the plan's sessions would read, of the combo that its path names.

    A file whose path names none has to name its combo in each row.
    """
    if not directory.is_dir():
        raise UserError(f"{directory} is not a folder", "give a folder of results")
    collector = RecordCollector(directory)
    taken: defaultdict[str, list[str]] = defaultdict(list)
    found: list[Defect] = []
    for path in walk(directory, bool):
        name = PurePosixPath(path.relative_to(directory).as_posix())
        session = _of(name, plan.sessions)
        rules = (session or plan.sessions[0]).results
        if name.parts[0] == "report" or not path.stat().st_size:
            continue
        if _takes(rules, name):
            taken[session.name if session else ""].append(str(name))
            collector.take(path, _context(name, session, rules), expected=True)
        elif len(found) < _UNTAKEN_MOST and candidate(name.name):
            found += _untaken(directory, name, session or plan.sessions[0])
    collected = collector.collected(directory.resolve().name)
    found += _misread(directory, taken, plan.sessions, collected.records)
    histories = tuple(SessionHistory(one, ()) for one in plan.sessions)
    defects = (*found, *collected.defects)
    return replace(collected, plan=plan, sessions=histories, done=_OVER, defects=defects)


def _untaken(directory: Path, name: PurePosixPath, session: Session) -> Iterator[Defect]:
    """A file with episodes that no pattern of the grid takes, with the line that would count them."""
    rules = session.results
    folder = _folder(directory, [str(name)], session, "")
    own, keys = f"the pattern takes {', '.join(rules.files) or 'the log'}", {"files": f'"**/*{name.suffix}"'}
    if why := uncounted(folder.read(), folder.identity, (session.first, session.count), keys, own):
        yield Defect(str(name), 0, why.removeprefix(f"{name}: "))


def _misread(
    directory: Path, taken: Mapping[str, Sequence[str]], sessions: Sequence[Session], records: Iterable[EpisodeRecord]
) -> Iterator[Defect]:
    """Why rows of a session don't count, in the words of a host, with the line for `results` that counts them."""
    held: defaultdict[str, set[int]] = defaultdict(set)
    for record in records:
        if record.verdict is not Verdict.ERRORED:
            held[record.session].add(record.episode)
    for session in sessions:
        names, planned = taken.get(session.name), range(session.first, session.first + session.count)
        if names and not (held[session.name] and held[session.name].issuperset(planned)):
            folder = _folder(directory, names, session, session.results.format)
            counts = tally(folder.read(), folder.identity, (session.first, session.count), over=True)
            if counts.misread:
                yield Defect(names[0], 0, counts.why)


def _folder(directory: Path, names: Sequence[str], session: Session, kind: str) -> Folder:
    """The files of a session, read as its host would read them."""
    identity = _context(PurePosixPath(names[0]), session, session.results).identity
    log = next((name for name in names if is_log(name)), "") if session.results.source == "log" else ""
    others = [glob.escape(name) for name in names if name != log]
    return Folder(str(directory), others, identity, kind, log)


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
    """The text as it would be in a folder's name; empty if it can't be."""
    try:
        return clean(name)
    except UserError:
        return ""


def _takes(rules: ResultRules, name: PurePosixPath) -> bool:
    if rules.source == "log" and is_log(name.name):
        return True
    return any(fnmatchcase(name.name, PurePosixPath(pattern).name) for pattern in rules.files)
