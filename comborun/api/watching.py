"""Watches a run: one look, or one after the other until it has finished."""

from __future__ import annotations

from typing import TYPE_CHECKING

from comborun.monitor.observe import last_look
from comborun.monitor.watch import Clock, last_seen, once

if TYPE_CHECKING:
    from comborun.api.named import Target
    from comborun.monitor.status import RunStatus


def status_of(target: Target) -> RunStatus:
    """The run now; if its host does not answer, as it was last seen."""
    if away := target.away:
        kept = last_look(target.transport.host, target.run, target.directory)
        if kept is None:
            raise away
        return last_seen(kept, away.headline, Clock())
    with target.listener.working(f"looking at {target.run}"):
        return once(target.source())
