"""Answers of a launch and of other orders: what was done, or would be."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from comborun.answers import Untrusted, UntrustedFacts, UntrustedLines
from comborun.rules.facts import Fact


@dataclass(frozen=True)
class LaunchHold:
    kind: str
    why: Untrusted


@dataclass(frozen=True)
class Launch:
    """What a launch did."""

    run: str
    host: str
    directory: str
    state: str
    """new, resumed or finished"""
    hold: LaunchHold | None
    """a person's hold, because of which nothing was started"""
    sessions: tuple[str, ...]
    shipped: tuple[str, ...]
    replaced: UntrustedLines
    waits: Untrusted | None
    """what the first session waits for; null if one has begun, or it is unknown"""
    fact: Fact | None
    engine: str
    submitted: UntrustedLines
    changes: tuple[str, ...]
    lacks: str | None
    """the missing work of a finished run"""
    failed: tuple[str, ...]
    """sessions that failed at once"""
    smoke: bool | None
    """whether the smoke test passed; null without one, and in the `launch` record, which comes before it"""
    record: Literal["launch", "smoke"] = "launch"


@dataclass(frozen=True)
class PlannedStop:
    """What a stop would end."""

    run: str
    host: str
    sessions: tuple[str, ...]
    """empty: the whole run"""
    running: tuple[str, ...]
    queued: int
    others: tuple[str, ...]
    """if nothing runs: other runs of its grid that go on"""
    lines: UntrustedLines
    facts: UntrustedFacts
    error: Untrusted | None
    """why the fields above are unknown"""


@dataclass(frozen=True)
class Stopped:
    run: str
    sessions: tuple[str, ...]
    clean: bool
    """whether nothing of them is left"""
    lines: UntrustedLines


@dataclass(frozen=True)
class Steered:
    """What an order (retry, slots, pause, drain, notify) did."""

    run: str
    done: bool
    lines: UntrustedLines
    note: Untrusted | None


@dataclass(frozen=True)
class AddedSession:
    policy: str
    environment: str
    first: int
    count: int
    session: str


@dataclass(frozen=True)
class Futile:
    """Missing episodes that another attempt would not bring."""

    session: str
    episodes: str
    why: Untrusted
    fact: Fact


@dataclass(frozen=True)
class Resumed:
    run: str
    done: bool
    """whether it was done, and not only shown"""
    lifted: bool
    """whether a hold, a stop or a closed GPU was lifted"""
    environment: Fact | None
    again: tuple[str, ...]
    """sessions that get another attempt"""
    repeated: Mapping[str, int]
    """session -> recorded episodes that run again"""
    added: tuple[AddedSession, ...]
    futile: tuple[Futile, ...]
    going_on: tuple[str, ...]


@dataclass(frozen=True)
class Cleaned:
    host: str
    removed: tuple[str, ...]
    stays: Mapping[str, str]
    """run -> why"""
    bytes: int
    """of those that are removed"""
    done: bool
    """False with --dry-run: they would be removed"""


@dataclass(frozen=True)
class GivenUp:
    """Hosts of a run that were given up."""

    run: str
    lost: tuple[str, ...]
    moved: Mapping[str, str]
    """process of a session -> host that gets it"""
    episodes_kept: int
    """episodes of these sessions that were on record, and count"""
    episodes_again: int | None
    """episodes of these sessions that the last look showed beside those, and that run again; null: not known"""
    done: bool
    """whether it was done, and not only shown"""


@dataclass(frozen=True)
class SessionMove:
    """A session that has not begun went to another host of its run."""

    run: str
    at: float
    """seconds since 1970, on this machine's clock"""
    session: str
    """its process"""
    giver: str
    taker: str
    record: Literal["move"] = "move"


@dataclass(frozen=True)
class HostChange:
    """A host of a run stopped answering, answers again, or was given up."""

    run: str
    at: float
    """seconds since 1970, on this machine's clock"""
    host: str
    state: str
    """answers, away or lost"""
    complaint: Untrusted
    """why it does not answer"""
    record: Literal["host"] = "host"
