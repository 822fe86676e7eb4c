"""`fleet ROOT...`: the runs of a host and who uses its GPUs, as one JSON document. Changes nothing.

`runs` is what `runs list` answers. `users` are the processes that hold memory of GPUs, by owner and program, without
arguments; it is empty unless a run that goes on may use GPUs. Their `run` is empty for what is no session. `now` is the
time there.
"""

from __future__ import annotations

import time

from comborun.host.system import driver, files, ownership, process
from comborun.host.verb_errors import answered
from comborun.host.verbs.runs import runs_of
from comborun.rules import records
from comborun.rules.names import RunLayout


def main(arguments: list[str]) -> int:
    return answered("fleet", lambda: look(*arguments))


def look(*roots: str) -> dict[str, object]:
    found = list(map(runs_of, roots))
    going = [RunLayout(run["directory"]).policy for runs in found for run in runs if not run["done"]]
    using = [policy for policy in going if records.integers(files.read(policy), "gpus")]
    return {"runs": found, "users": users(using[-1]) if using else [], "now": time.time()}


def users(lock: str) -> list[dict[str, object]]:
    held = driver.holders(lock)
    owners = ownership.Owners() if held else None
    return [
        {
            "gpu": int(gpu),
            "owner": process.owner(f"/proc/{pid}"),
            "program": process.read(f"{pid}/comm").decode("utf-8", "replace").strip(),
            "mib": mib,
            "run": ((owners and owners.of(pid)) or "").partition("/")[0],
        }
        for gpu, pid, mib in held
    ]
