"""The grid laid out for a host: sessions in their order, and what the host needs to know to run them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, fields, is_dataclass, replace
from enum import Enum
from functools import cache
from inspect import ismethod
from types import UnionType
from typing import Any, Literal, NewType, Self, Union, get_args, get_origin, get_type_hints

from comborun.model.judging import (
    ANY_PROGRESS,
    BY_RECORDS,
    NO_LIMITS,
    EvidenceRules,
    NoticeKind,
    ProgressRules,
    ResultRules,
    RetryRule,
    Signature,
    WatchRules,
)
from comborun.model.placement import Component
from comborun.model.policy_files import PolicyFiles
from comborun.model.resources import (
    BARE,
    NO_RESERVE,
    NOTHING,
    Around,
    BashWord,
    Display,
    Engine,
    PinMode,
    Reserve,
    Slurm,
)
from comborun.model.servers import Server
from comborun.model.stopping import StopRule
from comborun.rules.facts import Fact
from comborun.rules.room.placement import Request
from comborun.text import harmless

Unit = Literal["episode", "step"]
SecretSource = Literal["host", "laptop"]
"""in whose environment a secret is"""
Flag = Literal["", "smoke", "dropped"]
"""smoke: goes first, and the others wait for it; dropped: taken out of the grid since, and never started"""

FOLLOWS = (
    *("results", "progress", "evidence", "failures", "watch", "request", "pin", "display", "threads", "components"),
    "expected_s",
)
"""of a session, what follows a changed grid during a run: how it is shown, watched, judged and given room"""
NOT_WORK = {*FOLLOWS, "counted", "ranged", "flag", "unpaired"}
"""of a session, what makes no other work of it"""
SCHEMA = 2
_NAME = re.compile("[A-Za-z0-9_-]{1,200}")
_LARGEST = 10**15


@dataclass(frozen=True)
class Session:
    """One detached session: a combo, or a range of its episodes."""

    name: str
    policy: str
    environment: str
    unit: Unit
    first: int
    count: int
    """planned episodes (or steps): first .. first + count - 1"""
    seed: int | None
    command: tuple[BashWord, ...]
    setup: str
    workdir: BashWord | None
    variables: tuple[tuple[str, BashWord], ...]
    gpus: int
    results: ResultRules
    digest: str
    """content, not position: of the combo, its episodes and everything that is run for it"""
    around: Around = BARE
    servers: tuple[tuple[str, str], ...] = ()
    """model servers that it asks: name, and the digest of what each runs"""
    progress: ProgressRules = ANY_PROGRESS
    """not part of the digest, as all that follows: it changes nothing of the work"""
    evidence: EvidenceRules = BY_RECORDS
    failures: tuple[Signature, ...] = ()
    """looked for in the log of a session that failed, before the library's own"""
    watch: WatchRules = NO_LIMITS
    counted: bool = False
    """the command takes {episodes}, {last_episode} or {end_episode}, so it can do fewer"""
    ranged: bool = False
    """it takes {first_episode} too, so it can do any range"""
    flag: Flag = ""
    request: Request = NOTHING
    """beside the GPUs; the amounts change nothing of the work"""
    pin: PinMode = "cvd"
    expected_s: int = 0
    """how long it is thought to take; 0: unknown"""
    display: Display | None = None
    threads: int = 0
    """that its libraries start, at most; 0: as many as they like"""
    components: tuple[Component, ...] = ()
    """where its program puts its parts, as its command tells it; empty: comborun does not know"""
    unpaired: str = ""
    """why its episodes are not pairs of another policy's, as the program's preset knows; else records decide"""

    @property
    def episodes(self) -> range:
        return range(self.first, self.first + self.count)

    @property
    def resources(self) -> Request:
        """All that it asks of its host."""
        return replace(self.request, gpus=self.gpus)

    @property
    def own_first(self) -> int:
        """Its first episode, as its command counts."""
        return self.first - self.results.base


@dataclass(frozen=True)
class Limits:
    parallel: int
    per_gpu: int
    stagger: float
    """seconds between two starts, at least"""
    attempts: int
    """automatic starts of one session, including the first, since a user last started it"""
    breaker: int = 3
    """failures of one class in a row after which a GPU or the host gets no more starts; 0: off"""
    fail_fast: int = 0
    """sessions that ended without success after which nothing new starts; 0: off"""
    fail_fast_percent: int = 0
    """the same as a share of all sessions"""
    warm_up: float = 0.0
    """seconds that sessions of a kind wait, at most, until the first of them makes progress; 0: they don't"""


@dataclass(frozen=True)
class After:
    """The user's own command for the end, with the setup that it shares with the sessions."""

    command: tuple[BashWord, ...]
    setup: str
    workdir: BashWord | None
    variables: tuple[tuple[str, BashWord], ...]


@dataclass(frozen=True)
class Notify:
    """The user's own command for news of a run: gets one JSON object on its standard input."""

    command: tuple[BashWord, ...]
    workdir: BashWord | None
    variables: tuple[tuple[str, BashWord], ...]
    kinds: tuple[NoticeKind, ...]
    every: float
    """seconds between two notices of one kind, at least"""


@dataclass(frozen=True)
class Plan:
    grid: str
    sessions: tuple[Session, ...]
    """in the order in which they are to start"""
    limits: Limits
    gpus: tuple[int, ...]
    """indexes of the GPUs that sessions may be given"""
    after: After | None
    poll: float
    """seconds between two looks of a monitor"""
    digest: str
    """of the work, not of how it is scheduled: the same grid is the same run"""
    replaces: tuple[str, ...] = ()
    """the user's own tmux and screen sessions that go before the first start"""
    secrets: tuple[tuple[str, SecretSource], ...] = ()
    """names of environment variables and where their values are; the values are in no file of ours but one"""
    retry: tuple[RetryRule, ...] = ()
    """by class; of a class that is not there only `lost` is tried again, as often as `attempts` allows"""
    notify: Notify | None = None
    shipped: str = ""
    """the digest of what `sync` puts on the host for these sessions; empty when it ships nothing"""
    reserve: Reserve = NO_RESERVE
    cpus: int = 0
    """cores that sessions may be promised, in all; 0: unknown"""
    slurm: Slurm | None = None
    """the requests to Slurm, if it starts the sessions; None: the run's own dispatcher does"""
    stop_early: StopRule | None = None
    """as the run's manifest has it: fixed before the first episode"""
    servers: tuple[Server, ...] = ()
    """in the order in which they start"""
    policy_files: PolicyFiles | None = None
    """the files that are its policies, as they were found when it was made"""
    steps: tuple[tuple[str, float], ...] = ()
    """policy -> how far its training was, where it has an attribute `step`"""

    @property
    def engine(self) -> Engine:
        return "slurm" if self.slurm else "local"

    @property
    def current(self) -> tuple[Session, ...]:
        """The sessions without dropped ones, which are not a part of the run any more."""
        return tuple(session for session in self.sessions if session.flag != "dropped")

    @property
    def policies(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(session.policy for session in self.sessions))

    @property
    def environments(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(session.environment for session in self.sessions))

    def to_json(self) -> str:
        """A line for each session. Left out are defaults of fields, and in later sessions what is as in the first."""
        sessions = [_written(one, self.sessions[0] if place else None) for place, one in enumerate(self.sessions)]
        rest = {key: value for key, value in _written(replace(self, sessions=())).items() if key != "sessions"}
        lines = ",\n".join(json.dumps(one, ensure_ascii=False) for one in sessions)
        return f'{json.dumps({"schema": SCHEMA, **rest}, ensure_ascii=False)[:-1]}, "sessions": [\n{lines}\n]}}\n'

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Raises ValueError for a text that is not a plan: it may come from a host."""
        try:
            data = json.loads(text)
            first, others = data["sessions"][:1], data["sessions"][1:]
            plan: Self = decoded(cls, {**data, "sessions": first})
            plan = replace(plan, sessions=(*plan.sessions, *(_like(plan.sessions[0], one) for one in others)))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"{type(error).__name__}: {error!s:.200}") from error
        for session in plan.sessions:
            if not _NAME.fullmatch(session.name):
                raise ValueError(f"a session can't be called {session.name!r:.80}")
        return plan


def _written(value: Any, like: Any = None) -> Any:
    """A value for JSON: of an object the fields that differ from their defaults, or from those of another object."""
    if isinstance(value, tuple):
        return [_written(one) for one in value]
    if not is_dataclass(value):
        return value
    pairs = [(field, getattr(value, field.name)) for field in fields(value)]
    return {
        field.name: _written(one)
        for field, one in pairs
        if one != (getattr(like, field.name) if like else field.default)
    }


def decoded(kind: Any, data: Any) -> Any:
    """What `json.loads` gave, as a value of an annotated type. Raises ValueError or TypeError for what is none."""
    decode, parts = _decoder(kind)
    return decode(parts, data)


@cache
def _decoder(kind: Any) -> tuple[Callable[[Any, Any], Any], Any]:
    """A decoder for a type, and its first argument."""
    origin, parts = get_origin(kind), get_args(kind)
    if kind is Fact:
        return _decoded_fact, None
    if ismethod(getattr(kind, "of", None)):  # it is made of a record
        return _decoded_record, kind
    if is_dataclass(kind) or hasattr(kind, "_fields"):
        return _decoded_object, (kind, get_type_hints(kind))
    if origin is tuple:
        return (_decoded_items, parts[0]) if parts[-1] is Ellipsis else (_decoded_row, parts)
    if origin in {Union, UnionType}:
        return _decoded_option, parts[0]
    if origin is Literal:
        return _decoded_scalar, parts
    if isinstance(kind, NewType):
        return _decoder(kind.__supertype__)
    return (_decoded_number, (int, float) if kind is float else (int,)) if kind in {int, float} else (_checked, kind)


def _decoded_object(known: tuple[Any, dict[str, Any]], data: Any) -> Any:
    kind, hints = known
    return kind(**_decoded_fields(hints, data))


def _decoded_fields(hints: dict[str, Any], data: Any) -> dict[str, Any]:
    return {key: decoded(hints[key], value) for key, value in data.items() if key in hints}  # older ones have more


def _like(session: Session, data: Any) -> Session:
    """Another session, of which the fields are given that differ."""
    _, (_, hints) = _decoder(Session)
    return replace(session, **_decoded_fields(hints, data))


def _decoded_record(kind: Any, data: Any) -> Any:
    return kind.of({key: value for key, value in _checked(dict, data).items() if isinstance(value, str)})


def _decoded_fact(_: None, data: Any) -> Fact:
    fact = Fact.of(_harmless(data))
    if fact is None:
        raise ValueError(f"{data!r:.80}")
    return fact


def _harmless(value: Any) -> Any:
    """The texts of a JSON value without what controls a terminal: a fact is shown wherever it goes."""
    if isinstance(value, dict):
        return {key: _harmless(one) for key, one in value.items()}
    if isinstance(value, list):
        return [_harmless(one) for one in value]
    return harmless(value) if isinstance(value, str) else value


def _decoded_items(kind: Any, data: Any) -> tuple[Any, ...]:
    return tuple(decoded(kind, value) for value in _checked(list, data))


def _decoded_row(kinds: tuple[Any, ...], data: Any) -> tuple[Any, ...]:
    return tuple(decoded(kind, value) for kind, value in zip(kinds, _checked(list, data), strict=True))


def _decoded_option(kind: Any, data: Any) -> Any:
    return None if data is None else decoded(kind, data)


def _decoded_scalar(among: tuple[Any, ...], data: Any) -> Any:
    if data not in among:
        raise ValueError(f"{data!r:.80}")
    return data


def _decoded_number(kinds: tuple[type, ...], data: Any) -> Any:
    if type(data) not in kinds or not -_LARGEST < data < _LARGEST:  # nor is NaN
        raise ValueError(f"{data!r:.80} is not a number")
    return data


def _checked(kind: Any, data: Any) -> Any:
    """A text, a truth or a list as it is; a word of an enumeration as its member."""
    if issubclass(kind, Enum):
        return kind(data)
    if not isinstance(data, kind):
        raise TypeError(f"{data!r:.80} is no {kind.__name__}")
    return data
