"""`probe RUN [KNOWN] [TAIL]`: one look at a whole run. Starts no process but nvidia-smi, and changes nothing.

KNOWN: for each session in queue order (then `after`) the highest attempt whose end the caller knows, comma-separated,
0 for none. TAIL: how many bytes from the end of each log to send. The cost grows with what the caller does not know.

The answer (docs/architecture.md, "Hosts over SSH") is a line `comborun-probe 3`, a line that is one JSON document
with the fields of `Snapshot` (monitor/snapshot.py), and then the ends of logs, one behind the other: each attempt's
`tail` says how many bytes are its own. What is unknown is null or left out, never 0. An attempt's end comes with the
end of its log, for the last time.
"""

from __future__ import annotations

import json
import os
import re
import sys
import time
from itertools import islice

from comborun.host.engines.of_run import slurm_of
from comborun.host.record import training
from comborun.host.record.deals import deal_of
from comborun.host.record.events import last_order
from comborun.host.record.holds import Hold, Holds, over
from comborun.host.record.launch_environment import difference
from comborun.host.record.recounts import as_it_is, live_counts
from comborun.host.record.run_directory import RunDirectory, session_names
from comborun.host.record.run_owner import elsewhere
from comborun.host.system import files, machine, process
from comborun.host.system.files import Json
from comborun.host.verb_errors import answer, run_directory
from comborun.rules import machines, records
from comborun.rules.endings.breaker import ENVIRONMENT, barred
from comborun.rules.endings.failures import GPU
from comborun.rules.facts import Fact
from comborun.rules.holds import DRAINING, PAUSED
from comborun.rules.names import AFTER, SERVER, SERVERS, AttemptLayout
from comborun.rules.run_files import attempts_of, newest_plan, shares_output
from comborun.rules.vocabulary import Life

TYPE_CHECKING = False
if TYPE_CHECKING:
    from comborun.host.system.driver import Question

VERSION = "3"
RUNNING_SHARE, ENDED_SHARE, FEWEST = 73728, 24576, 160
"""bytes of logs in one answer: of running sessions together, of ended ones together, and at least of each log"""
_ORDERS = {PAUSED: "pause", DRAINING: "drain"}
_ENTRIES = 100
"""of a folder of output that are looked at"""


def main(arguments: list[str]) -> int:
    return answer("probe", _probe, arguments)


def _probe(arguments: list[str]) -> int:
    run = run_directory(arguments)
    known, tail = (*arguments[1:], "", "")[:2]
    probe = Probe(run, int(tail) if re.fullmatch("[0-9]{1,9}", tail) else 0)
    document, tails = probe.look([int(word) if word.isdecimal() else 0 for word in known.split(",")])
    text = json.dumps(document, ensure_ascii=False, separators=(",", ":"), default=Fact.as_data)
    head = f"comborun-probe {VERSION}\n{text}\n".encode("utf-8", "replace")
    files.write_all(sys.stdout.fileno(), b"".join([head, *tails]))
    return 0


class Probe:
    """One look. It checks liveness before ends, that of the dispatcher first: what ends in between is reported as
    ended, and no session is told as open whose dispatcher has left because it was the last one.
    """

    def __init__(self, run: str, tail: int) -> None:
        self.attempts = RunDirectory(run)
        self.layout = self.attempts.layout
        self.tail = tail
        slurm_of(self.attempts)
        self.boot = process.boot_id()
        after = os.path.exists(self.layout.script(AFTER))
        self.names = [name for name in session_names(self.layout) if after or name != AFTER]
        self.gpus: tuple[int, ...] = ()
        """GPUs that the run may use"""
        self.documents: list[Json] = []
        self.logs: list[tuple[Json, str]] = []
        """for each attempt with a log: its document, and the log's path"""

    def look(self, known: list[int]) -> tuple[Json, list[bytes]]:
        """The document, and the ends of logs in the order of its attempts."""
        self.gpus = records.integers(self.attempts.policy, "gpus")
        question = None
        if self.gpus:  # the answer comes while other things are read
            from comborun.host.system import driver  # slow to import, and many runs use no GPU

            question = driver.Question(driver.CARDS, self.layout.policy)
        dispatcher = self.attempts.backend.document(self.attempts.latest)  # it leaves after the last end
        for place, name in enumerate(self.names):
            newer = attempts_of(self.layout, name, known[place] if place < len(known) else 0)
            self.documents += [self._attempt(name, number) for number in newer]
        tails = self._tails()
        held = {"dispatcher_held": process.is_held(dispatcher.get("dispatcher"))}
        return {**self._run(), **dispatcher, **held, **self._machine(question), "attempts": self.documents}, tails

    # Attempts

    def _attempt(self, name: str, number: int) -> Json:
        seen, at = self.attempts.look(name, number), self.layout.attempt(name, number)
        document: Json = {"session": name, "number": number, "life": seen.life}
        ended = seen.life == Life.ENDED
        if seen.life != Life.STARTING:  # a begin that was written after this look belongs to the next look
            document["begin"] = _filled(files.read(at.begin)) or None
        if ended:
            document["end"] = _filled(as_it_is(at, seen.record))
        else:
            document["claimed"] = os.path.exists(at.claim)
            self._live(document, at)
        try:
            state = os.stat(at.log)
        except OSError:
            return document
        document.update(log_size=state.st_size, log_changed=round(state.st_mtime, 6))
        if state.st_size or not ended:
            self.logs.append((document, at.log))
        return document

    def _live(self, document: Json, at: AttemptLayout) -> None:
        document["stalled"] = records.seconds(files.read(at.stalled), "since")
        document["problems"] = records.ending(files.read(at.wrong_gpu))
        verdict = files.read(at.verdict)
        document.update(verdict=records.ending(verdict), ending=verdict.get("note", ""))
        if document["claimed"]:
            document["closing"] = document["life"] == Life.RUNNING and self._closing(document.get("begin") or {}, at)
            document["live"] = dict(live_counts(at).pairs())
            document["written"] = _newest_output(at)

    def _closing(self, begin: Json, at: AttemptLayout) -> bool:
        """Whether its command has ended, though the end is not on record yet."""
        pid, start, boot = (begin.get(key, "") for key in ("pid", "pid_start", "boot"))
        here = bool(pid) and boot == self.boot and not machines.elsewhere(begin, process.machine())
        here = here and not self.attempts.backend.elsewhere
        return here and not process.alive(pid, start, boot) and not os.path.exists(at.follows)

    def _tails(self) -> list[bytes]:
        """The ends of the logs. Running and ended sessions each have a share of the answer, and each log an equal part
        of it.
        """
        ended = sum("end" in document for document, _ in self.logs)
        shares = {True: _share(ENDED_SHARE, ended), False: _share(RUNNING_SHARE, len(self.logs) - ended)}
        tails = []
        for document, path in self.logs:
            tail, _ = files.tail(path, min(self.tail, shares["end" in document]))
            document["tail"] = len(tail)
            tails.append(tail)
        return tails

    # The run

    def _run(self) -> Json:
        layout = self.layout
        hold, stopped = Holds(layout).look(), os.path.exists(layout.stopped)
        deal = deal_of(layout)
        slots, multiplexer = files.read_line(layout.slots), files.read_line(layout.multiplexer)
        servers = (str(row.get("name")) for row in files.read_rows(layout.server_table))
        return {
            "run": self.attempts.id,
            "now": round(time.time(), 6),
            "boot": self.boot,
            "slots": int(slots) if slots.isdecimal() else None,
            "stopped": stopped,
            "multiplexer": multiplexer,
            "plan": newest_plan(self.layout.directory),
            "hold": _hold(hold),
            "ordered": last_order(layout, order) if (order := "stop" if stopped else _ORDERS.get(hold.kind)) else None,
            "notice_failed": self._notice(),
            "quarantine": self._barred(GPU),
            "closed": self._barred(ENVIRONMENT),
            "waiting": self._waiting(),
            "servers": [self._server(name) for name in servers if SERVER.fullmatch(name)],
            "done": over(layout),
            "elsewhere": elsewhere(layout),
            "following": training.summary(layout),
            "part": Fact("part_of_run", host=deal.box, hosts=deal.boxes) if deal and deal.boxes else None,
            "environment": difference(layout),
            "again": [(name, number) for name in self.names if (number := self.attempts.retried_after(name))],
        }

    def _notice(self) -> tuple[int, float] | None:
        """The code of the grid's notify command, and when, if its last run failed."""
        failed = self.layout.notify_failed
        try:
            if os.stat(failed).st_mtime_ns <= os.stat(self.layout.notify).st_mtime_ns:
                return None
        except OSError:
            return None
        record = files.read(failed)
        code = records.integer(record, "code")
        return None if code is None else (code, records.seconds(record, "at") or 0.0)

    def _barred(self, kind: str) -> list[Json]:
        """The GPUs or environments that get no new sessions."""
        return [
            {
                kind: int(one.name) if kind == GPU else one.name,
                "failure": one.failure,
                "since": _moment(one.since),
            }
            for one in barred(files.read_text(self.layout.quarantine), kind)
        ]

    def _waiting(self) -> list[Json]:
        """What sessions and servers wait for, apart from their turn, by the dispatcher's word."""
        return [
            {"session": row["session"], "until": records.seconds(row, "until"), "fact": fact}
            for row in files.read_rows(self.layout.waiting)
            for fact in records.facts(row)
            if row.get("session")
        ]

    # Model servers

    def _server(self, name: str) -> Json:
        number = self.attempts.latest(SERVERS + name)
        seen = self.attempts.glance(SERVERS + name, number)
        state, since, record = "queued", "", seen.record
        at = self.layout.attempt(SERVERS + name, number)
        if seen.life in (Life.QUEUED, Life.STARTING):
            state = seen.life
        elif seen.life in (Life.ENDED, Life.LOST):
            state, since = "ended", record.get("ended", "")
            record = {**record, "cause": record.get("cause", Life.LOST)}
        elif silent := files.read(at.unhealthy):
            state, since = "silent", silent.get("since", "")
        elif ready := files.read(at.ready):
            state, since = "ready", ready.get("at", "")
        else:
            state, since = "loading", record.get("started", "")
        return {
            "name": name,
            "attempt": number,
            "state": state,
            "since": _moment(since),
            "gpus": records.integers(record, "gpus"),
            "port": records.integer(record, "port"),
            "cause": record.get("cause", ""),
            "ending": records.ending(record),
            "why": record.get("note", ""),
        }

    # The machine

    def _machine(self, question: Question | None) -> Json:
        gpus = []
        if question:
            from comborun.host.system import driver

            gpus = [vars(card) for card in driver.cards(driver.hear(question), self.gpus)]  # fallen ones, too
        return {
            "use": {
                "load": machine.load(),
                "cpus": len(machine.cores()),
                "memory": _space(*machine.memory_kib()),
                "disk": _space(*machine.disk_kib(self.layout.directory)),
                "gpus": gpus,
            }
        }


def _newest_output(at: AttemptLayout) -> float | None:
    """When it last wrote a record or a file, by the first entries of its output; seconds since 1970."""
    times, folders = [files.changed(at.counts)], [] if shares_output(at) else [at.output]
    for folder in folders:  # grows by the folders in the first one
        try:
            with os.scandir(folder) as found:
                entries = list(islice(found, _ENTRIES))
            times.append(os.stat(folder).st_mtime_ns)
            times += (one.stat(follow_symlinks=False).st_mtime_ns for one in entries)
            if folder == at.output:
                folders += (one.path for one in entries if one.is_dir(follow_symlinks=False))
        except OSError:
            continue
    newest = max(times)
    return round(newest / 1e9, 6) if newest else None


def _space(total: int | None, free: int | None) -> Json | None:
    """In bytes, of KiB."""
    return None if total is None or free is None else {"total": total << 10, "free": free << 10}


def _hold(hold: Hold) -> Json | None:
    if not hold.kind:
        return None
    return {"kind": hold.kind, "since": _moment(hold.at), "why": hold.why, "reason": hold.reason}


def _moment(text: str) -> float | None:
    return records.seconds({"at": text}, "at")


def _filled(record: Json) -> Json:
    return {key: value for key, value in record.items() if value}


def _share(share: int, logs: int) -> int:
    return max(share // max(logs, 1), FEWEST)
