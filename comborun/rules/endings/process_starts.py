"""Which sessions of a process (`together`) a start gets, which were under way at a crash, and which are blamed. Pure.

Each session has its own ends, and so its own budget of retries. One that never began always runs. What was under way
at a crash goes last the next time, and then alone, so one environment that ends its process keeps no other from
running.
"""

from __future__ import annotations

import re

from comborun.rules.patterns import late
from comborun.rules.vocabulary import Cause, Completeness, Outcome, cause_of, completeness_of, outcome_of

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Collection, Iterable, Mapping, Sequence

_NO_CRASH = (Cause.STOPPED, Cause.NOT_NEEDED, Cause.PREEMPTED, Cause.LAUNCH_FAILED)
"""causes that say nothing about an environment"""
ALL_CHARGED = frozenset((Cause.STOPPED, Cause.NOT_NEEDED, Cause.LAUNCH_FAILED))
"""causes that hold for all environments of a start, whether they began or not"""
_RANK = late(r"^\[(?:[A-Za-z_]+)?([0-9]{1,5})\]:")
"""the number of a rank in front of its lines, as torch's launcher writes it"""
_ROOT_CAUSE = late(r"^\s*rank\s*:\s*([0-9]{1,5})\b")


class Candidate:
    """A session of a process that runs (again)."""

    def __init__(self, name: str, place: int, crashes: int = 0, wait_s: float = 0.0) -> None:
        self.name = name
        self.place = place
        """its number in the order of the plan"""
        self.crashes = crashes
        """how often it was under way when its process crashed, since a user last asked for another attempt"""
        self.wait_s = wait_s
        """seconds until its next start, if it has failed"""


def chosen(candidates: Sequence[Candidate]) -> list[Candidate]:
    """The sessions of the next start, in their order."""
    fresh = [one for one in candidates if not one.crashes]
    if fresh:
        return fresh + [one for one in candidates if one.crashes == 1]
    return sorted(candidates, key=lambda one: (one.wait_s, one.crashes, one.place))[:1]


def crashes(ends: Iterable[Mapping[str, Any]]) -> int:
    """How many of the ends of a session are crashes that it was under way at."""
    return sum(outcome_of(end) is not Outcome.SUCCEEDED and cause_of(end) not in _NO_CRASH for end in ends if end)


def is_complete(ends: Iterable[Mapping[str, Any]]) -> bool:
    return any(completeness_of(end) is Completeness.COMPLETE for end in ends)


class Start:
    """One start of a process: its sessions in order, and those of them that are complete or have records."""

    def __init__(self, names: Sequence[str], complete: Collection[str], recorded: Collection[str], ranks: int) -> None:
        self.names = names
        self.recorded = recorded
        self.open = [name for name in names if name not in complete]
        self._ranks = max(1, ranks)

    def first(self) -> list[str]:
        """The sessions that the process begins with: one, or one for each rank."""
        return list(self.names[: self._ranks])

    def under_way(self, lines: Sequence[str], environments: Mapping[str, str]) -> list[str]:
        """The sessions that had begun and were not done. Records tell, else the last line of the log that names one
        environment, else the order. `environments`: how rows and lines name each session's environment.
        """
        last = _last_named(lines, environments)
        found = {name for name in self.open if name in self.recorded}
        for rank in range(self._ranks):
            own = [name for place, name in enumerate(self.names) if place % self._ranks == rank and name in self.open]
            if found.intersection(own) or not own:
                continue
            named = [name for name in own if name in last]
            found.add(named[-1] if named else own[0])
        return [name for name in self.open if name in found]

    def blamed(self, under_way: Sequence[str], lines: Sequence[str]) -> list[str]:
        """Those whose rank ended the process, if its launcher says which one; else all that were under way."""
        said = [int(found.group(1)) for found in map(_ROOT_CAUSE.match, lines) if found]
        if self._ranks < 2 or not said:
            return list(under_way)
        own = [name for name in under_way if self.names.index(name) % self._ranks == said[-1]]
        return own or list(under_way)


def _last_named(lines: Sequence[str], environments: Mapping[str, str]) -> list[str]:
    """The sessions whose environment a line named last, by rank; lines that name several don't count."""
    patterns = {name: re.compile(rf"(?<![\w-]){re.escape(one)}(?![\w-])") for name, one in environments.items()}
    last: dict[str, str] = {}
    for line in lines:
        named = [name for name, pattern in patterns.items() if pattern.search(line)]
        rank = _RANK.match(line)
        if len(named) == 1:
            last[rank.group(1) if rank else ""] = named[0]
    return list(last.values())
