"""Asking the host: one round trip per question."""

from __future__ import annotations

from dataclasses import dataclass

from comborun.errors import HostError, UserError
from comborun.monitor.answer.snapshot import Snapshot, parse_snapshot
from comborun.monitor.history import Known
from comborun.plan import Plan
from comborun.remote import program
from comborun.remote.transport import Transport
from comborun.rules.names import AFTER

TAIL = 400
"""bytes of a log's end that are asked for: enough for a line and what a progress bar wrote over it"""
LONG_TAIL = 4096
"""the same where a pattern looks for progress in it; the probe gives less when many sessions run"""
LONGEST_TAIL = 16384
"""and where that is a bar that starts again: it is drawn seldom, and the bars below it often"""
ANSWER_S = 20.0
"""How long a whole look may take. A link that is cut in the middle of an answer is noticed after this time."""

_LOAD = """
case $1 in "~/"*) run=$HOME/${1#"~/"} ;; *) run=$1 ;; esac
cd -- "$run" 2>/dev/null && [[ -e plan-1.json ]] || exit 66
for ((n = 1; n < 100000; n++)); do [[ -e plan-$((n + 1)).json ]] || break; done
cat -- id 2>/dev/null && printf '%s\\n' "$n" && cat -- "plan-$n.json" 2>/dev/null || exit 66
"""


@dataclass(frozen=True)
class RunView:
    """A run as a watcher knows it: what was planned, and where it is."""

    id: str
    host: str
    directory: str
    plan: Plan
    """the newest: a grid that was changed amends its run"""
    number: int = 1
    """of that plan"""

    @property
    def sessions(self) -> tuple[str, ...]:
        """Names in the order of the probe: the queue's, then `after`."""
        return (*(session.name for session in self.plan.sessions), *((AFTER,) if self.plan.after else ()))

    @property
    def tail(self) -> int:
        """How many bytes of a log's end a watcher wants to see."""
        rules = [session.progress for session in self.plan.sessions]
        if any(one.each for one in rules):
            return LONGEST_TAIL
        return LONG_TAIL if any(one.pattern for one in rules) else TAIL


def observe(transport: Transport, run_dir: str, known: Known, tail: int = TAIL) -> Snapshot:
    """Look at a run once. Raises HostError when the host can't be reached or gives no answer that can be read."""
    asked = ",".join(map(str, known))
    answer = program.run(transport, run_dir, "probe", asked, str(tail), timeout=ANSWER_S)
    if answer.code == program.NO_RUN:  # its file system may come back
        raise HostError(f"the folder {run_dir} on {transport.host} is gone")
    program.refuse(transport, run_dir, answer)
    if answer.code != 0:
        complaint = answer.complaint.rpartition("\n")[2] or f"exit code {answer.code}"
        raise HostError(f"the probe of {run_dir} on {transport.host} failed: {complaint}")
    return parse_snapshot(answer.stdout)


def load_run(transport: Transport, run_dir: str) -> RunView:
    """Read a run's id and its newest plan. Raises UserError when the directory is no run, HostError for the link."""
    answer = transport.run(_LOAD, run_dir)
    name, number, plan = (*answer.text.split("\n", 2), "", "")[:3]
    if answer.code != 0 or not name or not number.isdecimal():
        raise UserError(
            f"{run_dir} on {transport.host} is no run directory",
            "a run is a folder below ~/comborun (or the grid's `root:`) that holds `id` and `plan-1.json`",
        )
    try:
        return RunView(name, transport.host, run_dir, Plan.from_json(plan), int(number))
    except (ValueError, KeyError, TypeError) as error:
        raise UserError(
            f"the plan of {run_dir} on {transport.host} can't be read: {error!r}",
            "was it written by another version of comborun?",
        ) from error
