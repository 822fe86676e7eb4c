"""Finds the newest attempts of sessions and reads their growing logs. Works on runs of any version.

`logs latest RUN NAME...` and `logs rank FOLDER RANK STREAM` answer with JSON, `logs read RUN LINES MOST` with what is
new in many logs. As a verb of the run's own program, the run stands before that again.
"""

from __future__ import annotations

import glob
import json
import os
import sys
from collections.abc import Callable

from comborun.host import verb_errors
from comborun.host.system import files
from comborun.host.verb_errors import answered
from comborun.rules.names import SERVERS, RunLayout
from comborun.rules.run_files import attempts_of

_TAIL = 4 << 20


def main(arguments: list[str]) -> int:
    what, *words = arguments[arguments[0].startswith("/") :]
    if what == "read":
        return verb_errors.answer("logs", _read, words)
    acts: dict[str, Callable[..., object]] = {"latest": latest, "rank": rank}
    return answered("logs", lambda: acts[what](*words))


def newest(run: RunLayout, name: str) -> int:
    """The highest attempt that has a log; 0 for none."""
    return max((one for one in attempts_of(run, name) if os.path.exists(run.attempt(name, one).log)), default=0)


def _name(run: RunLayout, name: str) -> str:
    """The name of a session or of a model server, as `rules/names.py` has it."""
    return SERVERS + name if os.path.isdir(run.session(SERVERS + name)) else name


def latest(run: str, *names: str) -> dict[str, object]:
    """The newest attempts of sessions and model servers: number (0: none has begun), family, begin record."""
    found: dict[str, object] = {}
    layout = RunLayout(run)
    for name in names:
        known = _name(layout, name)
        number = newest(layout, known)
        begin = files.read_text(layout.attempt(known, number).begin)
        found[name] = {"number": number, "family": "sessions" if known == name else "servers", "begin": begin}
    return found


def rank(folder: str, number: str, stream: str) -> dict[str, object]:
    """The log of one rank, of the launcher's newest start, and the list of ranks."""
    logs = glob.glob(f"{glob.escape(folder)}/*/attempt_*/*/{stream}.log")
    of = [(log, os.path.basename(os.path.dirname(log))) for log in logs]
    mine = sorted((log for log, name in of if name == number), key=os.path.getmtime)
    return {"found": "".join(mine[-1:]), "ranks": sorted({int(name) for _, name in of if name.isdecimal()})}


def start(log: str, lines: str) -> int:
    """The offset of the last lines of a log."""
    with open(log, "rb") as file:
        size = file.seek(0, os.SEEK_END)
        first = file.seek(max(0, size - _TAIL))
        data = file.read()
    end = len(data) - data.endswith(b"\n")
    for _ in range(int(lines)):
        end = data.rfind(b"\n", 0, end)
        if end < 0:
            return first
    return first + end + 1 if int(lines) else size


def _read(words: list[str]) -> int:
    """What is new in logs: a line of JSON with [name, attempt, offset, bytes, has it ended] of each, then the bytes.

    Standard input has [name, attempt, offset, log] of each. Without a log it is that of the newest attempt, from its
    beginning where that is another one; an offset of -1 means the last lines.
    """
    run, lines, most = RunLayout(words[0]), words[1], int(words[2])
    head, pieces = [], []
    for name, attempt, offset, log in json.load(sys.stdin):
        known = _name(run, name)
        number = attempt if log else newest(run, known)
        if not number:
            head.append([name, 0, offset, 0, False])
            continue
        ended = os.path.exists(run.attempt(known, number).end)  # checked first: the last output is read then, too
        path = log or run.attempt(known, number).log
        at = 0 if attempt not in (0, number) else start(path, lines) if offset < 0 else offset
        with open(path, "rb") as file:
            file.seek(at)
            pieces.append(file.read(most))
        most -= len(pieces[-1])
        head.append([name, number, at, len(pieces[-1]), ended])
    sys.stdout.buffer.write(json.dumps(head).encode() + b"\n" + b"".join(pieces))
    return 0
