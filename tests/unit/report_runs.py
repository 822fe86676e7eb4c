"""Run directories written by hand, as the host leaves them, for the tests of the reporter."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePath
from typing import Any

import jsonschema
from recorded import record as one_record

from comborun.model.attempt import EpisodeRecord, Verdict, packed
from comborun.model.plan import Limits, Plan, Session
from comborun.reporter.collect import collect_folder, collect_run
from comborun.reporter.summary import Report, Summary, summarize
from comborun.rules import records
from comborun.rules.names import RunLayout
from comborun.rules.results.fields import ResultRules

RUN = RunLayout()
VERDICTS = {"+": Verdict.SUCCESS, "-": Verdict.FAILURE, "!": Verdict.ERRORED}
START = 1_778_312_125.25
"""2026-05-09 07:35:25.250 UTC"""


def row(episode: int, success: Any = True, **fields: Any) -> str:
    """One line of a result file, as an evaluator would write it."""
    return json.dumps({"episode": episode, "success": success, **fields}) + "\n"


def write_rows(path: Path, rows: Iterable[Mapping[str, Any] | str]) -> None:
    """A file of JSON lines: of rows, or of lines that `row` made."""
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(one if isinstance(one, str) else f"{json.dumps(one)}\n" for one in rows))


def summarized(folder: Path, rows: Iterable[Mapping[str, Any] | str], name: str = "rows.jsonl") -> Summary:
    """What is said of a folder, once it has these rows, too."""
    write_rows(folder / name, rows)
    return summarize(collect_folder(folder)).summary


def episode(
    index: int,
    mark: str = "+",
    policy: str = "flat",
    environment: str = "stairs",
    seed: int | None = None,
    **fields: Any,
) -> EpisodeRecord:
    """A record of one: `+` success, `-` failure, `!` errored. Numbers among the fields are its metrics."""
    numbers = {name: float(value) for name, value in fields.items() if isinstance(value, int | float)}
    others = {name: value for name, value in fields.items() if name not in numbers}
    return EpisodeRecord(policy, environment, index, VERDICTS[mark], seed, **packed(numbers, others))


def planned_session(policy: str, environment: str, count: int, **fields: Any) -> Session:
    values: dict[str, Any] = {
        "name": re.sub("[^A-Za-z0-9_-]", "-", f"{environment}_{policy}"),
        "policy": policy,
        "environment": environment,
        "unit": "episode",
        "first": 0,
        "count": count,
        "seed": 1000,
        "command": (),
        "setup": "",
        "workdir": None,
        "variables": (),
        "gpus": 0,
        "results": ResultRules(),
        "digest": f"{environment}-{policy}",
    }
    return Session(**{**values, **fields})


@dataclass
class RunDirectory:
    """A run directory that grows session by session; `write()` adds what is known only at the end."""

    path: Path
    sessions: list[Session] = field(default_factory=list)

    def put(self, name: str | PurePath, content: str | bytes) -> Path:
        path = self.path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content.encode() if isinstance(content, str) else content)
        return path

    def session(self, policy: str, environment: str, count: int = 10, **fields: Any) -> Session:
        session = planned_session(policy, environment, count, **fields)
        self.sessions.append(session)
        return session

    def attempt(self, session: Session, rows: str | bytes = "", number: int = 1, **record: Any) -> None:
        """An attempt with its result file. `record` changes fields of its end record; `end=None` leaves that out."""
        attempt = RUN.attempt(session.name, number)
        started = record.pop("started", START)
        self.put(
            attempt.begin,
            one_record(attempt=number, started=started, pid=77, boot="b", host="gpubox", multiplexer="tmux"),
        )
        if rows:
            self.put(f"{attempt.output}/episodes.jsonl", rows)
        if record.pop("end", True) is None:
            return
        end = {
            "attempt": number,
            "started": started,
            "ended": started + 60,
            "code": 0,
            "signal": "",
            "cause": "exited",
            "completeness": "complete",
            "records": session.count,
            "successes": 0,
            "note": "",
        }
        self.put(attempt.end, records.render({**end, **record}.items()))

    def report(self, *, done: bool = True) -> Report:
        """The report of this run as it is now."""
        return summarize(collect_run(self.write(done=done)))

    def write(self, grid: str = "quadruped", run: str = "quadruped-20260509T073525-1a2b", *, done: bool = True) -> Path:
        plan = Plan(grid, tuple(self.sessions), Limits(8, 8, 0.0, 2), (), None, 60.0, "digest")
        self.put(RUN.id, run + "\n")
        self.put(RUN.plan(1), plan.to_json())
        provenance = {"comborun": "0.1.0", "commit": "7dc8c99", "host": {"hostname": "gpubox", "cpus": 16, "gpus": []}}
        self.put(RUN.manifest, json.dumps({"schema": 1, "grid": grid, "provenance": provenance}))
        if done:
            self.put(RUN.done, f'{{"at": "{START + 300}", "succeeded": "{len(self.sessions)}"}}\n')
        return self.path


def document(folder: Path) -> dict[str, Any]:
    """The report in JSON, which holds to the schema beside it."""
    found: dict[str, Any] = json.loads((folder / "final_benchmark_report.json").read_text())
    jsonschema.validate(found, json.loads((folder / "final_benchmark_report.schema.json").read_text()))
    return found


def troubled_run(path: Path) -> Path:
    """A small run with every kind of trouble that the report knows to name."""
    run = RunDirectory(path)
    _flat_sessions(run)
    _rough_sessions(run)
    _hostile_sessions(run)
    return run.write()


def _flat_sessions(run: RunDirectory) -> None:
    friction = run.session("flat", "friction", results=ResultRules(metrics=("distance_m", "time_s", "absent")))
    whole = "".join(row(i, i != 3, seed=1000 + i, distance_m=8 - i / 7, time_s=9 + i / 3) for i in range(10))
    run.attempt(friction, whole, code=139, signal=11, ended=START + 42)

    grass = run.session("flat", "grass")
    first = "".join(row(i, i % 2 == 0, distance_m=1.5 * i) for i in range(4)) + '{"episode": 4, "succ'
    run.attempt(grass, first, cause="lost", code="", completeness="partial", records=4)
    second = "".join(row(i, i != 1 and i != 2, distance_m=1.5 * i) for i in range(1, 10))
    run.attempt(grass, second, number=2, started=START + 70)

    boulder = run.session("flat", "boulder")
    run.attempt(
        boulder,
        number=1,
        cause="launch_failed",
        code=78,
        completeness="none",
        records=0,
        note="setup: conda: not found",
    )
    run.session("flat", "stairs")


def _rough_sessions(run: RunDirectory) -> None:
    friction = run.session("rough", "friction")
    doubled = row(0) + row(0) + row(1, False) + row(1, True) + row(2, None) + row(3, 0.5) + row(4).strip() + row(5)
    foreign = row(6, policy="flat") + row(7, environment="grass") + row(10) + row(11)
    spoilt = '{"episode": 8, "success": true, "distance_m": NaN, "time_s": 1e400}\n[1, 2]\nTraceback (most recent)\n'
    run.attempt(
        friction, doubled + foreign + spoilt + '{"success": true}\n', code=1, completeness="partial", ended=START + 33
    )
    grass = run.session("rough", "grass")
    run.attempt(grass, "".join(row(i, True) for i in range(10)), end=None)
    boulder = run.session("rough", "boulder")
    run.attempt(boulder, row(0, False) + row(4, False), cause="stopped", code=130, signal=2, completeness="partial")
    stairs = run.session("rough", "stairs", unit="step", count=500_000)
    run.attempt(stairs, row(1), ended=START + 7384)


def _hostile_sessions(run: RunDirectory) -> None:
    name = "<script>alert(1)</script>|`a`*b*"
    hostile = run.session(name, "friction", name="friction_script", count=2)
    run.attempt(hostile, row(0, note="=cmd|' /C calc'!A0", where='a,b\n"c"') + row(1, False, note="plain"), note="<b>&")
    untold = run.session("$x_{1}$", "friction", name="friction_x", results=ResultRules(files=()))
    run.attempt(untold)
