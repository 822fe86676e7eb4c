"""One JSON object per episode and file, the episode's number in the file's name: `episode_12_final_res.json`.

Summaries beside them are means over whatever lay in the folder when they were made, older summaries included. They are
never read.
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, BinaryIO

from comborun.reporter.adapters import RejectKind, places
from comborun.reporter.adapters.findings import Findings, named, refused
from comborun.reporter.adapters.json_text import DocumentError, document
from comborun.rules.episodes import PER_FILE_NAME

if TYPE_CHECKING:
    from comborun.reporter.adapters import Context, Reading

SUCCESS = "task_success"


def read(stream: BinaryIO, context: Context) -> Reading:
    name = PER_FILE_NAME.fullmatch(PurePosixPath(context.path).name)
    if not name or not int(name["number"]):
        return refused(context, "the file's name holds no episode's number", RejectKind.NOT_A_RECORD)
    try:
        value = document(stream)
    except DocumentError as error:
        return refused(context, str(error), error.kind)
    if not isinstance(value, dict):
        return refused(context, "not a JSON object", RejectKind.NOT_A_RECORD)
    findings = Findings(with_success(named(context, *places.combo(context.path)), value))
    findings.take_episode(0, int(name["number"]) - 1, value)
    return findings.reading()


def with_success(context: Context, value: dict[str, object]) -> Context:
    """The grid's own field where it is there: any program may write such files."""
    if context.rules.success in value:
        return context
    return replace(context, rules=replace(context.rules, success=SUCCESS))
