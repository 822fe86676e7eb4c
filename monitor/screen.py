"""Where a status is shown: a table that redraws itself, lines for a log, or JSON lines for a program."""

from __future__ import annotations

import io
import os
from abc import ABC, abstractmethod
from collections.abc import Callable
from datetime import tzinfo

from rich.console import Console, ConsoleDimensions
from rich.live import Live
from rich.text import Text

from comborun.monitor.changes import changes
from comborun.monitor.document import to_json
from comborun.monitor.status import RunStatus
from comborun.monitor.table import TableOptions, render


class Screen(ABC):
    """Shows one status after the other."""

    ticking = False
    """it wants to be shown the time passing between two looks at the host"""

    @abstractmethod
    def show(self, status: RunStatus) -> None: ...

    def close(self) -> None:  # noqa: B027  a screen without a terminal has nothing to leave
        """Leave the terminal as it was, with the last picture on it; may be called twice."""


class LiveScreen(Screen):
    """The table, redrawn in place, as high as the terminal at most; the last table stays complete."""

    ticking = True

    def __init__(self, console: Console, zone: tzinfo | None = None) -> None:
        self._console = console
        self._zone = zone
        self._live: Live | None = None
        self._size: ConsoleDimensions | None = None
        self._last: RunStatus | None = None

    def show(self, status: RunStatus) -> None:
        self._last = status
        size = _measured(self._console)
        live = self._live or self._start()
        if self._size not in (None, size):  # a terminal rewraps what is on it: begin on a clean one
            self._console.clear()
        self._size = size
        live.update(render(status, TableOptions(size.width, size.height, self._zone)), refresh=True)

    def _start(self) -> Live:
        self._live = live = Live(console=self._console, auto_refresh=False, vertical_overflow="crop")
        live.start()
        return live

    def close(self) -> None:
        if self._live is None:
            return
        live, self._live = self._live, None
        if self._last:
            live.update(render(self._last, TableOptions(self._console.width, None, self._zone)))
        live.stop()


class PlainScreen(Screen):
    """A line per change."""

    def __init__(self, console: Console, zone: tzinfo | None = None) -> None:
        self._console = console
        self._zone = zone
        self._last: RunStatus | None = None

    def show(self, status: RunStatus) -> None:
        for line in changes(self._last, status, self._zone):
            self._console.print(Text(line), soft_wrap=True)
        self._last = status


class JsonScreen(Screen):
    """A document per look, each on a line."""

    def __init__(self, write: Callable[[str], object]) -> None:
        self._write = write

    def show(self, status: RunStatus) -> None:
        self._write(to_json(status, indent=None) + "\n")


def show_once(console: Console, status: RunStatus, zone: tzinfo | None = None) -> None:
    """The whole table, once, on a terminal or not."""
    _forgive(console)
    console.print(render(status, TableOptions(console.width, None, zone)))


def open_screen(console: Console, *, plain: bool = False, zone: tzinfo | None = None) -> Screen:
    """The screen that fits: redrawing only on a terminal that can move its cursor. NO_COLOR takes colour, no more."""
    _forgive(console)
    if plain or not console.is_terminal or console.is_dumb_terminal:
        return PlainScreen(console, zone)
    return LiveScreen(console, zone)


def _measured(console: Console) -> ConsoleDimensions:
    """The size of the terminal as it is; rich would believe an exported COLUMNS, which no resize changes."""
    try:
        columns, lines = os.get_terminal_size(console.file.fileno())
    except (OSError, ValueError):  # it is not a terminal of the system
        return console.size
    if columns and lines:
        console.size = ConsoleDimensions(columns, lines)
    return console.size


def _forgive(console: Console) -> None:
    """A terminal without UTF-8 shows ? for our symbols instead of ending us."""
    if isinstance(console.file, io.TextIOWrapper):
        console.file.reconfigure(errors="replace")
