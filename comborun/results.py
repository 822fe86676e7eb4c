"""Where a session's records are, how they are written, and which of their fields say what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Source = Literal["output", "log"]
"""of records: files below the output folder, or the log"""
FORMATS = (
    *("jsonl-rows", "completion-rows", "job-rows", "json-per-file", "json-list-last", "eval-info"),
    *("log-lines", "log-tuple", "kn-aggregate", "rank-metrics", "train-step", "filename-encoded"),
)
"""how programs write their records; each is read by a module of its own in reporter/adapters"""
ROWS = {"", "jsonl-rows", "completion-rows", "job-rows"}
"""formats with one record a line, which the host can count"""


@dataclass(frozen=True)
class ResultRules:
    """Where a session's records are and which of their fields say what."""

    files: tuple[str, ...] = ("**/*.jsonl",)
    """globs below the output folder; empty when the program leaves no records and its exit code has to do"""
    success: str = "success"
    episode: str = "episode"
    metrics: tuple[str, ...] = ()
    """the fields to report, in this order; empty: every numeric field"""
    format: str = ""
    """one of FORMATS; empty: told by what stands in each file"""
    source: Source = "output"
    videos: tuple[str, ...] = ()
    """globs below the output folder of what shows its episodes; no part of the work"""

    @property
    def told(self) -> bool:
        """Whether the program leaves records at all."""
        return bool(self.files) or self.source == "log"

    @property
    def lines(self) -> bool:
        """Whether the host can count them; of a format that is not named that is taken for granted."""
        return bool(self.files) and self.format in ROWS
