"""Which format a file is of, told by the shape of what stands in it and of its path; never by a program's name.

Where nothing fits, the file is no result of a known kind. That is no fault: folders hold other things too.
"""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, BinaryIO

from comborun.reporter.adapters import (
    kn_aggregate,
    log_lines,
    log_text,
    log_tuple,
    rank_metrics,
    train_step,
)
from comborun.rules.episodes import (
    COMPLETION,
    DOCUMENTS,
    EPISODE_ID,
    HEAD,
    JOB,
    LINES,
    LOG_NAMES,
    LOGS,
    Identity,
    document_format,
    row_format,
)

if TYPE_CHECKING:
    from comborun.judging import ResultRules

REACH = 1 << 20
"""bytes from the beginning and from the end of a log: some tell everything in their last lines"""


class Format(StrEnum):
    """How the results of a program are written."""

    JSONL_ROWS = "jsonl-rows"
    COMPLETION_ROWS = "completion-rows"
    JOB_ROWS = "job-rows"
    JSON_PER_FILE = "json-per-file"
    JSON_LIST_LAST = "json-list-last"
    EVAL_INFO = "eval-info"
    LOG_LINES = "log-lines"
    LOG_TUPLE = "log-tuple"
    KN_AGGREGATE = "kn-aggregate"
    RANK_METRICS = "rank-metrics"
    TRAIN_STEP = "train-step"
    FILENAME_ENCODED = "filename-encoded"
    SUMMARY = "summary"
    """known, and never read: a mean over whatever lay there"""


READABLE = frozenset(Format) - {Format.SUMMARY}


@dataclass(frozen=True)
class Sniffed:
    format: Format
    why: str
    """what it was recognised by"""


_BY = {
    Format.JSONL_ROWS: "one object per line",
    Format.COMPLETION_ROWS: f"rows with {EPISODE_ID} and {COMPLETION}",
    Format.JOB_ROWS: f"rows with {JOB} and an episode's place",
    Format.SUMMARY: "a summary of other files",
    Format.JSON_PER_FILE: "an episode's number in its name",
    Format.JSON_LIST_LAST: "a list of steps in an episode's folder",
    Format.EVAL_INFO: "a document with successes of tasks or episodes",
}


def candidate(path: str) -> bool:
    """Whether a file's name lets it hold results; what is packed is told and not read."""
    name = PurePosixPath(path.removesuffix(".gz"))
    return name.suffix.lower() in LINES + DOCUMENTS + LOGS or name.name in LOG_NAMES


def sniff(stream: BinaryIO, path: str, rules: ResultRules) -> Sniffed | None:
    """What a file is, from plain text; the stream is left anywhere."""
    suffix = PurePosixPath(path).suffix.lower()
    if suffix in LINES:
        return _rows(stream.read(HEAD), rules)
    if suffix in DOCUMENTS:
        return _document(stream.read(HEAD).decode("utf-8", "replace").lstrip(), PurePosixPath(path))
    return _log(stream, rules) if candidate(path) else None


def _rows(head: bytes, rules: ResultRules) -> Sniffed:
    identity = Identity(None, None, rules.success, rules.episode)
    found = Format(row_format(head, identity) or Format.JSONL_ROWS)
    return Sniffed(found, _BY[found])


def _document(head: str, path: PurePosixPath) -> Sniffed | None:
    """By its keys, and where it is too short to have any, by the path alone."""
    found = document_format(head, path.name, path.parent.name)
    return Sniffed(Format(found), _BY[Format(found)]) if found else None


def _log(stream: BinaryIO, rules: ResultRules) -> Sniffed | None:
    rates = {rules.success, *kn_aggregate.RATES}
    seen: set[str] = set()
    steps = False
    for _, text in log_text.lines(io.BytesIO(_ends(stream))):
        if log_lines.COMPLETED.search(text):
            return Sniffed(Format.LOG_LINES, "lines that count episodes")
        if log_tuple.RESULTS.match(text):
            return Sniffed(Format.LOG_TUPLE, "a printed tuple of results")
        if rank_metrics.METRICS.search(text):
            return Sniffed(Format.RANK_METRICS, "metrics of each rank")
        steps = steps or train_step.STEP.search(text) is not None
        seen.update(key for key, _ in kn_aggregate.pairs(text))
    if kn_aggregate.EPISODES in seen and rates & seen:
        return Sniffed(Format.KN_AGGREGATE, f"a rate with {kn_aggregate.EPISODES}")
    return Sniffed(Format.TRAIN_STEP, "lines that count steps of a training") if steps else None


def _ends(stream: BinaryIO) -> bytes:
    """The beginning of a file and its end, on lines of their own."""
    head = stream.read(REACH)
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(len(head), size - REACH))
    return head + b"\n" + stream.read(REACH)
