"""The newest attempts of sessions, and the growing end of a log. Works on runs of any version.

`logs latest RUN NAME`, `logs begins RUN NAME...`, `logs rank FOLDER RANK STREAM`, `logs start LOG LINES` and
`logs left ATTEMPT LINES` answer with JSON; `logs next LOG OFFSET MOST END` with bytes, and on standard error with 1
where END is there.
"""

from __future__ import annotations

import glob
import os
import re
import sys
from itertools import islice

from comborun.host import files, refusal
from comborun.host.incoming import answered
from comborun.host.refusal import Refusal
from comborun.rules import globs

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable

_BLOCK = 1 << 16
_FILES_MOST = 1000


def main(arguments: list[str]) -> int:
    """The program's verb."""
    what, *words = arguments
    if what == "next":
        return refusal.answer("logs", _next, words)
    acts: dict[str, Callable[..., Any]] = {
        "latest": latest,
        "begins": begins,
        "rank": rank,
        "start": start,
        "left": left,
    }
    return answered("logs", lambda: acts[what](*words))


def newest(folder: str, file: str) -> int:
    """The highest attempt in a session's folder that has a file; 0 for none."""
    names = (re.fullmatch("attempt-([1-9][0-9]{0,8})", name) for name in _names(folder))
    return max((int(name[1]) for name in names if name and os.path.exists(f"{folder}/{name[0]}/{file}")), default=0)


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except OSError:
        return []


def latest(run: str, name: str) -> dict[str, Any]:
    """Of a session, or of a model server of that name."""
    for family in ("sessions", "servers"):
        folder = f"{run}/{family}/{name}"
        if os.path.isdir(folder):
            number = newest(folder, "log")
            if not number:
                raise Refusal(refusal.LACKING, f"{name} has not started yet")
            return {"number": number, "family": family, "begin": files.read_text(f"{folder}/attempt-{number}/begin")}
    raise Refusal(refusal.NO_RUN, f"there is no session {name}")


def begins(run: str, *names: str) -> dict[str, str]:
    """The begin records of the newest attempts that have one."""
    found = {}
    for name in names:
        folder = f"{run}/sessions/{name}"
        found[name] = files.read_text(f"{folder}/attempt-{newest(folder, 'begin')}/begin")
    return found


def rank(folder: str, number: str, stream: str) -> dict[str, Any]:
    """The log of one rank that a launcher started, the newest after a restart of them; and which ranks there are."""
    logs = glob.glob(f"{glob.escape(folder)}/*/attempt_*/*/{stream}.log")
    of = [(log, os.path.basename(os.path.dirname(log))) for log in logs]
    mine = sorted((log for log, name in of if name == number), key=os.path.getmtime)
    return {"found": "".join(mine[-1:]), "ranks": sorted({int(name) for _, name in of if name.isdecimal()})}


def start(log: str, lines: str) -> int:
    """Where the last lines of a log begin."""
    wanted = int(lines)
    with open(log, "rb") as file:
        at = file.seek(0, os.SEEK_END)
        if not wanted:
            return at
        block, first = b"", True
        while at:
            size = min(at, _BLOCK)
            at -= size
            file.seek(at)
            block = file.read(size)
            end = len(block) - 1 if first and block.endswith(b"\n") else len(block)
            first = False
            while (cut := block.rfind(b"\n", 0, end)) >= 0:
                wanted -= 1
                if not wanted:
                    return at + cut + 1
                end = cut
        return 0


def left(attempt: str, lines: str) -> dict[str, Any]:
    """What an attempt has left: the end of its log, and its files with their bytes."""
    log, output = f"{attempt}/log", f"{attempt}/out"
    with open(log, "rb") as file:
        file.seek(max(start(log, lines), os.path.getsize(log) - _BLOCK))
        told = file.read(_BLOCK).decode("utf-8", "replace")
    found = islice(globs.matching(output, "**"), _FILES_MOST)
    return {"log": told, "files": [(path, os.lstat(f"{output}/{path}").st_size) for path in sorted(found)]}


def _next(words: list[str]) -> int:
    """What comes after an offset, as far as there is room for it."""
    log, offset, most, end = words
    ended = os.path.exists(end)
    with open(log, "rb") as file:
        file.seek(int(offset))
        sys.stdout.buffer.write(file.read(int(most)))
    sys.stdout.buffer.flush()
    sys.stderr.write(str(int(ended)))
    return 0
