"""What is to be done when a run does not go on by itself: one sentence with the command; pure."""

from __future__ import annotations

from collections.abc import Sequence

from comborun.attempt import FAILURES
from comborun.monitor.answer.cluster import Task
from comborun.monitor.answer.holds import DRAINING, PAUSED, Hold, Quarantine
from comborun.monitor.answer.snapshot import Snapshot
from comborun.monitor.observe import RunView
from comborun.monitor.status import SessionStatus
from comborun.monitor.wording import brief
from comborun.rules.words import Life, Outcome
from comborun.text import several

_TIMED_OUT = (124, 137)
"""what timeout ends with"""
_NEVER_STARTED = "nothing has started, and no dispatcher is there to start it"
_HELD = {
    PAUSED: "paused",
    DRAINING: "draining: what runs goes on to its end",
}


def hint(view: RunView, snapshot: Snapshot, sessions: Sequence[SessionStatus], *, finished: bool) -> str:
    """How to go on when nothing new will start although there is something to start."""
    proper = [one for one in sessions if not one.extra]
    left = sum(one.life is Life.QUEUED or one.outcome is Outcome.CANCELLED for one in proper)
    if finished and snapshot.stopped and left:
        return f"stopped with {left} of {several(len(proper), 'session')} left: {by_command(view)}"
    if snapshot.hold and not snapshot.stopped:
        lacking = [one for one in proper if not one.done_with]
        rest = f", {_lacking(lacking, len(proper))}" if finished and lacking else ""
        return _of_hold(view, snapshot.hold, rest, finished=finished) if lacking else ""
    if not finished and snapshot.use.disk and not snapshot.use.disk.free:
        return "the disk of the run is full: free some room, and the run goes on by itself"
    if finished:
        return ""
    if snapshot.stopped:  # while it is being stopped, or since that was interrupted
        return f"stopped: nothing new starts; `combo stop {view.id}` ends what still runs"
    if snapshot.dispatcher is None and snapshot.scheduler:
        return f"Slurm has none of its jobs any more, and nothing new starts: {by_command(view)}"
    if snapshot.dispatcher is None:
        begun = any(one.attempt for one in sessions)
        gone = "the dispatcher is gone, nothing new starts" if begun else _NEVER_STARTED
        return f"{gone}: {by_command(view)}"
    if held_back := [one.task for one in sessions if one.task and one.task.held]:
        return _of_held_tasks(view, held_back)
    return f"{quarantined(snapshot.quarantine)}: {by_command(view)}" if snapshot.quarantine else ""


def unheard(view: RunView, snapshot: Snapshot) -> str:
    """That news of the run reach nobody, and the command by which that is tried; empty where they do."""
    if snapshot.notice_failed is None:
        return ""
    code, at = snapshot.notice_failed
    how = "took too long" if code in _TIMED_OUT else f"ended with code {code}"
    ago = f" {brief(max(0.0, snapshot.now - at))} ago"
    return f"the notify command {how}{ago}, so who waits for a notice has none: `combo notify {view.id}` tries it"


def _lacking(sessions: Sequence[SessionStatus], proper: int) -> str:
    """`2 of 6 sessions without success, 3 never started`: what has not run has not failed."""
    never = sum(not one.attempt for one in sessions)
    tried = len(sessions) - never
    if not tried:
        return f"{never} of {several(proper, 'session')} never started"
    rest = f", {never} never started" if never else ""
    return f"{tried} of {several(proper, 'session')} without success{rest}"


def _of_hold(view: RunView, hold: Hold, rest: str, *, finished: bool) -> str:
    """The command before the reason, which may be long and is the first to be cut off."""
    going = "; what runs goes on to its end" if hold.kind == DRAINING and not finished else ""
    return f"{hold.kind or 'held'}: {by_command(view)}{going}; nothing new starts{rest}" + (
        f": {hold.why}" if hold.why else ""
    )


def _of_held_tasks(view: RunView, tasks: Sequence[Task]) -> str:
    """By array: a release lets go all that is held of it."""
    arrays = " ".join(sorted({task.array for task in tasks} - {""}))
    where = "" if view.host == "local" else f" on {view.host}"
    return f"Slurm holds {several(len(tasks), 'task')} back: `scontrol release {arrays or 'JOB'}`{where} lets go"


def held(hold: Hold) -> str:
    """`halted: the same failure three times in a row`."""
    said = _HELD.get(hold.kind, hold.kind or "held")
    return f"{said} ({hold.why})" if hold.why and ":" in said else f"{said}: {hold.why}" if hold.why else said


def quarantined(quarantine: Sequence[Quarantine]) -> str:
    """`GPU 1 gets no more sessions (GPU fault)`."""
    words = {str(failure): text for failure, text in FAILURES.items()}
    gpus = ", ".join(f"GPU {one.gpu}" for one in quarantine)
    why = ", ".join(dict.fromkeys(words.get(one.failure, one.failure) for one in quarantine))
    return f"{gpus} {'get' if len(quarantine) > 1 else 'gets'} no more sessions ({why} again and again)"


def by_command(view: RunView) -> str:
    return f"`combo resume {view.id}` goes on"
