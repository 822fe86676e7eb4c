"""The machine that a run belongs to. Every decision by pid and boot id asks here first.

The first dispatcher writes dispatch/machine. A dispatcher that leaves while nothing runs removes it. A machine claims a
run by a hard link, which only one can make, on any file system; a lock may not reach other machines. A user can take a
run over from a machine that was renamed or is gone (`take-over`); a dispatcher that notices this leaves.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping

from comborun.host.record.holds import over
from comborun.host.system import files, process
from comborun.host.verb_errors import ELSEWHERE, Refusal
from comborun.rules import machines, records
from comborun.rules.facts import Fact
from comborun.rules.names import SERVERS, RunLayout
from comborun.rules.run_files import attempts_of, shares_output

FROM = "taken_from"
"""in dispatch/machine while a user takes the run over: the former machine, whose attempts have no end yet"""


def elsewhere(layout: RunLayout) -> Fact | None:
    """Where the run goes on, if its processes can't be seen from here; None if they can, or if nothing runs."""
    if os.path.exists(layout.engine) or over(layout):  # Slurm knows its nodes
        return None
    if owner := files.read(layout.machine):
        return _elsewhere(owner)
    unfinished = (_elsewhere(record) for _, _, record in open_attempts(layout))
    return next(filter(None, unfinished), None)


def _elsewhere(record: Mapping[str, str]) -> Fact | None:
    own = process.machine()
    former = record.get(FROM) and Fact(machines.Elsewhere.MACHINE, host=record[FROM], here=own[machines.HOST])
    return machines.elsewhere(record, own) or former or None


def refuse_elsewhere(directory: str) -> None:
    """Raise Refusal if the run goes on where its processes can't be seen from here."""
    if fact := elsewhere(RunLayout(directory)):
        raise Refusal(ELSEWHERE, fact)


def open_attempts(layout: RunLayout) -> Iterator[tuple[str, int, dict[str, str]]]:
    """Name and number of each latest attempt that has no end, with its begin, else its claim."""
    for name in (*files.entries(layout.sessions), *(SERVERS + one for one in files.entries(layout.servers))):
        number = max(attempts_of(layout, name), default=0)
        at = layout.attempt(name, number)
        if (
            number
            and not shares_output(at)  # an attempt in a shared process ends with that process
            and not files.size(at.end)
            and (record := files.read(at.begin) or files.read(at.claim))
        ):
            yield name, number, record


def claim(layout: RunLayout) -> Fact | None:
    """Make this machine the owner of a run, for a dispatcher that holds its lock. Returns who else is, or None.

    Raises OSError if that can't be written.
    """
    text = records.render(process.machine().items())
    owner = files.read(layout.machine)
    if not owner and files.create_whole(layout.machine, text):
        return None
    owner = owner or files.read(layout.machine)
    found = _elsewhere(owner)
    if found and not over(layout):
        return found
    if not files.write_text(layout.machine, text):
        raise OSError(f"can't write {layout.machine}")
    return None


def ours(layout: RunLayout) -> bool:
    """Whether no other machine has taken the run over."""
    return not _elsewhere(files.read(layout.machine))


def release(layout: RunLayout) -> None:
    """Nothing of the run is left on this machine: any other one may go on with it."""
    if ours(layout):
        files.remove(layout.machine)
