"""Orders that keys and typed commands give: each is asked for first, and its answer is shown."""

from __future__ import annotations

import shlex
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from comborun.monitor.rows import SORTS
from comborun.monitor.steering import PlannedStop
from comborun.rules.vocabulary import Life
from comborun.text import harmless, several

if TYPE_CHECKING:
    from comborun.monitor.fleet import Fleet
    from comborun.monitor.fullscreen.desk import Desk
    from comborun.monitor.fullscreen.fetching import Fetcher
    from comborun.monitor.status import SessionStatus
    from comborun.monitor.watcher import Watcher

_COMMAND_S = 120.0


@dataclass(frozen=True)
class Orders:
    """What the full screen can order, by functions of whoever opens it, those of the commands.

    Each function returns lines for the user, and raises UserError.
    """

    program: str
    """`combo` as the user can type it"""
    options: str
    """with which a command finds the host"""
    stop: Callable[[tuple[str, ...]], Sequence[str]]
    """some sessions; none named: the whole run"""
    retry: Callable[[tuple[str, ...]], Sequence[str]]
    resume: Callable[[], Sequence[str]]
    pause: Callable[[], Sequence[str]]
    slots: Callable[[int], Sequence[str]]
    fleet: Callable[[], Fleet]
    """the runs on all hosts, looked at again and again until it is closed"""
    words: Callable[[Sequence[str]], Sequence[str]]
    """words of a command about this run -> the command for another process"""


class Ordering:
    def __init__(self, desk: Desk, watcher: Watcher, orders: Orders, fetcher: Fetcher) -> None:
        self._desk, self._watcher, self._orders, self._fetcher = desk, watcher, orders, fetcher

    def _order(self, what: str, act: Callable[[], Sequence[str]]) -> None:
        """Carry out an order; its answer is shown when it comes."""
        self._desk.say(f"{what} ...")

        def done(lines: Sequence[str]) -> None:
            self._desk.marked.clear()
            more = f" (and {len(lines) - 1} more)" if len(lines) > 1 else ""
            self._desk.say(f"{what}: {lines[0] if lines else 'done'}{more}")

        self._fetcher.ask(f"order {what}", lambda: self._watcher.order(lambda _: act()), done)

    def retry(self) -> None:
        desk, meant = self._desk, set(self._desk.meant)
        names = [one.name for one in self._without_success if one.name in meant]
        if not names:
            desk.say("nothing to retry here: it runs, waits, or has succeeded")
            return
        alike = next((cause.names for cause in desk.causes if names[0] in cause.names), ())
        answers = {"y": (f"retry {several(len(names), 'session')}", lambda: self._retry(names))}
        if len(alike) > len(names):
            answers["a"] = (f"retry all {len(alike)} that failed alike", lambda: self._retry(alike))
        desk.ask([f"Start {_named(names)} again, with a new budget of retries?"], answers)

    @property
    def _without_success(self) -> list[SessionStatus]:
        """The sessions whose latest attempt has ended without success."""
        found = self._desk.look.status.sessions
        return [one for one in found if not one.alive and one.attempt and not one.done_with]

    def _retry(self, names: Sequence[str]) -> None:
        self._order(f"retry {_named(names)}", lambda: self._orders.retry(tuple(names)))

    def stop(self) -> None:
        meant = set(self._desk.meant)
        names = tuple(one.name for one in self._desk.look.status.every if one.name in meant and one.alive)
        if names:
            self._ask_stop(names)
        else:
            self._desk.say("nothing runs here; `:stop` ends the whole run")

    def _ask_stop(self, names: tuple[str, ...]) -> None:
        """Without names, stop the whole run."""
        what = _named(names) if names else "the whole run"
        planned = PlannedStop.of(self._desk.look.view, self._desk.look.status, names)
        stop = (f"stop {what}", lambda: self._order(f"stop {what}", lambda: self._orders.stop(names)))
        self._desk.ask([*planned.lines(), f"Stop {what}?"], {"y": stop})

    def resume(self) -> None:
        def act() -> None:
            self._desk.say("resume ...")
            going = lambda: self._watcher.order(lambda _: self._orders.resume())  # noqa: E731
            self._fetcher.ask("order resume", going, lambda lines: self._answered("resume", lines))

        ended = sum(one.life is Life.ENDED for one in self._without_success)
        start = "start" if ended > 1 else "starts"
        also = f" {several(ended, 'session')} that ended without success {start} again, too." if ended else ""
        question = f"Let the run go on? It runs what is missing, as `combo resume` does.{also}"
        self._desk.ask([question], {"y": ("resume", act)})

    def pause(self) -> None:
        """Pause, or resume a run that is held: one key does both."""
        if self._desk.look.status.hold:
            self.resume()
            return
        pause = ("pause", lambda: self._order("pause", self._orders.pause))
        self._desk.ask(["Start nothing new until somebody resumes? Running sessions go on."], {"y": pause})

    def slots(self, by: str) -> None:
        look = self._desk.look
        if look.parts:
            self._desk.say("with several hosts, `:slots 4` lets 4 run at once on each of them")
            return
        self._set_slots(max(1, (look.status.slots or look.view.plan.limits.parallel) + int(by)))

    def _set_slots(self, count: int) -> None:
        # several keys in a row count from the number that was last ordered
        look = self._desk.look
        self._desk.look = look._replace(status=replace(look.status, slots=count))
        self._order(f"slots {count}", lambda: self._orders.slots(count))

    def command(self, typed: str) -> None:
        """What was typed after `:`."""
        try:
            verb, *words = shlex.split(typed) or [""]
        except ValueError as error:
            self._desk.say(str(error))
            return
        known = {one.name for one in self._desk.look.status.every}
        if verb == "sort" and words and words[0] in SORTS:
            self._desk.choose(sort=words[0])
        elif verb == "stop" and set(words) <= known:
            self._ask_stop(tuple(words))
        elif verb == "retry" and words and set(words) <= known:
            self._desk.ask([f"Start {_named(words)} again?"], {"y": ("retry", lambda: self._retry(words))})
        elif verb == "slots" and len(words) == 1 and words[0].isdecimal() and int(words[0]):
            self._set_slots(int(words[0]))
        elif verb in {"resume", "pause"} and not words:
            getattr(self, verb)()
        elif verb:
            self._other([verb, *words])

    def _other(self, words: list[str]) -> None:
        """Any other command of combo, about this run, without a terminal; its output becomes a page."""
        command, null = self._orders.words(words), subprocess.DEVNULL

        def work() -> list[str]:
            done = subprocess.run(command, stdin=null, capture_output=True, check=False, timeout=_COMMAND_S)
            said = (done.stdout + done.stderr).decode("utf-8", "replace").splitlines()
            return said or [f"exit code {done.returncode}"]

        self._desk.say(f"combo {shlex.join(words)} ...")
        self._fetcher.ask("command", work, lambda lines: self._answered(f"combo {words[0]}", lines))

    def _answered(self, what: str, lines: Sequence[str]) -> None:
        if len(lines) == 1:
            self._desk.say(f"{what}: {lines[0]}")
            return
        self._desk.message, self._desk.answer = "", tuple(harmless(line, keep="") for line in lines)
        self._desk.show("answer")


def _named(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else several(len(names), "session")
