"""One folder per episode with a list of its steps: `episode_12/cosmos_log.json`. The verdict is in the last step that
has one.

The file is rewritten twice per step, so it can be cut off anywhere. An episode that has not finished is missing, not
failed: its last step says only how far it had come.
"""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO

from comborun.reporter.adapters import RejectKind, places
from comborun.reporter.adapters.findings import Findings, named, refused
from comborun.reporter.adapters.json_per_file import SUCCESS, with_success
from comborun.reporter.adapters.json_text import DocumentError, elements, text_of
from comborun.rules.episodes import LIST_LAST_FOLDER

if TYPE_CHECKING:
    from collections.abc import Sequence

    from comborun.reporter.adapters import Context, Reading

"""numbers count from 1"""

STEPS_AT_MOST = 50
"""the program ends an episode there without saying that it is done"""


def read(stream: BinaryIO, context: Context) -> Reading:
    number = LIST_LAST_FOLDER.fullmatch(PurePosixPath(context.path).parent.name)
    if not number or not int(number["number"]):
        return refused(context, "its folder's name holds no episode's number", RejectKind.NOT_A_RECORD)
    try:
        values, fault = elements(text_of(stream))
    except DocumentError as error:
        return refused(context, str(error), error.kind)
    steps = [value for value in values if isinstance(value, dict)]
    told = _told(steps)
    if not _finished(steps):
        return refused(context, f"not finished after {len(steps)} steps{fault and f': {fault}'}", RejectKind.TORN)
    context = with_success(named(context, *places.combo(context.path)), told)
    findings = Findings(context)
    findings.take_episode(0, int(number["number"]) - 1, {**told, "steps": len(steps)})
    if fault:
        findings.defect(0, f"{fault} behind step {len(steps)}: the steps before it count")
    if len(steps) < len(values):
        findings.defect(0, f"{len(values) - len(steps)} entries are no steps")
    return findings.reading()


def _finished(steps: Sequence[dict[str, Any]]) -> bool:
    return len(steps) >= STEPS_AT_MOST or bool(steps and steps[-1].get("done") is True)


def _told(steps: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """The `info` of the last step that carries the verdict; the executed half of the very last one may be missing."""
    for step in reversed(steps):
        info = step.get("info")
        if isinstance(info, dict) and SUCCESS in info:
            return info
    return {}
