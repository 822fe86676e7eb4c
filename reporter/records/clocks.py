"""Clocks of hosts that are wrong: of a run on several hosts, all times are shown on one clock. Pure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from comborun.rules.facts import Fact

if TYPE_CHECKING:
    from comborun.reporter.records.collected import AttemptRecord, SessionHistory


class WrongClock(NamedTuple):
    host: str
    ahead: float
    """seconds by which it was ahead of the machine that copied the records"""
    attempts: Mapping[str, Sequence[int]]
    """session -> its attempts on that host"""

    @property
    def fact(self) -> Fact:
        return Fact("clock_of_host", seconds=abs(self.ahead), way="ahead" if self.ahead > 0 else "behind")


def clocks_of(text: str) -> tuple[WrongClock, ...]:
    """Those that the copy of a run on several hosts names; none in every other folder."""
    found = json.loads(text or "{}")
    return tuple(WrongClock(host, one["ahead"], one["attempts"]) for host, one in found.items())


def on_one_clock(history: SessionHistory, clocks: Sequence[WrongClock]) -> SessionHistory:
    """With the times of all its attempts on the clock of the machine that copied them."""
    ahead = {number: one.ahead for one in clocks for number in one.attempts.get(history.session.name, ())}
    if not ahead:
        return history
    return replace(history, attempts=tuple(_earlier(one, ahead.get(one.number, 0.0)) for one in history.attempts))


def _earlier(attempt: AttemptRecord, seconds: float) -> AttemptRecord:
    begin, end = attempt.begin, attempt.end
    started = None if end is None or end.started is None else end.started - seconds
    return replace(
        attempt,
        begin=begin and replace(begin, started=begin.started - seconds),
        end=end and end._replace(started=started, ended=end.ended - seconds),
    )
