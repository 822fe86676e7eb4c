"""The probe's answer (docs/architecture.md, "The probe") as values: bytes -> Snapshot, pure."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import PurePosixPath

from comborun.attempt import Begin, End, integer, parse_record, seconds
from comborun.errors import HostError, UserError
from comborun.layout import RunLayout
from monitor.tails import split_tails

VERSION = "1"
_MAGIC = b"comborun-probe "


@dataclass(frozen=True)
class Attempt:
    """One attempt of a session as the probe found it."""

    session: str
    number: int
    begin: Begin | None = None
    end: End | None = None
    supervised: bool = False
    """session.sh lives"""
    working: bool = False
    """the command, or what it started, lives"""
    records: int = 0
    successes: int = 0
    log_size: int = 0
    log_changed: float | None = None
    tail: bytes = b""
    """the last bytes of the log: untrusted"""

    @property
    def alive(self) -> bool:
        return self.end is None and (self.supervised or self.working)

    @property
    def log(self) -> str:
        """The log's path below the run directory."""
        return str(RunLayout(PurePosixPath()).attempt(self.session, self.number).log)


@dataclass(frozen=True)
class Snapshot:
    """What one probe saw. Times are seconds since 1970 on the host's clock."""

    run: str
    now: float
    boot: str
    dispatcher: int | None
    """its pid, None when it is gone"""
    slots: int | None
    stopped: bool
    load: float | None
    cpus: int | None
    multiplexer: str
    done: Mapping[str, str] | None
    """the fields of dispatch/done; None while the run goes on"""
    attempts: tuple[Attempt, ...]
    """those that are newer than what the asker said it knows"""


def parse_snapshot(answer: bytes, tail: int) -> Snapshot:
    """Read the probe's standard output; `tail` is the TAIL it was asked for.

    Raises HostError when it is no such answer, UserError when it is one of another version.
    """
    text, tails = _cut(answer)
    lines = deque(text.split("\n"))
    header, done = _header(lines)
    attempts = []
    while lines:
        attempts.append(_attempt(lines))
    pieces = split_tails(tails, {one.log: one.log_size for one in attempts if one.end is None}, tail)
    return _snapshot(header, done, tuple(replace(one, tail=pieces.get(one.log, b"")) for one in attempts))


def _cut(answer: bytes) -> tuple[str, bytes]:
    """The text part without its first line, and what follows `tails`."""
    start = 0 if answer.startswith(_MAGIC) else answer.find(b"\n" + _MAGIC) + 1
    if not answer.startswith(_MAGIC, start):
        raise HostError("the host did not answer as a probe does", f"it said: {_excerpt(answer)}")
    first, _, rest = answer[start:].partition(b"\n")
    version = first[len(_MAGIC) :].decode("utf-8", "replace").strip()
    if version != VERSION:
        raise UserError(f"the run's probe speaks version {version[:20]!r}, not {VERSION}", "update comborun here")
    text, mark, tails = (b"\n" + rest).partition(b"\ntails\n")
    if not mark:
        raise HostError("the probe's answer is cut off", "the next look will show whether that was the link")
    return text[1:].decode("utf-8", "replace"), tails


def _excerpt(answer: bytes) -> str:
    return repr(answer[:80].decode("utf-8", "replace")) if answer else "nothing"


def _header(lines: deque[str]) -> tuple[dict[str, str], dict[str, str] | None]:
    """The fields before the first session, and those of `done`."""
    header: dict[str, str] = {}
    done = None
    while lines and not lines[0].startswith("session "):
        line = lines.popleft()
        if line == "done":
            done = parse_record(_record(lines))
        else:
            header.update(_fields(line))
    return header, done


def _attempt(lines: deque[str]) -> Attempt:
    """One block: a `session` line and all that follows up to the next one."""
    words = lines.popleft().split(" ")
    number = integer({"attempt": words[-1]}, "attempt")
    if len(words) != 3 or number is None:
        raise HostError(f"the probe's answer can't be read at {' '.join(words)[:80]!r}")
    begin = end = None
    fields: dict[str, dict[str, str]] = {}
    while lines and not lines[0].startswith("session "):
        keyword, _, rest = lines.popleft().partition(" ")
        if keyword == "begin":
            begin = Begin.parse(_record(lines))
        elif keyword == "end":
            end = End.parse(_record(lines))
        else:
            fields[keyword] = _fields(rest)
    live, counts, log = (fields.get(keyword, {}) for keyword in ("live", "counts", "log"))
    return Attempt(
        session=words[1],
        number=number,
        begin=begin,
        end=end,
        supervised=live.get("supervisor") == "1",
        working=live.get("command") == "1",
        records=integer(counts, "records") or 0,
        successes=integer(counts, "successes") or 0,
        log_size=integer(log, "size") or 0,
        log_changed=seconds(log, "changed"),
    )


def _record(lines: deque[str]) -> str:
    """The lines up to the one that holds a single dot."""
    record: list[str] = []
    while lines:
        line = lines.popleft()
        if line == ".":
            return "\n".join(record)
        record.append(line)
    raise HostError("the probe's answer is cut off in a record")


def _fields(line: str) -> dict[str, str]:
    return parse_record("\n".join(line.split()))


def _snapshot(header: Mapping[str, str], done: Mapping[str, str] | None, attempts: tuple[Attempt, ...]) -> Snapshot:
    now = seconds(header, "now")
    if now is None or not header.get("run"):
        raise HostError("the probe's answer names no run or no time")
    return Snapshot(
        run=header["run"],
        now=now,
        boot=header.get("boot", ""),
        dispatcher=integer(header, "dispatcher"),
        slots=integer(header, "slots"),
        stopped=header.get("stopped") == "1",
        load=seconds(header, "load"),
        cpus=integer(header, "cpus"),
        multiplexer=header.get("multiplexer", ""),
        done=done,
        attempts=attempts,
    )
