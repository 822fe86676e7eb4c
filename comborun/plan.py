"""The grid laid out for a host: sessions in their order, and what the host needs to know to run them."""

from __future__ import annotations

import json
import re
from dataclasses import asdict, dataclass
from typing import Any, Literal, Self

from comborun.judging import (
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
from comborun.placement import Component
from comborun.policy_files import PolicyFiles
from comborun.resources import (
    BARE,
    NO_RESERVE,
    NOTHING,
    Around,
    BashWord,
    Display,
    Engine,
    PinMode,
    Request,
    Reserve,
    Slurm,
)
from comborun.rules.words import Failure
from comborun.servers import Server
from comborun.stopping import StopRule
from comborun.typed import check

Unit = Literal["episode", "step"]
SecretSource = Literal["host", "laptop"]
"""in whose environment a secret is"""
Flag = Literal["", "smoke", "dropped"]
"""smoke: goes first, and the others wait for it; dropped: taken out of the grid since, and never started"""

SCHEMA = 1
_NAME = re.compile("[A-Za-z0-9_-]{1,200}")


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
    """the command takes {episodes}, {last_episode} or {end_episode}: it can be told to do fewer"""
    ranged: bool = False
    """it takes {first_episode} too: it can be told to do any range"""
    flag: Flag = ""
    request: Request = NOTHING
    """beside the GPUs; how much is asked changes nothing of the work"""
    pin: PinMode = "cvd"
    expected_s: int = 0
    """how long it is thought to take; 0: unknown"""
    display: Display | None = None
    threads: int = 0
    """that its libraries start, at most; 0: as many as they like"""
    components: tuple[Component, ...] = ()
    """where its program puts its parts, as its command tells it; empty: comborun does not know"""
    unpaired: str = ""
    """why its episodes are no pairs of another policy's, as the program's preset knows; else records decide"""

    @property
    def episodes(self) -> range:
        """The indices of its planned episodes (or steps)."""
        return range(self.first, self.first + self.count)


@dataclass(frozen=True)
class Limits:
    parallel: int
    per_gpu: int
    stagger: float
    """seconds between two starts, at least"""
    attempts: int
    """automatic starts of one session, the first included, since a person last asked for it"""
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
    retry: tuple[RetryRule, ...] = ()
    """by class; of a class that is not there only `lost` is tried again, as often as `attempts` allows"""
    notify: Notify | None = None
    shipped: str = ""
    """the digest of what `sync` puts on the host for these sessions; empty when it ships nothing"""
    reserve: Reserve = NO_RESERVE
    cpus: int = 0
    """cores that sessions may be promised, in all; 0: unknown"""
    slurm: Slurm | None = None
    """how Slurm is asked, where it starts the sessions; None: the run's own dispatcher does"""
    stop_early: StopRule | None = None
    """as the run's manifest has it: fixed before the first episode"""
    servers: tuple[Server, ...] = ()
    """in the order in which they start"""
    policy_files: PolicyFiles | None = None
    """the files that are its policies, as they were found when it was made"""

    @property
    def engine(self) -> Engine:
        """Who starts the sessions."""
        return "slurm" if self.slurm else "local"

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
        """Raises ValueError for a text that is no plan: it may come from a host."""
        try:
            plan = cls._from_data(json.loads(text))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"{type(error).__name__}: {error!s:.200}") from error
        check(plan)
        for session in plan.sessions:
            if not _NAME.fullmatch(session.name):
                raise ValueError(f"a session can't be called {session.name!r:.80}")
        return plan

    @classmethod
    def _from_data(cls, data: dict[str, Any]) -> Self:
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
            retry=tuple(_retry(entry) for entry in data.get("retry", ())),
            notify=_notify(data.get("notify")),
            shipped=data.get("shipped", ""),
            reserve=Reserve(**data.get("reserve", {})),
            cpus=data.get("cpus", 0),
            slurm=Slurm.from_data(asked) if (asked := data.get("slurm")) else None,
            stop_early=StopRule.from_data(rule) if (rule := data.get("stop_early")) else None,
            servers=tuple(Server.from_data(server) for server in data.get("servers", ())),
            policy_files=PolicyFiles.from_data(files) if (files := data.get("policy_files")) else None,
        )


def _tuples(entry: dict[str, Any]) -> dict[str, Any]:
    return {
        **entry,
        "command": tuple(entry["command"]),
        "variables": tuple((name, word) for name, word in entry["variables"]),
    }


def _session(entry: dict[str, Any]) -> Session:
    rules, evidence = entry["results"], entry.get("evidence", {})
    request = entry.get("request", {})
    typed = {
        "request": Request(**{**request, **{key: tuple(request.get(key, ())) for key in ("tokens", "only")}}),
        "results": ResultRules(
            **{**rules, **{key: tuple(rules.get(key, ())) for key in ("files", "metrics", "videos")}}
        ),
        "around": Around.from_data(entry.get("around", {})),
        "servers": tuple((name, digest) for name, digest in entry.get("servers", ())),
        "progress": ProgressRules(**entry.get("progress", {})),
        "evidence": EvidenceRules(**{**evidence, "files": tuple(evidence.get("files", ()))}),
        "failures": tuple((failure, pattern) for failure, pattern in entry.get("failures", ())),
        "watch": WatchRules(**entry.get("watch", {})),
        "display": Display.from_data(display) if (display := entry.get("display")) else None,
        "components": tuple(map(Component.from_data, entry.get("components", ()))),
    }
    return Session(**{**_tuples(entry), **typed})


def _retry(entry: dict[str, Any]) -> RetryRule:
    return RetryRule(Failure(entry["failure"]), entry["times"], entry["wait"])


def _notify(entry: dict[str, Any] | None) -> Notify | None:
    return Notify(**{**_tuples(entry), "kinds": tuple(entry["kinds"])}) if entry else None
