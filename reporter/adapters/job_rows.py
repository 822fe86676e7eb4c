"""Rows of jobs with several copies of an environment: `{"job_name": ..., "env_id": 3, "episode_in_env": 0, "success":
null, ...}`, one file per rebuild of the scene.

Their generations differ in what numbers an episode: an index of its own, or only its copy and its place there; then it
is the order in which they ended. `success: null` is an episode without a verdict.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO

from reporter.adapters import first_k, places
from reporter.adapters.findings import Findings
from reporter.adapters.jsonl_rows import take_lines
from reporter.adapters.row import integer

if TYPE_CHECKING:
    from reporter.adapters import Context, Reading

JOB, COPY, ORDER, OUTCOMES = "job_name", "env_id", "episode_in_env", "outcomes"
INDICES = ("global_episode_index", "episode_idx")
MARKS = (COPY, ORDER, OUTCOMES, *INDICES)
"""one of these beside the job's name makes such a row"""

REBUILD = re.compile(r"_rebuild(\d{1,9})\b")


def read(stream: BinaryIO, context: Context) -> Reading:
    rules = replace(context.rules, success="success", episode="episode")
    if rules.metrics:
        rules = replace(rules, metrics=(*rules.metrics, ORDER))
    findings = Findings(replace(context, rules=rules))
    rows = _Rows(findings, rebuild(context.path))
    take_lines(findings, stream, rows.shape)
    first_k.warn(findings, len(rows.copies), len(findings.records))
    return findings.reading()


def rebuild(path: str) -> int:
    """Which rebuild of the scene a file is of; files without a number are of the first one."""
    found = REBUILD.search(PurePosixPath(path).name)
    return int(found[1]) if found else 0


@dataclass
class _Rows:
    """Numbers the rows of one file, and the same row the same when it comes again."""

    findings: Findings
    rebuild: int
    numbers: dict[tuple[int, int], int] = field(default_factory=dict)
    copies: set[int] = field(default_factory=set)

    def shape(self, row: Any) -> Any:
        if not isinstance(row, dict):
            return row
        shaped = {**row, "success": _success(row)}
        index = self._index(row)
        if index is not None:
            shaped["episode"] = index
        if integer(row.get(COPY)) is not None:  # a name, no metric; a copy of another rebuild is another copy
            shaped[COPY] = f"{self.rebuild}:{row[COPY]}" if self.rebuild else str(row[COPY])
        return {**self._names(row), **shaped}

    def _names(self, row: dict[str, Any]) -> dict[str, str]:
        """The job is the environment where nothing else says so, and its folder doesn't name a policy."""
        context, job = self.findings.context, row.get(JOB)
        if not isinstance(job, str):
            return {}
        policy = {} if context.policy else {"policy": places.policy(context.path, {job})}
        return policy if context.environment else {**policy, "environment": job}

    def _index(self, row: dict[str, Any]) -> int | None:
        copy, order = integer(row.get(COPY)), integer(row.get(ORDER))
        if copy is not None:
            self.copies.add(copy)
        own = next((index for key in INDICES if (index := integer(row.get(key))) is not None), None)
        if own is not None:
            return own
        if copy is None or order is None:
            return None
        return self.findings.context.first + self.numbers.setdefault((copy, order), len(self.numbers))


def _success(row: dict[str, Any]) -> Any:
    """A row's own, else the one among its outcomes; null where none is told."""
    outcomes = row.get(OUTCOMES)
    if "success" in row or not isinstance(outcomes, dict):
        return row.get("success")
    return outcomes.get("success")
