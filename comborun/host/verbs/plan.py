"""`plan RUN`: the newest plan of a run. Works on runs of any version.

Prints the id, the number of the plan and the plan. 66: no run directory.
"""

from __future__ import annotations

import sys

from comborun.host.system import files
from comborun.host.verb_errors import NO_RUN, Refusal, answer
from comborun.rules.names import RunLayout
from comborun.rules.run_files import newest_plan


def main(arguments: list[str]) -> int:
    return answer("plan", _plan, arguments)


def _plan(arguments: list[str]) -> int:
    run = RunLayout(files.home(arguments[0]))
    number = newest_plan(run.directory)
    name, plan = files.read_line(run.id), files.read_bytes(run.plan(number), files.TABLE_MOST)
    if not name or not plan:
        raise Refusal(NO_RUN, f"{run.directory} is not a run directory")
    files.write_all(sys.stdout.fileno(), f"{name}\n{number}\n".encode("utf-8", "surrogateescape") + plan)
    return 0
