"""A run on several hosts: its launch, its state, its stop, and hosts that are given up.

Each host has an ordinary run of the whole plan. A deal says which host runs what (`rules/deal.py`); it is made once,
with the run of the first host, so of two launches at once one deals.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from comborun.api.joint import newest_of
from comborun.api.launching import Started, remembered_target
from comborun.api.named import Target
from comborun.errors import HostError, UserError
from comborun.grid.checks.hosts import refused_together
from comborun.model.work import process_of
from comborun.monitor.beginning import await_beginning
from comborun.planner.dealing import Candidate, cut_of, cut_together, deal, ends, recut, rooms_of, same_work
from comborun.planner.laying import Drafts
from comborun.remote import boxes
from comborun.remote.boxes import Answered, Root, at_once
from comborun.remote.grids import known_of
from comborun.remote.launches import parts_of
from comborun.remote.launching import Launched, publish_run, start
from comborun.remote.preparing import Prepared, prepare
from comborun.remote.transport import in_threads
from comborun.rules.deal import Deal, Stops
from comborun.text import several
from comborun.words.times import brief

if TYPE_CHECKING:
    from comborun.api.named import GridChoice, HostChoice
    from comborun.grid import Grid
    from comborun.grid.keys.launch import HostKeys
    from comborun.remote.preparing import LaunchRequest
    from comborun.remote.transport import Transport

_CLOCKS_S = 60.0
"""seconds of difference between two clocks that are worth a word"""


class _Seen(NamedTuple):
    """A host, before anything is sent."""

    prepared: Prepared
    root: Root | None
    """None if only the deal is shown"""


@dataclass(frozen=True)
class StartedTogether:
    target: Target
    parts: tuple[Started, ...]
    """of the hosts that were started, the first one first"""
    deal: Deal
    left_out: Mapping[str, str]
    """host -> why it was left out"""
    seconds: Mapping[str, float]
    """host -> how long it is expected to take; empty if that is not known, or if the run was dealt earlier"""

    @property
    def counts(self) -> dict[str, int]:
        """Host -> sessions that it runs."""
        names = [process_of(one) for one in self.parts[0].launched.plan.whole.sessions if one.flag != "dropped"]
        owners = [self.deal.of.get(name, self.deal.boxes[0]) for name in names]
        return {host: owners.count(host) for host in self.deal.boxes}


class TogetherRequest(NamedTuple):
    hosts: tuple[HostKeys, ...]
    leave_out: bool = False
    """whether hosts that can't be used are left out"""


_HOSTS = re.compile(r"""^["']?hosts\b""", re.MULTILINE)


def several_hosts(chosen: GridChoice, named: tuple[str, ...]) -> tuple[HostKeys, ...]:
    """The hosts of a launch on several: those that were named, or those of the grid; none for a launch on one."""
    if len(named) == 1:
        return ()
    asked = any(_HOSTS.match(setting) for setting in chosen.given)
    text = chosen.path.read_text("utf-8", "replace") if chosen.path.is_file() else ""
    if not named and not asked and not _HOSTS.search(text):
        return ()
    return chosen.read().shared_by(named)


class Dealt(NamedTuple):
    """Who would run what. Nothing is sent yet."""

    deal: Deal
    drafts: Mapping[str, Prepared]
    """of each host, with the cut of all of them"""
    seconds: Mapping[str, float]
    """how long each host is expected to take; empty if no time is known"""
    left_out: Mapping[str, str]
    choices: Mapping[str, HostChoice]


def dealt_together(
    chosen: GridChoice, where: HostChoice, request: LaunchRequest, together: TogetherRequest, *, changes: bool = False
) -> Dealt:
    """Look at all hosts, and deal the sessions. With `changes` each folder of runs gets its id."""
    listener, grid = where.listener, chosen.read()
    listener.warn(*map(str, grid.warnings))
    _refuse(grid, request)
    grids = {entry.host: grid.on(entry) for entry in together.hosts}
    choices = {host: replace(where, host=host, root=own.root) for host, own in grids.items()}
    transports = {host: in_threads(choice.connect()) for host, choice in choices.items()}
    with listener.working(f"looking at {several(len(grids), 'host')}"):
        shared = Drafts()
        looks = {host: partial(_look, request, grids[host], transports[host], shared) for host in grids}
        found = at_once({host: partial(look, changes=changes) for host, look in looks.items()})
    lost = {} if request.new else _given_up(grid.name, {host: transports[host] for host in found.done})
    for host in lost:
        found.done.pop(host, None)
        found.failed.pop(host, None)
    seen, left_out = _usable(found, leave_out=together.leave_out)
    left_out |= {host: why for host, why in lost.items() if host in grids}
    for host, one in seen.items():
        listener.warn(*(f"{host}: {warning}" for warning in one.prepared.warnings))
    for line in _clocks(seen):
        listener.tell(line)
    candidates = [
        Candidate(host, one.prepared.plan, one.prepared.facts, known_of(grids[host], one.prepared.facts))
        for host, one in seen.items()
    ]
    cut = cut_together(grid, candidates)
    candidates = [one._replace(plan=recut(one.plan, cut)) for one in candidates]
    same_work(candidates)
    rooms = rooms_of(candidates)
    dealt = deal([process_of(one) for one in candidates[0].plan.current], rooms)
    hosts = [one.host for one in candidates]
    fresh = Deal(
        {"grid_run": secrets.token_hex(8), "box": hosts[0], "number": [0, 0], "boxes": hosts, "of": dealt, "lost": {}}
    )
    drafts = {one.host: replace(seen[one.host].prepared, plan=one.plan) for one in candidates}
    timed = any(session.expected_s for one in candidates for session in one.plan.current)
    return Dealt(fresh, drafts, ends(dealt, rooms) if timed else {}, left_out, choices)


def start_together(
    chosen: GridChoice, where: HostChoice, request: LaunchRequest, together: TogetherRequest
) -> StartedTogether:
    """Check, deal, publish and start a grid on several hosts. This is safe to repeat."""
    listener, found = where.listener, dealt_together(chosen, where, request, together, changes=True)
    with listener.working(f"bringing the run to {several(len(found.drafts), 'host')}"):
        made = _publish(found.drafts, found.deal, listener.tell)
    target = _target(chosen, found, made)
    with listener.working(f"starting on {several(len(made.launched), 'host')}"):
        parts = _start(found.drafts, made, target)
    new = found.seconds if made.deal.grid_run == found.deal.grid_run else {}
    return StartedTogether(target, parts, made.deal, found.left_out, new)


def _refuse(grid: Grid, request: LaunchRequest) -> None:
    for _, why, hint in refused_together(grid):
        raise UserError(why, hint)
    if request.slurm:
        raise UserError("--slurm with several hosts: a cluster has its own nodes", "name one host")
    if request.smoke:
        raise UserError(
            "--smoke with several hosts is not possible yet",
            "`combo try GRID --host H` runs an episode on one of them first",
        )


def _look(request: LaunchRequest, grid: Grid, transport: Transport, drafts: Drafts, *, changes: bool) -> _Seen:
    prepared = prepare(request, grid, lambda _: transport, drafts)
    if not changes:
        return _Seen(prepared, None)
    return _Seen(prepared, boxes.root_of(transport, grid.root, prepared.facts.python))


def _given_up(name: str, transports: Mapping[str, Transport]) -> dict[str, str]:
    """The hosts that a person has given up for the newest run of this grid, as the others say."""
    looks = {
        one.host: partial(boxes.look, transports[one.host], one.directory)
        for one in parts_of(name)
        if one.host in transports
    }
    there = at_once(looks).done if looks else {}
    lost = newest_of(there)[0].lost if there else {}
    return dict.fromkeys(lost, "given up by `combo hosts lost`")


def _usable(found: Answered[_Seen], *, leave_out: bool) -> tuple[dict[str, _Seen], dict[str, str]]:
    """The hosts that can be used, and why others can't. Raises UserError unless those may be left out."""
    seen = dict[str, _Seen]()
    why = {
        host: one.message + (f" ({one.hint})" if isinstance(one, HostError) and one.hint else "")
        for host, one in found.failed.items()
    }
    for host, one in found.done.items():
        roots = {name: other.root.id for name, other in seen.items() if other.root}
        twin = next((name for name, root in roots.items() if one.root and root == one.root.id), None)
        if twin:
            raise UserError(
                f"{twin} and {host} have the same folder for runs, {one.prepared.grid.root}: one home on two machines",
                f"use a local root: `hosts: [{twin}, {{host: {host}, root: /data/comborun}}]`, or name one of them",
                code="same_root",
            )
        seen[host] = one
    if why and (not leave_out or not seen):
        lines = "".join(f"\n  {host}: {reason}" for host, reason in why.items())
        hint = "mend that" + (", or add --leave-out to run without them" if seen else "")
        raise UserError(
            f"{several(len(why), 'host')} of {len(why) + len(seen)} can't be used:{lines}", hint, code="not_ready"
        )
    return seen, why


def _clocks(seen: Mapping[str, _Seen]) -> list[str]:
    """Hosts whose clock is wrong. Nothing is decided by it, but records hold its times."""
    times = sorted((one.root.now, host) for host, one in seen.items() if one.root)
    if not times:
        return []
    middle = times[len(times) // 2][0]
    return [
        f"! the clock of {host} is {brief(abs(now - middle))} {'ahead' if now > middle else 'behind'}: its records"
        " hold these times"
        for now, host in times
        if abs(now - middle) > _CLOCKS_S
    ]


class _Made(NamedTuple):
    deal: Deal
    stops: Stops
    launched: dict[str, Launched]
    """of the hosts that take part now"""


def _publish(drafts: Mapping[str, Prepared], fresh: Deal, tell: Callable[[str], object]) -> _Made:
    """Publish the run of the first host, which decides; then those of the others, all at once."""

    def refuse(changes: str) -> bool:
        raise UserError(changes, "--new starts another run", code="changed_grid")

    def put(host: str, given: Deal) -> Launched:
        return publish_run(replace(drafts[host], deal=given.at(host)), refuse, tell)

    first = fresh.boxes[0]
    launched = {first: put(first, fresh)}
    publication = launched[first].publication
    state = boxes.look(drafts[first].transport, publication.directory)
    if state.deal.arbiter != first:
        raise UserError(
            f"{first} has a part of the run {publication.run}, whose first host is {state.deal.arbiter}",
            f"name {state.deal.arbiter} first; `combo hosts lost` gives up a host that is gone; --new starts another",
            code="other_first_host",
        )
    if publication.found is None and state.stops.in_force:
        raise UserError(f"{publication.run} was stopped while it was launched", "launch it again to continue")
    given, cut = state.deal, cut_of(launched[first].plan.whole)
    for host in (one for one in drafts if one not in given.boxes):
        tell(f"! {host} takes no part in {publication.run}: its hosts are those of its launch; --new starts another")
    others = [host for host in given.left if host != first and host in drafts]
    again = {host: replace(drafts[host], plan=recut(drafts[host].plan, cut)) for host in others}
    launched |= at_once(
        {host: partial(publish_run, replace(again[host], deal=given.at(host)), refuse, tell) for host in others}
    ).all()
    places = {host: (drafts[host].transport, launched[host].publication.directory) for host in others}
    states = {first: state} | at_once({host: partial(boxes.look, *place) for host, place in places.items()}).all()
    return _Made(*newest_of(states), launched)


def _target(chosen: GridChoice, found: Dealt, made: _Made) -> Target:
    """The run, which this machine remembers from now on."""
    parts = dict[str, Target]()
    named = "" if chosen.read().hosts else "".join(f" --host {host}" for host in made.deal.boxes)
    for host in reversed(made.launched):  # the first host is the last one that was launched on
        about = {
            "options": chosen.options + named,
            "grid_run": made.deal.grid_run,
            "place": made.deal.boxes.index(host),
        }
        publication = made.launched[host].publication
        parts[host] = remembered_target(chosen, found.drafts[host], publication, found.choices[host], **about)
    ordered = tuple(parts[host] for host in made.launched)
    return ordered[0]._replace(boxes=ordered, options="")


def _start(drafts: Mapping[str, Prepared], made: _Made, target: Target) -> tuple[Started, ...]:
    """Hand on the deal, lift stops that were seen, and start all hosts at once."""
    lifted = made.stops.joined(Stops(0, made.stops.stop))
    names = {process_of(one) for one in next(iter(made.launched.values())).plan.whole.sessions}

    def begin(part: Target) -> Started:
        host = part.transport.host
        boxes.take(*part.place, made.deal.at(host), lifted)
        launched = start(drafts[host], made.launched[host])
        own = [name for name in names if made.deal.at(host).runs_here(name)]
        waits = await_beginning(*part.place, part.options) if own and launched.begins else None
        return Started(part, launched, waits)

    return tuple(at_once({part.transport.host: partial(begin, part) for part in target.boxes}).all().values())
