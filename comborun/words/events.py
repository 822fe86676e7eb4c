"""What happened in a run (`rules/events.py`), in words."""

from __future__ import annotations

from comborun.rules.facts import Fact
from comborun.words import fill, say

TYPE_CHECKING = False
if TYPE_CHECKING:
    from comborun.rules.events import Event
    from comborun.words import Words

_ORDER = "{order}[ {sessions}][ {values}][ because {why}][, by {user}][ ({from})]"
WORDS: Words = {
    "event_dispatching": "the dispatcher lives: pid {pid}, {engine}",
    "event_taken_over": "the dispatcher has looked at all sessions: {left} left, {busy} run",
    "event_reread": "the dispatcher has read the plan and the orders again: {left} left, {busy} run",
    "event_left": "the dispatcher has left: {why}",
    "event_done": "the run has ended",
    "event_submitted": "{sessions:session} submitted to Slurm",
    "event_adopted": "attempt {attempt} was started by a former dispatcher: {life}",
    "event_granted": "attempt {attempt} may start[ on GPU {gpus}]",
    "event_not_begun": "attempt {attempt} did not begin[: {reason}]",
    "event_started": "attempt {attempt} runs",
    "event_loading": "the server is loading",
    "event_ready": "the server is ready",
    "event_orphaned": "attempt {attempt} has lost its supervisor",
    "event_lost": "attempt {attempt} is lost",
    "event_ending": "the server is being ended[: {reason}]",
    "event_survives": "the server was to end, and still runs",
    "event_ended": "attempt {attempt} ended: [{outcome}, ]{cause}[, exit code {exit_code}][ ({class:class})]",
    "event_retry": "another attempt comes[ after {wait_s:brief}][: {class:class}][, as a person asked{asked:if}]",
    "event_halted": "halted: nothing new starts[: {reason}]",
    "event_quarantine": "GPU {gpu} gets no new sessions: [{reason}|{class:class}, {times} times]",
    "event_closed": "{environment} gets no new sessions: {failure:class}, {times} times",
    "event_gpu_cap": "at most {most:session} at once on GPU {gpu}: one ran out of its memory",
    "event_no_room": "the machine starts no more processes[: {reason}]",
    "event_warming": "the first session of a program starts alone",
    "event_warm": "others of that program may start[: {reason}]",
    "event_notice": "notice: {notice}[: {reason}]",
    "event_notice_failed": "the notify command could not be started: {error}",
    "event_checkpoint": "checkpoint [{policy}|{path}]: {decision}[, its step was there before{again:if}][: {reason}]",
    "event_ordered": f"ordered: {_ORDER}",
    "event_amended": "the grid was changed: plan {plan}",
    "event_dealt": "hosts given up: {lost}[; {gained:session} came here]",
    "event_given": "goes to {box}, where it begins earlier",
    "event_taken": "has come from {box}",
    "event_summary": "older events: {counts}",
}


def say_order(event: Event) -> str:
    """What a person ordered."""
    fact = _fact(event)
    return fill(_ORDER, fact) if fact else ""


def say_event(event: Event) -> str:
    """An event in words, without its time and its session."""
    fact = _fact(event)
    return say(fact) if fact else event.kind


def _fact(event: Event) -> Fact | None:
    fields = {key: value.as_data() if isinstance(value, Fact) else value for key, value in event.fields.items()}
    if "code" in fields:  # of a process; a fact's code is something else
        fields["exit_code"] = fields.pop("code")
    return Fact.of({"code": f"event_{event.kind}", "attempt": event.attempt, **fields})
