"""What is said of one session: what it waits for, what it does, how it has ended."""

from __future__ import annotations

from comborun.rules.facts import Fact, facts_of
from comborun.rules.room.waits import WaitFor
from comborun.rules.vocabulary import Cause, amount, first_of, several
from comborun.words import BECAUSE
from comborun.words.endings import CAUSES, SIGNALS, behind, beside_records, how_ended
from comborun.words.rows import why_not_counted
from comborun.words.times import brief, clock
from comborun.words.waits import RESOURCES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from comborun.words import Words

_MOST_NAMED = 4
FORMS = {
    "free": lambda what: f"there is {RESOURCES[what]}" if what in RESOURCES else "a slot is free",
    "for": lambda what: "" if what in (WaitFor.STAGGER, WaitFor.WARM_UP) else f" for {RESOURCES.get(what, what)}",
}
_WHERE = "[ on GPU {gpus} of {node}| on GPU {gpus}| on {node}][, as task {task}]"
_SHARED = (
    "[{memory_mib:+} MiB on each, at most {per_gpu:+session} on each|{memory_mib:+} MiB on each"
    "|at most {per_gpu:+session} on each|with no other session on it, because the grid gives no gpu_memory]"
)


# A session that waits


def _when(fact: Fact) -> str:
    """`10:34 (in 4 min)`."""
    moment, left = fact.number("at") or 0.0, fact.number("in_s") or 0.0
    when = clock(moment, near=moment - left)
    return f"{when} (in {brief(left)})" if left >= 0 else f"{when} ({brief(-left)} ago)"


def _waits_for_smoke_test(fact: Fact) -> str:
    counts = fact.fields.get("counts")
    listed = ", ".join(f"{count} {word}" for word, count in counts.items()) if isinstance(counts, dict) else ""
    return f"the smoke test comes first: {listed}"


def _gpu_is_held(fact: Fact) -> str:
    holders = [*(f"the server {name}" for name in fact.texts("servers")), *fact.texts("sessions")]
    return f"GPU {fact.count('gpu')} is held by {first_of(holders, _MOST_NAMED, count=fact.count('count'))}"


def _before_it(fact: Fact) -> str:
    count = fact.count("count")
    named = first_of(fact.texts("sessions"), _MOST_NAMED, count=count)
    return f"{several(count, 'session')} before it in the queue: {named}"


# A session that runs, or has ended


def _ended_by(fact: Fact) -> str:
    """What ended the command: `exit code 3`, `stalled`, `out of GPU memory (killed)`."""
    cause, number, code = fact.text("cause"), fact.count("signal"), fact.number("exit_code")
    if known := CAUSES.get(cause):  # type: ignore[call-overload]
        return str(known)
    seen = "ended for an unknown reason"
    if number:
        seen = SIGNALS.get(number) or f"signal {number}"
    elif cause == Cause.EXITED and code is not None:
        seen = f"exit code {int(code)}"
    found = behind(cause, fact.text("failure"))
    return f"{found} ({seen})" if found else seen


def _command_ended(fact: Fact) -> str:
    details = how_ended(fact)
    if details and fact.text("cause") in (Cause.STOPPED, Cause.NOT_NEEDED, Cause.LAUNCH_FAILED):
        return details
    return ": ".join(filter(None, (_ended_by(fact), details)))


def _results_are_missing(fact: Fact) -> str:
    """Why exit code 0 is not a success."""
    steps, records = bool(fact.fields.get("steps")), fact.count("records")
    without = beside_records(fact.text("line"), fact.texts("files"), steps=steps)
    if without:
        lacks = f", without {without}"
    elif not records:
        lacks = ", but no results"
    elif records >= fact.count("planned"):
        lacks = ", but no verdict in any of its records"
    else:
        lacks = f" after {records} of {fact.count('planned')} {fact.text('unit')}s"
    return ": ".join(filter(None, (f"exit code 0{lacks}", how_ended(fact))))


def _evidence(fact: Fact) -> str:
    records, files = fact.number("records"), ", ".join(fact.texts("record_files")) or "its log"
    number = several(int(records), "record") if records else "a record of each episode"
    wanted = [] if records is None else [f"{number} in {files}"]
    wanted += [f"a log line that matches {fact.text('line')}"] if fact.text("line") else []
    wanted += ["its last step in the log"] if fact.fields.get("steps") else []
    wanted += [f"a file {glob}" for glob in fact.texts("files")]
    return f"to be complete, it needs {' and '.join(wanted) or 'exit code 0'}"


def _used(fact: Fact) -> str:
    made, most = fact.count("made"), fact.count("most")
    since = " since it was last stopped or asked for" if fact.fields.get("renewed") else ""
    return f" ({made} of {several(most, 'start')} used{since})" if made <= most else ""


def _starts_left(fact: Fact) -> str:
    when = " when the run goes on" if fact.fields.get("held") else ""
    more = several(fact.count("left"), "more start")
    return f"its failure counts as `{fact.text('failure')}`: {more} may follow{when}{_used(fact)}"


def _no_start_left(fact: Fact) -> str:
    retries = fact.count("retries")
    if not retries:
        why = "which is not retried"
    elif fact.count("made") < fact.count("most"):
        why = f"and it has had its {several(retries, 'retry', 'retries')} for that"
    else:
        why = "and no start is left"
    return f"its failure counts as `{fact.text('failure')}`, {why}{_used(fact)}"


WORDS: Words = {
    # a session that waits
    "nothing_starts_until_resume": lambda fact: (
        f"nothing new starts{f' since {_when(fact)}' if 'at' in fact.fields else ''},"
        f" until `combo resume {fact.text('run')}`"
    ),
    "starts_again": (
        "again [when the run goes on{held:if}|in {in_s:brief}|as soon as {waits_for:free}|as soon as a slot is free]"
        "[: {failure:class}, attempt {attempt}[ of {of:+}]|: {reason}|: {words}]"
    ),
    "waits": "waits{waits_for:for}" + BECAUSE,
    "waits_for_room": "waits{waits_for:for}" + BECAUSE,
    "waits_for_next_start": "its attempt {attempt} [was stopped{stopped:if}|failed]; {start}",
    "waits_for_smoke_test": _waits_for_smoke_test,
    "waits_for_server": (
        "waits for the server {server}, which {state}[ and waits itself: {reason}][ and waits itself: {words}]"
    ),
    "has_not_begun": "has not begun: {reason}",
    "is_tried_at": lambda fact: f"it is tried at {_when(fact)}",
    "slurm_has_no_task": "Slurm has no task for it yet",
    "task_is_queued": "its task {job} is in Slurm's queue, {task}",
    "task_held_by_slurm": "{reason}: scontrol release lets it go",
    "task_waits": "{reason}",
    "task_not_looked_at": "Slurm has not looked at it yet",
    "task_state": "{state}",
    "attempt_waits": "attempt {attempt} waits, {task}",
    "slurm_expects_start": lambda fact: f"Slurm expects to start it at {_when(fact)}",
    "task_asks_for": "it asks for {asks}",
    "needs_gpus": f"it needs {{gpus:GPU}} of [{{of}}|none], {_SHARED}",
    "gpu_is_held": _gpu_is_held,
    "sessions_before_it": _before_it,
    "slots_busy": "{busy} of {slots:slot} busy",
    "next_to_end": lambda fact: f"the next to end is {fact.text('session')}, about {_when(fact)}",
    "next_end_unknown": "it is not known yet when the next one ends",
    "its_turn": "it is its turn: it starts in a moment",
    "expected_to_end": lambda fact: f"it is expected to end at {_when(fact)}",
    # a session that runs
    "attempt_starts": (
        f"attempt {{attempt}} is starting{_WHERE}: [its script begins there{{slurm:if}}|its window is being opened]"
    ),
    "attempt_runs": f"attempt {{attempt}} has been running for {{seconds:duration}}{_WHERE}",
    "supervisor_is_gone": (
        "its supervisor is gone, but the command goes on; the dispatcher judges it when it has ended"
    ),
    "work_done": "{done}[ of {planned:+} {unit}s| {unit}{done:s}] done[, {successes} of {recorded:+} successful]",
    "rows_not_counted": lambda fact: why_not_counted(facts_of(fact.fields.get("reasons"))),
    "no_progress_since": "no progress since {at:clock} ({seconds:brief})",
    "no_progress_for": "no progress for {seconds:brief}",
    "is_being_ended": "it is being ended[: {ending}][: {note}]",
    "log_grew": "its log last grew {ago_s:brief} ago",
    "stall_limit": "it is ended when it shows no progress for {seconds:duration}",
    "no_stall_limit": "this does not end it: the grid sets no `limits: {{stall_after: ...}}`",
    "time_limit": "it is ended when it has run for {seconds:duration}[, in {in_s:+brief}]",
    # a session that has ended
    "session_is_dropped": (
        "the grid has changed: this session is no longer a part of the run, and its records do not count"
    ),
    "session_is_elsewhere": "this session runs on another host",
    "queued_when_stopped": "it was queued when the run was stopped, and has not started",
    "task_is_gone": "its task is gone; what ended it is not judged yet",
    "nobody_saw_end": "nobody saw it end",
    "supervisor_died_early": "its supervisor died before it began",
    "command_ended": _command_ended,
    "ended_after_results": lambda fact: f"{_ended_by(fact)} after complete results",
    "announced_steps_reached": "it reached the {steps:step} that its program announced; {planned} were planned",
    "results_are_missing": _results_are_missing,
    "attempt_ended": "attempt {attempt} ended[ at {at:clock}][ after {seconds:duration}][: {how}]",
    "attempt_was_called_off": "attempt {attempt} was called off[ at {at:clock}] and never began[: {how}]",
    "earlier_attempt": "attempt {attempt} before it: [{how}|nobody saw it end], [{done} {unit}{done:s}|0 {unit}s]",
    "evidence_needed": _evidence,
    "peak_memory": lambda fact: f"its processes held {amount(fact.number('bytes') or 0)} of memory at most, by samples",
    "start_was_asked_for": (
        "its failure counts as `{failure}`: another start was asked for and follows when the run goes on"
    ),
    "starts_left": _starts_left,
    "no_start_left": _no_start_left,
    "after_waits": "the grid's last command runs once all sessions have ended: {sessions} have not",
    "after_ended": "it ended[ after {seconds:duration}][: {how}]",
    "after_runs": "it has been running for {seconds:duration}",
}
