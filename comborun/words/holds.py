"""Why a run is held, and what notices tell of a run."""

from __future__ import annotations

from comborun.rules.endings import failures
from comborun.rules.facts import Fact, facts_of
from comborun.rules.holds import HoldReason, Notice, ServerStop, TaskLeft
from comborun.rules.names import RUN, SERVERS
from comborun.words.endings import how_ended
from comborun.words.rows import why_not_counted

TYPE_CHECKING = False
if TYPE_CHECKING:
    from comborun.words import Words


def _unproven(fact: Fact) -> str:
    whys = fact.fields.get("whys")
    found = zip(fact.texts("sessions"), map(why_not_counted, map(facts_of, whys if isinstance(whys, list) else ())))
    return f"the smoke test left no record: {', '.join(f'{name} ({why})' if why else name for name, why in found)}"


def _server_ends(fact: Fact) -> str:
    code = f"exit code {fact.text('exit_code')}" if fact.text("exit_code") else ""
    failure = failures.named(fact.text("cause"))
    known = failure.row.words if failure and failure.cause and failure.row.in_log else ""
    shown = ("" if failure is failures.Failure.LAUNCH_FAILED else known) or how_ended(fact) or code
    shown = shown or fact.text("cause") or "lost"
    ended = f"the server {fact.text('server')} ended {fact.count('times')} times in a row ({shown})"
    return f"{ended}; its log is {RUN.attempt(SERVERS + fact.text('server'), fact.count('attempt')).log}"


WORDS: Words = {
    HoldReason.BY_PERSON: "[{words}|by hand]",
    HoldReason.FAILURES_IN_A_ROW: (
        "{times} failures of one kind in a row[ on this host{host:if}]: {failure:class}[ ({ending})| ({note})]"
    ),
    HoldReason.TOO_MANY_FAILED: (
        "{failed} of {sessions:session} ended without success; the limit is [{percent:+} %|{limit}]"
    ),
    HoldReason.NO_GPU_LEFT: "no GPU is left: each is in quarantine",
    HoldReason.TOO_FEW_GPUS_LEFT: ("{session} asks for {gpus:GPU}, and {usable} of {allowed} are in no quarantine"),
    HoldReason.ENVIRONMENTS_CLOSED: lambda fact: (
        f"all that wait are of environments that failed in a row: {', '.join(fact.texts('environments'))}"
        f" ({', '.join(dict.fromkeys(map(failures.words_of, fact.texts('failures'))))})"
    ),
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
    Notice.NO_PROGRESS: "{session} makes no progress: [{ending}|{note}]",
    Notice.SESSION_DISK_FULL: "its disk is full",
    Notice.VANISHED: lambda fact: (
        f"{len(fact.texts('sessions'))} sessions vanished together: {' '.join(fact.texts('sessions'))}"
    ),
    Notice.GPU_FELL: "the driver lists GPU {gpu} no more, so nothing new starts there",
    Notice.QUARANTINED: "GPU {gpu} gets no new sessions: {failure:class} {times} times in a row there",
    Notice.ENVIRONMENT_CLOSED: (
        "the environment {environment} gets no new sessions: {failure:class} {times} times in a row there,"
        " and others go on"
    ),
    Notice.FEWER: ("GPU {gpu}: at most {most:session} at once from now on: one of {sessions} ran out of its memory"),
    Notice.SERVER_SILENT: "the server {server} does not answer",
    Notice.SERVER_ENDED: (
        "the server {server} ended ([{cause}, code {exit_code}|{cause}|code {exit_code}])[: {ending}|: {note}]"
    ),
    Notice.HELD_BACK: "held back before",
    Notice.TEST: "a test: this is what a notice looks like",
}
