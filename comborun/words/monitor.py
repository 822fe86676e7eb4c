"""What is said of a run as a whole, of its servers, and of what stop and resume would do."""

from __future__ import annotations

from comborun.rules.endings.failures import mend, words_of
from comborun.rules.facts import Fact
from comborun.rules.holds import Notice
from comborun.rules.vocabulary import first_of, several
from comborun.words import BECAUSE, fill
from comborun.words.endings import class_words, how_ended, outcome_words
from comborun.words.times import brief, clock, clocks, span

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
FORMS = {"ordered": lambda order: _ORDERED.get(order, order)}
_ON = "[on {on}: ]"
_RESUME = "run `combo resume {run}` to continue"
_MOST_NAMED, _MOST_ENDED = 4, 8


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
    rest = f", {_lacking(fact)}" if "lack" in fact.fields else ""
    resume = f"{{hold}}: {_RESUME}[; running sessions continue to their end{{sessions_continue:if}}]"
    return fill(f"{resume}; nothing new starts{rest}{BECAUSE}", fact)


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


def _moved(fact: Fact) -> str:
    """`5 sessions moved to another host before their first attempt: a, b, c, d and 1 more`."""
    names = first_of(fact.texts("sessions"), _MOST_NAMED, count=fact.count("moved"))
    return f"{several(fact.count('moved'), 'session')} moved to another host before the first attempt: {names}"


def _ends_about(fact: Fact) -> str:
    """`ends 14:28–14:36 (in 8–16 min)`."""
    earliest, latest, left = (fact.number(key) or 0.0 for key in ("earliest", "latest", "in_s"))
    now = earliest - left
    when = clocks(earliest, latest, now)
    return f"ends {when if '–' in when else f'about {when}'} (in {span(left, latest - now)})"


def _host_back(fact: Fact) -> str:
    """`h100 did not answer for 3 min, until 13:05:10; meanwhile: 2 failed, 1 running`."""
    host, gone = fact.text("host"), fact.fields.get("gone")
    what = f"the run's folder on {host} was gone" if gone else f"{host} did not answer"
    changes = fact.fields.get("changes")
    counts = changes.items() if isinstance(changes, dict) else ()
    meanwhile = ", ".join(f"{count} {outcome_words(word)}" for word, count in counts) or "nothing changed"
    lasted, until = brief(fact.number("seconds") or 0), clock(fact.number("at") or 0)
    return f"{what} for {lasted}, until {until}; meanwhile: {meanwhile}"


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


# What stop and resume would do


def _stop_ends(fact: Fact) -> str:
    names = fact.texts("sessions")
    ends = f"ends {several(len(names), 'running session')}: {first_of(names, _MOST_ENDED, 'session')}"
    return f"{fact.text('run')} on {fact.text('host')}: {ends if names else 'no session is running'}"


def _resume_repeats(fact: Fact) -> str:
    count = several(fact.count("episodes"), "recorded episode")
    which = first_of(fact.texts("sessions"), _MOST_ENDED)
    return f"a later resume runs {count} again, because a start takes no range of episodes: {which}"


def _loss_not_ended(fact: Fact) -> str:
    hosts, answer = fact.texts("hosts"), fact.texts("answer")
    command = f"`combo hosts lost {' '.join(hosts) or 'HOST'} --run {fact.text('run')}`"
    again = f"; {', '.join(answer)} answer{'s' * (len(answer) == 1)}, so it calls this off" if answer else ""
    return f"{command} was cut off, and nothing moves until it is given again{again}"


WORDS: Words = {
    # the whole run
    "run_held": _run_held,
    "held": "{hold}[ (running sessions continue to their end){sessions_continue:if}]" + BECAUSE,
    "host_held": (
        "{host} is {hold}, and nothing new starts there until `combo resume {run} --host {host}`"
        f"[; running sessions continue to their end{{sessions_continue:if}}]{BECAUSE}"
    ),
    "run_was_stopped": lambda fact: (
        f"{fill(_ON, fact)}stopped, {_lacking(fact)}: run `combo resume {fact.text('run')}` to continue"
    ),
    "run_disk_full": f"{_ON}the disk of the run is full: free some space, and the run continues by itself",
    "run_is_being_stopped": f"{_ON}stopped: nothing new starts; `combo stop {{run}}` ends what still runs",
    "slurm_has_no_job": f"Slurm has none of its jobs any more, and nothing new starts: {_RESUME}",
    "sessions_moved": _moved,
    "part_of_run": (
        "{host}'s part of a run on {hosts}: {sessions} of {all:session}; `combo {verb} {run}` shows the whole run; on a"
        " machine that has not launched it, with --host for each of these hosts"
    ),
    "sessions_would_move": (
        "{sessions:session} would end earlier on {hosts}: what waits moves only while `combo monitor`, `combo view` or"
        " `combo keep` looks"
    ),
    "loss_not_ended": _loss_not_ended,
    "dispatcher_gone_at_end": (
        f"{_ON}the dispatcher is gone, so the run does not end: run `combo resume {{run}}` to end it"
    ),
    "dispatcher_gone": f"{_ON}the dispatcher is gone, nothing new starts: {_RESUME}",
    "dispatcher_is_held": f"{_ON}a signal holds the dispatcher (process {{pid}}), and nothing new starts: {_RESUME}",
    "nothing_has_started": (
        f"{_ON}nothing has started yet; if the launch was interrupted, the same `combo launch` again does the rest"
    ),
    "slurm_holds_tasks": _slurm_holds,
    "quarantine_advice": f"{_ON}{{quarantine}}: {_RESUME}",
    "gpus_in_quarantine": _gpus_in_quarantine,
    "environments_closed": _environments_closed,
    "nothing_starts": "nothing new starts until the run is resumed",
    "notices_fail": (
        "the notify command [took too long{timed_out:if}|ended with code {exit_code}] {ago_s:brief} ago: notices are"
        " not delivered; `combo notify {run}` tests it"
    ),
    "ends_about": _ends_about,
    "host_back": _host_back,
    "host_rebooted": "{host} rebooted[ after {at:clock}]: {sessions:session} that ran before {sessions:are} lost",
    "all_sessions_vanished": (
        "all {sessions} sessions that ran vanished together[ after {at:clock}]:"
        " were the user's processes on {host} killed?"
    ),
    "slurm_is_silent": "Slurm does not answer; [this is from {ago_s:brief} ago|it has not answered yet][: {said}]",
    "slurm_summary": _slurm_summary,
    # causes that sessions share
    "ordered_by": f"{_ON}{{order:ordered}} by {{user}}[ from {{origin}}][ at {{at:+clock}}]",
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
    "nothing_to_resume": (
        "{run}: [{coming:+session} queued or running|some episodes have no record{futile:if}|nothing is missing];"
        " there is nothing to resume"
    ),
    "resumes": "{run}:",
    "tasks_released": "{tasks} tasks that Slurm holds are released",
    "another_attempt": (
        "{session}: another attempt[, for the episode{count:+s} {episodes} that {count:have} no record]"
        "[; {repeated:+recorded episode} {repeated:=run} again, because"
        " [what is missing is not only at the end{ranged:if}|a start of it takes no range]]"
    ),
    "new_session": "{session}: a new session for {policy} in {environment}, episode{count:s} {episodes}",
    "sessions_coming": "{count:session} [queued, and not started yet{stopped:if}|queued or running already]",
    "dispatcher_ends_run": "its dispatcher is gone: a new one ends the run",
    "no_longer_held": "no longer {hold}[: {reason}][: {words}]",
    "no_longer_stopped": "no longer stopped",
    "environment_used_again": "{environment} gets sessions again (it was closed: {failure:class})",
    "gpu_used_again": "GPU {gpu} is used again (it was in quarantine: {failure:class})",
    "futile_to_repeat": "{session}, episode{count:s} {episodes}: {reason}, so running it again would not help",
    "complete_without_records": "the session counts as complete but recorded none of these",
    "records_are_rejected": "its records are rejected by the report ({said}, {place})",
    # servers
    "server_state": _server_state,
    "server_is": "it {server}[, on GPU {gpus}][, on port {port}]",
    "server_waits": "it waits[: {reason}][: {words}]",
    "server_is_used": "{sessions:session} of the run {sessions:=use} it",
    "server_start": (
        "this is its start {attempt}; when it ends by itself it is started again, {restarts:time} in a row at most"
    ),
}
