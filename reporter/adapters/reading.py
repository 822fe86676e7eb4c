"""One file of any format -> what it says, and what it was taken for."""

from __future__ import annotations

import os
from types import MappingProxyType
from typing import TYPE_CHECKING, BinaryIO

from comborun.reporter.adapters import (
    Defect,
    Reading,
    completion_rows,
    eval_info,
    job_rows,
    json_list_last,
    json_per_file,
    jsonl_rows,
    kn_aggregate,
    log_lines,
    log_tuple,
    rank_metrics,
    train_step,
)
from comborun.reporter.adapters.findings import refused
from comborun.reporter.adapters.plain import NotPlainError, plain
from comborun.reporter.adapters.sniff import Format, Sniffed, sniff

if TYPE_CHECKING:
    from collections.abc import Mapping

    from comborun.reporter.adapters import Adapter, Context

READERS: Mapping[Format, Adapter] = MappingProxyType(
    {
        Format.JSONL_ROWS: jsonl_rows.read,
        Format.COMPLETION_ROWS: completion_rows.read,
        Format.JOB_ROWS: job_rows.read,
        Format.JSON_PER_FILE: json_per_file.read,
        Format.JSON_LIST_LAST: json_list_last.read,
        Format.EVAL_INFO: eval_info.read,
        Format.LOG_LINES: log_lines.read,
        Format.LOG_TUPLE: log_tuple.read,
        Format.KN_AGGREGATE: kn_aggregate.read,
        Format.RANK_METRICS: rank_metrics.read,
        Format.TRAIN_STEP: train_step.read,
    }
)
"""those that read one file; `filename-encoded` needs none"""


def read(stream: BinaryIO, context: Context) -> tuple[Sniffed | None, Reading]:
    """What a file is taken for, and what it says; None and an empty reading when it is nothing known.

    The stream is left at its end.
    """
    try:
        text = plain(stream)
    except NotPlainError as error:
        stream.seek(0, os.SEEK_END)
        return None, refused(context, str(error))
    start = text.tell()
    sniffed = _asked(context) or sniff(text, context.path, context.rules)
    text.seek(start)
    reading = _read(text, context, sniffed)
    stream.seek(0, os.SEEK_END)
    return sniffed, reading


def _asked(context: Context) -> Sniffed | None:
    """The format that the grid names; names of files are read by themselves."""
    if not context.rules.format or Format(context.rules.format) not in READERS:
        return None
    return Sniffed(Format(context.rules.format), "the grid names it")


def _read(stream: BinaryIO, context: Context, sniffed: Sniffed | None) -> Reading:
    if sniffed is None:
        return Reading()
    if sniffed.format is Format.SUMMARY:
        told = "a summary is not read: the episodes' own files count, whatever a mean over them says"
        return Reading(defects=(Defect(context.path, 0, told),))
    return READERS[sniffed.format](stream, context)
