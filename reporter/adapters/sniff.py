"""Which format a file is of, told by the shape of what stands in it and of its path; never by a program's name.

Where nothing fits, the file is no result of a known kind. That is no fault: folders hold other things too.
"""

from __future__ import annotations

import io
import json
import os
import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO

from reporter.adapters import (
    completion_rows,
    eval_info,
    job_rows,
    json_list_last,
    json_per_file,
    kn_aggregate,
    log_lines,
    log_text,
    log_tuple,
    rank_metrics,
    train_step,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from comborun.results import ResultRules

HEAD = 1 << 16
"""bytes from the beginning: enough for a row or the keys of a document"""
REACH = 1 << 20
"""bytes from the beginning and from the end of a log: some tell everything in their last lines"""

LINES, DOCUMENTS, LOGS = {".jsonl", ".ndjson"}, {".json"}, {".log", ".txt", ".out", ".err"}
LOG_NAMES = {"log", "stdout", "stderr", "nohup"}
"""logs without a suffix"""


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


_SUMMARY = re.compile(r"summary(?:_all)?\.json")
_KEY = re.compile(r'"(\w{1,64})"\s*:')


def candidate(path: str) -> bool:
    """Whether a file's name lets it hold results; what is packed is told and not read."""
    name = PurePosixPath(path.removesuffix(".gz"))
    return name.suffix.lower() in LINES | DOCUMENTS | LOGS or name.name in LOG_NAMES


def sniff(stream: BinaryIO, path: str, rules: ResultRules) -> Sniffed | None:
    """What a file is, from plain text; the stream is left anywhere."""
    suffix = PurePosixPath(path).suffix.lower()
    if suffix in LINES:
        return _rows(stream.read(HEAD), rules)
    if suffix in DOCUMENTS:
        return _document(stream.read(HEAD).decode("utf-8", "replace").lstrip(), PurePosixPath(path))
    return _log(stream, rules) if candidate(path) else None


def _rows(head: bytes, rules: ResultRules) -> Sniffed:
    keys = next((row.keys() for row in _objects(head)), set[str]())
    if rules.success in keys and rules.episode in keys:
        return Sniffed(Format.JSONL_ROWS, f"rows with {rules.episode} and {rules.success}")
    if {completion_rows.SUCCESS, completion_rows.EPISODE} <= keys:
        return Sniffed(Format.COMPLETION_ROWS, f"rows with {completion_rows.EPISODE} and {completion_rows.SUCCESS}")
    mark = next((key for key in job_rows.MARKS if key in keys), None)
    if job_rows.JOB in keys and mark:
        return Sniffed(Format.JOB_ROWS, f"rows with {job_rows.JOB} and {mark}")
    return Sniffed(Format.JSONL_ROWS, "one object per line")


def _objects(head: bytes) -> Iterator[dict[str, Any]]:
    """Those at the beginning of a file that can be read."""
    for line in head.splitlines()[:100]:
        try:
            value = json.loads(line)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict) and value:
            yield value


def _document(head: str, path: PurePosixPath) -> Sniffed | None:
    """By its keys, and where it is too short to have any, by the path alone."""
    keys = set(_KEY.findall(head))
    if _SUMMARY.fullmatch(path.name) or {"total_num_tasks", "success_rate"} <= keys:
        return Sniffed(Format.SUMMARY, "a summary of other files")
    if json_per_file.FILE.fullmatch(path.name) and not head.startswith("["):
        return Sniffed(Format.JSON_PER_FILE, "an episode's number in its name")
    if json_list_last.FOLDER.fullmatch(path.parent.name) and _steps(head, keys):
        return Sniffed(Format.JSON_LIST_LAST, "a list of steps in an episode's folder")
    mark = next((key for key in (eval_info.PER_TASK, eval_info.PER_EPISODE, "pc_success") if key in keys), None)
    return Sniffed(Format.EVAL_INFO, f"a document with {mark}") if mark and head.startswith("{") else None


def _steps(head: str, keys: set[str]) -> bool:
    return not head or (head.startswith("[") and (not keys or "step" in keys))


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
