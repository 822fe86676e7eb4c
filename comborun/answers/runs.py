"""Answers of what looks at runs and their results."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal

from comborun.answers import Untrusted, UntrustedFacts, UntrustedLines
from comborun.answers.status import Hold


@dataclass(frozen=True)
class NextCommand:
    command: str
    does: str


@dataclass(frozen=True)
class Explanation:
    run: str
    session: str
    policy: str
    """empty for a model server and for `after`, and so is the environment"""
    environment: str
    state: str
    outcome: str | None
    attempt: int
    reasons: UntrustedLines
    """the most important first"""
    commands: tuple[NextCommand, ...]
    """what to do next"""
    last_lines: UntrustedLines
    """the end of its log"""
    facts: UntrustedFacts


@dataclass(frozen=True)
class Cause:
    """Sessions that went wrong for the same cause."""

    failure: str | None
    """the class of the failure; null for sessions that stalled or were stopped"""
    sessions: tuple[str, ...]
    cause: Untrusted
    next: str
    """what to do"""
    facts: UntrustedFacts
    commands: tuple[NextCommand, ...]


@dataclass(frozen=True)
class Causes:
    """What went wrong in a run, the causes of most sessions first."""

    run: str
    advice: UntrustedLines
    """what to do about the run as a whole"""
    causes: tuple[Cause, ...]


@dataclass(frozen=True)
class Log:
    """A piece of a log."""

    session: str
    attempt: int
    """0: it has not begun"""
    ended: bool
    untrusted_text: Untrusted
    """what the program printed, without control characters; of a line that it drew over and over, the last drawing. One
    that goes on with a line begins with a carriage return where it draws that line anew
    """
    record: Literal["log"] = "log"


@dataclass(frozen=True)
class Window:
    """How to look at a session's window from here."""

    session: str
    command: tuple[str, ...]


@dataclass(frozen=True)
class GpuUser:
    """A process on a GPU of a host."""

    gpu: int
    owner: str
    program: Untrusted
    mib: int
    run: str
    """the run of whose session it is; empty for others"""


@dataclass(frozen=True)
class PartOfRun:
    """What a host has of a run on several."""

    host: str
    run: str
    """the part's own id"""
    directory: str
    finished: bool
    counts: Mapping[str, int]
    reachable: bool
    episodes_done: int | None
    episodes_planned: int | None
    gpus: tuple[int, ...]


@dataclass(frozen=True)
class ListedRun:
    host: str
    run: str
    grid: str
    canary: bool
    """whether it is a recheck"""
    directory: str
    finished: bool
    counts: Mapping[str, int]
    smoke: Mapping[str, int]
    started: float
    seconds: float | None
    """in which at least one of its sessions ran, as in the status; of several hosts, the longest"""
    reachable: bool
    complaint: Untrusted | None
    """why its host does not answer"""
    last_seen_seconds: float | None
    stopped: bool
    hold: Hold | None
    episodes_done: int | None
    episodes_planned: int | None
    estimated_end: float | None
    """on this machine's clock"""
    estimated_end_range: tuple[float, float] | None
    gpus: tuple[int, ...]
    """that its sessions have now"""
    gpu_users: tuple[GpuUser, ...]
    hosts: tuple[str, ...] = ()
    """of a run on several hosts, or of the only part of one that is known here: all of them"""
    parts: tuple[PartOfRun, ...] = ()
    """of a run on several hosts"""


@dataclass(frozen=True)
class AllRuns:
    """The runs on all hosts at one moment."""

    runs: tuple[ListedRun, ...]
    record: Literal["runs"] = "runs"


@dataclass(frozen=True)
class Condition:
    """A condition of `--gate`, and whether it is shown."""

    condition: str
    holds: bool
    """whether it is shown, with 5 % of error for all conditions together"""
    value: float | None
    """the difference of both rates, or the rate; null if nothing could be tested"""
    p: float | None
    """two-sided, adjusted by Holm over all conditions"""
    why: str = ""
    """why it could not be tested"""
    against: str = ""
    """the policy that it is compared with; empty for a rate"""
    facts: UntrustedFacts = ()
    """what limits it, such as conditions that were not the same"""


@dataclass(frozen=True)
class Report:
    """Where a report is."""

    run: str
    report: str
    """its folder on this machine"""
    files: tuple[str, ...]
    gates: tuple[Condition, ...] = ()
    record: Literal["report"] = "report"


@dataclass(frozen=True)
class Side:
    successes: int
    n: int


@dataclass(frozen=True)
class ComparedCombo:
    """Episodes of a combo in two runs. The difference is the second run's rate minus the first's."""

    policy: str
    environment: str
    before: Side
    after: Side
    difference: float
    interval: tuple[float, float]
    p: float | None
    p_holm: float | None
    decided: bool
    paired: bool
    pairing: str | None
    test: str
    only_completed: bool = False
    """decided among completed episodes, and not if the others count against it"""
    unknown: tuple[int, int] = (0, 0)
    """episodes without a verdict of the second run and of the first"""


@dataclass(frozen=True)
class RecheckedCombo:
    policy: str
    environment: str
    compared: int
    verdicts: tuple[int, ...]
    """episodes with another verdict"""
    starts: tuple[int, ...]
    seeds: tuple[int, ...]
    starts_compared: int


@dataclass(frozen=True)
class Rechecked:
    run: str
    canary: str
    """the run that repeated the episodes"""
    combos: tuple[RecheckedCombo, ...]
    rejected: int


@dataclass(frozen=True)
class DataNote:
    where: Untrusted
    what: Untrusted


@dataclass(frozen=True)
class ComparedMeans:
    """A policy's mean of the metric in two runs without verdicts. The difference is the second run's minus the
    first's."""

    policy: str
    environments: tuple[str, ...]
    """several: over all of them, each with the same weight"""
    means: tuple[float, float]
    """of the second run and of the first"""
    n: tuple[int, int]
    """number of values of the second run and of the first"""
    difference: float
    interval: tuple[float, float]
    p: float | None
    p_holm: float | None
    decided: bool
    paired: bool
    test: str


@dataclass(frozen=True)
class TrainingValues:
    """Of one curve of one run."""

    name: Untrusted
    """as the program calls it"""
    unit: str
    """what its steps are: steps, iterations, epochs or episodes"""
    last: float
    last_step: float
    best: float | None
    """the highest value; null for a length"""
    best_step: float | None


@dataclass(frozen=True)
class ComparedTraining:
    policy: str
    environment: str
    of: str
    """training or evaluation"""
    role: str
    """reward, success or length"""
    before: TrainingValues | None
    after: TrainingValues | None


@dataclass(frozen=True)
class Comparison:
    report: str
    schema: int
    before: str
    after: str
    comparisons: tuple[ComparedCombo, ...]
    sentences: UntrustedLines
    notes: UntrustedLines
    answer: Untrusted = ""
    """in one sentence"""
    findings: tuple[DataNote, ...] = ()
    """of the data of both runs"""
    metric: str | None = None
    """by whose means the runs are compared, where no episode has a verdict"""
    better: str | None = None
    """which values of it are better, higher or lower; null where nobody says it"""
    means: tuple[ComparedMeans, ...] = ()
    trainings: tuple[ComparedTraining, ...] = ()
    """side by side, where both runs have trainings; nothing is claimed of them"""


@dataclass(frozen=True)
class ComparedEnvironment:
    """Two policies in one environment. The difference is the rate of `a` minus that of `b`."""

    environment: str
    successes_a: int
    n_a: int
    successes_b: int
    n_b: int
    difference: float
    interval: tuple[float, float]
    """95 %, of this comparison alone"""
    test: str
    p: float
    p_holm: float
    """adjusted over all comparisons of the run's report"""
    better: str | None
    """the policy that is better, if that is decided"""
    paired: bool
    facts: UntrustedFacts
    """what limits the comparison"""


@dataclass(frozen=True)
class ComparedOverall:
    """Two policies over all environments that both have, each with the same weight."""

    environments: int
    mean_a: float
    mean_b: float
    difference: float
    interval: tuple[float, float]
    p: float
    p_holm: float
    better: str | None
    facts: UntrustedFacts


@dataclass(frozen=True)
class ComparedPolicies:
    """What the report of a run says of two of its policies."""

    run: str
    a: str
    b: str
    finished: bool
    """whether all planned episodes are there"""
    overall: ComparedOverall | None
    """null with one environment in common, or if the data chose the number of episodes"""
    environments: tuple[ComparedEnvironment, ...]
