"""Which videos an attempt left, whether each can be played, and which episode its name tells. Pure.

An mp4 whose program was ended lacks its index, the `moov` box, and plays nowhere.
"""

from __future__ import annotations

import re
import struct

from comborun.rules.facts import Fact
from comborun.rules.patterns import late

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, BinaryIO, Iterable, Sequence, Tuple

    Row = Tuple[int, str, str]
    """bytes, a word of FAULTS, and the path"""

BOXES_AT_MOST = 10_000
"""outermost boxes; a finished video has a handful"""
WHOLE, EMPTY, CUT, NO_MOOV, NO_MP4 = "ok", "empty", "cut", "no_moov", "no_mp4"
FAULTS = {
    WHOLE: "",
    EMPTY: "empty",
    CUT: "cut off within its moov box",
    NO_MOOV: "no moov box: its program was ended before it closed the file",
    NO_MP4: "no mp4 file",
}
"""word of videos.tsv -> the fault in words"""
_TO_THE_END, _LONG = 0, 1
SUFFIXES = (".mp4", ".webm", ".avi", ".mkv", ".gif")
_NUMBERED = (
    (late(r".*episode_(?P<number>\d{1,15})/video.*"), 1),
    (late(r".*--episode=(?P<number>\d{1,15})--success=(?P<outcome>True|False)--task=[^/]*"), 1),
    (late(r"(?:.*/)?video_episode_(?P<number>\d{1,15})_steps_\d+"), 1),
    (late(r"(?:.*/)?eval_episode_(?P<number>\d{1,15})"), 0),
    (
        late(
            r"(?:.*/)?(?:(?P<before>success|failure)[_-])?(?:[^/]*[_-])?ep(?P<number>\d{1,15})"
            r"(?:[_-](?P<outcome>success|failure))?"
        ),
        0,
    ),
)
"""paths of one episode's video without suffix, and the number of the first. `episode_7` is missing: programs count
differently"""
_PER_TASK = late(r"rollout_.+_(?:success|failure)\.\w+")
"""names that several episodes share: the last one stays"""
APART, NOT_NAMED = "videos_of_no_episode", "videos_not_named"
_SHOWN = 3


def is_video(path: str) -> bool:
    return path.lower().endswith(SUFFIXES)


def of_task(path: str) -> bool:
    """Whether its name is that of a task, so that each of its episodes overwrites it."""
    return bool(_PER_TASK.fullmatch(path.rpartition("/")[2]))


def numbered(path: str) -> tuple[int, str] | None:
    """The episode that a path tells, counted from 0, and its outcome in small letters, or empty."""
    stem = path[: -len(suffix)] if (suffix := _suffix(path)) else path
    for pattern, first in _NUMBERED:
        if match := pattern.fullmatch(stem):
            named = match.groupdict()
            return int(match["number"]) - first, (named.get("outcome") or named.get("before") or "").lower()
    return None


def _suffix(path: str) -> str:
    name = path.rpartition("/")[2]
    return name[name.rindex(".") :] if "." in name[1:] else ""


def apart(found: int, paths: Sequence[str]) -> Fact | None:
    """That these of the videos found show no episode that is known; None of none."""
    return Fact(APART, videos=len(paths), of=found, some=list(paths[:_SHOWN])) if paths else None


def told(there: Iterable[str], taken: Sequence[str], rows: Iterable[Any]) -> Fact | None:
    """What keeps videos of an attempt from being shown beside their episodes; None if nothing does.

    `there`: its files; `taken`: those that the grid's patterns of videos find; `rows`: some of its rows, which may name
    videos.
    """
    if left := [path for path in there if is_video(path) and path not in taken]:
        pattern = f"**/*{_suffix(left[0])}"
        keys = [] if taken else [{"key": "videos", "value": pattern}]
        return Fact(NOT_NAMED, videos=len(left), some=left[:_SHOWN], **({"keys": keys} if keys else {}))
    from comborun.rules.results.filename_results import FILE  # only a trial asks

    named = {
        one for row in rows if isinstance(row, dict) for key in ("video", "videos") for one in _texts(row.get(key))
    }
    claimed = {one.rpartition("/")[2] for one in named}
    others = [path for path in taken if not (numbered(path) or of_task(path))]
    names = {path.rpartition("/")[2]: path for path in others}
    return apart(len(taken), [path for name, path in names.items() if name not in claimed and not FILE.fullmatch(name)])


def _texts(value: object) -> list[str]:
    return [one for one in (value if isinstance(value, list) else [value]) if isinstance(one, str)]


def fault(name: str, stream: BinaryIO, size: int) -> str:
    """The fault of a video of `size` bytes, as a word of FAULTS. Only mp4 files are checked."""
    if not size:
        return EMPTY
    return _mp4(stream, size) if name.lower().endswith(".mp4") else WHOLE


def _mp4(stream: BinaryIO, size: int) -> str:
    position, first = 0, b""
    for _ in range(BOXES_AT_MOST):
        stream.seek(position)
        box = _box(stream.read(16))
        if box is None:
            break
        length, kind = box
        first = first or kind
        if kind == b"moov":
            return WHOLE if length == _TO_THE_END or position + length <= size else CUT
        if length == _TO_THE_END or position + length >= size:
            break
        position += length
    return NO_MOOV if first == b"ftyp" else NO_MP4


def _box(header: bytes) -> tuple[int, bytes] | None:
    """Length and kind of a box, or None."""
    if len(header) < 8:
        return None
    length, kind = struct.unpack(">I4s", header[:8])
    if length == _LONG:
        if len(header) < 16:
            return None
        length = struct.unpack(">Q", header[8:])[0]
    return (length, kind) if length == _TO_THE_END or length >= 8 else None


def render(rows: Iterable[Row]) -> str:
    """The text of videos.tsv. Names that hold a line break or TAB have no line."""
    return "".join(f"{size}\t{word}\t{path}\n" for size, word, path in rows if not re.search("[\x00-\x1f\x7f]", path))


def parse(text: str) -> list[Row]:
    """The rows of a videos.tsv. Lines that are cut off are skipped."""
    rows = (line.split("\t") for line in text.split("\n"))
    return [
        (int(row[0]), row[1], row[2])
        for row in rows
        if len(row) == 3 and row[0].isdecimal() and row[1] in FAULTS and row[2]
    ]
