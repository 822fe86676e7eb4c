"""`sample RUN`: the resources that the sessions of a run hold now, for `combo calibrate`. Changes nothing.

One JSON document: `hertz`, and by session and attempt `kib` (main memory that nobody else has), `ticks` (CPU time so
far, 1/hertz s) and `gpus` (index -> MiB, as the driver names its processes).
"""

from __future__ import annotations

import json
import os
import sys

from comborun.host.system import driver, files, ownership
from comborun.rules.names import RunLayout


def main(arguments: list[str]) -> int:
    run_id = files.read_line(RunLayout(arguments[0] if arguments else ".").id)
    if not run_id:
        return 66
    json.dump({"hertz": os.sysconf("SC_CLK_TCK"), "uses": uses(run_id)}, sys.stdout)
    return 0


def uses(run_id: str) -> dict[str, object]:
    """`name/attempt` -> the use of each attempt of a run."""
    found = {marker: use for marker, use in ownership.uses().items() if marker.startswith(f"{run_id}/")}
    on_gpus = driver.holders() if found else []
    answer: dict[str, object] = {}
    for marker, use in found.items():
        gpus: dict[str, int] = {}
        for index, pid, mib in on_gpus:
            if pid in use.pids:
                gpus[index] = gpus.get(index, 0) + mib
        answer[marker.partition("/")[2]] = {"kib": use.kib, "ticks": use.ticks, "gpus": gpus}
    return answer
