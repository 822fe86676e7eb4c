"""The sessions of a run as its dispatcher knows them: the rows of queue.jsonl, and the state of each."""

from __future__ import annotations

from dataclasses import dataclass, field

from comborun.host.record.attempts import NAME
from comborun.host.system import files
from comborun.rules import records
from comborun.rules.facts import Fact
from comborun.rules.room.placement import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, Mapping, Tuple

    from comborun.host.system.children import Opening

    Gpus = Tuple[int, ...]

NEW, QUEUED, STARTING, RUNNING = "new", "queued", "starting", "running"
ORPHANED, CLOSING, LOST, ENDED, DROPPED = "orphaned", "closing", "lost", "ended", "dropped"
TAKES_SLOT = frozenset((STARTING, RUNNING, ORPHANED, LOST))
BUSY = TAKES_SLOT | {CLOSING}
"""states between queued and ended"""
LEFT = BUSY | {QUEUED}

SMOKE = "smoke"


@dataclass(frozen=True)
class Row:
    name: str
    flag: str
    """nothing, `smoke`, or `dropped`: amended away, so it never starts again"""
    request: Request
    servers: tuple[str, ...]
    """the model servers that it uses"""
    program: str
    """sessions of one program warm up together"""


def rows(path: str) -> Iterator[Row]:
    """The rows of queue.jsonl; other lines are skipped."""
    for fields in files.read_rows(path):
        name, flag, program = (text(fields, key) for key in ("name", "flag", "kind"))
        if NAME.fullmatch(name):
            flag = flag if flag in (SMOKE, DROPPED) else ""
            yield Row(name, flag, request(fields), records.texts(fields, "servers"), program or "all")


def text(fields: Mapping[str, Any], key: str) -> str:
    """A text field of a row; empty if it is not a text."""
    value = fields.get(key)
    return value if isinstance(value, str) else ""


def request(fields: Mapping[str, Any]) -> Request:
    """The request in a row of queue.jsonl or servers.jsonl; malformed values are left out."""
    gpus, memory, cpus, host_memory, per_gpu, per_host = (
        max(0, records.integer(fields, key) or 0)
        for key in ("gpus", "gpu_memory", "cpus", "memory", "per_gpu", "per_host")
    )
    return Request(
        gpus=gpus,
        gpu_memory=memory if gpus else 0,
        cpus=cpus,
        memory=host_memory,
        tokens=records.texts(fields, "tokens"),
        group=text(fields, "group"),
        per_gpu=per_gpu,
        per_host=per_host,
        only=tuple(int(one) for one in records.texts(fields, "only") if one.isdecimal()) if gpus else (),
    )


@dataclass
class Known:
    """The facts about a session, with any engine."""

    name: str
    flag: str = ""
    attempt: int = 0
    """the latest; 0 before there is one"""
    life: str = NEW
    end: dict[str, Any] = field(default_factory=dict)
    """the end record of its latest attempt, or empty"""

    @property
    def over(self) -> bool:
        return self.life == ENDED


@dataclass
class Session(Known):
    """A session of a dispatcher. Times are seconds of the monotonic clock, unless a field says time of day."""

    place: int = 0
    """its number in the plan's order"""
    served: bool = False
    """whether it uses a model server"""
    gpus: Gpus = ()
    granted_gpus: Gpus | None = None
    """the GPUs of its latest attempt; None: this dispatcher knows of no start"""
    opening: Opening | None = None
    due: float = 0.0
    """when its begin is overdue"""
    again_at: float | None = None
    """when to open its window again, after a refusal"""
    budget: int = 0
    retry_at: float | None = None
    retry_until: str = ""
    """until when it waits for a retry, as a time of day"""
    retry_why: Fact | None = None
    """why it waits for a retry"""
    supervisor: tuple[str, str] | None = None
    """pid and start"""
    finalizer: Opening | None = None
    """the child that writes the end of a lost one"""
    watcher: Opening | None = None
    """the child that watches an orphan"""
    loss_counted: bool = False
    """whether its loss is part of an event that was counted"""


class Queue:
    """All sessions in plan order. Counts are computed from their states."""

    def __init__(self) -> None:
        self.names: list[str] = []
        self.sessions: dict[str, Session] = {}
        self.left = 0
        """sessions that have not ended"""
        self.busy = 0
        """slots that are taken"""
        self._start = 0

    def __getitem__(self, name: str) -> Session:
        return self.sessions[name]

    def __iter__(self) -> Iterator[Session]:
        return (self.sessions[name] for name in self.names)

    def add(self, name: str) -> Session:
        session = self.sessions[name] = Session(name, place=len(self.names))
        self.names.append(name)
        return session

    def only(self, name: str) -> Session:
        """Start only this session from now on. The caller restores the former `names` later."""
        self.names = []
        self.sessions.pop(name, None)
        self._start = 0
        return self.add(name)

    def restore(self, names: list[str]) -> None:
        self.names, self._start = names, 0

    def set_life(self, session: Session, life: str) -> None:
        before, session.life = session.life, life
        self.busy += (life in TAKES_SLOT) - (before in TAKES_SLOT)
        self.left += (life in LEFT) - (before in LEFT)
        if life == QUEUED:
            self._start = min(self._start, session.place)

    def waiting(self) -> Iterator[Session]:
        names = self.names
        while self._start < len(names) and self.sessions[names[self._start]].life != QUEUED:
            self._start += 1
        for place in range(self._start, len(names)):
            session = self.sessions[names[place]]
            if session.life == QUEUED:
                yield session
