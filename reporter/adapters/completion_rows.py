"""Rows of a legged robot's runs: `{"episode_id": "stairs_rough_ep0006", "completion": false, "progress": 12.3, ...}`.

They are appended to a file that a rerun finds again, so that episodes can stand there twice.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, BinaryIO

from comborun.reporter.adapters import CautionKind
from comborun.reporter.adapters.findings import Findings
from comborun.reporter.adapters.jsonl_rows import take_lines
from comborun.rules.episodes import COMPLETION, EPISODE_ID

if TYPE_CHECKING:
    from comborun.reporter.adapters import Context, Reading

UNUSED_SEED = "seed_unused"


def read(stream: BinaryIO, context: Context) -> Reading:
    rules = replace(context.rules, success=COMPLETION, episode=EPISODE_ID)
    findings = Findings(replace(context, rules=rules))
    take_lines(findings, stream, _without_seed)
    if findings.records:
        findings.caution(CautionKind.UNPAIRED, "its program takes a seed and uses none: an index pairs nothing")
    return findings.reading()


def _without_seed(row: Any) -> Any:
    """A seed that was given and not used stays in the record, but not as what its episode started from."""
    if not isinstance(row, dict) or "seed" not in row:
        return row
    return {UNUSED_SEED if key == "seed" else key: value for key, value in row.items()}
