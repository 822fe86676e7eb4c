"""The full screen in a terminal: textual gives keys and clicks, and draws the lines that have changed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import shlex
import signal
import subprocess
import sys
import time
from typing import TYPE_CHECKING, Any

from rich.segment import Segment
from rich.text import Text
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from comborun.monitor.fullscreen import keys
from comborun.monitor.fullscreen.desk import Desk
from comborun.monitor.fullscreen.fetching import REST_S, Fetcher
from comborun.monitor.fullscreen.ordering import Ordering
from comborun.monitor.fullscreen.picture import bottom, picture, title
from comborun.monitor.watch import shortest
from comborun.rules.names import RunLayout
from comborun.text import harmless

if TYPE_CHECKING:
    from collections.abc import Callable

    from textual import events

    from comborun.monitor.fullscreen.ordering import Orders
    from comborun.monitor.watcher import Watcher

_TICK_S, _TICKS = 1.0, 5
"""seconds of a tick, and ticks after which everything is drawn; else a tick draws only the first line"""
_ATTENTIVE_S, _USED_S = 5.0, 60.0
"""the host is looked at so often, in seconds, and for how long after a key"""
_TYPED = {"attach": "app.attach", "refresh": "app.refresh_look", "help": "desk.help"}


class Canvas(Widget, can_focus=True):
    """The whole picture."""

    DEFAULT_CSS = "Canvas { width: 100%; height: 100%; background: transparent; }"

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[Text] = []

    def show(self, lines: list[Text]) -> None:
        before, self.lines = self.lines, lines
        if len(before) != len(lines):
            self.refresh()
            return
        pairs = enumerate(zip(before, lines, strict=True))
        changed = [place for place, (old, new) in pairs if old != new or old.style != new.style]
        if changed:
            self.refresh(*(Region(0, place, self.size.width, 1) for place in changed))

    def on_resize(self) -> None:
        """Here, because the app hears of a new size before it has taken it."""
        if isinstance(self.app, FullScreen):
            self.app.draw()

    def render_line(self, y: int) -> Strip:
        if y >= len(self.lines):
            return Strip.blank(self.size.width)
        segments = [one for one in self.lines[y].render(self.app.console) if isinstance(one, Segment)]
        return Strip(segments).adjust_cell_length(self.size.width)


class FullScreen(App[None]):
    """Every key is a row of `keys.KEYS`; its action is a method of the desk, of the orders, or of this class."""

    ENABLE_COMMAND_PALETTE = False
    CSS = "Screen { background: transparent; }"

    def __init__(self, watcher: Watcher, orders: Orders) -> None:
        super().__init__(ansi_color=True)
        self.watcher = watcher
        self.orders = orders
        self.desk = Desk(watcher.look, watcher.link(), orders.program, orders.options)
        self.fetcher = Fetcher(self.desk, watcher, orders.fleet, self._post)
        self.ordering = Ordering(self.desk, watcher, orders, self.fetcher)
        self.canvas = Canvas()
        self.left = False
        """whether the user has left before the end of the run"""
        self.fault: BaseException | None = None
        self._ticks = -1
        self._used = time.monotonic()
        """when a key was last pressed"""

    def compose(self) -> ComposeResult:
        yield self.canvas

    def on_mount(self) -> None:
        self._unsubscribe = self.watcher.subscribe(lambda: self.call_later(self._news))
        loop = asyncio.get_running_loop()
        loop.add_signal_handler(signal.SIGTERM, self.leave)
        loop.add_signal_handler(signal.SIGTSTP, self.to_shell)
        loop.add_signal_handler(signal.SIGCONT, self._take_terminal)
        self.set_interval(_TICK_S, self.tick)
        self.canvas.focus()
        self._news()

    def on_unmount(self) -> None:
        self._unsubscribe()
        self.fetcher.close()

    def _fatal_error(self) -> None:
        """A bug keeps its plain traceback: textual's would write out all values, for minutes."""
        self.fault = sys.exception()
        self._close_messages_no_wait()

    # Drawing

    def _news(self) -> None:
        """A look is over, or a look waits for its answer."""
        look = self.watcher.look
        if self.watcher.failure or (look.over and look.status.finished):
            self.exit()
            return
        if look is not self.desk.look:
            self.desk.renew(look)
        self._ticks = -1
        self.tick()

    def tick(self) -> None:
        desk = self.desk
        desk.passed, desk.link = self.watcher.passed(), self.watcher.link()
        pause = max(_ATTENTIVE_S, shortest(len(desk.look.status.sessions)))
        if desk.passed >= pause and time.monotonic() < self._used + _USED_S:
            self.watcher.refresh()
        self.fetcher.need()
        self._ticks += 1
        if self._ticks % _TICKS and self.canvas.lines and desk.page != "runs":
            self.canvas.show([title(desk), *self.canvas.lines[1:]])
        else:
            self.draw()

    def draw(self) -> None:
        self.desk.width, self.desk.height = max(1, self.size.width), max(1, self.size.height)
        self.canvas.show(picture(self.desk))

    def _post(self, act: Callable[..., object], *words: Any) -> None:
        """From another thread."""

        def do() -> None:
            act(*words)
            self.draw()

        self.call_later(do)

    # Keys and mouse

    def on_key(self, event: events.Key) -> None:
        event.stop()
        event.prevent_default()
        desk = self.desk
        desk.message, self._used = "", time.monotonic()
        if event.key == "ctrl+c":
            self.leave()
        elif desk.question:
            question, desk.question = desk.question, None
            if chosen := question.answers.get(event.character or event.key):
                chosen[1]()
        elif desk.prompt:
            self._command(desk.type(event.key, event.character if event.is_printable else None))
        elif key := keys.BY_NAME.get(event.key) or keys.BY_NAME.get(event.character or ""):
            self.act(key.action)
        self._after()

    def act(self, action: str) -> None:
        owner, _, rest = action.partition(".")
        name, _, argument = rest.partition(":")
        act = getattr({"desk": self.desk, "order": self.ordering, "app": self}[owner], name)
        act(argument) if argument else act()

    def _after(self) -> None:
        """After a key or a click: fetch what is needed now, or when the cursor rests."""
        self.fetcher.need()
        self.set_timer(1.1 * REST_S, self.fetcher.need)
        self.draw()

    def on_paste(self, event: events.Paste) -> None:
        if self.desk.prompt:
            self.desk.type("", harmless(event.text, keep="").strip())
            self.draw()

    def on_click(self, event: events.Click) -> None:
        desk, before = self.desk, (self.desk.cursor, self.desk.cell)
        match event.style.meta.get("act"):
            case ("row", int(place)):
                desk.cursor = place
            case ("cell", int(row), int(column)):
                desk.cell = (row, column)
            case ("pane", str(name)):
                desk.show_pane(name)
            case ("show", str(name)):
                desk.show(name)
        if event.style.meta.get("act", ("",))[0] in ("row", "cell") and before == (desk.cursor, desk.cell):
            desk.open()  # a second click
        self._after()

    def on_mouse_scroll_down(self) -> None:
        self.desk.move("3")
        self._after()

    def on_mouse_scroll_up(self) -> None:
        self.desk.move("-3")
        self._after()

    def _command(self, typed: str) -> None:
        if typed in {"q", "quit"}:
            self.leave()
        elif typed in _TYPED:
            self.act(_TYPED[typed])
        else:
            self.ordering.command(typed)

    def refresh_look(self) -> None:
        self.watcher.refresh()
        self.desk.say("looking ...", passing=True)

    def leave(self) -> None:
        self.left = True
        self.exit()

    # Other programs

    def to_shell(self) -> None:
        """Stop until the shell continues this process. The kernel stops nothing that no shell would continue."""
        loop = asyncio.get_running_loop()
        with self.suspend():
            loop.remove_signal_handler(signal.SIGTSTP)
            os.killpg(0, signal.SIGTSTP)
            loop.add_signal_handler(signal.SIGTSTP, self.to_shell)

    def _take_terminal(self) -> None:
        """After a stop the terminal may have another mode and shows other things."""
        with self.suspend():
            pass
        self.canvas.lines = []
        self.tick()

    def copy(self) -> None:
        """Copy the command that shows in a shell what is on the screen; of a video its place."""
        desk, session = self.desk, self.desk.session
        videos = desk.videos_of(session) if session and desk.pane == "video" else ()
        if session and videos:
            source = self.watcher.source.at(session.name)
            host = source.transport.host
            attempt = RunLayout(source.view.directory).attempt(session.name, videos[0].attempt)
            text = f"{'' if host == 'local' else f'{host}:'}{attempt.directory}/{videos[0].path}"
        elif desk.page == "runs":
            text = f"{desk.program} runs"
        else:
            verb = "logs" if desk.pane == "log" else "explain"
            words = [verb, session.name] if session else ["status"]
            text = f"{desk.program} {shlex.join([*words, '--run', desk.look.view.id])}{desk.options}"
        self.copy_to_clipboard(text)
        desk.say(f"copied: {text}")

    def attach(self) -> None:
        """The window of the session has the terminal until the user leaves it."""
        session = self.desk.session
        if not session or not session.alive:
            self.desk.say("it does not run: l shows its log")
            return
        with self.suspend():
            if subprocess.run(self.orders.words(["attach", session.name]), check=False).returncode:
                with contextlib.suppress(EOFError, KeyboardInterrupt):
                    input("Enter leads back ")
        self.canvas.lines = []
        self.refresh()


def show_full_screen(watcher: Watcher, orders: Orders) -> tuple[bool, list[Text]]:
    """Show the run of a watcher that has been started, until it has finished or the user leaves.

    Returns whether the user has left, and the last picture without its line of keys, and what came of orders that were
    not carried out then. Raises what ended the watcher.
    """
    for name in ("COLUMNS", "LINES"):  # exported ones don't follow a resize
        os.environ.pop(name, None)
    app = FullScreen(watcher, orders)
    try:
        app.run()
        ordered = not app.fault and app.fetcher.finish()
    finally:
        watcher.close()
    if error := app.fault or watcher.failure:
        raise error
    desk = app.desk
    said = ([desk.message] if desk.message else desk.answer) if ordered else ()
    desk.renew(watcher.look)
    desk.question, desk.prompt, desk.message, desk.full = None, "", "", False
    if desk.page in {"help", "answer"}:  # what stays on the terminal is the run
        desk.page = "sessions"
    lines = picture(desk)[: desk.height - len(bottom(desk))]
    while lines and not lines[-1].plain.strip():
        lines.pop()
    return app.left, [*lines, *map(Text, said)]
