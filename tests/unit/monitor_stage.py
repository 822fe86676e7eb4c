"""A run on a host that is not there: plans, the probe's answers as bytes, a transport that plays them, a clock."""

from __future__ import annotations

import io
import json
import os
import re
import time
import zlib
from base64 import b64encode
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Event
from typing import Any

from rich.console import Console

from comborun.model.judging import ProgressRules
from comborun.model.plan import After, Limits, Plan, Session
from comborun.model.resources import BashWord
from comborun.monitor.classify import classify
from comborun.monitor.observe import History, RunView, fold
from comborun.monitor.snapshot import parse_snapshot
from comborun.monitor.status import RunStatus
from comborun.monitor.table import render
from comborun.monitor.watch import Clock
from comborun.remote.transport import Completed
from comborun.rules.facts import Fact, data_of
from comborun.rules.holds import HoldReason
from comborun.rules.results.counts import marked
from comborun.rules.results.fields import ResultRules
from comborun.text import GIB, MIB

os.environ["TZ"] = "UTC"
time.tzset()
NOW = 1785321000.0  # 2026-07-29 10:30:00 UTC
BOOT = "6f1c0c5e-0000-4000-8000-000000000001"
BY_ITSELF = ProgressRules()
TAIL = 16384
"""bytes of a log's end that the staged probe sends"""
HOST: tuple[dict[str, Any], ...] = ({"use": {"load": 1.25, "cpus": 2}},)
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
    life: str = "running"
    claimed: bool = True
    closing: bool = False
    stalled: float | None = None
    problems: tuple[Fact, ...] = ()
    wrong_gpu: str = ""
    verdict: tuple[Fact, ...] = ()
    ending: str = ""
    counts: tuple[int, int] = (0, 0)
    log: bytes | None = b""
    changed: float = NOW - 1
    written: float | None = None
    end: dict[str, object] | None = None
    first: int = 0
    size: int | None = None
    why: str = ""
    countable: bool = True
    multiplexer: str = ""
    host: str = ""
    gpus: str = ""
    address: str = ""
    trained: Fact | None = None

    def told(self) -> dict[str, object]:
        """It as the probe tells it."""
        told: dict[str, object] = {"session": self.session, "number": self.attempt, "life": self.life}
        if self.started is not None:
            begin = {"attempt": self.attempt, "started": self.started, "boot": BOOT, "first": self.first}
            begin |= {"gpus": self.gpus, "address": self.address, "multiplexer": self.multiplexer, "host": self.host}
            told["begin"] = _filled(begin)
        if self.end is not None:
            told |= {"life": "ended", "end": _filled(self.end)}
        else:
            counts = self._counted(*self.counts)
            counts |= {"why": self.why} if self.countable else {"why": self.why, "countable": 0}
            counts |= {"trained": self.trained.as_data()} if self.trained else {}
            told |= {"claimed": self.claimed, "live": _filled(counts), "problems": data_of(self.problems)}
            told |= {"stalled": self.stalled, "ending": self.ending, "wrong_gpu": self.wrong_gpu}
            told |= {"verdict": data_of(self.verdict), "written": self.written, "closing": self.closing}
        if self.log is not None:
            size = len(self.log) if self.size is None else self.size
            told |= {"log_size": size, "log_changed": self.changed, "tail": len(self.log[-TAIL:])}
        return told

    def _counted(self, records: int, successes: int) -> dict[str, object]:
        """What a host writes of so many records, the first of which are successes."""
        verdicts = {self.first + at: at < successes for at in range(records)}
        counts = {"records": records, "successes": successes, "verdicts": records}
        return counts | {"marks": marked(verdicts, (self.first, records))}

    def ended(self, cause: str = "exited", completeness: str = "complete", **fields: object) -> Seen:
        started = self.started
        end = {"attempt": self.attempt, "ended": NOW - 1, "cause": cause, "completeness": completeness}
        counts = self._counted(int(str(fields.get("records", 0))), int(str(fields.get("successes", 0))))
        base = {"started": "" if started is None else started, "code": "0", **counts}
        log = fields.pop("log", None)
        assert log is None or isinstance(log, bytes)
        return replace(self, counts=(0, 0), changed=NOW - 1, size=None, log=log, end={**base, **end, **fields})


def _filled(record: Mapping[str, object]) -> dict[str, object]:
    """Without what is empty; lists and objects, such as facts, stay what they are."""
    return {
        key: value if isinstance(value, list | dict) else str(value)
        for key, value in record.items()
        if value is not None and value != ""
    }


def together(parts: Iterable[Mapping[str, Any]]) -> dict[str, Any]:
    """Parts of the probe's document as one: lists are joined, and so is the use of the host."""
    whole: dict[str, Any] = {}
    for part in parts:
        for key, value in part.items():
            before = whole.get(key)
            joined = isinstance(value, (list, dict)) and before is not None
            whole[key] = before + value if joined and isinstance(value, list) else before | value if joined else value
    return whole


def a_wait(session: str, wait: Fact, until: float | None = None) -> dict[str, Any]:
    return {"waiting": [{"session": session, "until": until, "fact": wait.as_data()}]}


def a_hold(kind: str, words: str, since: float = 1.0) -> dict[str, Any]:
    return {"hold": {"kind": kind, "since": since, "reason": Fact(HoldReason.BY_PERSON, words=words).as_data()}}


def a_quarantine(gpu: int, failure: str) -> dict[str, Any]:
    return {"quarantine": [{"gpu": gpu, "failure": failure, "since": 5.0}]}


NO_DISK = {"use": {"disk": {"total": 1000 << 10, "free": 0}}}


def an_answer(
    *seen: Seen,
    now: float = NOW,
    dispatcher: int | None = 4242,
    slots: int = 3,
    stopped: bool = False,
    done: Mapping[str, object] | None = None,
    host: Sequence[Mapping[str, Any]] = HOST,
    part: Fact | None = None,
) -> bytes:
    """The probe's standard output."""
    document = {
        "run": "walkers-20260729T101500Z-ab12",
        "now": now,
        "boot": BOOT,
        "dispatcher": dispatcher,
        "slots": slots,
        "stopped": stopped,
        "multiplexer": "tmux",
        "done": done is not None,
        "part": part and part.as_data(),
        **together(host),
        "attempts": [one.told() for one in seen],
    }
    return answer_of(document, b"".join(one.log[-TAIL:] for one in seen if one.log is not None))


def answer_of(document: Mapping[str, object], tails: bytes = b"") -> bytes:
    return b"comborun-probe 3\n" + json.dumps(document).encode() + b"\n" + tails


def look_at(*answers: bytes, view: RunView | None = None) -> History:
    """What is remembered after these answers."""
    sessions, history = {one.name: one for one in view.plan.sessions} if view else {}, History()
    for answer in answers:
        history = fold(history, parse_snapshot(answer), sessions)
    return history


def status_of(view: RunView, *answers: bytes) -> RunStatus:
    """What is shown of a run after these answers."""
    return classify(view, look_at(*answers, view=view))


def picture(status: RunStatus, width: int, colour: bool = False) -> str:
    """The table as it is drawn; times of day are UTC."""
    file = io.StringIO()
    console = Console(
        file=file,
        width=width,
        force_terminal=colour,
        color_system="truecolor" if colour else None,
        legacy_windows=False,
        _environ={},
    )
    console.print(render(status, width))
    return "".join(f"{line.rstrip()}\n" for line in file.getvalue().splitlines())


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


def plan_answer(plan: bytes, number: int = 1, run: str = "walkers-1") -> bytes:
    """What a host says when it is asked for the newest plan of a run."""
    packed = b64encode(zlib.compress(plan)).decode()
    return json.dumps({"id": run, "number": number, "plan": packed}).encode()


@dataclass
class HandClock(Clock):
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

    def wait(self, event: Event, seconds: float) -> bool:
        self.sleep(seconds)
        return event.is_set()


def a_host(*gpus: tuple[int | None, int | None, int | None], disk: int = 812) -> tuple[dict[str, Any], ...]:
    """A box with 64 CPUs as the probe has it: used and total MiB and utilization of each GPU; free disk in GiB."""
    names = ("used", "total", "utilization")
    cards = [{"index": index, **dict(zip(names, gpu, strict=True))} for index, gpu in enumerate(gpus)]
    memory, space = {"total": 252 * GIB, "free": 133 * GIB}, {"total": 3577 * GIB, "free": disk * GIB}
    return ({"use": {"load": 41.3, "cpus": 64, "memory": memory, "disk": space, "gpus": cards}},)


def a_busy_run(host: Sequence[Mapping[str, Any]] = HOST) -> tuple[RunView, bytes]:
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
        Seen(names[5], started=NOW - 300, life="orphaned", counts=(88, 80), log=b"\x1b[32mok\x1b[0m\n"),
        Seen(names[6], started=None).ended(
            "launch_failed", "none", code="", records=0, note="setup failed: conda: command not found"
        ),
    )
    return a_view(plan), an_answer(*seen, host=host)
