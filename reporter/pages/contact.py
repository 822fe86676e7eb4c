"""A contact sheet: the last frames of failed episodes, with links to their videos. PyAV reads them."""

from __future__ import annotations

import os
from base64 import b64encode
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import islice, zip_longest
from pathlib import Path
from typing import Any
from urllib.parse import quote

from comborun.model.attempt import EpisodeRecord, Verdict
from comborun.model.work import grouped
from comborun.reporter.text import combo_name
from comborun.text import several

MOST = 48
WIDTH = 200
FRAMES = 900
"""most frames that are decoded to find the last one"""


@dataclass(frozen=True)
class Picture:
    name: str
    episode: int
    video: str
    jpeg: str
    """as base64; empty where no frame could be read"""


@dataclass(frozen=True)
class ContactSheet:
    pictures: tuple[Picture, ...]
    """none where no video is here"""
    note: str


def contact_sheet(directory: Path, episodes: Sequence[EpisodeRecord], output: Path) -> ContactSheet | None:
    """Of the failed and errored episodes with a video in `directory`; None if none names one."""
    named = [record for record in episodes if "video" in record.names[1] and record.verdict is not Verdict.SUCCESS]
    filmed = [record for record in named if isinstance(record.extra["video"], str)]
    if not filmed:
        return None
    there = [record for record in filmed if _inside(directory, str(record.extra["video"]))]
    shown = _spread(there)[:MOST]
    pictures = []
    for record in shown:
        path = directory / str(record.extra["video"])
        link = quote(os.path.relpath(path.resolve(), output.resolve()))
        jpeg = b64encode(last_frame(path)).decode()
        pictures.append(Picture(combo_name(*record.combo), record.episode, link, jpeg))
    away, rest = len(filmed) - len(there), len(there) - len(shown)
    notes = (
        f"{several(rest, 'failed episode')} with a video not shown." if rest else "",
        f"{several(away, 'video')} not on this machine: `combo report RUN --videos failed` copies those that the run's"
        " host has."
        if away
        else "",
        "" if _av() or not shown else "Without frames, since PyAV is not installed (pip install av).",
    )
    return ContactSheet(tuple(pictures), " ".join(filter(None, notes)))


def _inside(directory: Path, video: str) -> bool:
    """A record may name anything. Only files below the directory are opened."""
    path = (directory / video).resolve()
    return path.is_relative_to(directory.resolve()) and path.is_file()


def _spread(records: Sequence[EpisodeRecord]) -> list[EpisodeRecord]:
    """One of each combo, then the next of each, and so on."""
    by_combo = grouped(records, lambda record: record.combo)
    return [record for round_ in zip_longest(*by_combo.values()) for record in round_ if record is not None]


def last_frame(path: Path) -> bytes:
    """As a small JPEG; empty if it can't be decoded."""
    if not (av := _av()):
        return b""
    try:
        with av.open(str(path)) as container:
            stream = container.streams.video[0]
            if container.duration:  # microseconds: to the key frame before the last second
                container.seek(max(0, container.duration - 1_000_000))
            last = deque(islice(container.decode(stream), FRAMES), maxlen=1)
            return _jpeg(av, last[0]) if last else b""
    except (av.FFmpegError, OSError, ValueError, IndexError):
        return b""


def _jpeg(av: Any, frame: Any) -> bytes:
    height = max(2, round(WIDTH * frame.height / frame.width / 2) * 2)
    codec = av.CodecContext.create("mjpeg", "w")
    codec.width, codec.height, codec.pix_fmt, codec.time_base = WIDTH, min(height, 4 * WIDTH), "yuvj420p", Fraction(1)
    small = frame.reformat(width=codec.width, height=codec.height, format="yuvj420p")
    small.pts = 0
    return b"".join(bytes(packet) for packet in (*codec.encode(small), *codec.encode(None)))


def _av() -> Any:
    try:
        import av
    except ImportError:
        return None
    return av
