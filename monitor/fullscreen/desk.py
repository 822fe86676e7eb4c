"""What is known and what the user has chosen: pages, rows, the cursor, a filter, a question. `picture.py` draws it."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

from comborun.monitor.causes import SharedCause, shared_causes
from comborun.monitor.fleet import FleetRow
from comborun.monitor.fullscreen.pages import Sample
from comborun.monitor.fullscreen.pane import PANES, Video
from comborun.monitor.grid_map import the_map
from comborun.monitor.rows import SORTS, Choice, Row, chosen
from comborun.monitor.status import Link, SessionStatus
from comborun.monitor.watch import Look
from comborun.rules.events import Event
from comborun.text import harmless

_SAMPLES = 2000
_FAILED = "state:failed,partial,lost"
_FAR = 1_000_000
"""more rows than there are"""
_LISTS = ("sessions", "grid")
"""pages on which a session is chosen"""


class Question(NamedTuple):
    lines: tuple[str, ...]
    answers: Mapping[str, tuple[str, Callable[[], object]]]
    """key -> what it does, in words and as a function; every other key means no"""


class Log(NamedTuple):
    data: bytes = b""
    attempt: int = 0
    offset: int = -1
    over: bool = False
    """whether it can't grow any more"""


VideosAt = tuple[str, int, bool]


def videos_at(session: SessionStatus) -> VideosAt:
    """What its list of videos holds for: it changes when an attempt ends."""
    return session.name, session.attempt, session.alive


@dataclass
class Desk:
    look: Look
    link: Link
    program: str = "combo"
    options: str = ""
    """what a command needs to find the host"""
    passed: float = 0.0
    """seconds since the look"""
    width: int = 80
    height: int = 24
    page: str = "sessions"
    choice: Choice = field(default_factory=Choice)
    causes: Sequence[SharedCause] = ()
    rows: list[Row] = field(default_factory=list)
    cursor: int = 0
    """the chosen row"""
    cell: tuple[int, int] = (0, 0)
    """the chosen cell of the grid"""
    top: int = 0
    """the first row that is shown"""
    shown: int = 10
    """rows that the last picture had room for"""
    marked: set[str] = field(default_factory=set)
    pane: str = "log"
    full: bool = False
    """whether the pane has the whole screen"""
    scrolled: int = 0
    """lines of the pane, or of a page, by which it is scrolled: of a log from its end"""
    logs: dict[str, Log] = field(default_factory=dict)
    videos: dict[VideosAt, Sequence[Video]] = field(default_factory=dict)
    events: Sequence[Event] | None = None
    fleet: Sequence[FleetRow] | None = None
    """the runs on all hosts"""
    answer: tuple[str, ...] = ()
    """what a command has answered, as a page"""
    samples: deque[Sample] = field(default_factory=lambda: deque(maxlen=_SAMPLES))
    message: str = ""
    passing: bool = False
    """whether the next look removes the message"""
    question: Question | None = None
    prompt: str = ""
    """`/` or `:` while the user types"""
    typed: str = ""
    help_words: str = ""
    drawn: dict[str, tuple[object, Any]] = field(default_factory=dict)
    """parts of the last picture, each with what it depends on"""

    def __post_init__(self) -> None:
        self._take(self.look)

    # What is known

    @property
    def unseen(self) -> bool:
        """Whether nothing but the plan is known: no host has answered yet."""
        return self.look.seen is None

    def videos_of(self, session: SessionStatus) -> Sequence[Video] | None:
        return self.videos.get(videos_at(session))

    def renew(self, look: Look) -> None:
        """Take a new look. The cursor stays on its session."""
        first = self.unseen
        self._take(look)
        if self.passing:
            self.say("")
        if first:  # until then all sessions are queued
            self.cursor = 0

    def _take(self, look: Look) -> None:
        if look.seen is not None and look.status.now is not None:
            self.samples.append(Sample(look.status.now, look.status.use))
        self.look, self.causes = look, shared_causes(look.status)
        self.choose()

    @property
    def row(self) -> Row | None:
        return self.rows[self.cursor] if 0 <= self.cursor < len(self.rows) else None

    @property
    def session(self) -> SessionStatus | None:
        """The session that keys mean: of the row, or of the cell of the grid."""
        if self.unseen:
            return None
        if self.page == "grid":
            found = the_map(self.look.status)
            return found.at(*self.cell) if found.rows else None
        return self.row.session if self.row and self.page == "sessions" else None

    @property
    def meant(self) -> tuple[str, ...]:
        """The sessions that an order means: the marked ones, else those of the row or cell."""
        if self.unseen:
            return ()
        if self.marked and self.page == "sessions":
            return tuple(one.name for one in self.look.status.every if one.name in self.marked)
        if self.page == "sessions" and self.row and not self.full:
            return self.row.meant
        return (self.session.name,) if self.session else ()

    @property
    def lists(self) -> bool:
        """Whether the list of sessions is in sight."""
        return self.page == "sessions" and not self.full

    @property
    def pane_height(self) -> int:
        """Lines of the pane below the list, without its title."""
        if self.page not in _LISTS or self.full:
            return 0
        return max(7, self.height // 4) if self.height >= 30 else 4 if self.height >= 20 else 0

    def say(self, message: str, *, passing: bool = False) -> None:
        self.message, self.passing = harmless(message, keep=""), passing

    def ask(self, lines: Sequence[str], answers: Mapping[str, tuple[str, Callable[[], object]]]) -> None:
        self.question = Question(tuple(harmless(line, keep="") for line in lines), answers)

    # Moving

    def move(self, by: str) -> None:
        step = int(by)
        if self.full:
            self.scrolled += -step if self.pane == "log" else step
        elif self.page == "sessions":
            self.cursor = max(0, min(len(self.rows) - 1, self.cursor + step))
        elif self.page == "grid":
            self._move_cell(step, 0)
        else:
            self.scrolled += step
        self.scrolled = max(0, self.scrolled)

    def screenful(self, by: str) -> None:
        self.move(str(int(by) * max(1, self.shown - 1)))

    def end(self, by: str) -> None:
        self.move(str(int(by) * _FAR))

    def _move_cell(self, down: int, right: int) -> None:
        found = the_map(self.look.status)
        most = len(found.rows) - 1, len(found.environments) - 1
        row, column = self.cell[0] + down, self.cell[1] + right
        self.cell = max(0, min(most[0], row)), max(0, min(most[1], column))

    def right(self) -> None:
        if self.page == "grid":
            self._move_cell(0, 1)
        elif self.lists and self.row and self.row.folded:
            self.choose(unfolded=self.choice.unfolded | {self.row.name})

    def left(self) -> None:
        if self.page == "grid":
            self._move_cell(0, -1)
        elif self.lists and self.row:
            name = self.row.name
            first = next((one.name for one in self.rows if name in one.alike), name)
            self.choose(unfolded=self.choice.unfolded - {first})

    def back(self) -> None:
        if self.full:
            self.full, self.scrolled = False, 0
        elif self.page == "help" and self.help_words:
            self.help_words = ""
        elif self.page != "sessions":
            self.show("sessions")
        elif self.marked:
            self.marked.clear()
        elif self.choice.words:
            self.choose(words="")

    # Pages and panes

    def show(self, page: str) -> None:
        """A page. From the list to the grid and back the same session stays chosen."""
        session = self.session
        if page == "grid" and self.page == "sessions" and session:
            self.cell = the_map(self.look.status).place(session)
        if page == "sessions" and self.page == "grid" and session:
            self._go_to(session.name)
        self.page, self.full, self.scrolled = page, False, 0

    def help(self) -> None:
        self.show("sessions" if self.page == "help" else "help")

    def open(self) -> None:
        """The pane of the chosen session on the whole screen."""
        if self.session:
            self.full, self.scrolled = True, 0

    def show_pane(self, name: str) -> None:
        """A pane below the list, or on the whole screen where there is no room below, and for what is long."""
        if not self.session:
            self.say("no session is chosen")
            return
        self.pane, self.scrolled = name, 0
        self.full = self.full or not self.pane_height or name == "explain"

    def next_pane(self, by: str) -> None:
        full = self.full
        self.show_pane(PANES[(PANES.index(self.pane) + int(by)) % len(PANES)])
        self.full = full or not self.pane_height

    def pager(self) -> None:
        self.show_pane("log")
        self.open()

    # Choosing

    def choose(self, **changes: Any) -> None:
        """Change the choice of rows. The cursor stays on its session."""
        name = self.row.name if self.row else ""
        self.choice = replace(self.choice, **changes)
        self.rows = chosen(self.look.status, self.choice, self.causes)
        self.drawn.pop("layout", None)
        self.cursor = min(self.cursor, max(0, len(self.rows) - 1))
        self._go_to(name)

    def _go_to(self, name: str) -> None:
        self.cursor = next((at for at, row in enumerate(self.rows) if name in {row.name, *row.meant}), self.cursor)

    def type_filter(self) -> None:
        if self.page != "help":
            self.show("sessions")
        self.prompt, self.typed = "/", self.help_words if self.page == "help" else self.choice.words

    def type_command(self) -> None:
        self.prompt = ":"

    def type(self, key: str, text: str | None) -> str:
        """Take a key while the user types. Returns the command when it is whole."""
        if text:
            self.typed += text
        elif key == "backspace":
            self.typed = self.typed[:-1]
        elif key == "ctrl+u" or (key == "escape" and self.prompt == "/"):
            self.typed = ""
        prompt, typed = self.prompt, self.typed
        if prompt == "/":
            self.filter(typed)
        if key in ("enter", "escape"):
            self.prompt = self.typed = ""
            return typed if prompt == ":" and key == "enter" else ""
        return ""

    def filter(self, words: str) -> None:
        if self.page == "help":
            self.help_words = words
        elif words != self.choice.words:
            self.choose(words=words)

    def to_list(self) -> None:
        """What changes the list shows it."""
        if not self.lists:
            self.show("sessions")

    def failed(self) -> None:
        self.to_list()
        self.choose(words="" if self.choice.words == _FAILED else _FAILED)
        self.cursor = 0

    def sort(self, by: str) -> None:
        self.to_list()
        self.choose(sort=SORTS[(SORTS.index(self.choice.sort) + int(by)) % len(SORTS)])

    def reverse(self) -> None:
        self.to_list()
        self.choose(backwards=not self.choice.backwards)

    def mark(self) -> None:
        if not self.lists:
            self.say("rows are marked in the list, where Esc leads")
        elif self.row:
            self.marked ^= set(self.row.meant)
            self.move("1")
