"""The grid laid out for a host: sessions in their order, and what the host needs to know to run them."""

from __future__ import annotations

import hashlib
import json
import re
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import TYPE_CHECKING, Literal, Self

from comborun.model.codec import decoded, encoded
from comborun.model.judging import (
    ANY_PROGRESS,
    BY_RECORDS,
    NO_LIMITS,
    EvidenceRules,
    NoticeKind,
    ProgressRules,
    RetryRule,
    Signature,
    WatchRules,
)
from comborun.model.placement import Component
from comborun.model.resources import (
    BARE,
    NO_RESERVE,
    NOTHING,
    BashWord,
    Display,
    Engine,
    ExecEnvironment,
    ModelServer,
    PinMode,
    Reserve,
    ServerInstance,
    SlurmOptions,
)
from comborun.model.stopping import StopRule
from comborun.rules.following import POLICY, filled
from comborun.rules.names import NAME, RUN
from comborun.rules.results.fields import ResultRules
from comborun.rules.room.capacity import Request

if TYPE_CHECKING:
    from collections.abc import Callable

Unit = Literal["episode", "step"]
SecretSource = Literal["host", "laptop"]
"""whose environment holds a secret"""
Flag = Literal["", "smoke", "dropped", "elsewhere"]
"""smoke: goes first, and the others wait for it; dropped: taken out of the grid since, and never started; elsewhere: it
runs on another host (in no plan that is written)"""

LIVE_FIELDS = (
    *("results", "progress", "evidence", "failures", "watch", "request", "pin", "display", "threads", "components"),
    "expected_s",
)
"""fields of a session that follow a changed grid during a run: how it is shown, watched, judged and given room"""
NON_IDENTITY_FIELDS = {*LIVE_FIELDS, "counted", "ranged", "flag", "unpaired", "together"}
"""fields of a session that change nothing of its work; the others are in its digest"""
SCHEMA = 2


@lru_cache(1024)
def _asked(request: Request, gpus: int) -> Request:
    """Many sessions ask for the same."""
    return replace(request, gpus=gpus)


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
    around: ExecEnvironment = BARE
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
    together: str = ""
    """the process that evaluates it with other environments of its policy; empty: it has one of its own"""
    each: tuple[tuple[str, BashWord], ...] = ()
    """what it adds to the variables that name all environments of such a start: `{environments}`, entries of files"""
    unpaired: str = ""
    """why its episodes are not pairs of another policy's, as the program's preset knows; else records decide"""

    @property
    def episodes(self) -> range:
        return range(self.first, self.first + self.count)

    @property
    def here(self) -> bool:
        """Whether it is started here."""
        return self.flag not in ("dropped", "elsewhere")

    @property
    def label(self) -> str:
        return f"{self.policy} in {self.environment}"

    @property
    def texts(self) -> tuple[str, ...]:
        """All that is run for it, and that may hold start-time values."""
        return (*self.command, *(text for _, text in self.variables), self.setup, *self.around.words)

    @property
    def resources(self) -> Request:
        """All that it asks of its host."""
        return _asked(self.request, self.gpus)

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


_SHOWN = "step_N"
"""what people see in place of the policy of a template"""


def shown_of(text: str) -> str:
    """A text of a template, for people."""
    return text.replace(POLICY, _SHOWN)


@dataclass(frozen=True)
class FollowRule:
    """A training whose checkpoints are the policies, as they appear."""

    pattern: str
    """absolute or below ~/ of the host; its one `*` stands for the step"""
    done: str
    """STABLE, or the pattern of a marker with the same `*`"""
    every: int = 1
    """each such checkpoint is evaluated, and the last one"""
    floor: int = 0
    """bytes that stay free on the disk; 0: twice a checkpoint's size"""


@dataclass(frozen=True)
class PolicyFiles:
    """The files that matched when the plan was made; a resumed run keeps them."""

    patterns: tuple[str, ...]
    exclude: tuple[str, ...]
    found: tuple[tuple[str, str], ...]
    """policy and path"""


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
    """cores that sessions may lease, in all; 0: unknown"""
    slurm: SlurmOptions | None = None
    """the requests to Slurm, if it starts the sessions; None: the run's own dispatcher does"""
    stop_early: StopRule | None = None
    """as the run's manifest has it: fixed before the first episode"""
    servers: tuple[ModelServer, ...] = ()
    """in the order in which they start"""
    policy_files: PolicyFiles | None = None
    """the files that are its policies, as they were found when it was made"""
    follow: FollowRule | None = None
    """its policies are the checkpoints of a training, and its first sessions are their template"""
    steps: tuple[tuple[str, float], ...] = ()
    """policy -> how far its training was, where it has an attribute `step`"""

    @property
    def following(self) -> Self:
        """The plan before the first checkpoint is there: its sessions are a template that never starts."""
        if not self.follow:
            return self
        digest = hashlib.sha256(f"{self.digest} {self.follow}".encode()).hexdigest()
        sessions = tuple(replace(session, flag="dropped") for session in self.sessions)
        return replace(self, sessions=sessions, digest=digest)

    @property
    def template(self) -> Self:
        """As people see the plan of such a run: with a name and a path that show where those of a checkpoint stand."""
        if not self.follow:
            return self
        name = self.follow.pattern.rpartition("/")[2].replace("*", "N")
        return self.from_json(filled(self.to_json(), _SHOWN, f".../{RUN.kept}/{_SHOWN}/{name}"))

    @property
    def engine(self) -> Engine:
        return "slurm" if self.slurm else "local"

    @property
    def current(self) -> tuple[Session, ...]:
        """The sessions without dropped ones, which are not a part of the run any more, and those of other hosts."""
        return tuple(session for session in self.sessions if session.here)

    def without(self, here: Callable[[Session], bool]) -> Plan:
        """The plan with a mark on the sessions that don't run here."""
        if all(map(here, self.sessions)):
            return self
        marked = (one if here(one) or not one.here else replace(one, flag="elsewhere") for one in self.sessions)
        return replace(self, sessions=tuple(marked))

    @property
    def whole(self) -> Plan:
        """The plan without these marks, as it is written."""
        unmarked = (replace(one, flag="") if one.flag == "elsewhere" else one for one in self.sessions)
        return replace(self, sessions=tuple(unmarked))

    @property
    def policies(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(session.policy for session in self.sessions))

    @property
    def environments(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(session.environment for session in self.sessions))

    @property
    def server_instances(self) -> tuple[ServerInstance, ...]:
        """The processes of all model servers, in their order."""
        return tuple(one for server in self.servers for one in server.instances(self.gpus))

    def to_json(self) -> str:
        """A line for each session. Left out are defaults of fields, and in later sessions what is as in the first."""
        sessions = [encoded(one, self.sessions[0] if place else None) for place, one in enumerate(self.sessions)]
        rest = {key: value for key, value in encoded(replace(self, sessions=())).items() if key != "sessions"}
        lines = ",\n".join(json.dumps(one, ensure_ascii=False) for one in sessions)
        return f'{json.dumps({"schema": SCHEMA, **rest}, ensure_ascii=False)[:-1]}, "sessions": [\n{lines}\n]}}\n'

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Raises ValueError for a text that is not a plan: it may come from a host."""
        try:
            data = json.loads(text)
            first, others = data["sessions"][:1], data["sessions"][1:]
            plan: Self = decoded(cls, {**data, "sessions": first})
            like_first = (decoded(Session, one, plan.sessions[0]) for one in others)
            plan = replace(plan, sessions=(*plan.sessions, *like_first))
        except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as error:
            raise ValueError(f"{type(error).__name__}: {error!s:.200}") from error
        for session in plan.sessions:
            if not re.fullmatch(NAME, session.name):
                raise ValueError(f"a session can't be called {session.name!r:.80}")
        return plan
