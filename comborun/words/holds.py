"""Why a run is held, and what notices tell of a run."""

from __future__ import annotations

from comborun.rules.endings import failures
from comborun.rules.facts import Fact, facts_of
from comborun.rules.holds import HoldReason, Notice, ServerStop, TaskLeft
from comborun.rules.names import RUN, SERVERS
from comborun.rules.vocabulary import several
from comborun.words.endings import how_ended
from comborun.words.rows import why_not_counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from comborun.words import Words


def _in_a_row(fact: Fact) -> str:
    where = " on this host" if fact.text("host") else ""
    note = f", at last: {how_ended(fact)}" if how_ended(fact) else ""
    return f"{fact.text('failure')} {fact.count('times')} times in a row{where}{note}"


def _too_many(fact: Fact) -> str:
    limit = f"{fact.count('percent')} %" if fact.count("percent") else str(fact.count("limit"))
    failed = f"{fact.count('failed')} of {several(fact.count('sessions'), 'session')}"
    return f"{failed} ended without success; the limit is {limit}"


def _too_few_gpus(fact: Fact) -> str:
    left = f"{fact.count('usable')} of {fact.count('allowed')} are in no quarantine"
    return f"{fact.text('session')} asks for {several(fact.count('gpus'), 'GPU')}, and {left}"


def _unproven(fact: Fact) -> str:
    whys = fact.fields.get("whys")
    found = zip(fact.texts("sessions"), map(why_not_counted, map(facts_of, whys if isinstance(whys, list) else ())))
    return f"the smoke test left no record: {', '.join(f'{name} ({why})' if why else name for name, why in found)}"


def _server_ends(fact: Fact) -> str:
    code = f"exit code {fact.text('exit_code')}" if fact.text("exit_code") else ""
    failure = failures.named(fact.text("cause"))
    known = failure.row.words if failure and failure.cause and failure.row.in_log else ""
    how = ("" if failure is failures.Failure.LAUNCH_FAILED else known) or how_ended(fact) or code
    how = how or fact.text("cause") or "lost"
    ended = f"the server {fact.text('server')} ended {fact.count('times')} times in a row ({how})"
    return f"{ended}; its log is {RUN.attempt(SERVERS + fact.text('server'), fact.count('attempt')).log}"


def _server_ended(fact: Fact) -> str:
    how = ", ".join(
        filter(None, (fact.text("cause"), f"code {fact.text('exit_code')}" if fact.text("exit_code") else ""))
    )
    return f"the server {fact.text('server')} ended ({how})" + (f": {how_ended(fact)}" if how_ended(fact) else "")


WORDS: Words = {
    HoldReason.BY_PERSON: lambda fact: fact.text("words") or "by hand",
    HoldReason.FAILURES_IN_A_ROW: _in_a_row,
    HoldReason.TOO_MANY_FAILED: _too_many,
    HoldReason.NO_GPU_LEFT: "no GPU is left: each is in quarantine",
    HoldReason.TOO_FEW_GPUS_LEFT: _too_few_gpus,
    HoldReason.SMOKE_TEST_UNPROVEN: _unproven,
    HoldReason.SERVER_ENDS: _server_ends,
    TaskLeft.HELD: "the run is held: {hold} ({reason})",
    TaskLeft.STOPPED: "the run is stopped",
    TaskLeft.DROPPED: "the grid was changed since, and the session is not part of the run any more",
    ServerStop.UNUSED: "no session that is left uses it",
    ServerStop.RUN_OVER: "no session is left",
    ServerStop.ORDERED: "it was told to end",
    Notice.RUN_HALTED: "the run is halted: {reason}",
    Notice.RUN_FINISHED: "{succeeded} of {sessions:session} succeeded",
    Notice.SESSION_ENDED: "{session} ended: {outcome}",
    Notice.NO_PROGRESS: lambda fact: f"{fact.text('session')} makes no progress: {how_ended(fact)}",
    Notice.SESSION_DISK_FULL: "its disk is full",
    Notice.VANISHED: lambda fact: (
        f"{len(fact.texts('sessions'))} sessions vanished together: {' '.join(fact.texts('sessions'))}"
    ),
    Notice.QUARANTINED: "GPU {gpu} gets no new sessions: {failure} {times} times in a row there",
    Notice.FEWER: ("GPU {gpu}: at most {most:session} at once from now on: one of {sessions} ran out of its memory"),
    Notice.SERVER_SILENT: "the server {server} does not answer",
    Notice.SERVER_ENDED: _server_ended,
    Notice.HELD_BACK: "held back before",
    Notice.TEST: "a test: this is what a notice looks like",
}
