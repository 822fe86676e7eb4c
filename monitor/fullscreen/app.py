"""The full screen in a terminal: keys, mouse, and what is fetched for a pane. textual draws the lines that changed."""

from __future__ import annotations

import asyncio
import contextlib
import os
import queue
import shlex
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any

from rich.segment import Segment
from textual.app import App, ComposeResult
from textual.geometry import Region
from textual.strip import Strip
from textual.widget import Widget

from comborun.errors import UserError
from comborun.monitor.fullscreen import grid, keys, pane
from comborun.monitor.fullscreen.desk import LOG_KEPT, Desk, Log, Question, bottom, picture, with_words
from comborun.monitor.fullscreen.rows import SORTS
from comborun.monitor.steering import PlannedStop
from comborun.monitor.watch import shortest
from comborun.remote.logs import LogPosition, follow
from comborun.remote.transport import LOCAL
from comborun.rules import events
from comborun.rules.names import RunLayout
from comborun.text import harmless, several

if TYPE_CHECKING:
    from rich.text import Text
    from textual import events as textual_events

    from comborun.monitor.fleet import Fleet
    from comborun.monitor.fullscreen.orders import Orders
    from comborun.monitor.watcher import Watcher
    from comborun.remote.logs import LogPiece

_TICK_S = 1.0
_TICKS = 5
"""each so many ticks everything is drawn anew; between them only the first line, unless something has changed"""
_REST_S = 0.25
"""seconds that the cursor rests on a session before its log is fetched"""
_ATTENTIVE_S, _USED_S = 5.0, 60.0
"""for so long after a key, the host is looked at every so many seconds"""
_AGAIN_S = 10.0
"""seconds until something that failed is asked again"""
_LOG_LINES, _LOGS_KEPT = 400, 20
_EVENTS_KEPT = 1 << 17
_EVENTS = 'tail -c "$2" -- "$1"'
_VIDEOS = 'cd -- "$1" && for at in attempt-*/; do sed "s|^|${at%/}\t|" -- "${at}videos.tsv" 2>/dev/null; done; true'


class Errands(threading.Thread):
    """What is asked of the host for a pane, one after the other, in a thread that nobody waits for at the end."""

    def __init__(self) -> None:
        super().__init__(name="errands", daemon=True)
        self._queue: queue.SimpleQueue[tuple[str, Callable[[], None]]] = queue.SimpleQueue()
        self._newest: dict[str, Callable[[], None]] = {}

    def ask(self, key: str, work: Callable[[], None]) -> None:
        """Do `work`, unless the same key is asked again before its turn."""
        self._newest[key] = work
        self._queue.put((key, work))

    def run(self) -> None:
        while True:
            key, work = self._queue.get()
            if self._newest.get(key) is work:
                work()
                self._newest.pop(key, None)

    def busy(self, key: str) -> bool:
        return key in self._newest


class Canvas(Widget, can_focus=True):
    """The whole picture. Only lines that differ from the last picture are drawn."""

    DEFAULT_CSS = "Canvas { width: 100%; height: 100%; background: transparent; }"

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[Text] = []

    def show(self, lines: list[Text]) -> None:
        before, self.lines = self.lines, lines
        if len(before) != len(lines):
            self.refresh()
            return
        changed = [place for place, (old, new) in enumerate(zip(before, lines, strict=True))
                   if old != new or old.style != new.style]  # fmt: skip
        if changed:
            self.refresh(*(Region(0, place, self.size.width, 1) for place in changed))

    def render_line(self, y: int) -> Strip:
        width = self.size.width
        if y >= len(self.lines):
            return Strip.blank(width)
        segments = [one for one in self.lines[y].render(self.app.console) if isinstance(one, Segment)]
        return Strip(segments).adjust_cell_length(width)


class FullScreen(App[None]):
    """Every key is a row of `keys.KEYS`; its action is a method `act_NAME`, perhaps with an argument."""

    ENABLE_COMMAND_PALETTE = False
    CSS = "Screen { background: transparent; }"

    def __init__(self, watcher: Watcher, orders: Orders) -> None:
        super().__init__(ansi_color=True)
        self.watcher = watcher
        self.orders = orders
        self.desk = Desk(watcher.look, watcher.link(), orders.program, orders.options)
        self.desk.renew(watcher.look)
        self.canvas = Canvas()
        self.errands = Errands()
        self.left = False
        """whether the user has left before the end of the run"""
        self._moved = 0.0
        self._ticks = -1
        self._failed: dict[str, float] = {}
        """when the host last gave no answer to an errand"""
        self._used = time.monotonic()
        """when a key was last pressed"""
        self.fleet: Fleet | None = None
        self.fault: BaseException | None = None

    def compose(self) -> ComposeResult:
        yield self.canvas

    def on_mount(self) -> None:
        self._unsubscribe = self.watcher.subscribe(lambda: self.call_later(self._news))
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self.act_leave)
        self.errands.start()
        self.set_interval(_TICK_S, self._tick)
        self.canvas.focus()
        self._news()

    def on_unmount(self) -> None:
        self._unsubscribe()
        if self.fleet:
            self.fleet.close()

    def _fatal_error(self) -> None:
        """A bug keeps its plain traceback: textual's would write out all values, for minutes."""
        self.fault = sys.exception()
        self._close_messages_no_wait()

    # What is known

    def _news(self) -> None:
        """A look is over, or a look waits for its answer."""
        look = self.watcher.look
        if self.watcher.failure or (look.over and look.status.finished):
            self.exit()
            return
        if look is not self.desk.look:
            self.desk.renew(look)
            if self.desk.page in ("events", "host"):
                self._fetch_events()
        self._ticks = -1
        self._tick()

    def _tick(self) -> None:
        self.desk.passed, self.desk.link = self.watcher.passed(), self.watcher.link()
        pause = max(_ATTENTIVE_S, shortest(len(self.desk.look.status.sessions)))
        if self.desk.passed >= pause and time.monotonic() < self._used + _USED_S:
            self.watcher.refresh()
        if self.desk.page == "runs" and self.fleet and (self.fleet.wait(0) or self.desk.fleet is None):
            self.desk.fleet = self.fleet.rows() or self.desk.fleet
        self._fetch()
        self._ticks += 1
        if self._ticks % _TICKS and self.canvas.lines and self.desk.page != "runs":
            self.canvas.show([self.desk.title(), *self.canvas.lines[1:]])
        else:
            self.draw()

    def draw(self) -> None:
        desk, size = self.desk, self.size
        desk.width, desk.height = max(1, size.width), max(1, size.height)
        self.canvas.show(picture(desk))

    def on_resize(self) -> None:
        self.draw()

    # What is fetched

    def _ask(self, key: str, work: Callable[[], Any], then: Callable[[Any], object]) -> None:
        """`work` in the thread of errands; `then` gets its result here. A failure is shown."""

        def errand() -> None:
            try:
                found = work()
            except UserError as error:
                self._failed[key] = time.monotonic()
                self.call_later(self.say, error.headline)
            except Exception as error:  # noqa: BLE001  a bug ends the app with its traceback
                self.call_later(self._raise, error)
            else:
                self.call_later(self._got, then, found)

        again = time.monotonic() > self._failed.get(key, 0.0) + _AGAIN_S or key.startswith("order")
        if again and not self.errands.busy(key):
            self.errands.ask(key, errand)

    def _raise(self, error: Exception) -> None:
        raise error

    def _got(self, then: Callable[[Any], object], found: Any) -> None:
        then(found)
        self.draw()

    def _fetch(self) -> None:
        """What the pane needs: a log while it may grow, the list of videos once."""
        desk, session = self.desk, self.desk.session
        shown = desk.full or desk.pane_height
        if not (session and shown and session.attempt) or time.monotonic() < self._moved + _REST_S:
            return
        name, source = session.name, self.watcher.source
        if desk.pane == "log" and desk.link.reachable:
            log = desk.logs.get(name, Log())
            if log.attempt != session.attempt:
                log = Log(attempt=session.attempt)
            if not log.over:
                asked = LogPosition(name, log.attempt if log.offset >= 0 else 0, log.offset)

                def read() -> list[LogPiece]:
                    return list(follow(source.transport, source.view.directory, [asked], _LOG_LINES, on=False))

                self._ask("log", read, lambda pieces: self._grown(name, log, pieces, alive=session.alive))
        elif desk.pane == "video" and name not in desk.videos:
            folder = str(PurePosixPath(RunLayout(source.view.directory).attempt(name, 1).log).parents[1])
            self._ask("video", lambda: source.transport.run(_VIDEOS, folder).text,
                      lambda text: desk.videos.__setitem__(name, pane.parsed_videos(text)))  # fmt: skip

    def _grown(self, name: str, log: Log, pieces: Sequence[Any], *, alive: bool) -> None:
        for piece in pieces:
            same = piece.log.attempt == log.attempt
            data = ((log.data if same else b"") + piece.data)[-LOG_KEPT:]
            log = Log(data, piece.log.attempt, piece.log.offset, over=piece.log.ended and not alive)
        self.desk.logs.pop(name, None)
        self.desk.logs[name] = log
        if len(self.desk.logs) > _LOGS_KEPT:
            del self.desk.logs[next(iter(self.desk.logs))]

    def _fetch_events(self) -> None:
        source = self.watcher.source
        path = RunLayout(source.view.directory).events
        self._ask("events", lambda: events.parse(source.transport.run(_EVENTS, path, str(_EVENTS_KEPT)).text),
                  lambda found: setattr(self.desk, "events", found))  # fmt: skip

    # Keys and mouse

    def say(self, message: str) -> None:
        self.desk.message = harmless(message, keep="")
        self.draw()

    def on_key(self, event: textual_events.Key) -> None:
        event.stop()
        event.prevent_default()
        desk = self.desk
        desk.message, self._used = "", time.monotonic()
        if event.key == "ctrl+c":
            self.act_leave()
        elif desk.question:
            question, desk.question = desk.question, None
            _, act = question.answers.get(event.character or event.key, ("", lambda: None))
            act()
        elif desk.prompt:
            self._type(event.key, event.character if event.is_printable else None)
        elif key := keys.BY_NAME.get(event.key) or keys.BY_NAME.get(event.character or ""):
            self.act(key.action)
        self.draw()

    def act(self, action: str) -> None:
        name, _, argument = action.partition(":")
        act = getattr(self, f"act_{name}")
        act(argument) if argument else act()

    def on_paste(self, event: textual_events.Paste) -> None:
        if self.desk.prompt:
            self._type("", harmless(event.text, keep="").strip())
            self.draw()

    def on_click(self, event: textual_events.Click) -> None:
        match event.style.meta.get("act"):
            case ("row", int(place)):
                again = place == self.desk.cursor
                self.desk.cursor = place
                self.act_open() if again else None
            case ("cell", int(row), int(column)):
                again = self.desk.cell == (row, column)
                self.desk.cell = (row, column)
                self.act_open() if again else None
            case ("pane", str(name)):
                self.desk.pane = name
            case ("show", str(name)):
                self.act_show(name)
        self._moved, self._ticks = 0.0, -1
        self._tick()

    def on_mouse_scroll_down(self) -> None:
        self.act_move("3")
        self.draw()

    def on_mouse_scroll_up(self) -> None:
        self.act_move("-3")
        self.draw()

    def _type(self, key: str, text: str | None) -> None:
        desk = self.desk
        if text:
            desk.typed += text
        elif key == "backspace":
            desk.typed = desk.typed[:-1]
        elif key == "ctrl+u":
            desk.typed = ""
        elif key in ("enter", "escape"):
            prompt, typed, desk.prompt, desk.typed = desk.prompt, desk.typed, "", ""
            if prompt == ":" and key == "enter":
                self._command(typed)
            elif key == "escape" and prompt == "/":
                self._filter("")
            return
        if desk.prompt == "/":
            self._filter(desk.typed)

    def _filter(self, words: str) -> None:
        if self.desk.page == "help":
            self.desk.help_words = words
        else:
            self.desk.choose(with_words(self.desk.choice, words))

    # Moving

    def act_move(self, by: str) -> None:
        desk, step = self.desk, int(by)
        self._moved = time.monotonic()
        if desk.full:
            desk.scrolled += -step if desk.pane == "log" else step
        elif desk.page == "sessions":
            desk.cursor = max(0, min(len(desk.rows) - 1, desk.cursor + step))
        elif desk.page == "grid":
            self._move_cell(step, 0)
        else:
            desk.scrolled += step
        desk.scrolled = max(0, desk.scrolled)
        self.set_timer(_REST_S * 1.1, self._fetch)

    def _move_cell(self, down: int, right: int) -> None:
        found = grid.Map.of(self.desk.look.status)
        row, column = self.desk.cell
        limits = len(found.policies) - 1, len(found.environments) - 1
        self.desk.cell = (max(0, min(limits[0], row + down)), max(0, min(limits[1], column + right)))
        self._moved = time.monotonic()

    def act_page(self, by: str) -> None:
        rows = max(1, self.desk.body_height(len(self.desk.above())) - 1)
        self.act_move(str(int(by) * (self.desk.height - 4 if self.desk.full else rows)))

    def act_end(self, by: str) -> None:
        self.act_move(f"{by}000000")

    def act_right(self) -> None:
        desk = self.desk
        if desk.page == "grid":
            self._move_cell(0, 1)
        elif desk.row and desk.row.folded:
            desk.choose(replace(desk.choice, unfolded=desk.choice.unfolded | {desk.row.name}))

    def act_left(self) -> None:
        desk, row = self.desk, self.desk.row
        if desk.page == "grid":
            self._move_cell(0, -1)
        elif row:
            first = next((one for one in desk.rows if row.name in one.alike), row)
            desk.choose(replace(desk.choice, unfolded=desk.choice.unfolded - {first.name}))

    def act_open(self) -> None:
        desk = self.desk
        if desk.full and desk.pane == "video":
            self._open_video()
        elif desk.page in ("sessions", "grid") and desk.session:
            self._moved, desk.full, desk.scrolled = 0.0, True, 0
            self._fetch()

    def act_back(self) -> None:
        desk = self.desk
        if desk.full:
            desk.full, desk.scrolled = False, 0
        elif desk.page == "help" and desk.help_words:
            desk.help_words = ""
        elif desk.page != "sessions":
            self.act_show("sessions")
        elif desk.marked:
            desk.marked.clear()
        elif desk.choice.words:
            desk.choose(with_words(desk.choice, ""))

    def act_pane(self, by: str) -> None:
        place = (pane.PANES.index(self.desk.pane) + int(by)) % len(pane.PANES)
        self._show_pane(pane.PANES[place], full=self.desk.full)

    def _show_pane(self, name: str, *, full: bool = False) -> None:
        """A pane below the list, or on the whole screen where there is no room below."""
        desk = self.desk
        if not desk.session:
            self.say("no session is chosen")
            return
        if desk.page not in ("sessions", "grid"):
            self.act_show("sessions")
        desk.pane, desk.scrolled, self._moved = name, 0, 0.0
        desk.full = full or desk.full or not desk.pane_height
        self._fetch()

    def act_log(self) -> None:
        self._show_pane("log")

    def act_pager(self) -> None:
        self._show_pane("log", full=True)

    def act_explain(self) -> None:
        self._show_pane("explain", full=True)

    def act_video(self) -> None:
        self._show_pane("video")

    def act_show(self, name: str) -> None:
        desk = self.desk
        if name == "grid" and desk.page == "sessions" and desk.session:
            desk.cell = grid.Map.of(desk.look.status).place(desk.session)
        if name == "sessions" and desk.page == "grid" and desk.session:
            chosen = desk.session.name
            place = next((place for place, row in enumerate(desk.rows) if chosen in {row.name, *row.meant}), None)
            desk.cursor = desk.cursor if place is None else place
        desk.page, desk.full, desk.scrolled = name, False, 0
        if name in ("events", "host"):
            self._fetch_events()
        elif name == "runs":
            self.fleet = self.fleet or self.orders.fleet()

    def act_help(self) -> None:
        self.act_show("sessions" if self.desk.page == "help" else "help")

    # Choosing

    def act_filter(self) -> None:
        self.desk.prompt = "/"
        self.desk.typed = self.desk.help_words if self.desk.page == "help" else self.desk.choice.words
        if self.desk.page not in ("sessions", "help"):
            self.act_show("sessions")

    def act_failed(self) -> None:
        wanted = "state:failed,partial,lost"
        self._filter("" if self.desk.choice.words == wanted else wanted)
        self.desk.cursor = 0

    def act_sort(self, by: str) -> None:
        place = (SORTS.index(self.desk.choice.sort) + int(by)) % len(SORTS)
        self.desk.choose(replace(self.desk.choice, sort=SORTS[place]))

    def act_reverse(self) -> None:
        self.desk.choose(replace(self.desk.choice, backwards=not self.desk.choice.backwards))

    def act_mark(self) -> None:
        meant = set(self.desk.row.meant) if self.desk.row else set()
        self.desk.marked ^= meant
        self.act_move("1")

    # Orders

    def ask(self, lines: Sequence[str], answers: Mapping[str, tuple[str, Callable[[], object]]]) -> None:
        self.desk.question = Question(tuple(harmless(line, keep="") for line in lines), answers)

    def order(self, what: str, act: Callable[[], Sequence[str]]) -> None:
        """Carry out an order; its answer is shown when it comes."""
        self.say(f"{what} ...")

        def done(lines: Sequence[str]) -> None:
            self.desk.marked.clear()
            if what == "resume":
                self._answered(what, lines)
            else:
                more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
                self.say(f"{what}: {lines[0] if lines else 'done'}{more}")

        self._ask(f"order {what}", lambda: self.watcher.order(lambda _: act()), done)

    def _answered(self, what: str, lines: Sequence[str]) -> None:
        self.desk.message = ""
        if len(lines) > 1:
            self.desk.answer = tuple(harmless(line, keep="") for line in lines)
            self.act_show("answer")
        else:
            self.say(f"{what}: {lines[0]}" if lines else f"{what}: done")

    def act_retry(self) -> None:
        desk = self.desk
        names = [one.name for one in desk.look.status.sessions
                 if one.name in desk.meant and not one.alive and one.attempt and not one.done_with]  # fmt: skip
        if not names:
            self.say("nothing to retry here: it runs, waits, or has succeeded")
            return
        alike = next((row.alike for row in desk.rows if names[0] in row.alike), ())
        answers = {"y": (f"retry {several(len(names), 'session')}", lambda: self._retry(names))}
        if len(alike) > len(names):
            answers["a"] = (f"retry all {len(alike)} that failed alike", lambda: self._retry(alike))
        self.ask([f"Start {_named(names)} again, with a new budget of retries?"], answers)

    def _retry(self, names: Sequence[str]) -> None:
        self.order(f"retry {_named(names)}", lambda: self.orders.retry(tuple(names)))

    def act_stop(self) -> None:
        names = tuple(one.name for one in self.desk.look.status.every if one.name in self.desk.meant and one.alive)
        if not names:
            self.say("nothing runs here; `:stop` ends the whole run")
            return
        self._ask_stop(names)

    def _ask_stop(self, names: tuple[str, ...]) -> None:
        look = self.watcher.look
        planned = PlannedStop.of(look.view, look.status, names)
        what = _named(names) if names else "the whole run"
        act = {"y": (f"stop {what}", lambda: self.order(f"stop {what}", lambda: self.orders.stop(names)))}
        self.ask([*planned.lines(), f"Stop {what}?"], act)

    def act_resume(self) -> None:
        self.ask(["Let the run go on? It runs what is missing, as `combo resume` does."],
                 {"y": ("resume", lambda: self.order("resume", self.orders.resume))})  # fmt: skip

    def act_pause(self) -> None:
        status = self.desk.look.status
        if status.hold:
            self.act_resume()
            return
        self.ask(["Start nothing new until somebody resumes? Running sessions go on."],
                 {"y": ("pause", lambda: self.order("pause", self.orders.pause))})  # fmt: skip

    def act_slots(self, by: str) -> None:
        status = self.desk.look.status
        now = status.slots or self.desk.look.view.plan.limits.parallel
        self._slots(max(1, now + int(by)))

    def _slots(self, count: int) -> None:
        # several keys in a row count from the number that was last ordered
        status = replace(self.desk.look.status, slots=count)
        self.desk.look = self.desk.look._replace(status=status)
        self.order(f"slots {count}", lambda: self.orders.slots(count))

    def act_refresh(self) -> None:
        self.watcher.refresh()
        self.say("looking ...")

    def act_leave(self) -> None:
        self.left = True
        self.exit()

    # Other programs

    def _words(self) -> list[str]:
        """The command that shows in a shell what is on the screen."""
        desk = self.desk
        if desk.page == "runs":
            return ["runs"]
        verb = {"explain": "explain", "log": "logs"}.get(desk.pane, "explain")
        return [verb, desk.session.name] if desk.session and desk.page in ("sessions", "grid") else ["status"]

    def act_copy(self) -> None:
        words = self._words()
        run = ["--run", self.desk.look.view.id] if words != ["runs"] else []
        command = f"{self.orders.program} {shlex.join([*words, *run])}{self.orders.options if run else ''}"
        self.copy_to_clipboard(command)
        self.say(f"copied: {command}")

    def act_attach(self) -> None:
        session = self.desk.session
        if not session or not session.alive:
            self.say("it does not run: l shows its log")
            return
        self._outside(self.orders.words(["attach", session.name]))

    def _outside(self, command: Sequence[str]) -> None:
        """Another program has the terminal until it ends."""
        with self.suspend():
            code = subprocess.run(command, check=False).returncode
            if code:
                with contextlib.suppress(EOFError, KeyboardInterrupt):
                    input("Enter leads back ")
        self.canvas.lines = []
        self.refresh()

    def act_command(self) -> None:
        self.desk.prompt = ":"

    def _command(self, typed: str) -> None:
        try:
            verb, *words = shlex.split(typed) or [""]
        except ValueError as error:
            self.say(f"{error}")
            return
        known = {one.name for one in self.desk.look.status.every}
        if verb in {"q", "quit"}:
            self.act_leave()
        elif verb == "sort" and words and words[0] in SORTS:
            self.desk.choose(replace(self.desk.choice, sort=words[0]))
        elif verb in {"stop", "retry"} and set(words) <= known and (words or verb == "stop"):
            if verb == "stop":
                self._ask_stop(tuple(words))
            else:
                self.ask([f"Start {_named(words)} again?"], {"y": ("retry", lambda: self._retry(words))})
        elif verb == "slots" and len(words) == 1 and words[0].isdecimal() and int(words[0]):
            self._slots(int(words[0]))
        elif verb in {"resume", "pause", "attach", "refresh", "help"} and not words:
            self.act(verb)
        elif verb:
            self._other([verb, *words])

    def _other(self, words: list[str]) -> None:
        """Any other command of combo, about this run, without a terminal; its output becomes a page."""

        def work() -> list[str]:
            done = subprocess.run(
                self.orders.words(words), stdin=subprocess.DEVNULL, capture_output=True, check=False, timeout=120
            )
            said = (done.stdout + done.stderr).decode("utf-8", "replace").splitlines()
            return said or [f"exit code {done.returncode}"]

        self.say(f"combo {shlex.join(words)} ...")
        self._ask("other", work, lambda lines: self._answered(f"combo {words[0]}", lines))

    def _open_video(self) -> None:
        """The newest video of the session: opened here, or its place is copied."""
        session, host = self.desk.session, self.watcher.source.transport.host
        videos = self.desk.videos.get(session.name) if session else None
        if not session or not videos:
            return
        attempt = RunLayout(self.desk.look.view.directory).attempt(session.name, videos[0].attempt)
        path = Path(attempt.directory, videos[0].path)
        if host == LOCAL and any(os.environ.get(name) for name in ("DISPLAY", "WAYLAND_DISPLAY")):
            null = subprocess.DEVNULL
            viewer = ["xdg-open", str(path.expanduser())]
            subprocess.Popen(viewer, start_new_session=True, stdin=null, stdout=null, stderr=null)
            self.say(f"opened: {videos[0].path}")
        else:
            place = str(path) if host == LOCAL else f"{host}:{path}"
            self.copy_to_clipboard(place)
            self.say(f"copied: {place}")


def _named(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else several(len(names), "session")


def show_full_screen(watcher: Watcher, orders: Orders) -> tuple[bool, list[Text]]:
    """Show the run of a watcher that has been started, until it has finished or the user leaves.

    Returns whether the user has left, and the last picture without its line of keys. Raises what ended the watcher.
    """
    for name in ("COLUMNS", "LINES"):  # exported ones don't follow a resize
        os.environ.pop(name, None)
    app = FullScreen(watcher, orders)
    try:
        app.run()
    finally:
        watcher.close()
    if error := app.fault or watcher.failure:
        raise error
    desk = app.desk
    desk.renew(watcher.look)
    desk.question, desk.prompt, desk.message, desk.full = None, "", "", False
    lines = picture(desk)[: desk.height - len(bottom(desk))]
    while lines and not lines[-1].plain.strip():
        lines.pop()
    return app.left, lines
