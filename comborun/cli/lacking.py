"""What a run that has finished lacks, for whoever launches its grid again."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comborun.amounts import several
from comborun.monitor.observe import load_run
from comborun.monitor.watch import Source, once

if TYPE_CHECKING:
    from comborun.monitor.status import RunStatus
    from comborun.transport import Transport


def lacking(transport: Transport, directory: str) -> str:
    """A sentence about what has not been done; empty where all has."""
    return told(once(Source(transport, load_run(transport, directory))))


def told(seen: RunStatus) -> str:
    """Pure. A session that did not do all of its work may have had others do the rest since."""
    missing = seen.planned - seen.done
    short = [one for one in seen.proper if not one.done_with]
    if not missing and all(one.done is not None for one in short):
        return ""
    units = {one.unit for one in seen.proper}
    noun = f"{units.pop()}s" if len(units) == 1 else "episodes and steps"
    missed = f", and {missing} of {seen.planned} {noun} are missing" if missing else ""
    return f"{len(short)} of {several(len(seen.proper), 'session')} did not succeed{missed}"
