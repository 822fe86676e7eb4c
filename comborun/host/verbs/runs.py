"""Finds and removes runs and policies on a host:

    runs list ROOT...            the runs, oldest first, for each root
    runs find WANTED ROOT...     the same, and where WANTED may name one (empty: the newest), what `plan` answers for it
    runs policies                which files are policies; standard input has the patterns and the exclusions, as JSON
    runs sizes DIRECTORY...      bytes on the disk of each run
    runs remove DIRECTORY        remove a run that has ended or was stopped
    runs release DIRECTORY       a trial run that nobody looks at any more
    runs plan DIRECTORY          its id, and the number and text (packed) of its newest plan; empty if it is no run

Each answers with one JSON document.
"""

from __future__ import annotations

import contextlib
import fnmatch
import glob
import json
import math
import os
import re
import shutil
import sys
import time
import zlib
from base64 import b64encode
from collections.abc import Callable, Iterator

from comborun.host.record.deals import deal_of
from comborun.host.record.holds import Holds
from comborun.host.record.queue import rows
from comborun.host.record.run_owner import elsewhere
from comborun.host.system import files
from comborun.host.system.files import Json
from comborun.host.verb_errors import USAGE, Refusal, answered
from comborun.host.verbs.publish import STAMP, runs_below
from comborun.rules import records
from comborun.rules.deal import Deal
from comborun.rules.facts import Fact
from comborun.rules.host import Denial
from comborun.rules.names import RunLayout
from comborun.rules.run_files import newest_plan, program_digest

MOST = 2001
"""most policies: one more than a grid may have, so that too many are noticed"""
_WAIT_S = 10.0
_LEFT_S = 600.0
"""seconds after its end for which somebody may still look at a trial run"""
_LARGEST_PLAN = 64 << 20
_PROVENANCE = 4096
"""bytes at the end of a manifest that hold where the run comes from"""


def main(arguments: list[str]) -> int:
    acts: dict[str, Callable[..., object]] = {
        "list": lambda *roots: list(map(runs_of, roots)),
        "find": find,
        "policies": policies,
        "sizes": lambda *directories: list(map(size, directories)),
        "remove": remove,
        "release": lambda directory: files.append(RunLayout(directory).seen),
        "plan": newest_plan_of,
    }
    return answered("runs", lambda: acts[arguments[0]](*arguments[1:]))


def runs_of(root: str) -> list[Json]:
    return list(map(describe, runs_below(os.path.realpath(files.home(root)))))


def describe(directory: str) -> Json:
    """How a run has ended, why it can't continue, whether it is a canary of another run, and whether nobody looks at a
    trial any more.
    """
    run = RunLayout(directory)
    hold = Holds(run).look()
    held = hold.as_data() if hold.kind else {}
    if os.path.exists(run.stopped):
        held = {"kind": "stopped", "why": ""}
    canary = b'"canary_of": "' in files.tail(run.manifest, _PROVENANCE)[0]
    ended = max(map(files.changed, (run.done, run.stopped)))
    left = os.path.exists(run.seen) or (ended > 0 and time.time() - ended / 1e9 > _LEFT_S)
    deal = deal_of(run)
    found = {"directory": directory, "done": files.read(run.done), "held": held, "canary": canary, "left": left}
    return {**found, "part": _part(run, deal)} if deal and deal.boxes else found


def _part(run: RunLayout, deal: Deal) -> Json:
    """Of which run on several hosts it is a part, and what counts there of hosts that were given up."""
    queue = rows(run.queue) if deal.lost else ()
    left = [one for row in queue if deal.box_of(row.name) in deal.lost for one in row.sessions]
    counts = [records.integer(files.read(run.session_json(name)), "count") or 0 for name in left]
    kept = {"succeeded": len(left), "episodes": sum(counts)}
    return {"grid_run": deal.grid_run, "box": deal.box, "hosts": deal.boxes, "lost": [*deal.lost], "kept": kept}


def find(wanted: str, *roots: str) -> Json:
    """The laptop decides which run is meant; this is likely to be its plan, and saves a question."""
    listed = list(map(runs_of, roots))
    fitting = [one["directory"] for below in listed for one in below if _may_be(wanted, one)]
    likely = max(fitting, key=lambda directory: directory[-21:], default="")
    plan = {**newest_plan_of(likely), "program": program_of(likely)} if likely else None
    return {"runs": listed, "directory": likely, "plan": plan}


def program_of(directory: str) -> str:
    """What tells the program of a run from others: if the laptop has the same one, it need not send modules."""
    top = RunLayout(directory).program
    found = []
    for folder, _, names in os.walk(top):
        for name in names:
            if name.endswith(".py"):
                path = f"{folder}/{name}"
                content = files.read_text(path, _LARGEST_PLAN).encode("utf-8", "surrogateescape")
                found.append((os.path.relpath(path, top), content))
    return program_digest(found)


def _may_be(wanted: str, found: Json) -> bool:
    directory, canary = str(found["directory"]), bool(found["canary"])
    name = os.path.basename(directory)
    if not wanted:
        return not canary
    return directory == wanted or name.startswith(wanted) or name.endswith(f"-{wanted}")


def newest_plan_of(directory: str) -> Json:
    layout = RunLayout(files.home(directory))
    number = newest_plan(layout.directory)
    plan = files.read_text(layout.plan(number), _LARGEST_PLAN).encode("utf-8", "surrogateescape")
    text = b64encode(zlib.compress(plan)).decode()
    deal = deal_of(layout)
    dealt = json.dumps(deal.seen) if deal and deal.of else files.read_text(layout.deal, _LARGEST_PLAN)
    return {"id": files.read_line(layout.id).strip(), "number": number, "plan": text, "deal": dealt}


def policies() -> list[tuple[str, str, bool]]:
    """Pattern, path, and whether that is a folder. Patterns are read as bash reads them with globstar."""
    asked = json.load(sys.stdin)
    found: list[tuple[str, str, bool]] = []
    for pattern in asked["patterns"]:
        for path in _matching(pattern):
            if not any(fnmatch.fnmatchcase(f"/{path}", f"*/{no}") for no in asked["exclude"]):
                found.append((pattern, path, os.path.isdir(files.home(path))))
            if len(found) == MOST:
                return found
    return found


def _matching(pattern: str) -> Iterator[str]:
    """The matching paths, sorted, with the home as the user wrote it. Links that lead nowhere are left out."""
    place = files.home(pattern)
    if place != pattern:  # the path of the home may contain brackets
        place = glob.escape(files.home("~")) + pattern[1:]
    for path in sorted(glob.glob(place, recursive=True)):
        if os.path.exists(path):
            yield (f"~{path[len(files.home('~')) :]}" if pattern.startswith("~/") else path).rstrip("/")


# What is removed


def size(directory: str, within_s: float = math.inf) -> int:
    """Bytes that the files of a run take on the disk, as far as they were counted in that time."""
    total, until = 0, time.monotonic() + within_s
    for folder, _, names in os.walk(directory):
        if time.monotonic() > until:
            break
        for name in names:
            try:
                total += os.lstat(f"{folder}/{name}").st_blocks * 512
            except OSError:
                continue
    return total


def remove(directory: str) -> Json | None:
    """Remove a run that has ended or was stopped; else why it stays, as a fact. One that is gone already is removed."""
    (root, run), layout = os.path.split(directory), RunLayout(directory)
    if not os.path.exists(directory):
        return None
    if not re.search(f"{STAMP.pattern}$", run) or not os.path.exists(layout.manifest):
        raise Refusal(USAGE, Denial.NO_RUN, path=directory)
    if at := elsewhere(layout):
        return at.as_data()
    ended = os.path.exists(layout.done) or os.path.exists(layout.stopped)
    if not ended or files.lock(layout.lock, _WAIT_S) < 0:
        return Fact("run_in_use").as_data()
    files.remove_fifos(layout.fifo)
    aside = f"{root}/.incoming/removed-{run}"  # after a kill here, the next launch cleans up
    os.makedirs(f"{root}/.incoming", exist_ok=True)
    with contextlib.suppress(FileNotFoundError):  # another one was faster
        os.rename(directory, aside)
        shutil.rmtree(aside, ignore_errors=True)
    return None
