"""Reads all input of a report from a directory on this machine: a run, or any folder of records."""

from __future__ import annotations

import json
import os
import re
from collections import defaultdict
from dataclasses import replace
from pathlib import Path, PurePath, PurePosixPath
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from comborun.attempt import Begin, End, own_end
from comborun.errors import UserError
from comborun.plan import Plan, Session
from comborun.reporter.collected import Attempt, Collected, SessionHistory
from comborun.reporter.comparing.canary import Canary
from comborun.reporter.counting.starts import of_the_run
from comborun.reporter.records import videos
from comborun.reporter.records.collector import RecordCollector, walk
from comborun.reporter.records.reading import Context
from comborun.rules import globs
from comborun.rules.formats import candidate
from comborun.rules.named import FILE
from comborun.rules.names import RUN
from comborun.rules.records import parse
from comborun.stopping import StopRule
from comborun.work import combo_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from comborun.attempt import EpisodeRecord
    from comborun.work import Combo

LOG_BYTES, LINES_SHOWN, LINE_SHOWN = 8192, 12, 300
"""of a failed attempt's log: bytes read at its end, lines that are kept, characters of each"""
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def collect_run(directory: Path, unread: Mapping[PurePosixPath, str] = MappingProxyType({})) -> Collected:
    """Everything in a run directory, from all attempts of all sessions.

    `unread` are result files that the directory lacks or that should not be read, each with the reason. They are
    reported like files that can't be read here, so that a copy of a run gives the same report as the run itself.
    """
    whole = _plan(directory)
    plan = replace(whole, sessions=tuple(session for session in whole.sessions if not session.flag))
    histories = tuple(_history(directory, session) for session in plan.sessions)
    collector = RecordCollector(directory, unread)
    for history in histories:
        if history.session.unit == "episode":
            for attempt in history.attempts:
                _take_attempt(collector, directory, _context(history.session, attempt), unread)
    collector.keep_whole_attempts({session.name: session.count for session in plan.sessions})
    bases = {session.name: session.results.base for session in plan.sessions}
    collector.show([video for history in histories for video in _videos(directory, history)], bases)
    collected = collector.collected(_text(directory / RUN.id).strip() or directory.resolve().name)
    manifest = _manifest(directory)
    known = _of_runs(plan.sessions, collected.records)
    known |= {combo_of(session): session.unpaired for session in plan.sessions if session.unpaired}
    return replace(
        collected,
        defects=collected.defects,
        plan=plan,
        sessions=histories,
        done=MappingProxyType(parse(_text(directory / RUN.done))),
        provenance=MappingProxyType(dict(_flat(manifest.get("provenance") or {}))),
        aside=tuple(_history(directory, session) for session in whole.sessions if session.flag),
        stop_early=_stop_rule(manifest.get("stop_early"), directory / RUN.manifest),
        canary=_canary(directory),
        unpaired=MappingProxyType({**known, **collected.unpaired}),  # the reason in a file comes first
    )


def _of_runs(sessions: Iterable[Session], records: Iterable[EpisodeRecord]) -> dict[Combo, str]:
    """The combos with `seeds` whose records hold the seed of a whole session, and not of each episode."""
    bases = {one.name: one.results.base for one in sessions}
    seeded = {combo_of(one) for one in sessions if one.results.base}
    found: defaultdict[Combo, defaultdict[int, list[EpisodeRecord]]] = defaultdict(lambda: defaultdict(list))
    for record in records if seeded else ():
        if record.combo in seeded and record.session in bases and record.seed is not None:
            found[record.combo][bases[record.session]].append(record)
    said = "one seed for all episodes of a session, which says nothing of their starts"
    return {combo: said for combo, parts in found.items() if any(map(of_the_run, parts.values()))}


def collect_folder(directory: Path) -> Collected:
    """Every result of a known format below a folder; `attempt-N` in a path is its attempt.

    Records name their own combos, or their path does.
    """
    if not directory.is_dir():
        raise UserError(f"{directory} is not a folder", "give a run directory, or a folder of results")
    if (directory / RUN.plan(1)).is_file() and not (directory / RUN.manifest).is_file():
        raise _half(directory, RUN.plan(1), RUN.manifest)
    collector = RecordCollector(directory)
    found = list(walk(directory, lambda name: candidate(name) or videos.is_video(name)))
    for path in found:
        if candidate(path.name):
            name = path.relative_to(directory)
            collector.take(path, Context(name.as_posix(), attempt=attempt_number(name)), expected=False)
    collector.take_names(found, Context(path=""))
    collector.settle_combos()
    collector.show(videos.index(directory, (path.relative_to(directory).as_posix() for path in found)))
    collected = collector.collected(directory.resolve().name)
    return replace(collected, defects=(*collector.taken, *collected.defects))


def attempt_number(path: PurePath) -> int:
    """The number in a folder `attempt-N`; 0 without one."""
    numbers = (part.removeprefix("attempt-") for part in path.parts if part.startswith("attempt-"))
    return next((int(number) for number in numbers if number.isdecimal()), 0)


def _videos(directory: Path, history: SessionHistory) -> Iterator[videos.Video]:
    """The videos of a session, as its host listed them when an attempt ended."""
    for attempt in history.attempts:
        at = RUN.attempt(history.session.name, attempt.number)
        yield from videos.listed(_text(directory / at.videos), at.directory)


def _context(session: Session, attempt: Attempt) -> Context:
    """The facts about all files of an attempt."""
    begin = attempt.begin
    return Context(
        path=RUN.attempt(session.name, attempt.number).output,
        policy=session.policy,
        environment=session.environment,
        rules=session.results,
        session=session.name,
        attempt=attempt.number,
        first=begin.first if begin and begin.count else session.first,
    )


def _take_attempt(
    collector: RecordCollector, directory: Path, context: Context, unread: Mapping[PurePosixPath, str]
) -> None:
    output, rules = PurePosixPath(context.path), context.rules
    log = PurePosixPath(RUN.attempt(context.session, context.attempt).log)
    if rules.source == "log" and ((directory / log).exists() or log in unread):
        collector.take(directory / log, replace(context, path=str(log)), expected=True)
    found = [output / path for path in globs.found(str(directory / output), rules.files)]
    named = {path for path in found if FILE.fullmatch(path.name)}
    whole = {path for path in found if path not in named and not _empty(directory / path)}
    for path in sorted(whole | {name for name in unread if name.is_relative_to(output)}):
        collector.take(directory / path, replace(context, path=str(path)), expected=True)
    collector.take_names(sorted(directory / path for path in named), context)


def _empty(path: Path) -> bool:
    """Whether a file is empty; then it is not a result."""
    return path.exists() and path.stat().st_size == 0


def _plan(directory: Path) -> Plan:
    """The newest plan, which contains the older ones."""
    numbers = (path.stem.removeprefix("plan-") for path in directory.glob("plan-*.json"))
    path = directory / RUN.plan(max((int(number) for number in numbers if number.isdecimal()), default=1))
    try:
        return Plan.from_json(path.read_text("utf-8", "surrogateescape"))
    except OSError as error:
        if (directory / RUN.manifest).is_file():
            raise _half(directory, RUN.manifest, RUN.plan(1)) from None
        raise UserError(
            f"{directory} is no run directory: {path.name}: {error.strerror}",
            "give a run directory, or report a folder of results",
        ) from None
    except ValueError as error:
        raise UserError(f"{path} can't be read as a plan: {error}", "was it written by this version?") from None


def _half(directory: Path, held: str, lacking: str) -> UserError:
    return UserError(
        f"{directory} is a run directory that was not copied whole: it holds {held} but no {lacking}",
        f"copy it again with all that is in it, or report its results alone: combo report {directory / RUN.sessions}",
    )


def _history(directory: Path, session: Session) -> SessionHistory:
    folders = (directory / RUN.session(session.name)).glob("attempt-*")
    numbers = sorted(int(number) for folder in folders if (number := folder.name[len("attempt-") :]).isdecimal())
    return SessionHistory(session, tuple(_attempt(directory, session.name, number) for number in numbers))


def _attempt(directory: Path, session: str, number: int) -> Attempt:
    at = RUN.attempt(session, number)
    begin, end = _text(directory / at.begin), _text(directory / at.end)
    mine = bool(end) and own_end(_text(directory / at.claim), end)
    ended = End.parse(end) if mine else None
    log = _last_lines(directory / at.log) if ended and ended.failure else ()
    return Attempt(number, Begin.parse(begin) if begin else None, ended, log)


def _last_lines(path: Path) -> tuple[str, ...]:
    """The end of a log, without colours and without overwritten text."""
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - LOG_BYTES))
            text = stream.read().decode("utf-8", "replace")
    except OSError:
        return ()
    lines = (line.rstrip().rpartition("\r")[2] for line in _COLOUR.sub("", text).split("\n"))
    return tuple(line[:LINE_SHOWN] for line in lines if line.strip())[-LINES_SHOWN:]


def _text(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def _canary(directory: Path) -> Canary | None:
    path = directory / RUN.canary
    try:
        return Canary.from_json(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path} can't be read: {error!r}", "combo canary writes another") from None


def _manifest(directory: Path) -> dict[str, Any]:
    try:
        manifest = json.loads(_text(directory / RUN.manifest) or "{}")
    except ValueError:
        return {}
    return manifest if isinstance(manifest, dict) else {}


def _stop_rule(value: Any, path: Path) -> StopRule | None:
    """Raises UserError for a rule that can't be read: ignoring it would change the claims."""
    try:
        return None if value is None else StopRule.from_data(value)
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(f"{path}: `stop_early` can't be read: {error!r}", "was it written by this version?") from None


def _flat(value: Any, *keys: str) -> Iterator[tuple[str, str]]:
    """`{"git": {"commit": ...}}` becomes `git.commit`; empty values are left out."""
    if isinstance(value, dict):
        for key, entry in value.items():
            yield from _flat(entry, *keys, str(key))
    elif value is not None and value not in ("", [], {}):
        yield ".".join(keys), value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
