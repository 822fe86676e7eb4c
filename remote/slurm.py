"""Slurm on a login node: whether it is there, and whether it would accept the jobs of a plan.

Later the run's host program submits, asks and cancels; `dispatch/engine` says that Slurm starts its sessions.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

from comborun.errors import HostError
from comborun.generate.slurm_jobs import array_script, kinds, settle_script
from comborun.remote import program
from comborun.remote.transport import LOCAL

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from comborun.model.plan import Plan
    from comborun.remote.transport import Transport

_MOST_TRIED = 20
"""kinds of requests that are tested before a launch; Slurm refuses others when they are submitted"""

_CONSULT = r"""
command -v sbatch >/dev/null || exit 69
config=$(timeout 20 scontrol show config 2>&1) || { printf '%s\n' "$config" >&2; exit 75; }
printf '%s\0' "$config"
printf '%s\0' "$(timeout 20 sinfo -h -o '%P|%a|%t|%D' 2>/dev/null)"
for text in "$@"; do
  said=$(timeout 20 sbatch --test-only 2>&1 <<<"$text")
  printf '%s\0%s\0' "$?" "$said"
done
"""
_SETTING = re.compile(r"^(\w+) *= *(.*?) *$", re.MULTILINE)
_LOUD = re.compile(r"^(sbatch: )?(error: |fatal: |allocation failure: )?(Job \d+ )?")
_USAGE = re.compile(r'^(sbatch: )?(error: )?Try ["\'`]')
_NOT_NOW = re.compile(r"Requested node configuration is not available|Required node not available")
"""--test-only says this if no node can start the job now; sbatch itself lets a job wait for nodes that are away"""
_UP = re.compile(r"(alloc|comp|idle|mix|plnd)[-+~#]?")
"""states in which a node takes jobs, in sinfo's short words; Slurm wakes powered-down nodes"""


@dataclass(frozen=True)
class SubmitTest:
    taken: bool
    said: str
    away: str = ""
    """why `said` may change later: `while 2 nodes take no jobs`"""

    @property
    def refused(self) -> bool:
        """Whether sbatch would refuse it too. While nodes are away, only sbatch itself can say."""
        return not self.taken and not self.away


@dataclass(frozen=True)
class Cluster:
    name: str
    version: str
    arrays: tuple[SubmitTest, ...]
    """one for each kind of request of the plan, in order; not for all if there are many"""
    settle: SubmitTest

    def __str__(self) -> str:
        return f"{self.name}, Slurm {self.version}"


def consult(transport: Transport, plan: Plan) -> Cluster:
    """Test the plan's job scripts with Slurm; nothing is submitted. Raises HostError without sbatch or its answer."""
    slurm = plan.slurm
    assert slurm
    scripts = [array_script(kind, slurm) for kind in kinds(plan)[:_MOST_TRIED]]
    done = transport.run(_CONSULT, settle_script(slurm, after=bool(plan.after)), *scripts, timeout=120)
    if done.code == 69:
        here = transport.host == LOCAL
        raise HostError(
            f"there is no sbatch on {'this machine' if here else transport.host}",
            "run this on a login node, or name one: --host LOGIN_NODE"
            if here
            else f"is it a login node, and does `ssh {transport.host} command -v sbatch` find it?",
        )
    words = done.text.split("\0")
    if done.code or len(words) < 4:
        raise HostError(f"Slurm does not answer on {transport.host}", done.complaint or "try again in a minute")
    settings = dict(_SETTING.findall(words[0]))
    options = [slurm.settle_options, *(slurm.options for _ in scripts)]
    settle, *arrays = (
        _submit_test(code, said, _away(words[1], its))
        for code, said, its in zip(words[2::2], words[3::2], options, strict=False)
    )
    return Cluster(
        name=settings.get("ClusterName", "a cluster"),
        version=settings.get("SLURM_VERSION", "of unknown version"),
        arrays=tuple(arrays),
        settle=settle,
    )


def settle(transport: Transport, directory: str) -> str:
    """Let a run submit its due tasks now, not only when an array ends. Returns its message, if any."""
    done = program.run(transport, directory, "settle", timeout=180)
    said = done.text.strip() or done.complaint
    return f"it is submitted later: {said}" if done.code else said


def check_taken(transport: Transport, plan: Plan, cluster: Cluster) -> tuple[str, ...]:
    """Doubts about jobs while nodes are away. Raises HostError, with Slurm's own words, if it would refuse some."""
    if refused := refusal(transport, plan, cluster):
        raise refused
    doubts = [(what, answer) for what, answer in _requests(plan, cluster) if not answer.taken]
    return tuple(f"{what} can't start now, {answer.away}: {answer.said}" for what, answer in doubts)


def refusal(transport: Transport, plan: Plan, cluster: Cluster) -> HostError | None:
    """An error about the jobs that Slurm would refuse, with its own words for each; None if it accepts all."""
    refused = [f"\n  {what}: {answer.said}" for what, answer in _requests(plan, cluster) if answer.refused]
    if not refused:
        return None
    return HostError(
        f"Slurm on {transport.host} would not take these jobs:{''.join(refused)}",
        'what nodes have: sinfo -o "%P %l %c %m %G %f"; what is asked for: combo plan GRID --slurm',
    )


def _requests(plan: Plan, cluster: Cluster) -> Iterator[tuple[str, SubmitTest]]:
    for kind, answer in zip(kinds(plan), cluster.arrays, strict=False):
        yield (
            f"a task with {kind}" if kind.asks else "a task that asks for nothing but a place in the partition",
            answer,
        )
    yield "the small job that retries and ends the run", cluster.settle


def _submit_test(code: str, said: str, away: str) -> SubmitTest:
    if code == "124":
        return SubmitTest(taken=False, said="no answer within 20 s")
    lines = [line for line in said.splitlines() if line.strip() and not _USAGE.match(line)]
    # Slurm warns before it refuses
    line = next((line for line in reversed(lines) if "error:" in line), lines[-1] if lines else f"exit code {code}")
    text = _LOUD.sub("", line)
    return SubmitTest(code == "0", text, away if code != "0" and _NOT_NOW.search(text) else "")


def _away(sinfo: str, options: Sequence[str]) -> str:
    """The partitions or nodes for a job that take no jobs now; empty if all do, or if unknown."""
    rows = [row for line in sinfo.splitlines() if len(row := line.split("|")) == 4]
    wanted = {name for option in options if option.startswith("--partition=") for name in option[12:].split(",")}
    rows = [row for row in rows if (row[0].rstrip("*") in wanted if wanted else row[0].endswith("*"))]
    if closed := sorted({row[0].rstrip("*") for row in rows if row[1] != "up"}):
        return f"while the partition {', '.join(closed)} takes no jobs"
    away = sum(int(row[3]) if row[3].isdecimal() else 1 for row in rows if not _UP.fullmatch(row[2]))
    nodes = "1 node takes" if away == 1 else f"{away} nodes take"
    return f"while {nodes} no jobs" if away else ""
