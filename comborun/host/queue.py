"""The sessions of a run as its dispatcher knows them: the rows of queue.tsv, and where each session is in its life."""

from __future__ import annotations

import re
from dataclasses import dataclass, field

from comborun.host import files
from comborun.rules.placement import Request

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Iterator, Sequence, Tuple

    from comborun.host.engines import Opening

    Gpus = Tuple[int, ...]

NEW, QUEUED, STARTING, RUNNING = "new", "queued", "starting", "running"
ORPHANED, CLOSING, LOST, ENDED, DROPPED = "orphaned", "closing", "lost", "ended", "dropped"
TAKES_SLOT = frozenset((STARTING, RUNNING, ORPHANED, LOST))
BUSY = TAKES_SLOT | {CLOSING}
"""not ended, and more than queued"""
LEFT = BUSY | {QUEUED}

SMOKE = "smoke"
TABLE_MOST = 1 << 26
"""bytes of a table that are read"""
_NAME = re.compile("[A-Za-z0-9_-]+")
_GPUS = re.compile("[0-9]{1,4}")
_SERVERS = re.compile("[a-z][a-z0-9-]*(,[a-z][a-z0-9-]*)*")
_PROGRAM = re.compile("[a-z0-9]{1,16}")


@dataclass(frozen=True)
class Row:
    """A line of queue.tsv."""

    name: str
    flag: str
    """nothing, `smoke`, or `dropped`: amended away, so it never starts again"""
    request: Request
    servers: tuple[str, ...]
    """the model servers that it asks"""
    program: str
    """those of one program warm up together"""


def rows(path: str) -> Iterator[Row]:
    """The rows of queue.tsv; what is no row is passed over."""
    for line in files.read_text(path, TABLE_MOST).split("\n"):
        words = [*line.split("\t"), *[""] * 12]
        if _NAME.fullmatch(words[0]) and _GPUS.fullmatch(words[1]):
            servers = tuple(words[11].split(",")) if _SERVERS.fullmatch(words[11]) else ()
            program = words[12] if _PROGRAM.fullmatch(words[12]) else "all"
            flag = words[2] if words[2] in (SMOKE, DROPPED) else ""
            yield Row(words[0], flag, request(int(words[1]), words[3:11]), servers, program)


def request(gpus: int, columns: Sequence[str]) -> Request:
    """From MIB CPUS MEMORY TOKENS GROUP PER_GPU PER_HOST ONLY; what is no value is not said."""
    numbers = [int(one) if re.fullmatch("[0-9]{1,9}", one) else 0 for one in columns]
    words = [one if re.fullmatch("[A-Za-z0-9_][A-Za-z0-9_,-]*", one) else "" for one in columns]
    return Request(
        gpus=gpus,
        gpu_memory=numbers[0] if gpus else 0,
        cpus=numbers[1],
        memory=numbers[2],
        tokens=tuple(filter(None, words[3].split(","))),
        group=words[4],
        per_gpu=numbers[5],
        per_host=numbers[6],
        only=tuple(int(one) for one in words[7].split(",") if one.isdecimal()) if gpus else (),
    )


@dataclass
class Known:
    """What is known of a session, whichever engine starts it."""

    name: str
    flag: str = ""
    attempt: int = 0
    """the latest; 0 before there is one"""
    life: str = NEW
    end: dict[str, Any] = field(default_factory=dict)
    """of its latest attempt, once that has ended"""

    @property
    def over(self) -> bool:
        """Whether it has ended for good."""
        return self.life == ENDED


@dataclass
class Session(Known):
    """One of a dispatcher's. Times are of the monotonic clock, in seconds, unless they are said to be a time of day."""

    place: int = 0
    """in the order of the plan"""
    served: bool = False
    """it asks a model server"""
    gpus: Gpus = ()
    had: Gpus | None = None
    """the GPUs of its latest attempt; None: this dispatcher knows of no start"""
    opening: Opening | None = None
    due: float = 0.0
    """when its begin is overdue"""
    again_at: float | None = None
    """when to open its window again, after a refusal"""
    budget: int = 0
    retry_at: float | None = None
    retry_until: str = ""
    """a time of day"""
    retry_why: str = ""
    """it has ended, and waits to start again for this reason"""
    supervisor: tuple[str, str] | None = None
    """pid and start"""
    undertaker: Opening | None = None
    """the child that writes the end of a lost one"""
    watcher: Opening | None = None
    """the child that watches an orphan"""
    mute: bool = False
    """its loss is part of an event that has been counted"""
    stalled_told: int = 0
    """the attempt whose stall has been told"""


class Queue:
    """All sessions in plan order. The numbers follow from the lives."""

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
        """From now on this one alone is started; `names` of before are to be put back by who asks for it."""
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
        """Those that are queued, in order."""
        names = self.names
        while self._start < len(names) and self.sessions[names[self._start]].life != QUEUED:
            self._start += 1
        for place in range(self._start, len(names)):
            session = self.sessions[names[place]]
            if session.life == QUEUED:
                yield session
