"""RLinf's component placement strings (`cluster.component_placement`): which process of a component has which GPUs.

    string    := part ("," part)*             empty parts are skipped; a number is read as its digits
    part      := resources [":" processes]
    resources := N | N-M (N <= M) | "all" (in any case)
    processes := N | N-M                      without them: one for each resource, counted on from the last one
    N         := text that Python's int() accepts: with blanks, a plus sign, underscores, digits of any script

Resources ascend over all parts and are below the number that there is. Processes ascend without a gap, from any first
one. Within a part, one of the two counts divides the other: either each process has several resources, or each
resource several processes, consecutive ones in both cases.

The rules, their order and the error that each raises are those of RLinf a3816b59 (parse_rank_config in
rlinf/scheduler/cluster/utils.py, ComponentPlacement and FlexiblePlacementStrategy in rlinf/scheduler/placement).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from comborun.errors import UserError

RlinfError = Literal["ValueError", "AssertionError"]
MOST_PROCESSES = 100_000
"""of one component; RLinf has no such bound, and would fill the memory of the host"""

_SHAPE = "such as 0-3, all, or 0-1:0-3 for the processes 0 to 3 on the GPUs 0 and 1"


class PlacementError(UserError):
    """A placement string that RLinf refuses."""

    def __init__(self, message: str, hint: str, raises: RlinfError = "AssertionError") -> None:
        super().__init__(message, hint)
        self.raises: RlinfError = raises
        """what RLinf itself would raise, in the middle of its start"""


@dataclass(frozen=True)
class _Ranks:
    """Consecutive numbers."""

    first: int
    last: int

    @property
    def count(self) -> int:
        return self.last - self.first + 1


@dataclass(frozen=True)
class _Part:
    resources: _Ranks
    processes: _Ranks


def parse_placement(text: str | int, resources: int) -> dict[int, list[int]]:
    """Process -> its GPUs, ascending in both, where there are `resources` GPUs, numbered from 0.

    Raises PlacementError for all that RLinf refuses, and for more than MOST_PROCESSES.
    """
    whole = str(text)
    placed: dict[int, list[int]] = {}
    last: _Part | None = None
    for written in filter(None, map(str.strip, whole.split(","))):
        last = _part(written, last, resources)
        placed |= _dealt(last)
    if not placed:
        raise PlacementError(f"`{whole}` places no process", _SHAPE)
    return placed


def _part(text: str, before: _Part | None, resources: int) -> _Part:
    """One part, checked against the one before it in the order in which RLinf does it."""
    sides = text.split(":")
    if len(sides) > 2:
        raise PlacementError(f"`{text}` has more than one colon", "GPUs:processes; a comma begins the next part")
    gpus = _resources(sides[0].strip(), text, resources)
    if before and gpus.first <= before.resources.last:
        _refuse_order(gpus, before.resources, text)
    processes = _processes(sides[1].strip(), text) if len(sides) == 2 else _counted_on(gpus, before)
    if before and processes.first != before.processes.last + 1:
        expected = before.processes.last + 1
        raise PlacementError(
            f"`{text}`: its first process is {processes.first}, and {expected} comes next",
            "processes are numbered on from part to part, without a gap and without a repeat",
        )
    if processes.last >= MOST_PROCESSES:
        raise PlacementError(f"`{text}`: no host runs so many processes", f"number them below {MOST_PROCESSES:,}")
    if processes.count % gpus.count and gpus.count % processes.count:
        raise PlacementError(
            f"`{text}`: {processes.count} processes can't be dealt evenly to {gpus.count} GPUs",
            "in each part, one number divides the other; a comma begins another part",
        )
    return _Part(gpus, processes)


def _resources(side: str, part: str, resources: int) -> _Ranks:
    everything = _Ranks(0, resources - 1)
    ranks = everything if side.lower() == "all" else _ranks(side, part)
    if ranks is None:
        raise PlacementError(f"`{part}` names no GPU", _SHAPE)
    if resources < 1:
        raise PlacementError(f"`{part}`: there is no GPU, the host has none", "`nvidia-smi -L` on the host lists them")
    if ranks.last > everything.last:
        there = f"the host has {resources}, numbered 0 to {everything.last}"
        raise PlacementError(f"`{part}`: there is no GPU {ranks.last}: {there}", "lower it, or write `all`")
    return ranks


def _processes(side: str, part: str) -> _Ranks:
    if side.lower() == "all":
        raise PlacementError(f"`{part}`: processes can't be `all`", "`all` alone has one process for each GPU")
    ranks = _ranks(side, part)
    if ranks is None:
        raise PlacementError(f"`{part}` names no process", "leave the colon out: one process for each GPU")
    return ranks


def _ranks(text: str, part: str) -> _Ranks | None:
    """One or two numbers; None where there is no text at all. A minus sign is taken for the dash of a range."""
    if not text:
        return None
    try:
        ends = [int(end) for end in text.split("-")]
    except ValueError:
        ends = []
    if len(ends) not in {1, 2}:
        raise PlacementError(f"`{part}`: `{text}` is neither a number nor two with a dash", _SHAPE, "ValueError")
    first, last = ends[0], ends[-1]
    if first > last:
        raise PlacementError(f"`{part}`: {first} is above {last}", f"write {last}-{first}")
    return _Ranks(first, last)


def _counted_on(gpus: _Ranks, before: _Part | None) -> _Ranks:
    first = before.processes.last + 1 if before else 0
    return _Ranks(first, first + gpus.count - 1)


def _refuse_order(gpus: _Ranks, before: _Ranks, part: str) -> None:
    if gpus.last >= before.first:
        again = max(gpus.first, before.first)
        message = f"`{part}`: GPU {again} stands in a part before it"
        raise PlacementError(message, f"name each GPU once; `{again}:0-1` puts two processes on it")
    raise PlacementError(f"`{part}`: GPU {gpus.first} after {before.last}", "name GPUs in ascending order")


def _dealt(part: _Part) -> dict[int, list[int]]:
    """Consecutive GPUs for each process, or consecutive processes on each GPU."""
    gpus, processes = part.resources, part.processes
    several = max(1, gpus.count // processes.count)
    sharing = max(1, processes.count // gpus.count)
    return {
        processes.first + place: [gpus.first + place * several // sharing + further for further in range(several)]
        for place in range(processes.count)
    }
