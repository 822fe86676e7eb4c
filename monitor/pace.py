"""When to look next: soon where something is about to be seen, never later than the interval.

After a launch or a change (a session begins, ends, or has done all it was to do) the looks double their distance: 2, 4,
8 ... seconds, up to the interval. When a session is expected to end before the next look, the look is then; where the
end does not come, the distance doubles again from the last progress on. Nothing makes it shorter than 2 seconds, unless
the interval is.
"""

from __future__ import annotations

from collections.abc import Iterator

from comborun.monitor.status import RunStatus, SessionStatus
from comborun.rules.words import Life

SHORTEST_S = 2.0
_LAST_RETRY_S = 60.0
_MOST_DOUBLINGS = 10


def pause(interval: float, calm: float, due: float | None) -> float:
    """Seconds until the next look.

    `calm` is how long ago the last change was, `due` in how many seconds the next one is expected; None: not known.
    """
    shortest = min(SHORTEST_S, interval)
    nearest = calm if due is None else min(calm, due)
    return min(interval, max(shortest, nearest))


def backoff(interval: float, failures: int, chance: float) -> float:
    """Seconds until a host that doesn't answer is asked again: soon, then less often, never all watchers at once.

    `chance` is a random number from 0 to 1; the pause is between a half and the whole of 2, 4, 8 ... seconds.
    """
    longest = min(interval, _LAST_RETRY_S, SHORTEST_S * 2.0 ** min(failures - 1, _MOST_DOUBLINGS))
    return longest * (0.5 + 0.5 * chance)


def calm(status: RunStatus, watched: float) -> float:
    """Seconds since the last change, on the host's clock; `watched` where there was none: since the first look."""
    sessions = (*status.sessions, *((status.after,) if status.after else ()))
    moments = [moment for session in sessions for moment in _moments(session)]
    return watched if status.now is None or not moments else max(0.0, status.now - max(moments))


def _moments(session: SessionStatus) -> Iterator[float]:
    if session.started is None:
        return
    yield session.started
    if session.life is Life.ENDED:
        yield session.started + (session.seconds or 0.0)
    elif session.progressed is not None and session.planned and not session.remaining:
        yield session.progressed


def due(status: RunStatus) -> float | None:
    """Seconds until the first session is expected to end, or to start again.

    Where one is late to end, as long as it has shown nothing new.
    """
    now = status.now
    if now is None:
        return None
    ends = [
        max(session.expected.likeliest - now, now - (session.progressed or session.started or now))
        for session in status.sessions
        if session.alive and session.remaining and session.expected
    ]
    retries = [session.waiting.until - now for session in status.sessions if session.waiting and session.waiting.until]
    return min([*ends, *(left for left in retries if left > 0)], default=None)
