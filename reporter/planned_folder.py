"""Reads a folder of results by a plan: every file that its sessions would read."""

from __future__ import annotations

import glob
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from pathlib import Path, PurePosixPath
from types import MappingProxyType

from comborun.errors import UserError
from comborun.model.attempt import EpisodeRecord, Verdict
from comborun.model.plan import Plan, Session
from comborun.reporter.collect import attempt_number
from comborun.reporter.records.collected import Collected, SessionHistory
from comborun.reporter.records.collector import RecordCollector, walk
from comborun.reporter.records.names import names_in_rows, not_in_grid, other_columns
from comborun.reporter.records.path_names import PathNames, named_by_path, not_in_paths, rules_of_rows, unnamed
from comborun.reporter.records.reading import Context, Defect, Reading
from comborun.rules.facts import Fact
from comborun.rules.results.counts import where_it_ran
from comborun.rules.results.fields import ResultRules
from comborun.rules.results.formats import candidate, is_log
from comborun.rules.results.result_files import Folder
from comborun.rules.results.tally import tally
from comborun.rules.results.unread import uncounted
from comborun.words import say
from comborun.words.rows import why_not_counted

_MOST_UNMATCHED = 100
_OVER = MappingProxyType({"folder": "1"})
"""no program is running that would write more"""


def collect_by_plan(directory: Path, plan: Plan) -> Collected:
    """Every file below a folder that the plan's sessions would read. The path or each row must name the combo."""
    if not directory.is_dir():
        raise UserError(f"{directory} is not a folder", "give a folder of results")
    collector = RecordCollector(directory)
    files: defaultdict[str, list[str]] = defaultdict(list)
    found: list[Defect] = []
    told: set[str] = set()
    unread: list[Reading] = []
    path_names = PathNames(plan.sessions)
    for path in walk(directory, bool):
        name = PurePosixPath(path.relative_to(directory).as_posix())
        session = path_names.session(name)
        rules = (session or plan.sessions[0]).results
        if name.parts[0] == "report" or (path.exists() and not path.stat().st_size):
            continue
        patterns = (PurePosixPath(pattern).name for pattern in rules.files)
        if (rules.source == "log" and is_log(name.name)) or any(fnmatchcase(name.name, one) for one in patterns):
            files[session.name if session else ""].append(str(name))
            known = len(collector.files)
            if session is None:
                rules = rules_of_rows(rules)
            context = _context_in_folder(name, session, rules)
            collector.read_file(path, context, expected=True)
            if session is None and not any(one.entries for one in collector.files[known:]):
                del collector.files[known:]
                policy, environment = path_names.of_path(name)
                collector.read_file(path, replace(context, policy=policy, environment=environment), expected=True)
                unread += (one for one in collector.files[known:] if not one.entries)
            unread += (one for one in collector.files[known:] if named_by_path(one) and not path_names.plans(one))
            for reading in collector.files[known:] if session is None else ():
                reading.translate(names_in_rows(plan.sessions))
                if fact := other_columns(path, reading, rules, plan.sessions):
                    found.append(Defect(str(name), 0, say(fact)))
                    told.add(str(name))
        elif len(found) < _MOST_UNMATCHED and candidate(name.name):
            found += _unmatched(directory, name, session or plan.sessions[0])
    collected = collector.collected(directory.resolve().name)
    named = {one.path for one in unread if one.entries}
    found += not_in_grid([one for one in collector.files if one.path not in told | named], plan.sessions)
    found += unnamed([one for one in unread if one.path not in told], path_names)
    found += not_in_paths(directory, [one for one in unread if one.path not in told], path_names)
    rejected = {f"{one.path}: {one.reason}" for one in collected.rejects}
    misread = _misread(directory, files, plan.sessions, collected.records)
    found += (one for one in misread if one.reason not in rejected)
    histories = tuple(SessionHistory(one, ()) for one in plan.sessions)
    defects = (*found, *collected.defects)
    return replace(collected, plan=plan, sessions=histories, done=_OVER, defects=defects)


def _unmatched(directory: Path, name: PurePosixPath, session: Session) -> Iterator[Defect]:
    """A file with episodes that no pattern of the grid takes, with the line that would count them."""
    rules = session.results
    folder = _folder(directory, [str(name)], session, "")
    keys = {"files": f"**/*{name.suffix}"}
    if found := uncounted(folder, (session.first, session.count), keys):
        yield Defect(str(name), 0, say(Fact(found.code, **{**found.fields, "file": "", "taken": list(rules.files)})))


def _misread(
    directory: Path, files: Mapping[str, Sequence[str]], sessions: Sequence[Session], records: Iterable[EpisodeRecord]
) -> Iterator[Defect]:
    """Why rows of a session don't count, in the words of a host, with the line for `results` that counts them."""
    held: defaultdict[str, set[int]] = defaultdict(set)
    for record in records:
        if record.verdict is not Verdict.ERRORED:
            held[record.session].add(record.episode)
    known = {kind: {getattr(one, kind) for one in sessions} for kind in ("policy", "environment")}
    for session in sessions:
        names, planned = files.get(session.name), range(session.first, session.first + session.count)
        if names and not (held[session.name] and held[session.name].issuperset(planned)):
            folder = _folder(directory, names, session, session.results.format)
            counts = tally(folder.read(), folder.identity, (session.first, session.count), over=True)
            if counts.misread:
                yield Defect(names[0], 0, why_not_counted(where_it_ran(counts.facts, known)))


def _folder(directory: Path, names: Sequence[str], session: Session, kind: str) -> Folder:
    """The files of a session, read as its host would read them."""
    identity = _context_in_folder(PurePosixPath(names[0]), session, session.results).identity
    log = next((name for name in names if is_log(name)), "") if session.results.source == "log" else ""
    others = [glob.escape(name) for name in names if name != log]
    return Folder(str(directory), others, identity, kind, log)


def _context_in_folder(name: PurePosixPath, session: Session | None, rules: ResultRules) -> Context:
    context = Context(name.as_posix(), rules=rules, attempt=attempt_number(name), planned_names=True)
    if session is None:
        return context
    named = context.named(session.policy, session.environment)
    return replace(named, session=session.name, first=session.first, planned=session.count)
