"""`publish SHA256`: puts a run directory into place as a whole, or reports the existing run of this grid.

What a launch sends is staged below the root, synced to the disk, and renamed into place. Standard input holds root,
grid, digest, mode and the files. A mode is resume, new, or after:RUN, which makes another run unless RUN has a
successor. An existing run is not changed.
"""

from __future__ import annotations

import json
import os
import random
import re
import shutil
import sys
import tempfile
import time
import zlib
from collections.abc import Iterable
from contextlib import AbstractContextManager

from comborun.host.record.deals import deal_of
from comborun.host.record.holds import Holds, over
from comborun.host.record.launch_environment import difference
from comborun.host.record.run_owner import elsewhere
from comborun.host.system import files, process
from comborun.host.system.files import Json
from comborun.host.verb_errors import Refusal, answered, holding, unusable, unwritable
from comborun.rules import globs, records
from comborun.rules.host import Denial
from comborun.rules.names import RUN, AttemptLayout, RunLayout
from comborun.rules.run_files import attempts_of, newest_plan

STAMP = re.compile(r"-[0-9]{8}T[0-9]{6}Z-[0-9a-f]{4}")
_LAST = 999_999_999
_DAY_S = 86400.0
_WAIT_S = 30.0
_SYNCS_AT_ONCE = 8
"""parallel syncs share commits of the file system's journal: 800 folders take 0.1 s instead of 0.4"""


def main(arguments: list[str]) -> int:
    return answered("publish", lambda: publish(received(arguments[0])))


def publish(order: Json) -> Json:
    """Under the root's lock: describe the grid's run, or rename the new one into place."""
    with Staging(order["root"]) as staging, staging.locked():
        found = run_of(staging.root, order["grid"], order["digest"], order.get("part"))
        if found and order["mode"] not in ("new", f"after:{os.path.basename(found)}"):
            if flaw := unreadable(found):
                raise Refusal(70, Denial.RUN_UNREADABLE, run=found, **flaw)
            return describe(found, order["digest"])
        staging.fill(order["files"])
        return _place(staging, order)


def runs_below(root: str, grid: str = "") -> list[str]:
    """The run directories below a root, oldest first, by their order and not by the clock."""
    try:
        names = os.listdir(root)
    except OSError:
        return []
    found = []
    for name in names:
        stamp = STAMP.search(name, max(0, len(name) - 22))
        if stamp and stamp.end() == len(name) and (not grid or name[: stamp.start()] == grid):
            directory = f"{root}/{name}"
            if os.path.exists(RunLayout(directory).manifest):
                found.append((sequence(directory), name[stamp.start() :], directory))
    return [directory for _, _, directory in sorted(found)]


def sequence(directory: str) -> int:
    """The number of a run in its root, from 1; 0 without one."""
    text = files.read_text(RunLayout(directory).sequence, 64).strip()
    return int(text) if re.fullmatch("[0-9]{1,9}", text) else 0


def run_of(root: str, grid: str, digest: str, part: dict[str, str] | None = None) -> str:
    """The newest run of a grid's work, else the newest of its name; empty without any.

    `part`: only a part of a grid run on several boxes: that of `grid_run`, or any for its `first` box.
    Without it such parts don't count: an ordinary launch would resume a part only.
    """
    there = [run for run in runs_below(root, grid) if _is_part(run, part)]
    same = [run for run in there if files.read_line(RunLayout(run).digest) == digest]
    return "".join((same or there)[-1:])


def _is_part(directory: str, part: dict[str, str] | None) -> bool:
    deal = deal_of(RunLayout(directory))
    if deal is None or part is None:
        return deal is None and part is None
    return bool(part["first"]) or deal.grid_run == part["grid_run"]


def unreadable(directory: str) -> Json:
    """The `path` of what a run lacks to continue, and its `error`, or whether it is `empty`; nothing if it is complete,
    or an older comborun made it: its start says so.
    """
    if not os.path.isdir(RunLayout(directory).program):
        return {}
    wanted = [RUN.digest, RUN.manifest, RUN.plan(newest_plan(directory)), RUN.queue, RUN.policy]
    for path in wanted:
        try:
            with open(f"{directory}/{path}", "rb") as file:
                text = file.read() if path.endswith(".json") else file.read(1)
            if text[:1] in (b"", b"\0"):
                return {"path": path, "empty": True}
            if path.endswith(".json"):
                json.loads(text)
        except OSError as error:
            return {"path": path, "error": error.strerror}
        except (ValueError, RecursionError):
            return {"path": path}
    return {}


def describe(directory: str, digest: str) -> Json:
    layout = RunLayout(directory)
    number, own = newest_plan(directory), files.read_line(layout.digest)
    done, hold, ended = files.read(layout.done), Holds(layout).look(), over(layout)
    found = elsewhere(layout)
    other = None if process.named(files.read(layout.dispatcher)) else difference(layout)
    whole = ended and all(done.get(word, "0") == "0" for word in ("lost", "cancelled"))
    state = "changed" if own != digest else "finished" if whole else "resumed"
    return {
        "state": state,
        "run": os.path.basename(directory),
        "directory": directory,
        "number": number,
        "digest": own,
        "ended": ended or os.path.exists(layout.stopped),
        "whole": whole,
        "held": bool(hold.kind) or os.path.exists(layout.quarantine),
        "hold": hold.kind,
        "reason": hold.reason and hold.reason.as_data(),
        "why": hold.why,
        "deal": files.read_text(layout.deal, _LAST),
        "started": _started(layout),
        "elsewhere": found and found.as_data(),
        "environment": other and other.as_data(),
        "plan": files.read_text(layout.plan(number), _LAST),
    }


def _started(run: RunLayout) -> list[str]:
    """Sessions that have left records or files, whether they still run or not."""
    attempts = (
        (name, [run.attempt(name, one) for one in attempts_of(run, name)]) for name in files.entries(run.sessions)
    )
    return [name for name, found in attempts if any(map(_has_left, found))]


def _has_left(at: AttemptLayout) -> bool:
    """Whether an attempt has left anything: by its counts while it runs, else by its end record and its files."""
    end = files.read(at.end)
    if not end and (counts := files.read(at.counts)):
        counted = any(counts.get(key, "0") != "0" for key in ("records", "rows"))
        return counted or bool(records.facts(counts)) or counts.get("countable") == "0"
    folders = () if globs.leads_up(at.output) else os.walk(at.output)
    written = (f"{folder}/{name}" for folder, _, names in folders for name in names)
    return bool(end and end.get("records") != "0") or any(map(files.size, written))


def _place(staging: Staging, order: Json) -> Json:
    """Rename the staged folder when all of it is on the disk."""
    number = 1 + max(map(sequence, runs_below(staging.root)), default=0)
    run = _name(staging.root, order["grid"])
    directory = f"{staging.root}/{run}"
    texts = {RUN.id: run, RUN.digest: order["digest"], RUN.sequence: str(number)}
    texts[RUN.python] = os.path.realpath(sys.executable)
    staging.fill((path, f"{text}\n", False) for path, text in texts.items())
    staging.to_disk()
    try:
        os.rename(staging.folder, directory)
        to_disk([staging.root])
    except OSError as error:
        raise unwritable(directory, error) from None
    return {"state": "new", "run": run, "directory": directory}


def _name(root: str, grid: str) -> str:
    """A free name for a run."""
    while True:
        run = f"{grid}-{time.strftime('%Y%m%dT%H%M%SZ', time.gmtime())}-{random.randrange(65536):04x}"
        if not os.path.exists(f"{root}/{run}"):
            return run


# What was sent


def received(digest: str) -> Json:
    """The compressed JSON document on standard input, checked by its SHA-256."""
    import hashlib

    data = sys.stdin.buffer.read()
    if hashlib.sha256(data).hexdigest() != digest:
        raise Refusal(76, Denial.DATA_CHANGED)
    found: Json = json.loads(zlib.decompress(data))
    return found


def to_disk(paths: Iterable[str]) -> None:
    """Sync files and folders to the disk. A synced folder holds its names. Raises OSError."""
    from concurrent.futures import ThreadPoolExecutor  # slow to import, and no look needs it

    all_of_them = list(paths)
    try:
        with ThreadPoolExecutor(_SYNCS_AT_ONCE) as pool:
            for _ in pool.map(files.sync, all_of_them):
                pass
    except RuntimeError:  # no thread can start: `ulimit -u`
        for path in all_of_them:
            files.sync(path)


class Staging:
    """A folder below `<root>/.incoming`; it is removed at the end unless it was renamed."""

    def __init__(self, root: str) -> None:
        root = files.home(root)
        try:
            os.umask(0o022)
            os.makedirs(f"{root}/.incoming", exist_ok=True)
            self.root = os.path.realpath(root)
            _tidy(f"{self.root}/.incoming")
            self.folder = tempfile.mkdtemp(dir=f"{self.root}/.incoming")
            os.chmod(self.folder, 0o755)  # noqa: S103 - as folders of a run are
        except OSError as error:
            raise unusable(root, error) from None

    def __enter__(self) -> Staging:  # noqa: PYI034 - Python 3.8 has no Self
        return self

    def __exit__(self, *_: object) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)

    def fill(self, entries: Iterable[tuple[str, str, bool]]) -> None:
        """Write files: path below the folder, text, whether it is a program."""
        place = self.folder
        made = {place}
        try:
            for path, text, program in entries:
                place = f"{self.folder}/{path}"
                parent = os.path.dirname(place)
                if parent not in made:
                    os.makedirs(parent, exist_ok=True)
                    made.add(parent)
                descriptor = os.open(place, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o755 if program else 0o644)
                try:
                    files.write_all(descriptor, text.encode("utf-8", "surrogateescape"))
                finally:
                    os.close(descriptor)
        except OSError as error:
            raise unwritable(place, error) from None

    def to_disk(self) -> None:
        """Sync everything in it to the disk."""
        paths = [self.folder]
        for folder, folders, names in os.walk(self.folder):
            paths += [f"{folder}/{name}" for name in (*folders, *names)]
        try:
            to_disk(paths)
        except OSError as error:
            raise unwritable(self.folder, error) from None

    def locked(self) -> AbstractContextManager[None]:
        """Hold the root's lock. Raises Refusal."""
        return holding(f"{self.root}/.lock", _WAIT_S)


def _tidy(folder: str) -> None:
    """Remove the remains of launches that were killed more than a day ago."""
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.stat(follow_symlinks=False).st_mtime < time.time() - _DAY_S:
                shutil.rmtree(entry.path, ignore_errors=True)
