"""What Slurm has of a run, as one line: pure."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

from comborun.monitor.answer.cluster import Scheduler, Task
from comborun.monitor.lastline import visible
from comborun.monitor.wording import brief
from comborun.text import several


def summary(scheduler: Scheduler, tasks: Sequence[Task], now: float) -> str:
    """One line: `Slurm: 3 tasks pending (2 Resources, 1 Priority), 4 running on n1, n2`."""
    if not scheduler.answered:
        since = "it has not answered yet" if scheduler.at is None else f"this is from {brief(now - scheduler.at)} ago"
        return f"Slurm does not answer; {since}" + (f": {visible(scheduler.why)}" if scheduler.why else "")
    waiting = [task for task in tasks if task.pending]
    parts = [_pending(waiting)] if waiting else []
    if begun := [task for task in tasks if task.begun]:
        parts.append(f"{len(begun)} running on {_nodes(begun)}")
    return f"Slurm: {', '.join(parts)}" if parts else "Slurm has none of its tasks"


def _pending(tasks: Sequence[Task]) -> str:
    reasons = Counter(_reason(task) for task in tasks).most_common(3)
    told = ", ".join(f"{count} {reason}" if len(tasks) > 1 else reason for reason, count in reasons)
    return f"{several(len(tasks), 'task')} pending ({told})"


def _reason(task: Task) -> str:
    return visible(task.reason.strip("()")) or "not looked at yet"


def _nodes(tasks: Sequence[Task]) -> str:
    names = sorted({visible(task.node) for task in tasks if task.node})
    return ", ".join(names) if 0 < len(names) <= 4 else several(len(names), "node")
