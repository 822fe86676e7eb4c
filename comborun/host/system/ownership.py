"""Whose is a process: the one answer for ports, CPU time, memory, GPUs and stops.

A process belongs to the attempt whose marker is in its environment. A program that sets its title may have overwritten
that (vLLM, Ray and many launchers do): then it belongs to the attempt of its nearest ancestor that has a marker or
supervises one, or of the command whose process session or group it is in.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from comborun.host.system import files, process
from comborun.host.system.process import Look
from comborun.rules.names import RunLayout, bare

OUR_QUESTIONS = ("nvidia-smi",)
"""our own children; one may hang in the driver and can't be ended"""
_VERB = "session"


class Root:
    """A process of a record: a supervisor, or a command, which leads its process session and group."""

    __slots__ = ("leads", "marker", "pid", "start")

    def __init__(self, pid: int, start: str, marker: str, *, leads: bool) -> None:
        self.pid = pid
        self.start = start
        self.marker = marker
        self.leads = leads


def roots(marker: str, claim: Mapping[str, str], begin: Mapping[str, str]) -> list[Root]:
    """The supervisor and the command of an attempt, by its records."""
    if (begin or claim).get("boot") != process.boot_id():
        return []
    named = ((claim, "supervisor", False), (begin, "pid", True))
    found = ((record.get(key, ""), record.get(f"{key}_start", ""), leads) for record, key, leads in named)
    return [Root(int(pid), start, marker, leads=leads) for pid, start, leads in found if pid.isdecimal() and start]


class Owners:
    """Whose processes are, at one moment. `known`: processes of records, since nobody can ask one that is dead.

    Most processes carry a marker, so only those without one are looked at; each of them once.
    """

    def __init__(self, known: Iterable[Root] = ()) -> None:
        self._looks: dict[int, Look | None] = {}
        self._leaders: dict[int, str] = {}
        self._supervisors: dict[int, str] = {}
        self._marks: dict[int, str] = {}
        self._runs: dict[str, str] = {}
        for one in known:
            there = self._look(one.pid)
            # a group keeps the number of its dead leader while it has members, so nobody else has that number
            if one.leads and (there is None or there.start == one.start):
                self._leaders[one.pid] = one.marker
            elif there and there.start == one.start:
                self._supervisors[one.pid] = one.marker

    def of(self, pid: int) -> str | None:
        """The marker of its attempt; empty if it has none, None if it is gone."""
        own = process.marker_of(pid)
        if own is None or own:
            return own
        one = self._look(pid)
        if one is None or self._supervises(pid):
            return ""
        name = one.name
        while one:
            if marker := self._leaders.get(one.session) or self._leaders.get(one.group):
                return marker
            if marker := self._supervises(one.parent) or self._mark(one.parent):
                return "" if name in OUR_QUESTIONS else marker
            above = self._look(one.parent)
            one = above if above and int(above.start) <= int(one.start) else None  # a younger one has only its number
        return ""

    def members(self, marker: str) -> list[int]:
        """The processes of an attempt, or of all whose marker begins with one that ends in `/`; never this process.
        The newest come first: in a chain of forks, each lives only for milliseconds.
        """
        found = ((pid, self.of(pid) or "") for pid in sorted(process.pids(), reverse=True))
        if marker.endswith("/"):
            return [pid for pid, its in found if its.startswith(marker)]
        return [pid for pid, its in found if its == marker]

    def _look(self, pid: int) -> Look | None:
        """A process if it lives."""
        if pid not in self._looks:
            seen = process.look(pid)
            self._looks[pid] = seen if seen and seen.lives else None
        return self._looks[pid]

    def _mark(self, pid: int) -> str:
        if pid not in self._marks:
            self._marks[pid] = process.marker_of(pid) or ""
        return self._marks[pid]

    def _supervises(self, pid: int) -> str:
        """The marker of the attempt that a process supervises, as its command line shows; else empty."""
        if pid not in self._supervisors:
            seen = self._look(pid)
            self._supervisors[pid] = self._supervised(pid) if seen and seen.name == process.NAME else ""
        return self._supervisors[pid]

    def _supervised(self, pid: int) -> str:
        """From `python <run>/lib/comborun_host session [RUN] NAME ATTEMPT [ENGINE]`."""
        words = os.fsdecode(process.read(f"{pid}/cmdline")).split("\0")
        at = words.index(_VERB) if _VERB in words else 0
        given = [word for word in words[at + 1 :] if word] if at else []
        named = given[1:] if given and given[0].startswith("/") else given
        if len(named) < 2 or not named[1].isdecimal():
            return ""
        directory = os.path.dirname(os.path.dirname(words[at - 1]))
        if directory not in self._runs:
            self._runs[directory] = files.read_line(RunLayout(directory).id).strip()
        run = self._runs[directory]
        return f"{run}/{bare(named[0])}/{named[1]}" if run else ""


def members(marker: str, known: Iterable[Root] = ()) -> list[int]:
    """The processes of an attempt now; see Owners."""
    return Owners(known).members(marker)


class Use:
    """The resources that the processes of one attempt hold together."""

    __slots__ = ("kib", "pids", "ticks")

    def __init__(self) -> None:
        self.kib = 0
        """KiB of main memory, without shared pages"""
        self.ticks = 0
        """clock ticks of CPU time so far"""
        self.pids: list[int] = []


def uses() -> dict[str, Use]:
    """Marker -> use, of each attempt of this user's runs."""
    found: dict[str, Use] = {}
    owners = Owners()
    for pid in process.pids():
        marker, seen = owners.of(pid), process.look(pid)
        if marker and seen:
            use = found.setdefault(marker, Use())
            use.kib += process.own_kib(pid)
            use.ticks += seen.cpu
            use.pids.append(pid)
    return found
