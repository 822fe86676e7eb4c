"""Rows of jobs with several copies of an environment: `{"job_name": ..., "env_id": 3, "episode_in_env": 0, "success":
null, ...}`, one file per rebuild of the scene.

Their generations differ in what numbers an episode: an index of its own, or only its copy and its place there; then it
is the order in which they ended. `success: null` is an episode without a verdict.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO

from comborun.reporter.adapters import first_k, places
from comborun.reporter.adapters.findings import Findings
from comborun.reporter.adapters.jsonl_rows import take_lines
from comborun.rules.episodes import COPY, JOB, ORDER, JobRows, integer, job_success, rebuild

if TYPE_CHECKING:
    from comborun.reporter.adapters import Context, Reading


def read(stream: BinaryIO, context: Context) -> Reading:
    rules = replace(context.rules, success="success", episode="episode")
    if rules.metrics:
        rules = replace(rules, metrics=(*rules.metrics, ORDER))
    findings = Findings(replace(context, rules=rules))
    rows = _Rows(findings, rebuild(PurePosixPath(context.path).name))
    take_lines(findings, stream, rows.shape)
    first_k.warn(findings, len(rows.places.copies), len(findings.records))
    return findings.reading()


@dataclass
class _Rows:
    """Numbers the rows of one file, and the same row the same when it comes again."""

    findings: Findings
    rebuild: int
    places: JobRows = field(default_factory=JobRows)

    def shape(self, row: Any) -> Any:
        if not isinstance(row, dict):
            return row
        shaped = {**row, "success": job_success(row)}
        own, number = self.places.place(row)
        if own is not None or number is not None:
            shaped["episode"] = self.findings.context.first + (number or 0) if own is None else own
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
