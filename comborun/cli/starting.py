"""From a grid file to a run under way: check, lay out, settle where it runs, deliver, start. Safe to repeat."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from comborun.again.smoke import smoke_sessions
from comborun.cli.check import check_setup, warn_of_host
from comborun.cli.globbing import with_policies
from comborun.cli.on_slurm import check_cluster, lines_said, refuse_options
from comborun.cli.settling import Settled, settle
from comborun.cli.terminal import program, warn
from comborun.grid import load_grid, parse_grid
from comborun.monitor.answer.holds import HALTED, Hold
from comborun.monitor.beginning import await_beginning, lacking
from comborun.monitor.reasons.hints import held
from comborun.remote.control import steer
from comborun.remote.earlier import laid_out, measured_notes
from comborun.remote.host import ask, check
from comborun.remote.launch import StartOptions, await_added, start
from comborun.remote.program import Python
from comborun.remote.provenance import preset_origin, provenance, shipped_origin
from comborun.remote.publish import Draft
from comborun.remote.replace import replaced
from comborun.remote.runs import Launch, remember
from comborun.remote.secrets import asked_of_host, check_host, from_laptop
from comborun.remote.shipping import digest_of, survey
from comborun.remote.sync import compare as compare_files
from comborun.remote.sync import deliver, lines

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from comborun.cli.request import Request
    from comborun.grid import Grid
    from comborun.grid.globbed import Found
    from comborun.plan import Plan
    from comborun.remote.publish import Publication
    from comborun.remote.shipping import Shipment
    from comborun.remote.transport import Transport
    from comborun.resources import HostFacts


@dataclass(frozen=True)
class Launched:
    transport: Transport
    plan: Plan
    """of the run from now on"""
    publication: Publication
    options: str
    """what every later command needs to find the host, as it is typed"""
    shipped: tuple[str, ...] = ()
    replaced: tuple[str, ...] = ()
    submitted: tuple[str, ...] = ()
    """what was handed to Slurm, where it starts the sessions"""
    changes: tuple[str, ...] = ()
    """what the run takes over from a grid that has changed, what not, and what no longer holds it"""
    hold: Hold | None = None
    """what a person has ordered, so that nothing was started"""
    waits: str = ""
    """what the first session waits for, `waits for ...`; empty when one has begun, or nobody looked"""
    lacks: str = ""
    """what a run that has finished has not done"""


def start_run(request: Request) -> Launched:
    """Check, publish and start a grid; safe to repeat, so that an interruption loses nothing."""
    runs: list[str] = []
    try:
        return _start_run(request, runs.append)
    except KeyboardInterrupt:
        click.echo(f"\nInterrupted. {_rest(request, runs)}.", err=True)
        raise


def _rest(request: Request, runs: list[str]) -> str:
    """What does the rest of a launch that was interrupted: with --new the same command would make another run."""
    if not request.new:
        return "What had been started goes on; the same command again does the rest"
    rest = "the same command without --new does the rest"
    if runs:
        return f"The run {runs[-1]} is there, and what had been started goes on; {rest}"
    return f"If `{program()} runs` shows a new run, {rest}; else nothing was started"


def _start_run(request: Request, tell_run: Callable[[str], None]) -> Launched:
    if request.slurm:
        refuse_options(request)
    grid = load_grid(request.grid)
    warn(grid)
    check_setup(grid)
    secrets, shipments = from_laptop(grid.secrets), survey(grid.sync, grid.path.parent)
    transport = request.where.connect(grid.host)
    grid = with_policies(grid, transport)
    facts = _facts(transport, grid, request)

    def planned(found: Found | None = None) -> Plan:
        meant = parse_grid(grid.text, grid.path, found) if found else grid
        return laid_out(meant, facts, digest_of(shipments), slurm=request.slurm)

    plan = planned()
    if plan.slurm:
        check_cluster(transport, plan)
    else:
        warn_of_host(grid, facts)
    python = Python(known=facts.python)
    deliveries = compare_files(transport, shipments, python)
    draft = Draft(plan, grid.text, grid.root, _origin(grid, facts, shipments), python)
    settled = settle(transport, draft, request, planned)
    publication = settled.publication
    tell_run(publication.run)
    way = request.where.way(transport.host)
    remember(Launch(publication.run, transport.host, publication.root, publication.directory, grid.name, way))
    launched = Launched(
        transport,
        settled.plan,
        publication,
        request.where.options(transport.host),
        changes=(*publication.told, *settled.changes),
    )
    if publication.state == "new":
        launched = replace(launched, changes=(*launched.changes, *measured_notes(plan, grid, facts)))
    if publication.state == "finished":
        return replace(launched, lacks=lacking(transport, publication.directory))
    if settled.plan.shipped != plan.shipped:  # the run keeps the files that it was planned with
        deliveries = ()
    deliver(transport, deliveries, publication.root, python)
    return _set_going(request, replace(launched, shipped=tuple(lines(deliveries))), settled, secrets)


def _facts(transport: Transport, grid: Grid, request: Request) -> HostFacts:
    """What the host is. Raises HostError where the grid's sessions can't run there, or a secret is missing."""
    facts = ask(transport, asked_of_host(grid.secrets), grid.host_python)
    check(facts, request.multiplexer, windows=not request.slurm)
    check_host(facts)
    return facts


def _origin(grid: Grid, facts: HostFacts, shipments: Sequence[Shipment]) -> dict[str, Any]:
    """Where the run comes from, for its manifest."""
    return {
        **provenance(grid.path, grid.text, facts),
        "preset": preset_origin(grid.preset),
        "sync": shipped_origin(shipments),
    }


def _set_going(request: Request, launched: Launched, settled: Settled, secrets: bytes) -> Launched:
    """Start what has been published, unless a person holds it, and wait for its first session."""
    transport = launched.transport
    slots = _slots(request, settled)
    if settled.hold and settled.hold.kind != HALTED:
        told = _only_slots(transport, settled, slots)
        return replace(launched, hold=settled.hold, changes=(*launched.changes, *told))
    lifted = _lift(transport, settled)
    said = _start(transport, settled, StartOptions(slots, request.multiplexer, secrets))
    if settled.plan.slurm:  # whose nodes may be busy for days
        launched = replace(launched, submitted=tuple(lines_said(said)))
    elif not settled.added:
        waits = await_beginning(transport, settled.publication.directory, launched.options)
        launched = replace(launched, waits=waits)
    return replace(launched, replaced=replaced(said), changes=(*launched.changes, *lifted))


def _only_slots(transport: Transport, settled: Settled, slots: int | None) -> tuple[str, ...]:
    """What a run that a person holds is told: how many may run at once when it goes on."""
    return steer(transport, settled.publication.directory, "slots", str(slots)).lines if slots else ()


def _lift(transport: Transport, settled: Settled) -> tuple[str, ...]:
    """Let a run go on that comborun itself has halted, or that it keeps from GPUs; a sentence each."""
    directory, found = settled.publication.directory, settled.publication.found
    if not found or not found.held:
        return ()
    steer(transport, directory, "resume")
    if tried := [session.name for session in smoke_sessions(settled.plan)]:
        steer(transport, directory, "retry", *tried)
    return (f"no longer {held(settled.hold)}" if settled.hold else "GPUs that were in quarantine are used again",)


def _start(transport: Transport, settled: Settled, options: StartOptions) -> str:
    """Start the dispatcher, or let it go on; what was said of it."""
    directory = settled.publication.directory
    said = start(transport, directory, options)
    if settled.plan.slurm or not settled.added:
        return said
    if not await_added(transport, directory, settled.added):
        said = start(transport, directory, options)
    return said


def _slots(request: Request, settled: Settled) -> int | None:
    """Sessions at once; None leaves them as they are, which may be as somebody set them meanwhile."""
    found, parallel = settled.publication.found, settled.plan.limits.parallel
    if settled.plan.slurm:
        return request.parallel
    return request.parallel or (parallel if found and found.plan.limits.parallel != parallel else None)
