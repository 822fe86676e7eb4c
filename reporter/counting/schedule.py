"""When which attempt ran, and how that compares with running one after another. Pure."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from comborun.reporter.collected import Collected, SessionHistory
    from comborun.rules.words import Outcome


@dataclass(frozen=True)
class AttemptSpan:
    """One attempt of a session, from its start to its end."""

    session: str
    policy: str
    environment: str
    attempt: int
    started: float
    """seconds since 1970 on the host's clock"""
    ended: float | None
    """None where there is no end record"""
    outcome: Outcome | None
    gpus: str
    """as granted: `0,1`; empty without"""
    peak_memory: int | None = None
    """bytes of main memory, as far as was seen"""


@dataclass(frozen=True)
class Schedule:
    stays: tuple[AttemptSpan, ...]
    """of all attempts with a recorded start, by start"""
    slots: int | None
    """number of slots in the plan; None without a plan, or if Slurm decides"""

    @property
    def started(self) -> float:
        return min((stay.started for stay in self.stays), default=0.0)

    @property
    def ended(self) -> float:
        """The latest time in any record."""
        return max((stay.ended or stay.started for stay in self.stays), default=0.0)

    @property
    def work(self) -> float | None:
        """Seconds of all attempts, including failed ones; None while one has no end."""
        durations = [stay.ended - stay.started for stay in self.stays if stay.ended is not None]
        return sum(durations) if durations and len(durations) == len(self.stays) else None

    @property
    def bound(self) -> float | None:
        """The time that no order of these attempts in these slots can beat: the longest attempt, or the work divided by
        the slots. None while one has no end, and without a plan."""
        if self.work is None or not self.slots:
            return None
        longest = max((stay.ended or stay.started) - stay.started for stay in self.stays)
        return max(longest, self.work / self.slots)

    def lanes(self) -> tuple[tuple[AttemptSpan, ...], ...]:
        """The attempts in as few rows as hold them without two at the same time."""
        lanes: list[list[AttemptSpan]] = []
        for stay in self.stays:
            free = next((lane for lane in lanes if lane[-1].ended is not None and lane[-1].ended <= stay.started), None)
            if free is None:
                lanes.append([stay])
            else:
                free.append(stay)
        return tuple(map(tuple, lanes))


def schedule(collected: Collected) -> Schedule:
    stays = [stay for history in collected.sessions for stay in _stays(history)]
    return Schedule(
        stays=tuple(sorted(stays, key=lambda stay: (stay.started, stay.session, stay.attempt))),
        slots=collected.plan.limits.parallel if collected.plan and not collected.plan.slurm else None,
    )


def _stays(history: SessionHistory) -> Iterator[AttemptSpan]:
    session = history.session
    for attempt in history.attempts:
        if attempt.started is not None:
            yield AttemptSpan(
                session=session.name,
                policy=session.policy,
                environment=session.environment,
                attempt=attempt.number,
                started=attempt.started,
                ended=attempt.ended,
                outcome=attempt.end.outcome if attempt.end else None,
                gpus=attempt.begin.gpus if attempt.begin else "",
                peak_memory=attempt.end.peak_memory if attempt.end else None,
            )
