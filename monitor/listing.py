"""The runs on many hosts, with their states; of a host that does not answer, as they were last seen."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from comborun.errors import UserError
from comborun.model.codec import chosen
from comborun.monitor.observe import last_look, load_run
from comborun.monitor.watch import Clock, Source, last_seen, once
from comborun.monitor.wording import listed
from comborun.remote.runs import STAMPED, Listing, Run, list_everywhere, number, remembered

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from comborun.monitor.status import RunStatus
    from comborun.remote.transport import Transport

_MOST_LOOKS = 20
"""of a host's runs that are not done"""


def look_everywhere(
    transports: Mapping[str, Transport], runs_on: Callable[[Transport], tuple[Run, ...]]
) -> tuple[Listing, ...]:
    """A listing for each host; for one that does not answer, also one for each run launched since it was listed."""
    found = list_everywhere(transports, lambda host: looked_at(transports[host], runs_on(transports[host])))
    return (*found, *(launched for one in found if one.complaint for launched in _since(one)))


def looked_at(transport: Transport, there: tuple[Run, ...]) -> tuple[Run, ...]:
    """The runs, and the present state of the newest ones that are not done."""
    going = [run for run in there if not run.done][:_MOST_LOOKS]
    return tuple(replace(run, now=_now(transport, run)) if run in going else run for run in there)


def _now(transport: Transport, run: Run) -> dict[str, Any]:
    """The state of a run; empty if it is unknown, for example because an older comborun made the run."""
    try:
        return _now_of(once(Source(transport, load_run(transport, run.directory))))
    except UserError:
        return {}


def _since(one: Listing) -> Iterator[Listing]:
    """The runs launched there since it was listed, each as `combo status` last saw it."""
    launched = {launch.run: launch for launch in remembered() if launch.host == one.host and STAMPED.search(launch.run)}
    for launch in launched.values():
        run, look = Run(launch.run, launch.directory, {}), last_look(launch.host, launch.run, launch.directory)
        if run.id not in {known.id for known in one.runs} and run.started >= (one.seen or 0):
            now = _now_of(last_seen(look, one.complaint, Clock())) if look else {}
            yield Listing(one.host, (replace(run, now=now),), look.at if look else None, one.complaint)


def _now_of(seen: RunStatus) -> dict[str, Any]:
    words = {"finished": seen.finished, "seconds": seen.seconds, "abandoned": seen.abandoned}
    return words | {"counts": seen.counts(), "smoke": seen.smoke()}


def each_once(found: Iterable[Listing]) -> list[tuple[Listing, Run]]:
    """All runs, the newest first. If several hosts (or names of a host) list a run, the one that knows more about it
    counts, else the host of its latest launch.
    """
    launched = {launch.run: launch.host for launch in remembered()}

    def knows(entry: tuple[Listing, Run]) -> tuple[bool, ...]:
        one, run = entry
        return not one.complaint, not run.now.get("abandoned"), launched.get(run.id) == one.host

    entries = [(one, run) for one in found for run in one.runs]
    best = {entry[1].id: entry for entry in sorted(entries, key=knows)}
    chosen = (entry for entry in entries if best[entry[1].id] is entry)
    return sorted(chosen, key=lambda entry: entry[1].stamp, reverse=True)


def to_document(one: Listing, run: Run) -> dict[str, Any]:
    """In the words of `combo status --json`."""
    kind, why = (run.held.get(key, "") for key in ("kind", "why"))
    hold = {"kind": kind, "since": number(run.held.get("at")), "why": why}
    return {
        "host": one.host,
        **chosen(run, "grid", "canary", "directory", "finished", "counts", "smoke", "started", "seconds", id="run"),
        "reachable": not one.complaint,
        "last_seen_seconds": max(0.0, time.time() - one.seen) if one.seen else None,
        "stopped": kind == "stopped",
        "hold": hold if kind not in {"", "stopped"} else None,
    }


def state(run: Run) -> str:
    """What stops the run, if anything, and how many sessions are in each state; the smoke test separately."""
    why = " ".join(run.held.get("why", "").split())
    held = run.held.get("kind", "") if not run.done else ""
    held = "dispatcher gone" if run.now.get("abandoned") else held + (f" ({why})" if held and why else "")
    counts = listed(run.counts) or ("ended" if run.done else "" if held else "not known")
    smoke = f"; smoke test: {listed(run.smoke)}" if run.smoke else ""
    return ": ".join(filter(None, (held, counts))) + smoke
