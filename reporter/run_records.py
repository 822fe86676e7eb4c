"""Reads the records of a run directory besides its results: plan, manifest, attempts, and the canary's."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from comborun.errors import UserError
from comborun.model.attempt import Begin, End, own_end
from comborun.model.codec import decoded
from comborun.model.plan import Plan, Session
from comborun.model.stopping import StopRule
from comborun.model.work import deal_in, process_of
from comborun.reporter.records.collected import AttemptRecord, Canary, SessionHistory
from comborun.rules import counting
from comborun.rules.deal import Deal
from comborun.rules.facts import Fact
from comborun.rules.names import RUN, RunLayout
from comborun.rules.records import parse
from comborun.rules.run_files import attempts_of, newest_plan

LOG_BYTES, LINES_SHOWN, LINE_SHOWN = 8192, 12, 300
"""of a failed attempt's log: bytes read at its end, lines that are kept, characters of each"""
_COLOUR = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]")


def manifest_of(directory: Path) -> Mapping[str, Any]:
    """Empty if it can't be read: a report does without its provenance."""
    try:
        return mapping(json.loads(text_of(directory / RUN.manifest) or "{}"))
    except ValueError:
        return {}


def mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def stop_rule(directory: Path, manifest: Mapping[str, Any]) -> StopRule | None:
    """Raises UserError for a rule that can't be read: to ignore it would change the claims."""
    data = manifest.get("stop_early")
    try:
        rule: StopRule | None = None if data is None else decoded(StopRule, data)
    except (ValueError, KeyError, TypeError) as error:
        where = f"{directory / RUN.manifest}: `stop_early` can't be read: {error!r}"
        raise UserError(where, "was it written by this version?") from None
    return rule


def _deal_of(directory: Path) -> Deal | None:
    return deal_in(text_of(directory / RUN.deal), map(text_of, (directory / RUN.moves).glob("*")))


def part_of(directory: Path, plan: Plan, run: str) -> Fact | None:
    """That these are the records of one of several hosts."""
    deal = _deal_of(directory)
    here, planned = (sum(not one.flag for one in found.sessions) for found in (plan, plan.whole))
    numbers = {"sessions": here, "all": planned}
    return Fact("part_of_run", run=run, verb="report", host=deal.box, hosts=deal.boxes, **numbers) if deal else None


def plan_of(directory: Path) -> Plan:
    """The newest plan, which contains the older ones."""
    path = directory / RUN.plan(newest_plan(str(directory)))
    try:
        plan = Plan.from_json(path.read_text("utf-8", "surrogateescape"))
        deal = _deal_of(directory)
        return plan.without(lambda one: deal is None or deal.runs_here(process_of(one)))
    except OSError as error:
        if (directory / RUN.manifest).is_file():
            raise half_copied(directory, RUN.manifest, RUN.plan(1)) from None
        raise UserError(
            f"{directory} is not a run directory: {path.name}: {error.strerror}",
            "give a run directory, or report a folder of results",
        ) from None
    except ValueError as error:
        raise UserError(f"{path} can't be read as a plan: {error}", "was it written by this version?") from None


def half_copied(directory: Path, held: str, lacking: str) -> UserError:
    return UserError(
        f"{directory} is a run directory that was not copied whole: it holds {held} but no {lacking}",
        f"copy it again with all that is in it, or report its results alone: combo report {directory / RUN.sessions}",
    )


def history_of(directory: Path, session: Session) -> SessionHistory:
    attempts = []
    for number in attempts_of(RunLayout(str(directory)), session.name):
        at = RUN.attempt(session.name, number)
        claim, begin, text = (text_of(directory / path) for path in (at.claim, at.begin, at.end))
        record = parse(text) if text else {}
        end = End.of(record) if text and own_end(claim, text) else None
        log = RUN.attempt(process_of(session), number).log if end and end.failure else ""
        lines = _last_lines(directory / log) if log else ()
        judged = str(record.get("results", ""))
        attempts.append(AttemptRecord(number, Begin.parse(begin) if begin else None, end, lines, judged))
    return SessionHistory(session, tuple(attempts))


def _last_lines(path: Path) -> tuple[str, ...]:
    """The end of a log, without colours and without overwritten text."""
    try:
        with path.open("rb") as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - LOG_BYTES))
            text = stream.read().decode("utf-8", "replace")
    except OSError:
        return ()
    lines = (counting.shown(line.rstrip()) for line in _COLOUR.sub("", text).split("\n"))
    return tuple(line[:LINE_SHOWN] for line in lines if line.strip())[-LINES_SHOWN:]


def text_of(path: Path) -> str:
    try:
        return path.read_text("utf-8", "replace")
    except OSError:
        return ""


def canary_of(directory: Path) -> Canary | None:
    path = directory / RUN.canary
    try:
        return Canary.from_json(path.read_text("utf-8"))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError) as error:
        raise UserError(f"{path} can't be read: {error!r}", "combo recheck writes another") from None


# -- clocks of hosts that are wrong -----------------------------------------------------------------------------------


class WrongClock(NamedTuple):
    host: str
    ahead: float
    """seconds by which it was ahead of the machine that copied the records"""
    attempts: Mapping[str, Sequence[int]]
    """session -> its attempts on that host"""

    @property
    def fact(self) -> Fact:
        return Fact("clock_of_host", seconds=abs(self.ahead), way="ahead" if self.ahead > 0 else "behind")


def clocks_of(text: str) -> tuple[WrongClock, ...]:
    """Those that the copy of a run on several hosts names; none in every other folder."""
    found = json.loads(text or "{}")
    return tuple(WrongClock(host, one["ahead"], one["attempts"]) for host, one in found.items())


def on_one_clock(history: SessionHistory, clocks: Sequence[WrongClock]) -> SessionHistory:
    """With the times of all its attempts on the clock of the machine that copied them."""
    ahead = {number: one.ahead for one in clocks for number in one.attempts.get(history.session.name, ())}
    if not ahead:
        return history
    return replace(history, attempts=tuple(_earlier(one, ahead.get(one.number, 0.0)) for one in history.attempts))


def _earlier(attempt: AttemptRecord, seconds: float) -> AttemptRecord:
    begin, end = attempt.begin, attempt.end
    started = None if end is None or end.started is None else end.started - seconds
    return replace(
        attempt,
        begin=begin and replace(begin, started=begin.started - seconds),
        end=end and end._replace(started=started, ended=end.ended - seconds),
    )
