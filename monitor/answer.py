"""The probe's answer (docs/architecture.md, "Hosts over SSH"): bytes -> Snapshot, pure.

A value of an unexpected type counts as unknown.
"""

from __future__ import annotations

import json
from collections.abc import Iterator

from comborun.attempt import Begin, End
from comborun.errors import HostError, UserError
from comborun.monitor.slurm import Scheduler, Task
from comborun.monitor.snapshot import Attempt, Gpu, Hold, HostUse, Quarantine, Server, Snapshot, Space, Waiting, indexes
from comborun.rules.records import seconds
from comborun.rules.slurm import PENDING
from comborun.rules.tally import Counts
from comborun.text import KIB, MIB

VERSION = "2"
_MAGIC = b"comborun-probe "
_MOST = 10**18


class Fields:
    """One object of the JSON document."""

    def __init__(self, value: object) -> None:
        self._values = value if isinstance(value, dict) else {}
        self.there = isinstance(value, dict)

    def text(self, key: str) -> str:
        value = self._values.get(key)
        return value if isinstance(value, str) else ""

    def number(self, key: str) -> float | None:
        """A finite number that is not negative, such as a time."""
        value = self._values.get(key)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        return float(value) if 0 <= value < _MOST else None  # NaN is neither

    def integer(self, key: str) -> int | None:
        value = self._values.get(key)
        good = isinstance(value, int) and not isinstance(value, bool) and -_MOST < value < _MOST
        return value if good else None

    def flag(self, key: str) -> bool:
        return self._values.get(key) is True

    def part(self, key: str) -> Fields:
        return Fields(self._values.get(key))

    def parts(self, key: str) -> Iterator[Fields]:
        values = self._values.get(key)
        return (Fields(value) for value in (values if isinstance(values, list) else ()))

    def room(self, key: str) -> Space | None:
        """`[total, free]` in KiB; None where one of them is unknown."""
        values = self._values.get(key)
        total, free = values if isinstance(values, list) and len(values) == 2 else (None, None)
        return Space(total * KIB, free * KIB) if isinstance(total, int) and isinstance(free, int) else None

    def record(self, key: str) -> dict[str, str]:
        """The fields of a record of the run; empty where there is none."""
        values = self.part(key)._values  # noqa: SLF001
        return {name: value for name, value in values.items() if isinstance(value, str)}


def parse_snapshot(answer: bytes) -> Snapshot:
    """Read the probe's standard output.

    Raises HostError when it is no such answer, UserError when it is one of another version.
    """
    document, tails = _cut(answer)
    attempts = []
    for fields in document.parts("attempts"):
        length = min(max(0, fields.part("log").integer("tail") or 0), len(tails))
        attempts.append(_attempt(fields, tails[:length]))
        tails = tails[length:]
    return _snapshot(document, tuple(attempts))


def _cut(answer: bytes) -> tuple[Fields, bytes]:
    """The document, and what follows it."""
    start = 0 if answer.startswith(_MAGIC) else answer.find(b"\n" + _MAGIC) + 1
    if not answer.startswith(_MAGIC, start):
        excerpt = repr(answer[:80].decode("utf-8", "replace")) if answer else "nothing"
        raise HostError("the host did not answer as a probe does", f"it said: {excerpt}")
    first, _, rest = answer[start:].partition(b"\n")
    version = first[len(_MAGIC) :].decode("utf-8", "replace").strip()
    if version != VERSION:
        raise UserError(f"the run's probe speaks version {version[:20]!r}, not {VERSION}", "update comborun here")
    line, end, tails = rest.partition(b"\n")
    try:
        document = json.loads(line.decode("utf-8", "replace")) if end else None
    except (ValueError, RecursionError):
        document = None
    if not isinstance(document, dict):
        raise HostError("the probe's answer is cut off", "the next look will show whether that was the link")
    return Fields(document), tails


def _attempt(fields: Fields, tail: bytes) -> Attempt:
    session, number, log = fields.text("session"), fields.integer("attempt"), fields.part("log")
    if not session or not number or number < 1:
        raise HostError("the probe's answer can't be read: it names no session or no attempt")
    begin, end = fields.record("begin"), fields.record("end")
    return Attempt(
        session=session,
        number=number,
        begin=Begin.of(begin) if begin else None,
        end=End.of(end) if end else None,
        life=fields.text("life"),
        claimed=fields.flag("claimed"),
        stalled=seconds({"since": fields.text("stalled")}, "since"),
        wrong_gpu=fields.text("wrong_gpu"),
        live=Counts.of(fields.record("counts")),
        log_size=log.integer("size") or 0,
        log_changed=log.number("changed"),
        tail=tail,
    )


def _snapshot(fields: Fields, attempts: tuple[Attempt, ...]) -> Snapshot:
    now, run, notice, slurm = fields.number("now"), fields.text("run"), fields.part("notice"), fields.part("slurm")
    if now is None or not run:
        raise HostError("the probe's answer names no run or no time")
    code, hold = notice.integer("code"), fields.part("hold")
    return Snapshot(
        run=run,
        now=now,
        boot=fields.text("boot"),
        dispatcher=fields.integer("dispatcher"),
        slots=fields.integer("slots"),
        stopped=fields.flag("stopped"),
        use=HostUse(
            load=fields.number("load"),
            cpus=fields.integer("cpus"),
            memory=fields.room("memory_kib"),
            disk=fields.room("disk_kib"),
            gpus=tuple(map(_gpu, fields.parts("gpus"))),
        ),
        multiplexer=fields.text("multiplexer"),
        done=fields.part("done").there,
        attempts=attempts,
        plan=fields.integer("plan"),
        again={name: int(number) for name, number in fields.record("again").items() if number.isdecimal()},
        notice_failed=None if code is None else (code, notice.number("at") or 0.0),
        hold=Hold(hold.text("kind"), hold.number("at"), hold.text("why")) if hold.there else None,
        quarantine=tuple(
            Quarantine(gpu, one.text("class"), one.number("at"))
            for one in fields.parts("quarantine")
            if (gpu := one.integer("gpu")) is not None
        ),
        waiting=tuple(
            Waiting(one.text("session"), one.text("for"), one.number("until"), one.text("detail"))
            for one in fields.parts("waiting")
        ),
        servers=tuple(map(server_of, fields.parts("servers"))),
        scheduler=Scheduler(slurm.number("at"), slurm.flag("answered"), slurm.text("why")) if slurm.there else None,
        tasks=tuple(filter(None, map(task_of, slurm.parts("tasks")))),
    )


def _gpu(fields: Fields) -> Gpu:
    used, total = fields.integer("used_mib"), fields.integer("total_mib")
    return Gpu(
        index=fields.integer("index") or 0,
        memory_used=None if used is None else used * MIB,
        memory_total=None if total is None else total * MIB,
        utilization_percent=fields.integer("utilization"),
    )


def server_of(fields: Fields) -> Server:
    port = fields.text("port")
    return Server(
        name=fields.text("name"),
        state=fields.text("state"),
        attempt=fields.integer("attempt") or 0,
        since=fields.number("since"),
        gpus=indexes(fields.text("gpus")),
        port=int(port) if port.isdecimal() and len(port) <= 5 else None,
        cause=fields.text("cause"),
        why=fields.text("why"),
    )


def task_of(fields: Fields) -> Task | None:
    """None when it names no session or no attempt."""
    attempt = fields.integer("attempt")
    if not fields.text("session") or not attempt:
        return None
    return Task(
        session=fields.text("session"),
        attempt=attempt,
        job=fields.text("job"),
        id=fields.text("id"),
        state=fields.text("state") or PENDING,
        node=fields.text("node"),
        start=fields.number("start"),
        reason="" if fields.text("reason") == "None" else fields.text("reason"),
    )
