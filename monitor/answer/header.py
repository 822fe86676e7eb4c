"""What the probe's answer says about the run and its host, before it comes to the sessions; pure."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from comborun.attempt import parse_record
from comborun.errors import HostError
from monitor.answer.cluster import Scheduler, Task, scheduler_of, task_of
from monitor.answer.fields import fields_of
from monitor.answer.holds import Hold, Quarantine, Waiting, hold_of, quarantine_of, waiting_of
from monitor.answer.servers import ServerStatus, server_of


@dataclass
class Header:
    """What stands before the first session."""

    fields: dict[str, str] = field(default_factory=dict)
    gpus: list[dict[str, str]] = field(default_factory=list)
    done: dict[str, str] | None = None
    hold: Hold | None = None
    quarantine: list[Quarantine] = field(default_factory=list)
    waiting: list[Waiting] = field(default_factory=list)
    servers: list[ServerStatus] = field(default_factory=list)
    scheduler: Scheduler | None = None
    tasks: list[Task] = field(default_factory=list)


def read_header(lines: deque[str]) -> Header:
    """Takes all lines up to the first session's off `lines`. Raises HostError when a record is cut off."""
    header = Header()
    while lines and not lines[0].startswith("session "):
        keyword, _, rest = lines[0].partition(" ")
        line = lines.popleft()
        if line == "done":
            header.done = parse_record(read_record(lines))
        elif keyword == "gpu":
            header.gpus.append(fields_of(rest))
        elif keyword == "hold":
            header.hold = hold_of(rest)
        elif keyword == "quarantine":
            header.quarantine += filter(None, [quarantine_of(rest)])
        elif keyword == "waiting":
            header.waiting.append(waiting_of(rest))
        elif keyword == "server":
            header.servers.append(server_of(rest))
        elif keyword == "slurm":
            header.scheduler = scheduler_of(rest)
        elif keyword == "task":
            header.tasks += filter(None, [task_of(rest)])
        else:
            header.fields.update(fields_of(line))
    return header


def read_record(lines: deque[str]) -> str:
    """The lines up to the one that holds a single dot."""
    record: list[str] = []
    while lines:
        line = lines.popleft()
        if line == ".":
            return "\n".join(record)
        record.append(line)
    raise HostError("the probe's answer is cut off in a record")
