"""Episode records: one JSON line per episode, complete or absent."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from episode import EpisodeResult


@dataclass(frozen=True)
class Identity:
    """Which episode a record is of: all that its result depends on, given the checkpoint."""

    policy: str
    environment: str
    level: float
    episode: int
    seed: int


def record(identity: Identity, result: EpisodeResult) -> str:
    """One line of episodes.jsonl. It holds no clock time, so the same episode always gives the same bytes."""
    return json.dumps({**asdict(identity), "success": result.success, **asdict(result)}) + "\n"


class EpisodeFile:
    """episodes.jsonl, opened for appending. Each line is one write, so lines of two processes never mix."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / "episodes.jsonl"
        self._file = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)

    def append(self, line: str) -> None:
        data = line.encode()
        if os.write(self._file, data) != len(data):
            raise OSError(f"{self.path}: a record was cut short, the disk may be full")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._file)
