"""The runs on many hosts: those under way with their state, and those of a host that is away as they were last seen."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from comborun.errors import UserError
from comborun.monitor.observe import load_run
from comborun.monitor.saved import last_look
from comborun.monitor.watch import Clock, Source, last_seen, once
from comborun.remote.runs import STAMPED, Listing, Run, list_everywhere, remembered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    from comborun.monitor.status import RunStatus
    from comborun.remote.transport import Transport

_MOST_LOOKS = 20
"""of a host's runs that are not done"""


def look_everywhere(
    transports: Mapping[str, Transport], runs_on: Callable[[Transport], tuple[Run, ...]]
) -> tuple[Listing, ...]:
    """A listing for each host; for a host that is away, also one for each run that was launched since it was listed."""
    found = list_everywhere(transports, lambda host: _looked_at(transports[host], runs_on(transports[host])))
    return (*found, *(launched for one in found if one.complaint for launched in _since(one)))


def _looked_at(transport: Transport, there: tuple[Run, ...]) -> tuple[Run, ...]:
    """The newest of those that are not done with their state now."""
    going = [run for run in there if not run.done][:_MOST_LOOKS]
    return tuple(replace(run, now=_now(transport, run)) if run in going else run for run in there)


def _now(transport: Transport, run: Run) -> dict[str, Any]:
    """Empty where that can't be told, for example because an older comborun made the run."""
    try:
        return _state(once(Source(transport, load_run(transport, run.directory))))
    except UserError:
        return {}


def _since(one: Listing) -> Iterator[Listing]:
    """The runs that were launched there since it was listed, each as `combo status` saw it last."""
    launched = {launch.run: launch for launch in remembered() if launch.host == one.host and STAMPED.search(launch.run)}
    for launch in launched.values():
        run, look = Run(launch.run, launch.directory, {}), last_look(launch.host, launch.run, launch.directory)
        if run.id not in {known.id for known in one.runs} and run.started >= (one.seen or 0):
            now = _state(last_seen(look, one.complaint, Clock())) if look else {}
            yield Listing(one.host, (replace(run, now=now),), look.at if look else None, one.complaint)


def _state(seen: RunStatus) -> dict[str, Any]:
    words = {"finished": seen.finished, "seconds": seen.seconds, "abandoned": seen.abandoned}
    return words | {"counts": seen.counts(), "smoke": seen.smoke()}
