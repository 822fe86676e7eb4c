"""The grid laid out for a host: sessions in their order, and what the host needs to know to run them."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from typing import Any, Literal, NewType, Self

Unit = Literal["episode", "step"]
SecretSource = Literal["host", "laptop"]
"""in whose environment a secret is"""

BashWord = NewType("BashWord", str)
"""Text that bash reads as exactly one word: quoted literals and "$COMBORUN_..." (see command.py)."""

SCHEMA = 1


@dataclass(frozen=True)
class ResultRules:
    """Where a session's records are and which of their fields say what."""

    files: tuple[str, ...] = ("**/*.jsonl",)
    """globs below the output folder; empty when the program leaves no records and its exit code has to do"""
    success: str = "success"
    episode: str = "episode"
    metrics: tuple[str, ...] = ()
    """the fields to report, in this order; empty: every numeric field"""


@dataclass(frozen=True)
class ProgressRules:
    """What a session's log tells of how much it has done, where its records don't say so yet. For watchers alone."""

    pattern: str | None = None
    """a regular expression of Python: group `done` (else the first) and, if there is one, `total` (else the second)"""
    counts_from: int | None = None
    """None: the number is how many are done. Else it names the one that has just begun, with this for the first"""
    silent: bool = False
    """prints nothing for long stretches: silence says nothing"""
    guess: bool = True
    """without a pattern, a counter up to the planned number is taken for one of episodes"""


@dataclass(frozen=True)
class Session:
    """One detached session: a combo, or (later) one shard of it."""

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
    progress: ProgressRules = ProgressRules()
    """not part of the digest: it changes nothing but what is shown"""


@dataclass(frozen=True)
class Limits:
    parallel: int
    per_gpu: int
    stagger: float
    """seconds between two starts, at least"""
    attempts: int
    """starts of one session, the first included, when it is lost"""


@dataclass(frozen=True)
class After:
    """The user's own command for the end, with the setup that it shares with the sessions."""

    command: tuple[BashWord, ...]
    setup: str
    workdir: BashWord | None
    variables: tuple[tuple[str, BashWord], ...]


@dataclass(frozen=True)
class Plan:
    grid: str
    """the grid's name"""
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

    @property
    def policies(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(session.policy for session in self.sessions))

    @property
    def environments(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(session.environment for session in self.sessions))

    def to_json(self) -> str:
        return json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1, ensure_ascii=False) + "\n"

    @classmethod
    def from_json(cls, text: str) -> Self:
        data = json.loads(text)
        after = data["after"]
        return cls(
            grid=data["grid"],
            sessions=tuple(_session(entry) for entry in data["sessions"]),
            limits=Limits(**data["limits"]),
            gpus=tuple(data["gpus"]),
            after=After(**_tuples(after)) if after else None,
            poll=data["poll"],
            digest=data["digest"],
            replaces=tuple(data.get("replaces", ())),
            secrets=tuple((name, source) for name, source in data.get("secrets", ())),
        )


def _tuples(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        **entry,
        "command": tuple(entry["command"]),
        "variables": tuple((name, word) for name, word in entry["variables"]),
    }


def _session(entry: dict[str, Any]) -> Session:
    rules = entry["results"]
    results = ResultRules(**{**rules, "files": tuple(rules["files"]), "metrics": tuple(rules["metrics"])})
    progress = ProgressRules(**entry.get("progress", {}))
    return Session(**{**_tuples(entry), "results": results, "progress": progress})
