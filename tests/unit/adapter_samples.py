"""Sample result files in the shapes that evaluation programs write, and the reading of them in tests."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from comborun.model.attempt import EpisodeRecord
from comborun.reporter.records.files import read
from comborun.reporter.records.reading import Context, Reading

SAMPLES = Path(__file__).parent / "samples"
OURS = Context(path="out/results", policy="flat", environment="stairs", session="stairs_flat", attempt=2)


def sample(name: str) -> bytes:
    return (SAMPLES / name).read_bytes()


def read_sample(format_: str, name: str) -> Reading:
    """As from a folder, where the file has to name its own combo."""
    return read_text(format_, sample(name), Context(path=name))


def read_text(format_: str, content: str | bytes, context: Context = OURS) -> Reading:
    """What a file of this format says."""
    asked = replace(context, rules=context.rules.replace(format=format_))
    return read(io.BytesIO(content.encode() if isinstance(content, str) else content), asked)


def verdicts(reading: Reading) -> dict[int, str]:
    return {record.episode: record.verdict.value for record in reading.records}


def only(found: Sequence[Any]) -> Any:
    assert len(found) == 1, found
    return found[0]


def combos(reading: Reading) -> set[tuple[str, str]]:
    return {(record.policy, record.environment) for record in reading.records}


def reasons(reading: Reading) -> list[str]:
    return [reject.reason for reject in reading.rejects]


def complaints(reading: Reading) -> list[str]:
    return [defect.reason for defect in reading.defects]


def by_episode(reading: Reading) -> dict[int, EpisodeRecord]:
    return {record.episode: record for record in reading.records}
