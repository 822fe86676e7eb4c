"""A run on a host that is not there: plans, the probe's answers as bytes, a transport that plays them, a clock."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from comborun.amounts import MIB
from comborun.plan import After, Limits, Plan, Session
from comborun.progress import ProgressRules
from comborun.results import ResultRules
from comborun.session.word import BashWord
from comborun.transport import Completed
from monitor.observe import RunView

NOW = 1785321000.0  # 2026-07-29 10:30:00 UTC
BOOT = "6f1c0c5e-0000-4000-8000-000000000001"
BY_ITSELF = ProgressRules()
HOST = ("load=1.25 cpus=2",)
"""what the probe says about the host's resources"""


def a_session(
    policy: str,
    environment: str,
    count: int = 100,
    files: tuple[str, ...] = ("*.jsonl",),
    progress: ProgressRules = BY_ITSELF,
) -> Session:
    return Session(
        name=re.sub(r"[^A-Za-z0-9_-]", "_", f"{environment}_{policy}"),
        policy=policy,
        environment=environment,
        unit="episode",
        first=0,
        count=count,
        seed=None,
        command=(BashWord("true"),),
        setup="",
        workdir=None,
        variables=(),
        gpus=0,
        results=ResultRules(files=files),
        digest="d",
        progress=progress,
    )


def a_plan(sessions: Iterable[Session], parallel: int = 3, after: bool = False) -> Plan:
    return Plan(
        grid="walkers",
        sessions=tuple(sessions),
        limits=Limits(parallel=parallel, per_gpu=parallel, stagger=0.0, attempts=2),
        gpus=(),
        after=After((BashWord("true"),), "", None, ()) if after else None,
        poll=60.0,
        digest="d",
    )


def a_view(plan: Plan, host: str = "gpu-box", directory: str = "~/comborun/walkers-1") -> RunView:
    return RunView("walkers-20260729T101500Z-ab12", host, directory, plan)


@dataclass(frozen=True)
class Seen:
    """One attempt in the probe's answer."""

    session: str
    attempt: int = 1
    started: float | None = NOW - 100
    live: str = "supervisor=1 command=1"
    counts: tuple[int, int] = (0, 0)
    log: bytes | None = b""
    changed: float = NOW - 1
    end: dict[str, object] | None = None
    first: int = 0
    size: int | None = None
    gpus: str = ""
    address: str = ""

    def block(self) -> str:
        lines = [f"session {self.session} {self.attempt}"]
        if self.started is not None:
            begin = {"attempt": self.attempt, "started": self.started, "boot": BOOT, "first": self.first}
            begin |= {"gpus": self.gpus, "address": self.address}
            lines += ["begin", *_lines(begin), "."]
        if self.end is not None:
            lines += ["end", *_lines(self.end), "."]
        else:
            lines.append(f"live {self.live}")
            lines.append(f"counts records={self.counts[0]} successes={self.counts[1]}")
        if self.log is not None:
            size = len(self.log) if self.size is None else self.size
            lines.append(f"log size={size} changed={self.changed} tail=4096")
        return "\n".join(lines) + "\n"

    def ended(self, cause: str = "exited", completeness: str = "complete", **fields: object) -> Seen:
        started = self.started
        end = {"attempt": self.attempt, "ended": NOW - 1, "cause": cause, "completeness": completeness}
        base = {"started": "" if started is None else started, "code": "0", "signal": "", "note": ""}
        log = fields.pop("log", None)
        assert log is None or isinstance(log, bytes)
        return replace(self, counts=(0, 0), changed=NOW - 1, size=None, log=log, end={**base, **end, **fields})


def _lines(record: dict[str, object]) -> list[str]:
    return [f"{key}={value}" for key, value in record.items()]


def a_tail(*seen: Seen, run: str = "/home/u/comborun/walkers-1", tail: int = 400) -> bytes:
    """What `tail -v -c` prints for the logs of these attempts."""
    pieces = [
        f"==> {run}/sessions/{one.session}/attempt-{one.attempt}/log <==\n".encode() + one.log[-tail:]
        for one in seen
        if one.log is not None
    ]
    return b"\n".join(pieces)


def an_answer(
    *seen: Seen,
    now: float = NOW,
    dispatcher: int | str = 4242,
    slots: int = 3,
    stopped: int = 0,
    done: str | None = None,
    host: Sequence[str] = HOST,
) -> bytes:
    """The probe's standard output."""
    header = [
        "comborun-probe 1",
        "run=walkers-20260729T101500Z-ab12",
        f"now={now}",
        f"boot={BOOT}",
        f"dispatcher={dispatcher}",
        f"slots={slots}",
        f"stopped={stopped}",
        "multiplexer=tmux",
        *host,
    ]
    if done is not None:
        header += ["done", done, "."]
    text = "\n".join(header) + "\n" + "".join(one.block() for one in seen) + "tails\n"
    return text.encode() + a_tail(*seen)


@dataclass
class StagedHost:
    """A transport that gives its answers one after the other, the last one for ever; an exception is raised."""

    answers: Sequence[bytes | Completed | BaseException]
    host: str = "gpu-box"
    asked: list[tuple[str, ...]] = field(default_factory=list)

    def run(
        self, script: str, *args: str, stdin: bytes = b"", timeout: float = 60.0, limit: int = 64 * MIB
    ) -> Completed:
        answer = self.answers[min(len(self.asked), len(self.answers) - 1)]
        self.asked.append(args)
        if isinstance(answer, BaseException):
            raise answer
        return answer if isinstance(answer, Completed) else Completed(0, answer, b"")


@dataclass
class HandClock:
    """Time that passes only when somebody sleeps; `interrupt_at` is when Ctrl-C is pressed."""

    wall: float = NOW + 5000.0
    passed: float = 0.0
    interrupt_at: float = float("inf")

    def now(self) -> float:
        return self.wall + self.passed

    def elapsed(self) -> float:
        return self.passed

    def sleep(self, seconds: float) -> None:
        self.passed += seconds
        if self.passed >= self.interrupt_at:
            raise KeyboardInterrupt


def a_host(*gpus: str, load: float = 41.3, disk: int = 812) -> tuple[str, ...]:
    """What the probe says about a box with 64 CPUs: `used total utilization` of each GPU, MiB; free disk in GiB."""
    rows = [gpu.split(" ") for gpu in gpus]
    gib = 1 << 20
    return (
        f"load={load} cpus=64",
        f"memory_kib={252 * gib} memory_available_kib={133 * gib}",
        f"disk_kib={3577 * gib} disk_available_kib={disk * gib}",
        *(f"gpu index={i} used_mib={row[0]} total_mib={row[1]} utilization={row[2]}" for i, row in enumerate(rows)),
    )


def a_busy_run(host: Sequence[str] = HOST) -> tuple[RunView, bytes]:
    """Every state at once, with names as people write them."""
    policies, environments = ("pi0.5 (flow)", "act"), ("friction", "grass", "boulder", "stairs")
    plan = a_plan([a_session(p, e) for p in policies for e in environments], after=True)
    names = [session.name for session in plan.sessions]
    seen = (
        Seen(names[0], started=NOW - 620).ended(records=100, successes=91, ended=NOW - 210),
        Seen(names[1], started=NOW - 620).ended(
            records=100, successes=64, ended=NOW - 180, code=139, signal=11, cause="signal"
        ),
        Seen(names[2], started=NOW - 615).ended("exited", "partial", records=37, successes=4, code=3, ended=NOW - 400),
        Seen(
            names[3],
            started=NOW - 205,
            counts=(62, 55),
            log=b"episode 60: success\nepisode 61: success, 12.4 s\n",
        ),
        Seen(
            names[4],
            attempt=2,
            started=NOW - 95,
            counts=(0, 0),
            log=b"loading checkpoint:  10%\rloading checkpoint:  85%",
            changed=NOW - 14,
        ),
        Seen(names[5], started=NOW - 300, live="supervisor=0 command=1", counts=(88, 80), log=b"\x1b[32mok\x1b[0m\n"),
        Seen(names[6], started=None).ended(
            "launch_failed", "none", code="", records=0, note="setup failed: conda: command not found"
        ),
    )
    return a_view(plan), an_answer(*seen, host=host)
