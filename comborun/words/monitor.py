"""What the monitor says of a run, its sessions and its servers."""

from __future__ import annotations

from comborun.rules.endings.failures import mend, words_of
from comborun.rules.facts import Fact, facts_of
from comborun.rules.holds import Notice
from comborun.rules.room.waits import WaitFor
from comborun.rules.vocabulary import Cause, amount, first_of, several
from comborun.words import part
from comborun.words.endings import CAUSES, SIGNALS, behind, beside_records, class_words, how_ended
from comborun.words.rows import why_not_counted
from comborun.words.times import brief, clock, duration, span
from comborun.words.waits import RESOURCES

TYPE_CHECKING = False
if TYPE_CHECKING:
    from comborun.words import Words

_SERVER_STATES = {
    "queued": "has not started",
    "starting": "is starting",
    "loading": "is loading",
    "ready": "is ready",
    "silent": "does not answer",
    "ended": "has ended",
}
_ORDERED = {"stop": "stopped", "pause": "paused", "drain": "drained"}
_RESUME = "run `combo resume {run}` to continue"
_MOST_NAMED, _MOST_ENDED = 4, 8


def _because(fact: Fact) -> str:
    """`: ` and the reason; empty without one."""
    why = part(fact, "reason") or fact.text("words")
    return f": {why}" if why else ""


def _when(fact: Fact) -> str:
    """`10:34 (in 4 min)`."""
    moment, left = fact.number("at") or 0.0, fact.number("in_s") or 0.0
    when = clock(moment, near=moment - left)
    return f"{when} (in {brief(left)})" if left >= 0 else f"{when} ({brief(-left)} ago)"


def _gpus(fact: Fact, key: str = "gpus") -> str:
    return f"GPU {', '.join(fact.texts(key))}" if fact.texts(key) else ""


# The whole run


def _lacking(fact: Fact) -> str:
    """`2 of 6 sessions without success, 3 never started`: a session that has not run has not failed."""
    never, every = fact.count("never"), several(fact.count("sessions"), "session")
    tried = fact.count("lack") - never
    if not tried:
        return f"{never} of {every} never started"
    return f"{tried} of {every} without success{f', {never} never started' if never else ''}"


def _run_held(fact: Fact) -> str:
    """The command comes first, because the reason may be long and cut off."""
    going = "; running sessions continue to their end" if fact.fields.get("sessions_continue") else ""
    rest = f", {_lacking(fact)}" if "lack" in fact.fields else ""
    resume = f"run `combo resume {fact.text('run')}` to continue"
    return f"{fact.text('hold')}: {resume}{going}; nothing new starts{rest}{_because(fact)}"


def _host_held(fact: Fact) -> str:
    host, going = fact.text("host"), "; running sessions continue to their end"
    until = f"until `combo resume {fact.text('run')} --host {host}`{going * bool(fact.fields.get('sessions_continue'))}"
    return f"{host} is {fact.text('hold')}, and nothing new starts there {until}{_because(fact)}"


def _held(fact: Fact) -> str:
    going = " (running sessions continue to their end)" if fact.fields.get("sessions_continue") else ""
    return f"{fact.text('hold')}{going}{_because(fact)}"


def _slurm_holds(fact: Fact) -> str:
    where = f" on {fact.text('host')}" if fact.text("host") else ""
    release = f"scontrol release {' '.join(fact.texts('arrays')) or 'JOB'}"
    return f"Slurm holds {several(fact.count('tasks'), 'task')}: run `{release}`{where} to continue"


def _gpus_in_quarantine(fact: Fact) -> str:
    gpus, failures = fact.texts("gpus"), dict.fromkeys(fact.texts("failures"))
    get = "get" if len(gpus) > 1 else "gets"
    why = ", ".join(class_words(one) + " again and again" * (one != Notice.GPU_FELL) for one in failures)
    return f"{', '.join(f'GPU {gpu}' for gpu in gpus)} {get} no more sessions ({why})"


def _environments_closed(fact: Fact) -> str:
    environments, failures = fact.texts("environments"), dict.fromkeys(fact.texts("failures"))
    get = "get" if len(environments) > 1 else "gets"
    return f"{', '.join(environments)} {get} no more sessions ({', '.join(map(words_of, failures))} again and again)"


def _notices_fail(fact: Fact) -> str:
    how = "took too long" if fact.fields.get("timed_out") else f"ended with code {fact.text('exit_code')}"
    ago = f"{brief(fact.number('ago_s') or 0)} ago"
    return f"the notify command {how} {ago}: notices are not delivered; `combo notify {fact.text('run')}` tests it"


def _moved(fact: Fact) -> str:
    """`5 sessions moved to another host before their first attempt: a, b, c, d and 1 more`."""
    names = first_of(fact.texts("sessions"), _MOST_NAMED, count=fact.count("moved"))
    return f"{several(fact.count('moved'), 'session')} moved to another host before the first attempt: {names}"


def _ends_about(fact: Fact) -> str:
    """`ends 14:28–14:36 (in 8–16 min)`."""
    earliest, latest, left = (fact.number(key) or 0.0 for key in ("earliest", "latest", "in_s"))
    now = earliest - left
    first, last = clock(earliest, near=now), clock(latest, near=now)
    return f"ends {f'about {last}' if first == last else f'{first}–{last}'} (in {span(left, latest - now)})"


def _host_rebooted(fact: Fact) -> str:
    """`gpu-box rebooted after 14:32:05: 8 sessions that ran before are lost`."""
    at, sessions = fact.number("at"), fact.count("sessions")
    after = "" if at is None else f" after {clock(at)}"
    are = "is" if sessions == 1 else "are"
    return f"{fact.text('host')} rebooted{after}: {several(sessions, 'session')} that ran before {are} lost"


def _slurm_is_silent(fact: Fact) -> str:
    ago, said = fact.number("ago_s"), part(fact, "said")
    since = "it has not answered yet" if ago is None else f"this is from {brief(ago)} ago"
    return f"Slurm does not answer; {since}{f': {said}' if said else ''}"


def _slurm_summary(fact: Fact) -> str:
    """`Slurm: 3 tasks pending (2 Resources, 1 Priority), 4 running on n1, n2`."""
    pending, reasons, nodes = fact.count("pending"), fact.fields.get("reasons"), fact.texts("nodes")
    parts = []
    if pending:
        counts = reasons.items() if isinstance(reasons, dict) else ()
        words = [(word or "not looked at yet", count) for word, count in counts]
        listed = ", ".join(f"{count} {word}" if pending > 1 else word for word, count in words)
        parts.append(f"{several(pending, 'task')} pending ({listed})")
    if fact.count("running"):
        where = ", ".join(nodes) if 0 < len(nodes) <= _MOST_NAMED else several(len(nodes), "node")
        parts.append(f"{fact.count('running')} running on {where}")
    return f"Slurm: {', '.join(parts)}" if parts else "Slurm has none of its tasks"


# A session that waits


def _starts_again(fact: Fact) -> str:
    """`again in 40 s: out of GPU memory, attempt 2 of 3`."""
    left, resource = fact.number("in_s"), RESOURCES.get(fact.text("waits_for"))
    if left is not None:
        said = f"again in {brief(left)}"
    elif resource:
        said = f"again as soon as there is {resource}"
    else:
        said = "again as soon as a slot is free"
    failure = fact.text("failure")
    if not failure:
        return f"{said}{_because(fact)}"
    of = f" of {fact.count('of')}" if fact.count("of") else ""
    return f"{said}: {words_of(failure)}, attempt {fact.count('attempt')}{of}"


def _waits(fact: Fact) -> str:
    what = fact.text("waits_for")
    if what in (WaitFor.STAGGER, WaitFor.WARM_UP):
        return f"waits{_because(fact)}"
    return f"waits for {RESOURCES.get(what, what)}{_because(fact)}"


def _waits_for_next_start(fact: Fact) -> str:
    ended = "was stopped" if fact.fields.get("stopped") else "failed"
    return f"its attempt {fact.count('attempt')} {ended}; {part(fact, 'start')}"


def _waits_for_smoke_test(fact: Fact) -> str:
    counts = fact.fields.get("counts")
    listed = ", ".join(f"{count} {word}" for word, count in counts.items()) if isinstance(counts, dict) else ""
    return f"the smoke test comes first: {listed}"


def _needs_gpus(fact: Fact) -> str:
    memory, most = fact.count("memory_mib"), fact.count("per_gpu")
    parts = [f"{memory} MiB on each" if memory else "", f"at most {several(most, 'session')} on each" if most else ""]
    shared = ", ".join(filter(None, parts)) or "with no other session on it, because the grid gives no gpu_memory"
    return f"it needs {several(fact.count('gpus'), 'GPU')} of {', '.join(fact.texts('of')) or 'none'}, {shared}"


def _gpu_is_held(fact: Fact) -> str:
    holders = [*(f"the server {name}" for name in fact.texts("servers")), *fact.texts("sessions")]
    return f"GPU {fact.count('gpu')} is held by {first_of(holders, _MOST_NAMED, count=fact.count('count'))}"


def _before_it(fact: Fact) -> str:
    count = fact.count("count")
    named = first_of(fact.texts("sessions"), _MOST_NAMED, count=count)
    return f"{several(count, 'session')} before it in the queue: {named}"


# A session that runs, or has ended


def _where(fact: Fact) -> str:
    place = " of ".join(filter(None, (_gpus(fact), fact.text("node"))))
    return (f" on {place}" if place else "") + (f", as task {fact.text('task')}" if fact.text("task") else "")


def _attempt_starts(fact: Fact) -> str:
    doing = "its script begins there" if fact.fields.get("slurm") else "its window is being opened"
    return f"attempt {fact.count('attempt')} is starting{_where(fact)}: {doing}"


def _attempt_runs(fact: Fact) -> str:
    lasted = duration(fact.number("seconds") or 0.0)
    return f"attempt {fact.count('attempt')} has been running for {lasted}{_where(fact)}"


def _time_limit(fact: Fact) -> str:
    left = fact.number("in_s") or 0.0
    limit = duration(fact.number("seconds") or 0.0)
    return f"it is ended when it has run for {limit}" + (f", in {brief(left)}" if left > 0 else "")


def _work_done(fact: Fact) -> str:
    recorded = fact.count("recorded")
    result = f", {fact.count('successes')} of {recorded} successful" if recorded else ""
    return f"{fact.count('done')} of {fact.count('planned')} {fact.text('unit')}s done{result}"


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


def _earlier(fact: Fact) -> str:
    how = part(fact, "how") or "nobody saw it end"
    return f"attempt {fact.count('attempt')} before it: {how}, {several(fact.count('done'), fact.text('unit'))}"


def _evidence(fact: Fact) -> str:
    records, files = fact.number("records"), ", ".join(fact.texts("record_files")) or "its log"
    wanted = [] if records is None else [f"{several(int(records), 'record')} in {files}"]
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


# Servers


def _server_state(fact: Fact) -> str:
    """`is loading for 3 min`, `has ended 20 s ago (signal)`."""
    state, since = fact.text("state"), fact.number("since_s")
    words = _SERVER_STATES.get(state, state)
    if since is not None:
        words += f" {brief(since)} ago" if state == "ended" else f" for {brief(since)}"
    if state != "ended":
        return words
    return f"{words} ({': '.join(filter(None, (fact.text('cause'), how_ended(fact))))})"


def _server_is_used(fact: Fact) -> str:
    count = fact.count("sessions")
    return f"{several(count, 'session')} of the run {'uses' if count == 1 else 'use'} it"


# What stop and resume would do


def _episodes(fact: Fact) -> str:
    """`episode 5`, `episodes 3-5, 7`."""
    return f"episode{'s' if fact.count('count') > 1 else ''} {fact.text('episodes')}"


def _stop_ends(fact: Fact) -> str:
    names = fact.texts("sessions")
    ends = f"ends {several(len(names), 'running session')}: {first_of(names, _MOST_ENDED, 'session')}"
    return f"{fact.text('run')} on {fact.text('host')}: {ends if names else 'no session is running'}"


def _resume_repeats(fact: Fact) -> str:
    count = several(fact.count("episodes"), "recorded episode")
    which = first_of(fact.texts("sessions"), _MOST_ENDED)
    return f"a later resume runs {count} again, because a start takes no range of episodes: {which}"


def _nothing_to_resume(fact: Fact) -> str:
    left = "some episodes have no record" if fact.fields.get("futile") else "nothing is missing"
    coming = fact.count("coming")
    runs = f"{several(coming, 'session')} queued or running" if coming else left
    return f"{fact.text('run')}: {runs}; there is nothing to resume"


def _loss_not_ended(fact: Fact) -> str:
    hosts, answer = fact.texts("hosts"), fact.texts("answer")
    command = f"`combo hosts lost {' '.join(hosts) or 'HOST'} --run {fact.text('run')}`"
    again = f"; {', '.join(answer)} answer{'s' * (len(answer) == 1)}, so it calls this off" if answer else ""
    return f"{command} was cut off, and nothing moves until it is given again{again}"


def _another_attempt(fact: Fact) -> str:
    have = "has" if fact.count("count") == 1 else "have"
    lacking = f", for the {_episodes(fact)} that {have} no record" if fact.count("count") else ""
    repeated = fact.count("repeated")
    if not repeated:
        return f"{fact.text('session')}: another attempt{lacking}"
    why = "what is missing is not only at the end" if fact.fields.get("ranged") else "a start of it takes no range"
    again = f"{several(repeated, 'recorded episode')} run{'s' * (repeated == 1)} again, because {why}"
    return f"{fact.text('session')}: another attempt{lacking}; {again}"


def _sessions_coming(fact: Fact) -> str:
    begun = "queued, and not started yet" if fact.fields.get("stopped") else "queued or running already"
    return f"{several(fact.count('count'), 'session')} {begun}"


WORDS: Words = {
    # the whole run
    "run_held": _run_held,
    "held": _held,
    "host_held": _host_held,
    "run_was_stopped": lambda fact: f"stopped, {_lacking(fact)}: run `combo resume {fact.text('run')}` to continue",
    "run_disk_full": "the disk of the run is full: free some space, and the run continues by itself",
    "run_is_being_stopped": "stopped: nothing new starts; `combo stop {run}` ends what still runs",
    "slurm_has_no_job": f"Slurm has none of its jobs any more, and nothing new starts: {_RESUME}",
    "sessions_moved": _moved,
    "sessions_would_move": (
        "{sessions:session} would end earlier on {hosts}: what waits moves only while `combo monitor`, `combo view` or"
        " `combo keep` looks"
    ),
    "loss_not_ended": _loss_not_ended,
    "dispatcher_gone_at_end": ("the dispatcher is gone, so the run does not end: run `combo resume {run}` to end it"),
    "dispatcher_gone": f"the dispatcher is gone, nothing new starts: {_RESUME}",
    "dispatcher_is_held": f"a signal holds the dispatcher (process {{pid}}), and nothing new starts: {_RESUME}",
    "nothing_has_started": (
        "nothing has started yet; if the launch was interrupted, the same `combo launch` again does the rest"
    ),
    "slurm_holds_tasks": _slurm_holds,
    "quarantine_advice": f"{{quarantine}}: {_RESUME}",
    "gpus_in_quarantine": _gpus_in_quarantine,
    "environments_closed": _environments_closed,
    "nothing_starts": "nothing new starts until the run is resumed",
    "notices_fail": _notices_fail,
    "ends_about": _ends_about,
    "host_rebooted": _host_rebooted,
    "all_sessions_vanished": (
        "all {sessions} sessions that ran vanished together[ after {at:clock}]:"
        " were the user's processes on {host} killed?"
    ),
    "slurm_is_silent": _slurm_is_silent,
    "slurm_summary": _slurm_summary,
    # a session that waits
    "nothing_starts_until_resume": lambda fact: (
        f"nothing new starts{f' since {_when(fact)}' if 'at' in fact.fields else ''},"
        f" until `combo resume {fact.text('run')}`"
    ),
    "starts_again": _starts_again,
    "waits": _waits,
    "waits_for_room": _waits,
    "waits_for_next_start": _waits_for_next_start,
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
    "needs_gpus": _needs_gpus,
    "gpu_is_held": _gpu_is_held,
    "sessions_before_it": _before_it,
    "slots_busy": "{busy} of {slots:slot} busy",
    "next_to_end": lambda fact: f"the next to end is {fact.text('session')}, about {_when(fact)}",
    "next_end_unknown": "it is not known yet when the next one ends",
    "its_turn": "it is its turn: it starts in a moment",
    "expected_to_end": lambda fact: f"it is expected to end at {_when(fact)}",
    # a session that runs
    "attempt_starts": _attempt_starts,
    "attempt_runs": _attempt_runs,
    "supervisor_is_gone": (
        "its supervisor is gone, but the command goes on; the dispatcher judges it when it has ended"
    ),
    "work_done": _work_done,
    "rows_not_counted": lambda fact: why_not_counted(facts_of(fact.fields.get("reasons"))),
    "no_progress_since": "no progress since {at:clock} ({seconds:brief})",
    "no_progress_for": "no progress for {seconds:brief}",
    "is_being_ended": "it is being ended[: {ending}][: {note}]",
    "log_grew": "its log last grew {ago_s:brief} ago",
    "stall_limit": "it is ended when it shows no progress for {seconds:duration}",
    "no_stall_limit": "this does not end it: the grid sets no `limits: {{stall_after: ...}}`",
    "time_limit": _time_limit,
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
    "results_are_missing": _results_are_missing,
    "attempt_ended": "attempt {attempt} ended[ at {at:clock}][ after {seconds:duration}][: {how}]",
    "attempt_was_called_off": "attempt {attempt} was called off[ at {at:clock}] and never began[: {how}]",
    "earlier_attempt": _earlier,
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
    # causes that sessions share
    "ordered_by": lambda fact: (
        f"{_ORDERED.get(fact.text('order'), fact.text('order'))} by {fact.text('user')}"
        + (f" from {fact.text('origin')}" if fact.text("origin") else "")
        + (f" at {clock(fact.number('at') or 0.0)}" if fact.number("at") else "")
    ),
    "shared_causes": "{causes:cause}, {sessions:session}",
    "look_at_stalled": "see in its window whether it still works; `limits: {{stall_after: ...}}` would end it",
    "retry_will_come": "nothing: another attempt comes by itself",
    "mend_stopped": "resume the run when it shall go on",
    "mend_failure": lambda fact: mend(fact.text("failure")),
    # what stop and resume would do
    "stop_unseen": "{run} on {host}: what runs is not known",
    "stop_ends": _stop_ends,
    "stop_keeps_queued": "{count:queued session} will not start",
    "resume_repeats": _resume_repeats,
    "other_runs_go_on": "other runs of this grid go on; name one to end it: {runs}",
    "nothing_to_resume": _nothing_to_resume,
    "resumes": "{run}:",
    "tasks_released": "{tasks} tasks that Slurm holds are released",
    "another_attempt": _another_attempt,
    "new_session": lambda fact: (
        f"{fact.text('session')}: a new session for {fact.text('policy')} in {fact.text('environment')},"
        f" {_episodes(fact)}"
    ),
    "sessions_coming": _sessions_coming,
    "dispatcher_ends_run": "its dispatcher is gone: a new one ends the run",
    "no_longer_held": "no longer {hold}[: {reason}][: {words}]",
    "no_longer_stopped": "no longer stopped",
    "environment_used_again": "{environment} gets sessions again (it was closed: {failure:class})",
    "gpu_used_again": "GPU {gpu} is used again (it was in quarantine: {failure:class})",
    "futile_to_repeat": lambda fact: (
        f"{fact.text('session')}, {_episodes(fact)}: {part(fact, 'reason')}, so running it again would not help"
    ),
    "complete_without_records": "the session counts as complete but recorded none of these",
    "records_are_rejected": "its records are rejected by the report ({said}, {place})",
    # servers
    "server_state": _server_state,
    "server_is": "it {server}[, on GPU {gpus}][, on port {port}]",
    "server_waits": "it waits[: {reason}][: {words}]",
    "server_is_used": _server_is_used,
    "server_start": (
        "this is its start {attempt}; when it ends by itself it is started again, {restarts:time} in a row at most"
    ),
}
