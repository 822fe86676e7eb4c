"""Reads all input of a report from a directory on this machine: a run, or any folder of records."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import chain
from pathlib import Path, PurePath, PurePosixPath
from types import MappingProxyType
from typing import Any

from comborun.errors import UserError
from comborun.model.attempt import EpisodeRecord
from comborun.model.plan import Session
from comborun.model.work import Combo, combo_of, process_of
from comborun.reporter.evidence.starts import seeded_once
from comborun.reporter.records import videos
from comborun.reporter.records.collected import AttemptRecord, Collected, SessionHistory, SessionVideos
from comborun.reporter.records.collector import RecordCollector, walk
from comborun.reporter.records.combos import settle
from comborun.reporter.records.names import name_by_columns
from comborun.reporter.records.path_parts import stem_of
from comborun.reporter.records.reading import Context, Defect, Reading
from comborun.reporter.records.rows import settle_rows, tell_errors
from comborun.reporter.records.training_folders import trainings_in
from comborun.reporter.run_records import (
    canary_of,
    clocks_of,
    half_copied,
    history_of,
    manifest_of,
    mapping,
    on_one_clock,
    part_of,
    plan_of,
    stop_rule,
    text_of,
)
from comborun.rules import events, globs, names
from comborun.rules.curves import record as curves
from comborun.rules.curves import training
from comborun.rules.deal import sessions_moved
from comborun.rules.facts import Fact
from comborun.rules.following import Decision, Record
from comborun.rules.holds import DRAINING, HALTED, PAUSED
from comborun.rules.names import RUN
from comborun.rules.records import parse
from comborun.rules.results.counts import CHANGED
from comborun.rules.results.filename_results import FILE
from comborun.rules.results.formats import ARRAYS, candidate, foreign_kind
from comborun.rules.results.result_files import changed
from comborun.rules.results.unread import may_hold
from comborun.rules.results.videos import apart as of_no_episode
from comborun.rules.results.videos import is_video
from comborun.rules.vocabulary import several
from comborun.words import say

_CALLED_RESULTS = re.compile(r"(?i)result|episode|rollout|outcome|success|(?:^|[_.-])eval")
_PACKED_FOLDERS = (".zip", ".tar", ".tar.gz", ".tgz", ".tar.xz", ".tar.bz2", ".tar.zst", ".7z", ".rar")
_APART_MOST = 100


def collect_run(directory: Path, unread: Mapping[PurePosixPath, str] = MappingProxyType({})) -> Collected:
    """Everything in a run directory, from all attempts of all sessions. `unread` are result files that the directory
    lacks, each with the reason. They are reported as unreadable, so that a copy gives the same report as the run
    itself."""
    whole = plan_of(directory)
    followed = Record(parse(line) for line in text_of(directory / RUN.checkpoints).splitlines())
    counts = {one["policy"] for one in followed.having(Decision.VERIFIED)}
    plan = replace(
        whole,
        sessions=tuple(one for one in whole.sessions if not one.flag and (not whole.follow or one.policy in counts)),
    )
    clocks = clocks_of(text_of(directory / names.CLOCKS))
    histories = tuple(on_one_clock(history_of(directory, session), clocks) for session in plan.sessions)
    manifest = manifest_of(directory)
    happened = events.parse(text_of(directory / RUN.events))
    collected = _without_replays(directory, _results(directory, histories, unread), happened)
    declared = {combo_of(session): session.unpaired for session in plan.sessions if session.unpaired}
    by_session = _seeded_by_session(plan.sessions, collected.records)
    return replace(
        collected,
        plan=plan,
        by_run=True,
        sessions=histories,
        defects=(*collected.defects, *(Defect(one.host, 0, say(one.fact)) for one in clocks)),
        aside=tuple(on_one_clock(history_of(directory, session), clocks) for session in whole.sessions if session.flag),
        done=MappingProxyType(parse(text_of(directory / RUN.done))),
        provenance=mapping(manifest.get("provenance")),
        environments=tuple(map(parse, text_of(directory / RUN.environments).splitlines())),
        retuned=tuple(_retuned(happened)),
        moved=sessions_moved([*dict.fromkeys(one.session for one in happened if one.kind == events.Kind.TAKEN)]),
        part=part_of(directory, whole, collected.name),
        followed=tuple(followed.remarks()),
        trained=MappingProxyType(_trained(directory, histories)),
        stop_early=stop_rule(directory, manifest),
        canary=canary_of(directory),
        unpaired=MappingProxyType({**by_session, **declared, **collected.unpaired}),  # what a file says comes first
    )


_HOLDS = {"pause": PAUSED, "drain": DRAINING}
"""the hold that an order of a person makes"""


def _retuned(happened: Iterable[events.Event]) -> Iterator[tuple[events.Event, str]]:
    """What changed what the run may use, and whether the run was stopped or held then."""
    stopped = held = ""
    for event in happened:
        order = event.fields.get("order") if event.kind == events.Kind.ORDERED else ""
        if event.kind == events.Kind.DISPATCHING or order in {"start", "resume"}:
            stopped, held = "", "" if order == "resume" else held
        elif order == "stop" and "names" not in event.fields:
            stopped = "stopped"
        elif order in _HOLDS:
            held = _HOLDS[order]
        elif event.kind == events.Kind.HALTED:
            held = held or HALTED
        elif order == "set" or (event.kind == events.Kind.QUARANTINE and "reason" in event.fields):
            yield event, stopped or held


def _results(directory: Path, histories: Sequence[SessionHistory], unread: Mapping[PurePosixPath, str]) -> Collected:
    """The result files and the videos of all attempts."""
    collector = RecordCollector(directory, unread)
    attempts = [(history.session, attempt) for history in histories for attempt in history.attempts]
    for session, attempt in attempts:
        if session.unit == "episode":
            log = RUN.attempt(process_of(session), attempt.number).log
            _read_attempt(collector, directory, _context(session, attempt), PurePosixPath(log), unread)
    sessions = [history.session for history in histories]
    collector.keep_whole_attempts({session.name: session.count for session in sessions})
    for file in collector.files:
        tell_errors(file)
    folders = {(one.name, attempt.number): RUN.attempt(one.name, attempt.number) for one, attempt in attempts}
    unlisted = {key for key, at in folders.items() if not (directory / at.videos).is_file()}
    found = {
        at.directory: videos.listed(text_of(directory / at.videos), at.directory)
        for key, at in folders.items()
        if key not in unlisted
    }
    bases = {session.name: session.results.base for session in sessions}
    collector.link_videos([*chain(*found.values())], bases, unlisted)
    collected = collector.collected(text_of(directory / RUN.id).strip() or directory.resolve().name)
    filmed = tuple(_filmed(histories, found, collected.records))
    lacking = (
        *_changed(directory, attempts, unread),
        *_videos_missing(filmed, histories, collector.videos_missing),
        *_videos_apart(found, collector.videos_apart, collected.records, attempts),
    )
    return replace(collected, defects=(*collected.defects, *lacking), videos=filmed)


def _trained(directory: Path, histories: Sequence[SessionHistory]) -> dict[str, list[tuple[int, dict[str, Any]]]]:
    """The curves of each training's attempts, as the host kept them; else from the log and the output folder."""
    found: dict[str, list[tuple[int, dict[str, Any]]]] = {}
    for history in histories:
        if history.session.unit == "episode":
            continue
        process = process_of(history.session)
        layouts = ((one.number, RUN.attempt(process, one.number)) for one in history.attempts)
        for number, at in layouts:
            text = text_of(directory / at.curves)
            if not text and (directory / at.log).is_file():
                text = json.dumps(training.read(str(directory / at.log), str(directory / at.output)))
            if read := curves.parse(text):
                found.setdefault(history.session.name, []).append((number, read))
    return found


def _filmed(
    histories: Sequence[SessionHistory], found: Mapping[str, Sequence[videos.Video]], records: Sequence[EpisodeRecord]
) -> Iterator[SessionVideos]:
    """The videos of each session that should have some."""
    linked = {record.extra.get("video") for record in records} if any(found.values()) else set()
    for history in histories:
        session = history.session
        expected = sum(one.videos * len(one.processes) for one in session.components) or None
        if not history.attempts or not (session.results.videos or expected):
            continue
        there = found.get(RUN.attempt(session.name, history.attempts[-1].number).directory)
        if there is None:  # not listed yet
            continue
        whole = [one for one in there if not one.fault]
        apart = tuple(one.path for one in whole if one.path not in linked)[:_APART_MOST]
        size = sum(one.size for one in whole)
        yield SessionVideos(session.name, *combo_of(session), len(whole), len(there), expected, size, apart)


def _videos_missing(
    filmed: Sequence[SessionVideos], histories: Sequence[SessionHistory], told: Mapping[str, int]
) -> Iterator[Defect]:
    """Ended sessions with fewer videos than expected, or than others of their environment with as many episodes.
    `told`: how many of a session's are named with their episodes already."""
    ended = {one.session.name: one.session.count for one in histories if one.end}
    most = {(one.environment, ended.get(one.session)): 0 for one in filmed}
    for one in filmed:
        alike = one.environment, ended.get(one.session)
        most[alike] = max(most[alike], one.found)
    for one in filmed:
        others = most[one.environment, ended.get(one.session)]
        lacking = (others if one.expected is None else one.expected) - one.found
        if lacking <= told.get(one.session, 0):
            continue
        if one.session in ended and one.expected is not None and one.found < one.expected:
            yield Defect(one.session, 0, f"{one.expected - one.found} of {one.expected} videos are missing")
        elif one.session in ended and one.expected is None and one.found < others:
            what = f"{several(one.found, 'video')}, where another session of its environment left {others}"
            yield Defect(one.session, 0, what)


def _videos_apart(
    found: Mapping[str, Sequence[videos.Video]],
    apart: Collection[str],
    records: Iterable[EpisodeRecord],
    attempts: Iterable[tuple[Session, AttemptRecord]],
) -> Iterator[Defect]:
    """Attempts with episodes whose videos show none that is known. A worker's are of no single episode."""
    recorded, apart = {(one.session, one.attempt) for one in records}, {*apart}
    for session, attempt in attempts:
        at = RUN.attempt(session.name, attempt.number)
        there = [one.path for one in found.get(at.directory, ())]
        if (session.name, attempt.number) not in recorded or any(one.videos for one in session.components):
            continue
        if fact := of_no_episode(len(there), [path[len(at.output) + 1 :] for path in there if path in apart]):
            yield Defect(at.output, 0, say(fact))


def _without_replays(directory: Path, collected: Collected, happened: Sequence[events.Event]) -> Collected:
    """Without episodes that a host computed after it was given up, or that were not copied then: they ran elsewhere.

    Which of them count was decided when it was given up, and no verdict is looked at.
    """
    lost = mapping(json.loads(text_of(directory / names.KEPT_EPISODES) or "{}"))
    if not lost:
        return collected
    kept = {
        (session, int(number)): (host, ranges)
        for host, sessions in lost.items()
        for session, attempts in sessions.items()
        for number, ranges in attempts.items()
    }

    def counts(session: str, attempt: int, episode: int | None) -> bool:
        _, ranges = kept.get((session, attempt), ("", None))
        return ranges is None or (episode is not None and any(first <= episode < stop for first, stop in ranges))

    records = [one for one in collected.records if counts(one.session, one.attempt, one.episode)]
    aggregates = [one for one in collected.aggregates if counts(one.session, one.attempt, None)]
    replays = Counter(kept.get((one.session, one.attempt), ("",))[0] for one in collected.records)
    replays.subtract(kept.get((one.session, one.attempt), ("",))[0] for one in records)
    dealt = [one for one in happened if one.kind == events.Kind.DEALT]
    at = {host: min((one.at for one in dealt if host in one.fields.get("lost", ())), default=None) for host in lost}
    said = (Fact("host_given_up", at=at[host], rows=replays[host] or None) for host in lost)
    defects = tuple(Defect(host, 0, say(fact)) for host, fact in zip(lost, said, strict=True))
    return replace(
        collected,
        records=tuple(records),
        aggregates=tuple(aggregates),
        defects=(*collected.defects, *defects),
    )


def _changed(
    directory: Path, attempts: Sequence[tuple[Session, AttemptRecord]], unread: Mapping[PurePosixPath, str]
) -> Iterator[Defect]:
    """Attempts whose results are no longer those by which they were judged."""
    for session, attempt in attempts:
        output = RUN.attempt(process_of(session), attempt.number).output
        if not attempt.judged or any(path.is_relative_to(output) for path in unread):
            continue  # a copy that lacks some of them
        if changed(str(directory / output), session.results.files, attempt.judged, 0.0):
            yield Defect(output, 0, say(Fact(CHANGED)))


def _seeded_by_session(sessions: Iterable[Session], records: Iterable[EpisodeRecord]) -> dict[Combo, str]:
    """The combos with `seeds` whose records hold one seed per session, not one per episode, and why that matters."""
    bases = {session.name: session.results.base for session in sessions}
    seeded = {combo_of(session) for session in sessions if session.results.base}
    found: defaultdict[Combo, defaultdict[int, list[EpisodeRecord]]] = defaultdict(lambda: defaultdict(list))
    for record in records if seeded else ():
        if record.combo in seeded and record.session in bases and record.seed is not None:
            found[record.combo][bases[record.session]].append(record)
    why = "one seed for all episodes of a session, which says nothing of their starts"
    return {combo: why for combo, parts in found.items() if any(map(seeded_once, parts.values()))}


def collect_folder(directory: Path) -> Collected:
    """Every result of a known format below a folder. Records name their own combos, or their path does."""
    if not directory.is_dir():
        raise UserError(f"{directory} is not a folder", "give a run directory, or a folder of results")
    if (directory / RUN.plan(1)).is_file() and not (directory / RUN.manifest).is_file():
        raise half_copied(directory, RUN.plan(1), RUN.manifest)
    collector = RecordCollector(directory)
    found = list(
        walk(directory, lambda name: candidate(name) or is_video(name) or _packer(name) or foreign_kind(name, b""))
    )
    for path in found:
        if candidate(path.name):
            name = path.relative_to(directory)
            collector.read_file(path, Context(name.as_posix(), attempt=attempt_number(name)), expected=False)
        elif packer := _packer(path.name):
            collector.pass_over(path, Fact("packed_file", packer=packer))
        elif kind := foreign_kind(path.name, b""):
            why = Fact("pickle" if kind == "pickle" else "foreign_kind", kind=kind)
            if may_hold(str(path), why):
                collector.pass_over(path, why)
    collector.read_names(found, Context(path=""))
    name_by_columns(collector.files)
    settle_rows(collector.files)
    settle(collector.files)
    filmed = videos.index(directory, (path.relative_to(directory).as_posix() for path in found))
    collector.link_videos(filmed)
    collector.files += _beside(collector.files, collector.passed)
    collected = collector.collected(directory.resolve().name, settled=True)
    held = [reading for reading in collected.files if reading.records or reading.aggregates]
    trained = (
        {name: [(1, one)] for name, one in trainings_in(directory).items()}
        if all(one.format == ARRAYS for one in held)
        else {}
    )
    evaluated = tuple(curve["source"] for one in trained.values() for curve in one[0][1]["curves"])
    if trained and all(one.path.endswith(evaluated) for one in held):  # as evaluations.npz, written by the training
        return Collected(collected.name, (), (), (), (), trained=MappingProxyType(trained))
    apart = of_no_episode(len(filmed), collector.videos_apart) if collected.records else None
    of_videos = [Defect(collector.videos_apart[0], 0, say(apart))] if apart else []
    return replace(
        collected, defects=(*collector.formats_read, *collector.names_guessed, *collected.defects, *of_videos)
    )


def _beside(read: Sequence[Reading], passed: Sequence[Reading]) -> list[Reading]:
    """The files that were passed over and may be results: all where nothing counts, those that are called like a file
    that is read, and those of a folder without one which is called like the folder of such a file."""
    if not any(reading.entries for reading in read):
        return [*passed]
    known = [PurePosixPath(reading.path) for reading in read]
    stems, folders = {stem_of(path) for path in known}, {path.parent for path in known}
    places = {(len(folder.parts), folder.name) for folder in folders}

    def may_be(path: PurePosixPath) -> bool:
        alone = path.parent not in folders
        there = (len(path.parent.parts), path.parent.name) in places or _CALLED_RESULTS.search(path.name)
        return stem_of(path) in stems or bool(alone and there)

    return [one for one in passed if may_be(PurePosixPath(one.path))]


def _packer(name: str) -> str:
    """The packer of a folder in one file, by its ending: `zip`; empty for another file."""
    return next((ending[1:] for ending in _PACKED_FOLDERS if name.lower().endswith(ending)), "")


def attempt_number(path: PurePath) -> int:
    """The number in a folder `attempt-N`; 0 without one."""
    return next(filter(None, map(names.attempt_number, path.parts)), 0)


def _context(session: Session, attempt: AttemptRecord) -> Context:
    begin = attempt.begin
    return Context(
        path=RUN.attempt(process_of(session), attempt.number).output,
        policy=session.policy,
        environment=session.environment,
        rules=session.results,
        session=session.name,
        attempt=attempt.number,
        first=begin.first if begin and begin.count else session.first,
        over=attempt.end is not None,
        planned=begin.count if begin and begin.count else session.count,
    )


def _read_attempt(
    collector: RecordCollector,
    directory: Path,
    context: Context,
    log: PurePosixPath,
    unread: Mapping[PurePosixPath, str],
) -> None:
    output, rules = PurePosixPath(context.path), context.rules
    if rules.source == "log" and ((directory / log).exists() or log in unread):
        collector.read_file(directory / log, replace(context, path=str(log)), expected=True)
    found = [output / path for path in globs.found(str(directory / output), rules.files)]
    named = {path for path in found if FILE.fullmatch(path.name)}
    empty = {path for path in found if _is_empty(directory / path)}
    whole = {*found} - named - empty
    for path in sorted(whole | {name for name in unread if name.is_relative_to(output)}):
        collector.read_file(directory / path, replace(context, path=str(path)), expected=True)
    collector.read_names(sorted(directory / path for path in named), context)


def _is_empty(path: Path) -> bool:
    try:
        return not path.stat().st_size
    except OSError:
        return False
