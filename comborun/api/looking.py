"""Logs of sessions, and why they are as they are."""

from __future__ import annotations

import codecs
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, NamedTuple

from comborun.answers import runs
from comborun.api.joint import parts_of
from comborun.errors import UserError
from comborun.monitor.addressing import sessions_of
from comborun.monitor.causes import RunCauses, run_causes
from comborun.monitor.classify import classify
from comborun.monitor.explain import MOST_LINES, Explanation, explain, explain_server, server_names, was_stopped
from comborun.monitor.observe import History
from comborun.monitor.watch import once
from comborun.monitor.wording import clock_words
from comborun.remote.logs import LogPosition, Merged, end_of_log, follow, latest, newest_events, rank_log
from comborun.rules.counting import shown
from comborun.rules.names import SERVERS, RunLayout
from comborun.text import harmless

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from comborun.api.named import Target
    from comborun.monitor.observe import RunView
    from comborun.remote.logs import LogPiece, Stream


def explanations(target: Target, words: Sequence[str]) -> list[Explanation]:
    """An explanation for each session and model server that the words name."""
    return [one for part, own in parts_of(target, words, guess=True) for one in _explained(part, own)]


def _explained(target: Target, words: Sequence[str]) -> list[Explanation]:
    source, layout, found = target.source(), RunLayout(target.directory), list[Explanation]()
    view, history = source.view, source.fold(History())
    status, happened = classify(view, history), None
    if clocks := clock_words(status.ahead, status.host):
        target.listener.note(clocks)
    for session in sessions_of(source, words, target.listener.note, guess=True):
        if session in server_names(view.plan):
            one = explain_server(view, status, session)
            log = layout.attempt(SERVERS + session, one.attempt).log if one.attempt else ""
        else:
            attempts = history.of(session)
            if happened is None and was_stopped(attempts):
                happened = newest_events(target.transport, target.directory)
            one = explain(view, history, status, session, happened or ())
            log = layout.attempt(session, one.attempt).log if attempts and attempts[-1].log_size else ""
        found.append(one.with_log(end_of_log(target.transport, PurePosixPath(log), 2 * MOST_LINES)) if log else one)
    return found


def causes_of(target: Target) -> RunCauses:
    """What went wrong in a run, equal causes together."""
    if target.boxes:
        from comborun.api.joint_look import LOGIN_S, JointSource

        return run_causes(JointSource(target).status(LOGIN_S))
    return run_causes(once(target.source()))


class Logs(NamedTuple):
    names: Sequence[str]
    pieces: Iterator[LogPiece]


def logs(
    target: Target, words: Sequence[str], lines: int, *, on: bool = False, rank: int | None = None, errors: bool = False
) -> Logs:
    """The ends of logs, and with `on` what follows. `rank`: of one rank of a launcher, or its `errors`.

    A session that moves to another host before it begins is followed to it.
    """
    names, merged = list[str](), Merged()
    single: list[Iterator[LogPiece]] = []

    def moved(former: Target, waiting: Sequence[str]) -> set[str]:
        gone = set[str]()
        with suppress(UserError):  # no host answers: the next time
            for part, own in parts_of(target, waiting):
                if part is not former:
                    gone |= {*own}
                    more = [LogPosition(name) for name in own]
                    merged.add(follow(part.transport, part.directory, more, lines, on=True, moved=partial(moved, part)))
        return gone

    for part, own in parts_of(target, words, guess=True):
        source, follows = part.source(), partial(moved, part) if on and target.boxes else None
        found = sessions_of(source, own, part.listener.note, guess=True) if own else _every(source.view)
        chosen = [LogPosition(name) for name in found]
        if rank is not None or errors:
            chosen = [_of_rank(part, found, rank, "stderr" if errors else "stdout")]
        names += found
        single.append(
            follow(part.transport, part.directory, chosen, lines, on=on, own=part.same_program, moved=follows)
        )
    if not (on and target.boxes):
        return Logs(names, chain.from_iterable(single))
    for pieces in single:
        merged.add(pieces)
    return Logs(names, iter(merged))


def _every(view: RunView) -> Sequence[str]:
    current = tuple(one.name for one in view.plan.sessions if one.flag != "elsewhere")
    return current if current != view.sessions[: len(current)] else view.sessions


def _of_rank(target: Target, names: Sequence[str], rank: int | None, stream: Stream) -> LogPosition:
    """The log of one rank. Raises UserError if nobody says which, or it does not exist."""
    if rank is None:
        raise UserError("--stderr needs --rank", "such as --rank 0; the session's log holds both streams")
    if len(names) != 1:
        raise UserError("--rank needs one session", "combo logs --rank 0 SESSION")
    seen = latest(target.transport, RunLayout(target.directory), names)[names[0]]
    return LogPosition(names[0], seen.number, path=str(rank_log(target.transport, seen, rank, stream)))


def last_drawings(text: str, *, within: bool) -> str:
    """The last drawing of each line that was drawn over and over. A carriage return stays only where two pieces meet:
    `within` says that this piece goes on with a line, which it may draw anew.
    """
    lines = text.split("\n")
    found = [shown(line) or line.strip("\r") for line in lines]
    if within and "\r" in lines[0].rstrip("\r"):
        found[0] = f"\r{found[0]}"
    if lines[-1].endswith("\r"):
        found[-1] += "\r"
    return "\n".join(found)


def log_records(pieces: Iterator[LogPiece]) -> Iterator[runs.Log]:
    """Pieces of logs as text. Those without text are left out, unless they tell of an end."""
    decoders: dict[str, codecs.IncrementalDecoder] = {}
    ended: dict[str, bool] = {}
    within: dict[str, bool] = {}
    for log, data in pieces:
        decoder = decoders.setdefault(log.session, codecs.getincrementaldecoder("utf-8")("replace"))
        text = last_drawings(decoder.decode(data, final=log.ended), within=within.get(log.session, False))
        text = harmless(text, keep="\n\r\t")
        if text or (log.ended and not ended.get(log.session)):
            yield runs.Log(log.session, log.attempt, log.ended, text)
            within[log.session] = not text.endswith("\n")
        ended[log.session] = log.ended
