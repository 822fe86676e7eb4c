"""Sample result files in the shapes that evaluation programs write, and the reading of them in tests."""

from __future__ import annotations

import io
from pathlib import Path
from typing import Any

from comborun.attempt import EpisodeRecord
from comborun.reporter.adapters import Adapter, Context, Reading

SAMPLES = Path(__file__).parent / "samples"
OURS = Context(path="out/results", policy="flat", environment="stairs", session="stairs_flat", attempt=2)


def sample(name: str) -> bytes:
    return (SAMPLES / name).read_bytes()


def read_sample(adapter: Adapter, name: str) -> Reading:
    """As from a folder, where the file has to name its own combo."""
    return adapter(io.BytesIO(sample(name)), Context(path=name))


def read_text(adapter: Adapter, content: str | bytes, context: Context = OURS) -> Reading:
    return adapter(io.BytesIO(content.encode() if isinstance(content, str) else content), context)


def verdicts(reading: Reading) -> dict[int, str]:
    return {record.episode: record.verdict.value for record in reading.records}


def only(found: tuple[Any, ...]) -> Any:
    assert len(found) == 1, found
    return found[0]


def combos(reading: Reading) -> set[tuple[str, str]]:
    return {(record.policy, record.environment) for record in reading.records}


def reasons(reading: Reading) -> list[str]:
    return [reject.reason for reject in reading.rejects]


def complaints(reading: Reading) -> list[str]:
    return [defect.reason for defect in reading.defects]


def kinds(reading: Reading) -> set[str]:
    return {caution.kind.value for caution in reading.cautions}


def by_episode(reading: Reading) -> dict[int, EpisodeRecord]:
    return {record.episode: record for record in reading.records}
