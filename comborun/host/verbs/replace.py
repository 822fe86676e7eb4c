"""`replace RUN`: ends the user's own sessions that dispatch/replaces lists by their whole names, one per line.

It sends INT, then TERM, then closes the window; it never kills. It prints what it did, and records it in
dispatch/replaced. A run does this once, before its first start.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterable, Iterator

from comborun.host.system import commands, files, process
from comborun.host.system.process import setting
from comborun.host.verb_errors import say
from comborun.rules import records
from comborun.rules.names import RunLayout

_LADDER = ((signal.SIGINT, "INT", 20.0), (signal.SIGTERM, "TERM", 10.0))
_CLOSED_S = 3.0
_SHELL = re.compile(r"(-|.*/)?(bash|zsh|fish|sh|dash|ksh|tcsh|csh)", re.DOTALL)
_SCRIPT = re.compile(r".*/(sessions/.*/session|lib/window)\.sh", re.DOTALL)


class UserSession:
    """A session of tmux or screen. `address` names it exactly; `roots` are its shells, with their start times."""

    def __init__(self, kind: str, name: str, address: str, pids: Iterable[int] = ()) -> None:
        self.kind, self.name, self.address = kind, name, address
        looks = {pid: process.look(pid) for pid in pids}
        self.roots = {pid: seen.start for pid, seen in looks.items() if seen}
        self.known: dict[int, str] = {}
        """all processes seen in it so far: a child whose parent ends still belongs to it"""
        self.ended = ""
        """the signal that ended it"""

    def members(self, table: dict[int, process.Look]) -> list[int]:
        sessions = {pid for pid, start in self.roots.items() if pid not in table or table[pid].start == start}
        self.known.update((pid, seen.start) for pid, seen in table.items() if seen.session in sessions)
        alive = {pid for pid, start in self.known.items() if pid in table and table[pid].start == start}
        inside = process.descendants(alive, table)
        self.known.update((pid, table[pid].start) for pid in inside)
        return sorted(inside)

    @property
    def label(self) -> str:
        """`tmux session`, `screen session 4242.eval`: screen may have several of one name."""
        return f"{self.kind} session" + (f" {self.address}" if self.kind == "screen" else "")

    def busy(self, table: dict[int, process.Look]) -> list[int]:
        """Its live processes, without shells that wait at their prompt."""
        return [pid for pid in self.members(table) if not (pid in self.roots and _idle(pid))]


class Replacing:
    """The sessions to end, and the report on them."""

    def __init__(self) -> None:
        self.found: list[UserSession] = []
        self.said: list[str] = []

    def say(self, name: str, what: str) -> None:
        line = records.clean(f"replaces {name}: {what}")
        self.said.append(line)
        say(line, replaced=name, what=what)

    def find(self, name: str) -> None:
        here = [*self._tmux(name), *self._screen(name)]
        self.found += [one for one in here if one.kind]
        if not here:
            self.say(name, "there is no session of that name")

    def _tmux(self, name: str) -> Iterator[UserSession]:
        """Sessions on the user's own server. The id names a session exactly, whatever characters its name has."""
        for line in _answer("tmux", "list-sessions", "-F", "#{session_id} #{session_name}"):
            address, _, called = line.partition(" ")
            if called == name:
                yield self._windows(name, address)

    def _windows(self, name: str, address: str) -> UserSession:
        """The windows of a session, from the list of all panes: tmux 3.8 counts the sessions of one group as one."""
        listed = _answer("tmux", "list-panes", "-a", "-F", "#{session_id} #{window_id} #{pane_pid}")
        panes = [words for words in map(str.split, listed) if len(words) == 3]
        mine = {window for session, window, _ in panes if session == address}
        if any(session != address and window in mine for session, window, _ in panes):
            self.say(name, "its tmux windows belong to another session too: left alone")
            return UserSession("", name, address)
        return UserSession("tmux", name, address, [int(pid) for session, _, pid in panes if session == address])

    def _screen(self, name: str) -> Iterator[UserSession]:
        """Sessions of screen. PID.NAME names one exactly."""
        for line in _answer("screen", "-ls"):
            address = line.lstrip("\t").partition("\t")[0]
            pid, _, called = address.partition(".")
            if not line.startswith("\t") or not pid.isdecimal() or called != name:
                continue
            if "(Dead" in line:
                self.say(name, f"screen {address} is dead: left alone")
                yield UserSession("", name, address)
            else:
                shells = [child for child, seen in process.table().items() if seen.parent == int(pid)]
                yield UserSession("screen", name, address, shells)

    def spare(self) -> None:
        """Leave out our own sessions, and the one that this was started from."""
        table, above, pid = process.table(), set(), os.getpid()
        while pid > 1 and pid in table:
            above.add(pid)
            pid = table[pid].parent
        for one in self.found[:]:
            inside = one.members(table)
            why = "it is a session of comborun" if any(map(_ours, inside)) else ""
            if why or above.intersection(inside):
                said = why or "this launch was typed in it"
                self.say(one.name, f"{one.label} is left alone: {said}")
                self.found.remove(one)

    def end(self, number: int, word: str, seconds: float) -> None:
        """Send a signal to all at once, and wait until nothing is busy."""
        table = process.table()
        busy = {one: pids for one in self.found for pids in [one.busy(table)] if pids}
        for one, pids in busy.items():
            one.ended = word
            if number == signal.SIGINT:  # to whole groups, as a terminal does
                for group in {table[pid].group for pid in pids}:
                    process.send_group(group, number)
            else:  # parents first, or a loop would start its next program
                for pid in sorted(pids, key=lambda pid: (int(table[pid].start), pid)):
                    process.send(pid, number)
        if busy:
            process.wait(seconds, lambda: not any(one.busy(now) for now in [process.table()] for one in self.found))

    def close(self, one: UserSession) -> None:
        """Close its window, if it still exists."""
        what = f" after {one.ended}" if one.ended else ""
        if one.busy(process.table()):
            what = " when its window was closed"
        if one.kind == "tmux":
            _answer("tmux", "kill-session", "-t", one.address)
        elif os.path.exists(f"/proc/{one.address.partition('.')[0]}"):
            _answer("screen", "-S", one.address, "-X", "quit")
        process.wait(_CLOSED_S, lambda: not one.members(process.table()))
        if left := " ".join(map(str, one.members(process.table()))):
            self.say(one.name, f"{one.label} is closed, and these processes survive: {left}")
        else:
            self.say(one.name, f"{one.label} has ended{what}")


def replace(run: str) -> None:
    """Do what dispatch/replaces asks for, unless that was done or the run has started before. Prints what it does."""
    layout = RunLayout(run)
    if not os.path.exists(layout.replaces) or os.path.exists(layout.replaced) or os.path.exists(layout.dispatcher):
        return
    work = Replacing()
    for name in files.read_text(layout.replaces).splitlines():
        work.find(name)
    work.spare()
    for number, word, seconds in _LADDER:
        work.end(number, word, setting(f"COMBORUN_REPLACE_{word}_S", seconds))
    for one in work.found:
        work.close(one)
    files.write_text(layout.replaced, "".join(f"{line}\n" for line in work.said) or "\n")


def main(arguments: list[str]) -> int:
    replace(os.path.abspath(arguments[0] if arguments else "."))
    return 0


def _answer(program: str, *words: str) -> list[str]:
    """The output of tmux (the user's own server) or screen; empty without an answer."""
    server = ("-L", "default") if program == "tmux" else ()
    return commands.run(5.0, program, *server, *words, most=1 << 22)[1].split("\n")


def _idle(pid: int) -> bool:
    """Whether it is an interactive shell. One that waits for a program has that program as a child."""
    words = _words(pid)
    return bool(words and _SHELL.fullmatch(words[0])) and all(
        word.startswith("--") or (word.startswith("-") and "c" not in word) for word in words[1:]
    )


def _ours(pid: int) -> bool:
    """Whether a process belongs to a session that a dispatcher started."""
    return bool(process.marker_of(pid)) or any(map(_SCRIPT.fullmatch, _words(pid)))


def _words(pid: int) -> list[str]:
    return [os.fsdecode(word) for word in process.read(f"{pid}/cmdline").split(b"\0")[:-1]]
