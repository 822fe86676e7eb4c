"""The work of a session, and ranges of episodes. Sessions of the same work share their records."""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from comborun.rules.deal import Deal, parse, parse_move
from comborun.text import first_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

    from comborun.model.plan import Session

T = TypeVar("T")
K = TypeVar("K")
Spans = tuple[range, ...]
"""disjoint, ascending, none empty, none touching the next"""


def spans(indices: Iterable[int]) -> Spans:
    """The ranges of `indices`, which may be unsorted and repeated."""
    found: list[range] = []
    for index in sorted(set(indices)):
        if found and found[-1].stop == index:
            found[-1] = range(found[-1].start, index + 1)
        else:
            found.append(range(index, index + 1))
    return tuple(found)


def union(ranges: Iterable[range]) -> Spans:
    """The same indices in disjoint ranges."""
    found: list[range] = []
    for span in sorted((span for span in ranges if span), key=lambda span: span.start):
        if found and span.start <= found[-1].stop:
            found[-1] = range(found[-1].start, max(found[-1].stop, span.stop))
        else:
            found.append(span)
    return tuple(found)


def gaps(planned: Spans, seen: Sequence[int]) -> Spans:
    """The indices of `planned` that are not in `seen`, which ascends without repetitions. Fast if none is missing."""
    if len(planned) == 1 and len(seen) == size(planned) and planned[0].start == seen[0] == seen[-1] - len(seen) + 1:
        return ()
    return minus(planned, spans(seen))


def minus(among: Spans, others: Spans) -> Spans:
    """The indices of `among` that are not in `others`; linear in both."""
    left: list[range] = []
    at = 0
    for span in among:
        start = span.start
        while at < len(others) and others[at].start < span.stop:
            left.append(range(start, others[at].start))
            start = max(start, others[at].stop)
            if others[at].stop > span.stop:  # it may overlap the next one, too
                break
            at += 1
        left.append(range(start, span.stop))
    return union(left)


def within(among: Spans, index: int) -> bool:
    place = bisect_right(among, index, key=lambda span: span.start)
    return place > 0 and index < among[place - 1].stop


def size(among: Spans) -> int:
    """Number of indices; len(range) would overflow beyond 63 bits."""
    return sum(span.stop - span.start for span in among)


def describe(among: Spans, limit: int = 12) -> str:
    """`3-7, 12`; of many ranges the first ones, and how many more there are."""
    names = [str(span.start) if span.stop - span.start == 1 else f"{span.start}-{span.stop - 1}" for span in among]
    return first_of(names, limit, "range")


Combo = tuple[str, str]
"""policy, environment"""
Replicate = tuple[str, str, int]
"""policy, environment, and the first episode of one of its seeds"""

WORK_FIELDS = ("unit", "seed", "command", "setup", "workdir", "variables", "gpus", "around", "servers", "each")


def work(session: Session) -> tuple[Any, ...]:
    """Everything that determines its results; how they are read is not part of it."""
    return tuple(getattr(session, key) for key in WORK_FIELDS)


def combo_of(session: Session) -> Combo:
    return session.policy, session.environment


def grouped(items: Iterable[T], key: Callable[[T], K]) -> dict[K, list[T]]:
    found: dict[K, list[T]] = {}
    for item in items:
        found.setdefault(key(item), []).append(item)
    return found


def first_of_each(sessions: Iterable[Session]) -> tuple[Session, ...]:
    """The first session of every combo."""
    return tuple(same[0] for same in grouped(sessions, combo_of).values())


def process_of(session: Session) -> str:
    """The name of the process that runs it, which others of its policy may share."""
    return session.together or session.name


def deal_in(text: str, moves: Iterable[str]) -> Deal | None:
    """The deal of a run's directory, with the moves of the records beside it; None for a run on one host."""
    deal = parse(text)
    return deal and deal.moved(filter(None, map(parse_move, moves)))


def processes(sessions: Iterable[Session]) -> tuple[Session, ...]:
    """What is started: a session, or one that stands for all environments of a process."""
    return tuple(whole(same) for same in grouped(sessions, process_of).values())


def whole(members: Sequence[Session]) -> Session:
    """The session of a process, with the episodes of all its environments."""
    if not members[0].together:
        return members[0]
    live = [one for one in members if one.here] or members
    expected, count = [one.expected_s for one in live], sum(one.count for one in live)
    expected_s = sum(expected) if all(expected) else 0
    return replace(live[0], name=live[0].together, environment="", count=count, expected_s=expected_s, each=())


def replicate_of(session: Session) -> Replicate:
    """Its combo, and the first episode of its seed: sessions with these in common do the same work."""
    return session.policy, session.environment, session.results.base


def name_of_combo(session: Session) -> str:
    """Its name without its range of episodes."""
    return session.name.removesuffix(range_suffix(session.first, session.count))


def range_suffix(first: int, count: int) -> str:
    return f"_e{first}-{first + count - 1}"


def episodes_of(sessions: Iterable[Session]) -> Spans:
    return union(session.episodes for session in sessions)


def episodes_by_combo(sessions: Iterable[Session]) -> dict[Combo, Spans]:
    return {combo: episodes_of(own) for combo, own in grouped(sessions, combo_of).items()}
